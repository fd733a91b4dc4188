import BackgroundLedger
import Foundation

/// Keeps an agent there while a process waits for its word: one that died is replaced, one that leaves at once again and
/// again is given up. Asked once a second or so.
package struct AgentKeeper: Sendable {
    private var failures = 0
    private var pause = 0

    /// Starts without effect after which it is given up; with growing pauses that is a quarter of a minute.
    static let patience = 3

    package init() {}

    /// `false`: there is no keeping an agent here.
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

    /// With this app's agent. Where none may be started there is nothing to give up.
    package mutating func tick() -> Bool {
        // On a test host whoever commits brings an agent back.
        if AppRuntime.shared.isHosted { return true }
        let starter = AgentStarter(directories: AppRuntime.shared.directories)
        if starter.isForbidden { return true }
        return tick(isRunning: starter.isRunning) { starter.startIfNeeded() }
    }
}

/// No agent stays to do what was asked.
package struct NoAgent: Error, CustomStringConvertible, Sendable {
    let log: String

    package var description: String {
        "no agent stays: it was started \(AgentKeeper.patience) times and left at once; see \(log)"
    }
}
