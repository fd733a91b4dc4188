import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport

/// The launch that the agent started this process for, for apps whose scenes and main function belong to a GUI library. Beyond
/// Apple, where SwiftUI has both.
///
/// ``handle(_:action:)`` registers what a scene does in the background, and ``run()`` runs it if this process is a launch:
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
    /// Registers what the app does in launches of this kind.
    ///
    /// Several actions of one launch run at the same time; the launch ends when all actions have returned. After ``run()``, the
    /// call has no effect, because a GUI library evaluates its scenes many times and each scene must count once.
    ///
    /// - Parameters:
    ///   - task: the kind of launches.
    ///   - action: does the work. Its task is cancelled when the time of the launch is up.
    public static func handle<Request: Sendable, Response: Sendable>(
        _ task: BackgroundTask<Request, Response>, action: @escaping @Sendable (Request) async -> Response
    ) {
        TaskHandlers.shared.add(
            TaskHandlers.SceneAction(
                kind: task.kind, matches: task.matches,
                run: { payload in await task.run(payload, action) }))
    }

    /// Runs the launch that the agent started this process for, and ends the process with it. If a user started the process, the
    /// method returns at once, so that the app's windows open.
    ///
    /// Call it on the main thread, as the first step of main after the actions are registered. A launch does not need a window, a
    /// display or a menu, and there may be none. Registering a handler afterwards traps, as after `BGTaskScheduler.run()`,
    /// because the launch would not find the handler. The exception is an identifier that only a wildcard of the permitted list
    /// permits.
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
        // The run loop returns if it has nothing to watch. The launch ends the process.
        dispatchMain()
    }

    /// Returns when everything that this process began is durable and has its response, and continued processing has ended.
    ///
    /// - Parameters:
    ///   - hasMore: `true` if tasks of the app may still begin more. The app then gets a short time after everything that it
    ///     began.
    ///   - continuation: the number of seconds to wait for requests of the app that are under way, because their handlers may
    ///     begin more.
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

    /// Records in the ledger whether the app handles time changes, because the agent must know this without starting the app.
    /// Writes only if the value changed.
    package static func recordTimeChangeInterest() {
        let isWanted = TaskHandlers.shared.handles(.significantTimeChange)
        do throws(StoreError) {
            let known = try AppRuntime.shared.ledger().read { try $0.fact(.significantTime) != nil }
            if known == isWanted { return }
        } catch {
            // The value is written when the ledger can be used again.
            guard error.isPassing else { return }
        }
        let current = SignificantTime(at: AppRuntime.shared.now, in: AppRuntime.shared.zone)
        DurableWrites.shared.commit("whether time changes matter to the app") {
            try $0.setFact(.significantTime, isWanted ? current : nil)
        }
    }
}
