import ProcessSupport
import BackgroundLedger
import Foundation

/// Runs the loop of one agent, except the wait for events. A process, a simulated machine and the tests wait in different ways.
/// Each of these hosts calls ``turn()`` when an event may have occurred.
package final class AgentHost {
    package let agent: Agent
    package let now: () -> Date
    /// The latest time of the next call of ``turn()``. `nil` if a call is necessary only after an event.
    package private(set) var wake: Date? = .distantPast

    package init(_ agent: Agent, now: @escaping () -> Date) { (self.agent, self.now) = (agent, now) }

    /// `true` if all work is complete and the agent is not needed any more.
    package var hasFinished: Bool { agent.lifetime.hasEnded }

    /// Continues after the agent finished. The next call of ``turn()`` then runs immediately.
    package func continueWork() { wake = .distantPast }

    /// Runs a turn of the agent if the turn is due, an event was received, or another process wrote to the ledger. If no turn is
    /// needed, the method returns quickly. For example, no turn is needed after a change notification of the agent's own commit,
    /// or after a timer that fired slightly early.
    ///
    /// - Returns: `true` if the agent ran a turn.
    @discardableResult
    package func turn() throws(StoreError) -> Bool {
        if now() < wake ?? .distantFuture, try !agent.hasNews() { return false }
        wake = try agent.turn()
        return true
    }
}
