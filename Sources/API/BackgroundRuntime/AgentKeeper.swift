import BackgroundLedger
import Foundation

/// Keeps an agent running while a process waits for the agent's response. If the agent was killed, another agent is started. If
/// several agents exit at once, no more agents are started. A caller calls ``tick()`` about once a second.
package struct AgentKeeper: Sendable {
    private var failures = 0
    private var pause = 0

    /// The number of starts without effect after which no more agents are started. With growing pauses, these starts take about
    /// 15 seconds.
    static let patience = 3

    package init() {}

    /// Returns `false` if an agent cannot be kept running.
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

    /// Keeps this app's agent running. Returns `true` if agents are forbidden, because the caller then waits without an agent.
    package mutating func tick() -> Bool {
        // On a test host, each commit starts an agent if necessary.
        if AppRuntime.shared.isHosted { return true }
        let starter = AgentStarter(directories: AppRuntime.shared.directories)
        if starter.isForbidden { return true }
        return tick(isRunning: starter.isRunning) { starter.startIfNeeded() }
    }
}

/// The error that is thrown if an agent cannot be kept running for the requested work.
package struct NoAgent: Error, CustomStringConvertible, Sendable {
    let log: String

    package var description: String {
        "no agent keeps running: it was started \(AgentKeeper.patience) times and exited at once; see \(log)"
    }
}
