import Foundation

/// The port of coming back: whoever starts the agent again after it left, a user manager, say.
package protocol AgentActivator: Sendable {
    /// Has an agent started at `instant` at the latest, when an app rings, and when clock or time zone are set. Blocks.
    ///
    /// - Parameter instant: `nil`: time alone makes nothing due.
    /// - Throws: why that cannot be relied upon; the agent stays.
    func arm(at instant: Date?) throws(ActivationFailure)
}

/// Nobody would start the agent again.
package struct ActivationFailure: Error, Equatable, CustomStringConvertible, Sendable {
    package let description: String

    package init(_ description: String) { self.description = description }
}
