import BackgroundRuntime
import Foundation

/// The app in this process. The agent or a user started the process.
@MainActor
final class AppProcess {
    private let delegate: (any ApplicationDelegate)?
    private let workers: [@Sendable () async -> Void]
    /// Evaluates the app's body again and returns its observers.
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
        // Scenes are collected before the launch, because a request that is submitted from a handler or from init must find its
        // handler.
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

    /// Prepares the app on a test host, which launches it.
    func enterStage() { BackgroundLaunch.recordTimeChangeInterest() }

    func run() {
        BackgroundLaunch.run()
        Task {
            await serveThePerson()
            AppRuntime.exitAfterPendingWork()
        }
        RunLoop.main.run()
        dispatchMain()
    }

    /// Runs a process that a user started, from the foreground to the background. Returns when the process has nothing left to
    /// wait for.
    func serveThePerson() async {
        let observation = SceneObservation(observers)
        observation.enter(.inactive)
        observation.enter(.active)
        for worker in workers { await worker() }
        observation.enter(.inactive)
        observation.enter(.background)
        delegate?.applicationDidEnterBackground()
        // Lets tasks that the phase change started submit their work and receive the results.
        for _ in 0..<10 { await Task.yield() }
        // The process waits for work that the user began. If the app has workers, the app has begun all work when the workers
        // return. Without a worker, no event shows that all work has begun.
        await BackgroundLaunch.settled(hasMore: workers.isEmpty, continuation: AppRuntime.shared.continuation)
    }
}
