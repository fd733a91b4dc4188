import BackgroundLedger
import Foundation
import ProcessSupport

/// Keeps the agent's lock for as long as the process lives, and says in it what the agent waits for.
final class AgentLock {
    private let directories: AppDirectories
    private var held: FileLock?

    init(_ directories: AppDirectories) { self.directories = directories }

    func acquire() throws(StoreError) -> Bool {
        held = try FileLock.acquire(directories.agentLock)
        guard held != nil else { return false }
        AgentTrouble.makeRoom(in: held!)
        return true
    }

    /// Returns when no other agent is left; a signal to stop ends the process.
    func standBy() throws(StoreError) {
        var signals = AgentProcess.stopSignals
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        defer { pthread_sigmask(SIG_BLOCK, &signals, nil) }
        held = try FileLock.wait(for: directories.agentLock)
        AgentTrouble.makeRoom(in: held!)
    }

    /// Somebody removed the file, taken for a stale one perhaps: the lock is taken anew where no other agent has it by now.
    ///
    /// - Returns: `false`: one has.
    func isStillHeld() throws(StoreError) -> Bool {
        if held?.isAt(directories.agentLock) ?? true { return true }
        guard let new = try FileLock.acquire(directories.agentLock) else { return false }
        held = consume new
        AgentTrouble.makeRoom(in: held!)
        return true
    }

    func tell(_ trouble: AgentTrouble?) { if held != nil { AgentTrouble.write(trouble, into: held!) } }

    func release() { held = nil }
}
