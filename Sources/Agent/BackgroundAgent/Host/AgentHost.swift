import ProcessSupport
import BackgroundLedger
import Foundation

/// The loop around one agent, without its waiting: a process, a simulated host and the tests' bench each wait in their own way and
/// call ``turn()`` when something may have happened.
package final class AgentHost {
    package let agent: Agent
    package let now: () -> Date
    /// When the agent wants to be called at the latest; `nil`: time alone calls nobody.
    package private(set) var wake: Date? = .distantPast

    package init(_ agent: Agent, now: @escaping () -> Date) { (self.agent, self.now) = (agent, now) }

    /// Nothing is left to do: the agent may be let go.
    package var hasFinished: Bool { agent.lifetime.hasEnded }

    /// The agent goes on after it had finished: it turns with the next call, whatever the time.
    package func goOn() { wake = .distantPast }

    /// Lets the agent turn if it is time, or something was heard or written by others. Cheap otherwise: a ring of the bell for the
    /// agent's own commits, or a timer that fired a moment early.
    ///
    /// - Returns: whether it turned.
    @discardableResult
    package func turn() throws(StoreError) -> Bool {
        if now() < wake ?? .distantFuture, try !agent.hasNews() { return false }
        wake = try agent.turn()
        return true
    }
}
