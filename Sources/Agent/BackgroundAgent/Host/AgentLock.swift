import BackgroundLedger
import Foundation
import ProcessSupport

/// The lock of an agent. Only one process can hold the lock, and this process holds the lock until it ends or releases the lock.
/// If the process has to wait because of a problem, the process writes the reason into the lock file.
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

    /// Waits until no other agent runs. A signal to stop ends the process.
    func waitForOtherAgent() throws(StoreError) {
        var signals = AgentProcess.stopSignals
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        defer { pthread_sigmask(SIG_BLOCK, &signals, nil) }
        held = try FileLock.wait(for: directories.agentLock)
        AgentTrouble.makeRoom(in: held!)
    }

    /// Acquires the lock again if the lock file was removed and no other agent holds the lock.
    ///
    /// - Returns: `false` if another agent holds the lock.
    func isStillHeld() throws(StoreError) -> Bool {
        if held?.isAt(directories.agentLock) ?? true { return true }
        guard let new = try FileLock.acquire(directories.agentLock) else { return false }
        held = consume new
        AgentTrouble.makeRoom(in: held!)
        return true
    }

    func publish(_ trouble: AgentTrouble?) { if held != nil { AgentTrouble.write(trouble, into: held!) } }

    func release() { held = nil }
}
