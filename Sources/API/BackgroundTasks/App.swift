import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation

/// An app whose scenes say what it does in the background. Mark it `@main`.
///
/// Started by the agent, the process runs the one action it was launched for and ends. Started by a person, it runs
/// the actions of its ``Worker`` scenes and ends; its ``ScenePhase`` is `.active` meanwhile.
@MainActor
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    /// What launched processes of the app do, on a test host.
    package static func enterStage() {
        let app = Self()
        RunningApp.instance = app
        TaskHandlers.shared.add(app.body.collectParts().actions)
        tellWhetherTimeMatters()
    }

    /// Runs the app as whoever started the process wants it: a launch of the agent's, or the workers of a person's.
    public static func main() {
        // Scenes first: a request submitted from a handler or from init must find its handler.
        let app = Self()
        // What the app holds (a notification delegate, say) lives as long as the process.
        RunningApp.instance = app
        let parts = app.body.collectParts()
        TaskHandlers.shared.add(parts.actions)
        tellWhetherTimeMatters()
        if LaunchContext.current != nil { BGTaskScheduler.shared.run() }
        TaskHandlers.shared.close()
        Task {
            let observation = SceneObservation { app.body.collectParts().observers }
            observation.enter(.inactive)
            observation.enter(.active)
            for worker in parts.workers { await worker() }
            observation.enter(.inactive)
            observation.enter(.background)
            // Tasks that the change of phase began get to what they ask for, and their answers come.
            for _ in 0..<10 { await Task.yield() }
            await OutstandingCalls.shared.finished()
            // What a person began goes on.
            await ContinuedTasks.shared.untilIdle()
            DeliveryGate.ofThisProcess.close { exit(0) }
        }
        RunLoop.main.run()
        dispatchMain()
    }

    /// The agent has to know without starting the app. Written only when it changed.
    private static func tellWhetherTimeMatters() {
        let isWanted = TaskHandlers.shared.handles(.significantTimeChange)
        guard let ledger = try? AppRuntime.shared.ledger(),
            let told = try? ledger.read({ try $0.fact(.significantTime) != nil }), told != isWanted
        else { return }
        let current = SignificantTime(at: AppRuntime.shared.now, in: AppRuntime.shared.zone)
        DurableWrites.shared.commit("whether time changes matter to the app") {
            try $0.setFact(.significantTime, isWanted ? current : nil)
        }
    }
}

@MainActor
private enum RunningApp {
    static var instance: (any App)?
}
