@_exported import BackgroundTasks
@_exported import BackgroundTransfer
@_exported import UserNotifications

/// An app whose scenes declare its background work. Mark the type `@main`.
///
/// If the agent started the process, the process runs the action that it was launched for, and ends. If a user started the
/// process, it runs the actions of the app's ``Worker`` scenes, with the ``ScenePhase`` `.active`, and ends.
@MainActor
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    /// Prepares the app on a test host, as a launched process does.
    package static func enterStage() { AppProcess.begin { Self() }.enterStage() }

    /// Runs the app: the launch if the agent started the process, or the workers if a user started it.
    public static func main() { AppProcess.begin { Self() }.run() }
}
