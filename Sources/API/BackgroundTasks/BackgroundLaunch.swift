import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport

/// What the agent started this process for, where the app's scenes and its main function are a GUI library's. Beyond Apple, whose SwiftUI
/// has both.
///
/// ``handle(_:action:)`` makes known what a scene does in the background, and ``run()`` asks whether to do it now:
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
/// The apps of `BackgroundScenes` begin by the same two functions.
public enum BackgroundLaunch {
    /// Makes known what the app does in launches of this kind.
    ///
    /// Several actions of one launch run at the same time; the launch ends when all have returned. After ``run()`` it does nothing: a GUI
    /// library evaluates its scenes as often as it likes, and each scene counts once.
    ///
    /// - Parameters:
    ///   - task: which launches.
    ///   - action: does the work. Its task is cancelled when the launch's time is up.
    public static func handle<Request: Sendable, Response: Sendable>(
        _ task: BackgroundTask<Request, Response>, action: @escaping @Sendable (Request) async -> Response
    ) {
        TaskHandlers.shared.add(
            TaskHandlers.SceneAction(
                kind: task.kind, matches: task.matches,
                run: { payload in for request in task.requests(payload) { _ = await action(request) } }))
    }

    /// Serves the launch that the agent started this process for, and ends the process with it; returns at once where a person started it,
    /// so that the app's windows open.
    ///
    /// Call it on the main thread, first of all that main does once the actions are known: nothing of a window, a display or a menu is needed
    /// in a launch, and there may be none. As after `BGTaskScheduler.run()`, registering a handler traps from here on, unless only a wildcard of
    /// the permitted list permits it: a launch would not find it.
    public static func run() {
        tellWhetherTimeMatters()
        serveLaunch()
    }

    /// The same without a word to the agent.
    static func serveLaunch() {
        TaskHandlers.shared.close()
        guard let context = LaunchContext.current else { return }
        LaunchHandlers.shared.run(context)
        RunLoop.main.run()
        // The run loop returns when it has nothing to watch; the launch ends the process.
        dispatchMain()
    }

    /// Returns when everything that this process began is durable and has its response, and continued processing has ended.
    ///
    /// - Parameters:
    ///   - hasMore: Whether the app may begin more, in tasks that have not come to it yet. The app then has a moment after
    ///     everything that it began.
    ///   - continuation: Seconds for which requests of the app that are under way are waited for: their handlers may begin more.
    package static func settled(hasMore: Bool = false, continuation: Double = 0) async {
        let beginnings = Beginnings.current
        let limit = AppRuntime.shared.elapsed + .seconds(continuation)
        var begun: Int
        repeat {
            await ContinuedTasks.shared.untilIdle()
            begun = beginnings.begun
            await beginnings.finished()
            await OutstandingCalls.shared.finished()
            if hasMore { await LaunchContext.graceAfterResult() }
            await BegunTransfers.current.finished(within: (limit - AppRuntime.shared.elapsed) / .seconds(1))
        } while beginnings.begun != begun || !beginnings.isEmpty
    }

    /// The agent has to know without starting the app. Written only when it changed.
    package static func tellWhetherTimeMatters() {
        let isWanted = TaskHandlers.shared.handles(.significantTimeChange)
        do throws(StoreError) {
            let known = try AppRuntime.shared.ledger().read { try $0.fact(.significantTime) != nil }
            if known == isWanted { return }
        } catch {
            // It is written when the ledger can be used again.
            guard error.isPassing else { return }
        }
        let current = SignificantTime(at: AppRuntime.shared.now, in: AppRuntime.shared.zone)
        DurableWrites.shared.commit("whether time changes matter to the app") {
            try $0.setFact(.significantTime, isWanted ? current : nil)
        }
    }
}
