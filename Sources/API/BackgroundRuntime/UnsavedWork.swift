import ProcessSupport

/// Counts work that the app has begun (a transfer, a request or a notification) and that is not stored or refused yet. A process
/// does not exit while such work exists.
package final class UnsavedWork: Sendable {
    package let work = WorkCounter()

    package init() {}

    /// The counter of the launch that the current Swift task belongs to, or of this process if the task belongs to no launch.
    package static var current: WorkCounter { LaunchContext.current?.beginnings ?? AppRuntime.shared.part { UnsavedWork() }.work }
}
