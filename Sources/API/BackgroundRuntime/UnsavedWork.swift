import ProcessSupport

/// Work that the app begins (a transfer, a request, a notification) until it is durable or refused. A process does not end
/// before.
package final class UnsavedWork: Sendable {
    package let work = WorkCounter()

    package init() {}

    /// The work of the launch that the current task is part of, or of this process.
    package static var current: WorkCounter { LaunchContext.current?.beginnings ?? AppRuntime.shared.part { UnsavedWork() }.work }
}
