import Foundation

/// The port that has the agent started again after it exited, for example by a user manager.
package protocol AgentActivator: Sendable {
    /// Has an agent started at `instant` at the latest, when an app sends a change notification, and when clock or time zone are set.
    /// Blocks.
    ///
    /// - Parameter instant: The latest start; `nil` if no work becomes due by time alone.
    /// - Throws: Why a start cannot be relied on. The agent then keeps running.
    func arm(at instant: Date?) throws(ActivationFailure)
}

/// A failure that would leave the agent without a later start.
package struct ActivationFailure: Error, Equatable, CustomStringConvertible, Sendable {
    package let description: String

    package init(_ description: String) { self.description = description }
}
