import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport

/// Handles launches in apps whose scenes and main function belong to a GUI library. Beyond Apple, because on iOS SwiftUI has both.
///
/// ``handle(_:action:)`` registers the background action of a scene. ``run()`` runs the action if the agent started this process
/// for it:
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
    /// If several actions are registered for one launch, they run at the same time. The launch ends when all actions have returned.
    /// After ``run()`` this method has no effect, because a GUI library evaluates its scenes many times and each action must be
    /// registered only once.
    ///
    /// - Parameters:
    ///   - task: the kind of launches.
    ///   - action: does the work. The task that runs the action is cancelled when the time of the launch ends.
    public static func handle<Request: Sendable, Response: Sendable>(
        _ task: BackgroundTask<Request, Response>, action: @escaping @Sendable (Request) async -> Response
    ) {
        TaskHandlers.shared.add(
            TaskHandlers.SceneAction(
                kind: task.kind, matches: task.matches,
                run: { payload in await task.run(payload, action) }))
    }

    /// Runs the actions of the launch for which the agent started this process, and ends the process when the launch has ended. If
    /// a user started the process, the method returns at once, so that the app can open its windows.
    ///
    /// Call this method on the main thread, as the first step of `main` after the actions are registered. Do not open a window or a
    /// display before this call, because a launch may run without a display. A handler that is registered later stops the program
    /// with an error, as after `BGTaskScheduler.run()`, because the launch would not find the handler. The exception is an
    /// identifier that only a wildcard of the permitted list permits.
    public static func run() {
        recordTimeChangeInterest()
        serveLaunch()
    }

    /// Runs the launch like ``run()``, without informing the agent about time changes.
    static func serveLaunch() {
        TaskHandlers.shared.close()
        guard let context = LaunchContext.current else { return }
        LaunchHandlers.shared.run(context)
        RunLoop.main.run()
        // The run loop has returned, because it had no source to watch. The main thread waits here, and the launch ends the
        // process.
        dispatchMain()
    }

    /// Returns when all work that this process began is stored and has its response, and continued processing has ended.
    ///
    /// - Parameters:
    ///   - hasMore: `true` if Swift tasks of the app may still begin work. The method then waits a short time after the last work
    ///     that the app began.
    ///   - continuation: the number of seconds to wait for running requests of the app, because their handlers may begin more work.
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

    /// Records in the ledger whether the app handles time changes, because the agent must know this fact without starting the app.
    /// The ledger is written only if the value changed.
    package static func recordTimeChangeInterest() {
        let isWanted = TaskHandlers.shared.handles(.significantTimeChange)
        do throws(StoreError) {
            let known = try AppRuntime.shared.ledger().read { try $0.fact(.significantTime) != nil }
            if known == isWanted { return }
        } catch {
            // After a temporary error the value is written when the ledger can be used again.
            guard error.isPassing else { return }
        }
        let current = SignificantTime(at: AppRuntime.shared.now, in: AppRuntime.shared.zone)
        DurableWrites.shared.commit("the app's handler for time changes") {
            try $0.setFact(.significantTime, isWanted ? current : nil)
        }
    }
}
