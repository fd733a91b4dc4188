import Foundation

/// The port through which another program, for example a user manager, starts the agent again after its exit.
package protocol AgentActivator: Sendable {
    /// Requests the next start of an agent: at `instant` at the latest, at a change notification of an app, and when the clock or
    /// the time zone is set. Blocks.
    ///
    /// - Parameter instant: The latest start, or `nil` if no work becomes due at a known time.
    /// - Throws: An error with the reason why no start can be requested. The agent then keeps running.
    func arm(at instant: Date?) throws(ActivationFailure)
}

/// The failure of a request for the next start of the agent.
package struct ActivationFailure: Error, Equatable, CustomStringConvertible, Sendable {
    package let description: String

    package init(_ description: String) { self.description = description }
}
