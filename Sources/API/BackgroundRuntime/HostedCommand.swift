import ProcessSupport

/// A command that runs on a test host instead of a process that a user starts.
package struct HostedCommand: Sendable {
    /// Identifies the command among the launches of its test host, whose numbers are positive.
    package let number: Int64
    /// The process that the command represents.
    package let identity: ProcessIdentity

    /// The command that this task is part of, or `nil` in every other task.
    @TaskLocal package static var current: HostedCommand?

    package init(number: Int64, identity: ProcessIdentity) { (self.number, self.identity) = (number, identity) }
}
