import BackgroundRuntime
import BackgroundTransfer
import Foundation
import ProcessSupport

/// The turn of one process to use a session that several commands share, such as the session of the trials.
///
/// A turn begins when no other process has the turn. The transfers of killed commands are then cancelled.
final class SessionTurn {
    /// No agent runs, and the environment forbids the start of an agent.
    struct NoAgent: Error, CustomStringConvertible {
        let variable: String

        var description: String { "no agent runs, and the variable \(variable) forbids the start of an agent" }
    }

    private let lock: FileLock

    /// Waits for the turn, and starts an agent.
    ///
    /// - Throws: ``NoAgent``, or an error of the lock or of the ledger.
    init(_ session: String) throws {
        let directories = AppRuntime.shared.directories
        try directories.createStateFolders()
        lock = try FileLock.wait(for: directories.state.appendingPathComponent("\(session).lock"))
        if AppRuntime.shared.startAgent() == .forbidden { throw NoAgent(variable: directories.forbiddingVariable) }
        let left = try BackgroundTransfers.unfinished(session: session)
        if !left.isEmpty { try BackgroundTransfers.perform(.cancel, on: .ids(Set(left.map(\.id)))) }
    }

    func end() { withExtendedLifetime(lock.descriptor) {} }
}
