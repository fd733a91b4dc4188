@_exported import BackgroundTasks
@_exported import BackgroundTransfer
@_exported import UserNotifications

/// An app whose scenes declare its background work. Mark the type `@main`.
///
/// If the agent started the process, the process runs the action for this launch and exits. If a user started the process, the
/// process runs the actions of the app's ``Worker`` scenes in the ``ScenePhase`` `.active`, and exits.
@MainActor
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    /// Registers the app's background work on a test host, in the same way as a launched process.
    package static func enterStage() { AppProcess.begin { Self() }.enterStage() }

    /// Runs the app. If the agent started the process, the launch is run. If a user started the process, the ``Worker`` scenes are
    /// run.
    public static func main() { AppProcess.begin { Self() }.run() }
}
