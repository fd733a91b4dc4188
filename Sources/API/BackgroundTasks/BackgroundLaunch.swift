import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport

/// Handles launches in apps that use the scenes and the main function of a GUI library. Apple's API has no equivalent, because on
/// iOS SwiftUI handles the launches.
///
/// ``handle(_:action:)`` registers the background action of a scene. ``run()`` runs the action if the agent started this process
/// for the action:
///
/// ```swift
/// extension TheirScene {
///     func backgroundTask<D, R>(_ task: BackgroundTask<D, R>, action: @escaping @Sendable (D) async -> R) -> Self {
///         BackgroundLaunch.handle(task, action: action)
///         return self
///     }
/// }
///
/// @main enum Tide {
///     static func main() {
///         _ = TideApp().body
///         BackgroundLaunch.run()
///         TideApp.main()
///     }
/// }
/// ```
///
/// The apps of `BackgroundScenes` also use ``handle(_:action:)`` and ``run()``.
public enum BackgroundLaunch {
    /// Registers an action for launches of this kind.
    ///
    /// If several actions are registered for one launch, they run at the same time. The launch ends when all actions have
    /// returned. After ``run()`` this method has no effect. A GUI library may evaluate the scenes many times, so make sure that
    /// the app registers each action only once.
    ///
    /// - Parameters:
    ///   - task: the kind of background work for which the action is registered.
    ///   - action: the code that does the work. At the launch's time limit, the Swift task that runs the action is cancelled.
    public static func handle<Request: Sendable, Response: Sendable>(
        _ task: BackgroundTask<Request, Response>, action: @escaping @Sendable (Request) async -> Response
    ) {
        TaskHandlers.shared.add(
            TaskHandlers.SceneAction(
                kind: task.kind, matches: task.matches,
                run: { payload in await task.run(payload, action) }))
    }

    /// Runs the actions of the launch for which the agent started this process, and ends the process when the launch has ended.
    /// If a user started the process, the method returns immediately, so that the app can open its windows.
    ///
    /// Call this method on the main thread, as the first step of `main` after the actions are registered. Do not open a window or
    /// a display before this call, because a launch may run without a display. If the app registers a handler after this call,
    /// the program stops with an error, because the launch would not find the handler. `BGTaskScheduler.run()` has the same rule.
    /// The rule does not apply to an identifier that only a wildcard of the permitted list permits.
    public static func run() {
        recordTimeChangeInterest()
        serveLaunch()
    }

    /// Runs the launch like ``run()``, but does not record whether the app handles time changes.
    static func serveLaunch() {
        TaskHandlers.shared.close()
        guard let context = LaunchContext.current else { return }
        LaunchHandlers.shared.run(context)
        RunLoop.main.run()
        // `RunLoop.main.run()` returns if the run loop has no source. The main thread then waits in `dispatchMain()` until the
        // launch ends, which ends the process.
        dispatchMain()
    }

    /// Waits until all work that this process began is stored, all responses have arrived, and continued processing has ended.
    ///
    /// - Parameters:
    ///   - hasMore: `true` if Swift tasks of the app may still begin work. If the value is `true`, the method waits a short time
    ///     after the app began its last work.
    ///   - continuation: the number of seconds for which the method waits for running HTTP requests of the app, because their
    ///     handlers may begin more work.
    package static func settled(hasMore: Bool = false, continuation: Double = 0) async {
        let beginnings = UnsavedWork.current
        let limit = AppRuntime.shared.elapsed + .seconds(continuation)
        var begun: Int
        repeat {
            await ContinuedTasks.shared.untilIdle()
            begun = beginnings.begun
            await beginnings.finished()
            await OutstandingCalls.shared.finished()
            if hasMore { await LaunchContext.graceAfterResult() }
            await ActiveTransfers.current.finished(within: (limit - AppRuntime.shared.elapsed) / .seconds(1))
        } while beginnings.begun != begun || !beginnings.isEmpty
    }

    /// Records in the ledger whether the app handles time changes, because the agent needs this value before it starts the app.
    /// The method writes to the ledger only if the value changed.
    package static func recordTimeChangeInterest() {
        let isWanted = TaskHandlers.shared.handles(.significantTimeChange)
        do throws(StoreError) {
            let known = try AppRuntime.shared.ledger().read { try $0.fact(.significantTime) != nil }
            if known == isWanted { return }
        } catch {
            // After a temporary error, `DurableWrites` writes the value as soon as the ledger can be used again.
            guard error.isPassing else { return }
        }
        let current = SignificantTime(at: AppRuntime.shared.now, in: AppRuntime.shared.zone)
        DurableWrites.shared.commit("the app's handler for time changes") {
            try $0.setFact(.significantTime, isWanted ? current : nil)
        }
    }
}
