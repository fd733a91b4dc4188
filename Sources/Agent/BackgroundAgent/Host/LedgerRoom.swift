import BackgroundLedger
import Foundation
import ProcessSupport

/// Frees space for the ledger if its disk is full and the reserve was not sufficient. The largest partial file on the ledger's
/// disk is deleted, because it can be downloaded again. Partial files of running downloads are kept. Partial files of downloads
/// that the user paused are also kept.
struct LedgerRoom {
    private let ledger: Ledger

    init(_ ledger: Ledger) { self.ledger = ledger }

    func make() {
        let directories = ledger.directories
        guard DiskSpace.left(at: directories.state.path) == 0, let disk = Self.status(directories.state)?.st_dev else { return }
        let parts = ((try? ledger.read { try $0.unfinishedTransfers() }) ?? []).filter(Self.mayYieldSpace)
            .compactMap { $0.partFile(in: directories.spool) }
            .compactMap { part in Self.status(part).map { (part: part, size: $0.st_size, disk: $0.st_dev) } }
        let largest = parts.filter { $0.disk == disk }.max { $0.size < $1.size }
        guard let largest, largest.size > 0, unlink(largest.part.path) == 0 else { return }
        AgentLog(directories).write(.partGaveWay, (.file, largest.part.lastPathComponent), (.bytes, largest.size))
    }

    private static func mayYieldSpace(_ transfer: TransferRecord) -> Bool {
        transfer.kind == .download && [.queued, .waiting].contains(transfer.state) && !transfer.isFinishing
    }

    private static func status(_ url: URL) -> stat? {
        var information = stat()
        return stat(url.path, &information) == 0 ? information : nil
    }
}
