import BackgroundRuntime
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
    public static func main() {
        // Scenes first: a request submitted from a handler or from init must find its handler.
        let app = Self()
        // What the app holds (a notification delegate, say) lives as long as the process.
        RunningApp.instance = app
        let parts = app.body.collectParts()
        TaskHandlers.shared.add(parts.actions)
        if LaunchContext.current != nil { BGTaskScheduler.shared.run() }
        TaskHandlers.shared.close()
        let arguments = Array(CommandLine.arguments.dropFirst())
        Task {
            if arguments.first == "simulate" {
                exit(await simulate(Array(arguments.dropFirst())))
            }
            let observation = SceneObservation { app.body.collectParts().observers }
            observation.enter(.inactive)
            observation.enter(.active)
            for worker in parts.workers { await worker() }
            observation.enter(.inactive)
            observation.enter(.background)
            exit(0)
        }
        RunLoop.main.run()
        dispatchMain()
    }

    private static func simulate(_ arguments: [String]) async -> Int32 {
        do {
            switch (arguments.first, arguments.dropFirst().first) {
            case ("launch", let identifier?):
                print(try await BGTaskScheduler.shared.simulateLaunch(forTaskWithIdentifier: identifier))
            case ("expire", let identifier?):
                print(try await BGTaskScheduler.shared.simulateExpiration(forTaskWithIdentifier: identifier))
            default:
                FileHandle.standardError.write(Data("usage: simulate launch|expire IDENTIFIER\n".utf8))
                return 64
            }
            return 0
        } catch {
            FileHandle.standardError.write(Data("\(error.localizedDescription)\n".utf8))
            return 69
        }
    }
}

@MainActor
private enum RunningApp {
    static var instance: (any App)?
}
