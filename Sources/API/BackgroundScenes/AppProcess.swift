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
        // The scenes are collected before the launch begins, because a request that a handler or `init` submits needs a
        // registered handler.
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

    /// Runs a process that a user started, from the foreground to the background. Returns when all work that the process waits
    /// for is complete.
    func serveThePerson() async {
        let observation = SceneObservation(observers)
        observation.enter(.inactive)
        observation.enter(.active)
        for worker in workers { await worker() }
        observation.enter(.inactive)
        observation.enter(.background)
        delegate?.applicationDidEnterBackground()
        // The yields give Swift tasks that the phase change started the time to submit work and to receive results.
        for _ in 0..<10 { await Task.yield() }
        // The process waits for work that the user began. If the app has workers, all work has begun when the workers return.
        // Without a worker, the process cannot detect whether all work has begun.
        await BackgroundLaunch.settled(hasMore: workers.isEmpty, continuation: AppRuntime.shared.continuation)
    }
}
