import BackgroundRuntime
import Foundation

/// An app in its process: launched by the agent, or started by a person.
@MainActor
final class AppProcess {
    private let workers: [@Sendable () async -> Void]
    /// The observers of the app's body, evaluated anew.
    private let observers: () -> [ChangeObserver]

    /// What the app holds (a notification delegate, say) lives as long as the process.
    private static var current: AppProcess?

    /// Makes the app, and everything known that a launch may ask for.
    @discardableResult
    static func begin(_ makeApp: () -> some App) -> AppProcess {
        let app = makeApp()
        // Scenes come before the launch: a request submitted from a handler or from init must find its handler.
        let parts = app.body.collectParts()
        parts.actions.forEach { $0() }
        return AppProcess(parts.workers) { app.body.collectParts().observers }
    }

    private init(_ workers: [@Sendable () async -> Void], _ observers: @escaping () -> [ChangeObserver]) {
        (self.workers, self.observers) = (workers, observers)
        BackgroundLaunch.tellWhetherTimeMatters()
        Self.current = self
    }

    func run() {
        BackgroundLaunch.serveLaunch()
        Task {
            await serveThePerson()
            DeliveryGate.ofThisProcess.close { exit(0) }
        }
        RunLoop.main.run()
        dispatchMain()
    }

    /// From the foreground to the background, until nothing is left that this process has to wait for.
    func serveThePerson() async {
        let observation = SceneObservation(observers)
        observation.enter(.inactive)
        observation.enter(.active)
        for worker in workers { await worker() }
        observation.enter(.inactive)
        observation.enter(.background)
        // Tasks that the change of phase began get to what they ask for, and their answers come.
        for _ in 0..<10 { await Task.yield() }
        // What a person began goes on.
        await BackgroundLaunch.settled()
    }
}
