import ProcessSupport
import BackgroundLedger
import Foundation

/// The loop around one agent, without the waiting. A process, a simulated host and the tests wait in their own ways, and call ``turn()``
/// when an event may have occurred.
package final class AgentHost {
    package let agent: Agent
    package let now: () -> Date
    /// The time at which the agent must be called at the latest; `nil` if no call is needed because of time.
    package private(set) var wake: Date? = .distantPast

    package init(_ agent: Agent, now: @escaping () -> Date) { (self.agent, self.now) = (agent, now) }

    /// `true` if no work is left and the agent may be released.
    package var hasFinished: Bool { agent.lifetime.hasEnded }

    /// Continues after the agent had finished: the next call of ``turn()`` runs at any time.
    package func continueWork() { wake = .distantPast }

    /// Runs a turn of the agent if its time has come, an event was received, or another process wrote. Otherwise the call is cheap, for
    /// example after a change notification of the agent's own commit, or after a timer that fired slightly early.
    ///
    /// - Returns: `true` if the agent ran a turn.
    @discardableResult
    package func turn() throws(StoreError) -> Bool {
        if now() < wake ?? .distantFuture, try !agent.hasNews() { return false }
        wake = try agent.turn()
        return true
    }
}
