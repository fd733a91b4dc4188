import ProcessSupport

/// A command that runs on a test host. The command represents a process that a user starts.
package struct HostedCommand: Sendable {
    /// The number that identifies the command on its test host. The number is not positive, because the numbers of launches are
    /// positive.
    package let number: Int64
    /// The identity of the process that the command represents.
    package let identity: ProcessIdentity

    /// The command that runs in the current Swift task, or `nil` if the task belongs to no command.
    @TaskLocal package static var current: HostedCommand?

    package init(number: Int64, identity: ProcessIdentity) { (self.number, self.identity) = (number, identity) }
}
