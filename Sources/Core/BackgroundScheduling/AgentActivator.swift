import Foundation

/// The port through which another program starts the agent again after the agent's exit. An example of such a program is
/// systemd's user manager.
package protocol AgentActivator: Sendable {
    /// Requests the next start of an agent. The agent starts at `instant` at the latest. The agent also starts when an app sends
    /// a change notification, and when the clock or the time zone is set. The call blocks its thread.
    ///
    /// - Parameters:
    ///   - instant: The latest start, or `nil` if no work has a known due date.
    ///   - folders: The agent also starts when a file in one of these folders changes.
    /// - Throws: An error with the reason why the start cannot be requested. After an error, the agent keeps running.
    func arm(at instant: Date?, folders: [String]) throws(ActivationFailure)
}

/// The reason why the next start of the agent could not be requested.
package struct ActivationFailure: Error, Equatable, CustomStringConvertible, Sendable {
    package let description: String

    package init(_ description: String) { self.description = description }
}
