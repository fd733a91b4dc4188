import Foundation
import GRDB
import ProcessSupport

// The spool is the folder that contains the copies of queued files. If the spool was moved, or is on a disk that is not
// connected, another folder may have the same path. The other folder can be a folder from a backup or an empty mount point. A
// copy that is missing in this other folder is therefore not lost.
extension LedgerTransaction {
    /// Returns whether the folder at the spool's path is the folder in which the queued copies were stored.
    package func knows(spool: URL) throws -> Bool {
        guard let known = try fact(.spool) else { return false }
        return FileIdentity.folder(spool.path)?.text == known
    }

    /// Records the identity of the spool folder. If the folder does not contain all queued copies, nothing is recorded.
    func recordSpool(_ spool: URL) throws {
        guard let found = FileIdentity.folder(spool.path), try missingCopies(in: spool).isEmpty else { return }
        try setFact(.spool, found.text)
    }

    /// Resumes a paused upload, because the app queued the file again with the same submission key. If the old copy does not
    /// exist any more, the new copy is used.
    package func unpause(
        _ transfer: inout TransferRecord, bringing copy: String, _ sha256: String, in spool: URL, now: Date
    ) throws {
        let needsCopy = !transfer.state.isTerminal && transfer.sourceSHA256 == sha256 && transfer.lacksCopy(in: spool)
        if needsCopy { transfer.bodyFile = copy }
        try handle(.unpaused(now: now), &transfer, now: now)
        if needsCopy, transfer.state == .waiting { try handle(.retried(now: now), &transfer, now: now) }
    }

    /// Returns the unfinished transfers whose queued copy is not in the spool. The method checks each file.
    package func missingCopies(in spool: URL) throws -> [Int64] {
        let rows = try Row.fetchAll(
            database, sql: "SELECT id, bodyFile FROM transfer WHERE bodyFile IS NOT NULL AND finishedAt IS NULL ORDER BY id")
        return rows.compactMap { row in
            guard let id = Int64.fromDatabaseValue(row[0]), let name = String.fromDatabaseValue(row[1]) else { return nil }
            return TransferRecord.isMissing(name, in: spool) ? id : nil
        }
    }
}

extension Ledger {
    /// Records the identity of the spool folder if the ledger does not contain this identity. A failure is harmless: if the
    /// folder is not recorded and does not contain a copy, the upload waits.
    func recordSpool() {
        let spool = directories.spool
        guard (try? read { try $0.knows(spool: spool) }) == false else { return }
        try? write { try $0.recordSpool(spool) }
    }
}
