import BackgroundRuntime
import Foundation

/// An app in its process: launched by the agent, or started by a person.
@MainActor
final class AppProcess {
    private let delegate: (any ApplicationDelegate)?
    private let workers: [@Sendable () async -> Void]
    /// The observers of the app's body, evaluated anew.
    private let observers: () -> [ChangeObserver]

    /// What the app holds (a notification delegate, say) lives as long as the process.
    private static var current: AppProcess?

    /// Makes the app, and everything known that a launch may ask for.
    static func begin(_ makeApp: () -> some App) -> AppProcess {
        MountedDelegate.current = nil
        // Before any of the app's code: it may ask for its bundle's identifier.
        _ = AppManifest.current
        let app = makeApp()
        let delegate = MountedDelegate.current
        delegate?.finishLaunching()
        // Scenes come before the launch: a request submitted from a handler or from init must find its handler.
        let parts = app.body.collectParts()
        parts.actions.forEach { $0() }
        return AppProcess(delegate, parts.workers) { app.body.collectParts().observers }
    }

    /// The same for an app that is its delegate alone.
    static func begin(_ delegate: some ApplicationDelegate) -> AppProcess {
        delegate.finishLaunching()
        return AppProcess(delegate, []) { [] }
    }

    private init(
        _ delegate: (any ApplicationDelegate)?, _ workers: [@Sendable () async -> Void],
        _ observers: @escaping () -> [ChangeObserver]
    ) {
        (self.delegate, self.workers, self.observers) = (delegate, workers, observers)
        Self.current = self
    }

    /// On a test host, which launches it.
    func enterStage() { BackgroundLaunch.tellWhetherTimeMatters() }

    func run() {
        BackgroundLaunch.run()
        Task {
            await serveThePerson()
            AppRuntime.leaveWithoutLoss()
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
        delegate?.applicationDidEnterBackground()
        // Tasks that the change of phase began get to what they ask for, and their answers come.
        for _ in 0..<10 { await Task.yield() }
        // What a person began goes on. A worker's return says that the app has begun everything; without a worker nothing does.
        await BackgroundLaunch.settled(hasMore: workers.isEmpty, continuation: AppRuntime.shared.continuation)
    }
}
