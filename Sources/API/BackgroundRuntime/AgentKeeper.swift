import BackgroundLedger
import Foundation

/// Keeps an agent running while a process waits for the agent's response. If the agent was killed, this type starts another
/// agent. If several agents exit directly after their start, this type starts no more agents. Call ``tick()`` about once a
/// second.
package struct AgentKeeper: Sendable {
    private var failures = 0
    private var pause = 0

    /// The number of failed starts after which no more agents are started. The starts and the growing pauses between them take
    /// about 15 seconds.
    static let patience = 3

    package init() {}

    /// Starts an agent if no agent is running. Returns `false` if each started agent exited.
    package mutating func tick(isRunning: Bool, start: () -> Void) -> Bool {
        if isRunning {
            (failures, pause) = (0, 0)
            return true
        }
        if pause > 0 {
            pause -= 1
            return true
        }
        guard failures < Self.patience else { return false }
        start()
        failures += 1
        pause = 1 << failures
        return true
    }

    /// Starts this app's agent if no agent is running. Also returns `true` if agents are forbidden, because in this case the
    /// caller waits without an agent.
    package mutating func tick() -> Bool {
        // On a test host, each commit starts an agent if necessary.
        if AppRuntime.shared.isHosted { return true }
        let starter = AgentStarter(directories: AppRuntime.shared.directories)
        if starter.isForbidden { return true }
        return tick(isRunning: starter.isRunning) { starter.startIfNeeded() }
    }
}

/// The error that is thrown if work needs an agent, and each started agent exited.
package struct NoAgent: Error, CustomStringConvertible, Sendable {
    let log: String

    package var description: String {
        "no agent keeps running. The agent was started \(AgentKeeper.patience) times, and exited immediately each time. "
            + "See \(log)"
    }
}
