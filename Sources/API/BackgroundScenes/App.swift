@_exported import BackgroundTasks
@_exported import BackgroundTransfer
@_exported import UserNotifications

/// An app whose scenes declare the app's background work. Mark the type with `@main`.
///
/// If the agent started the process, the process runs the actions of the launch and exits. If a user started the process, the
/// scene phase becomes `.active`, the process runs the actions of the app's ``Worker`` scenes, and then exits.
@MainActor
public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}

extension App {
    /// Registers the app's background work on a test host, in the same way as in a launched process.
    package static func prepareForTestHost() { AppProcess.begin { Self() }.prepareForTestHost() }

    /// Runs the app. If the agent started the process, the method runs the launch. If a user started the process, the method runs
    /// the actions of the ``Worker`` scenes.
    public static func main() { AppProcess.begin { Self() }.run() }
}
