@_exported import BackgroundTasks
@_exported import BackgroundTransfer
@_exported import UserNotifications

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
    package static func enterStage() { AppProcess.begin { Self() }.enterStage() }

    /// Runs the app as whoever started the process wants it: a launch of the agent's, or the workers of a person's.
    public static func main() { AppProcess.begin { Self() }.run() }
}
