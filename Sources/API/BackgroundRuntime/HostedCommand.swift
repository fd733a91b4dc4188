/// A command that runs on a test host, where a user would start a process.
package struct HostedCommand: Sendable {
    /// Tells it from the launches of its test host, whose numbers are positive.
    package let number: Int64

    /// The command that this task is part of; `nil` in every other task.
    @TaskLocal package static var current: HostedCommand?

    package init(number: Int64) { self.number = number }
}
