import BackgroundRuntime
import Foundation

/// The app in this process. The agent or a user started the process.
@MainActor
final class AppProcess {
    private let delegate: (any ApplicationDelegate)?
    private let workers: [@Sendable () async -> Void]
    /// A closure that evaluates the app's body again and returns the observers of the body.
    private let observers: () -> [ChangeObserver]

    /// Keeps the app's objects, for example a notification delegate, alive until the process ends.
    private static var current: AppProcess?

    /// Creates the app and registers everything that a launch may need.
    static func begin(_ makeApp: () -> some App) -> AppProcess {
        MountedDelegate.current = nil
        // The manifest is read before the app's code runs, because this code may read the bundle identifier.
        _ = AppManifest.current
        let app = makeApp()
        let delegate = MountedDelegate.current
        delegate?.finishLaunching()
        // The scenes register their handlers before the launch begins. Without this order, a request that a handler or the app's
        // `init` submits would have no registered handler.
        let parts = app.body.collectParts()
        parts.actions.forEach { $0() }
        return AppProcess(delegate, parts.workers) { app.body.collectParts().observers }
    }

    /// Creates the process of an app that consists only of its delegate.
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

    /// Prepares the app for launches by a test host.
    func prepareForTestHost() { BackgroundLaunch.recordTimeChangeInterest() }

    func run() {
        BackgroundLaunch.run()
        Task {
            await serveThePerson()
            AppRuntime.exitAfterPendingWork()
        }
        RunLoop.main.run()
        dispatchMain()
    }

    /// Runs the app in a process that a user started: first in the foreground phase, then in the background phase. Returns when
    /// the process may exit.
    func serveThePerson() async {
        let observation = SceneObservation(observers)
        observation.enter(.inactive)
        observation.enter(.active)
        for worker in workers { await worker() }
        observation.enter(.inactive)
        observation.enter(.background)
        delegate?.applicationDidEnterBackground()
        // The change of the phase may have started Swift tasks. The calls of `yield` give these tasks time to submit work and to
        // receive results.
        for _ in 0..<10 { await Task.yield() }
        // The process waits for work that the app began. If the app has `Worker` scenes, the app has begun all its work when the
        // actions of these scenes return. Without such a scene, the process cannot detect whether the app has begun all its work.
        await BackgroundLaunch.settled(hasMore: workers.isEmpty, continuation: AppRuntime.shared.continuation)
    }
}
