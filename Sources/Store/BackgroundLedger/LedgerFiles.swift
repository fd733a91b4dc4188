import CLinux
import Foundation
import ProcessSupport

/// Which files a ledger lies in, as one process opened them: SQLite's database, its log and the log's index.
///
/// A person who tidies up takes the last two for leftovers. Who has them open then writes where nobody else reads, and who comes next makes new
/// ones: what either commits is lost to the other. So the agent says for as long as it runs which files it has, by a shared lock on the byte
/// of the state folder that has their number, and nobody opens others beside it. Of an app's process nothing is said: what it
/// committed lies in the agent's log, too.
final class LedgerFiles: Sendable {
    private let directories: AppDirectories
    /// 0: absent.
    private let inodes: [UInt64]
    /// Of the state folder; -1: it cannot be opened, or the file system knows no locks. Then nobody is held back.
    private let folder: Int32

    /// Those that have the ledger's names now.
    init(_ directories: AppDirectories) {
        self.directories = directories
        inodes = Self.inodes(directories)
        folder = clinux_open(directories.state.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    }

    deinit { if folder >= 0 { close(folder) } }

    /// Others, or none, have these names now.
    var areReplaced: Bool {
        // Opened alone it has no index; what comes later is its own.
        zip(inodes, Self.inodes(directories)).contains { $0 != 0 && $0 != $1 }
    }

    /// Another file has the ledger's own name, or none: it was taken away, or a backup put in its place.
    var areAnotherLedgers: Bool { Self.inodes(directories)[0] != inodes[0] }

    /// The agent that runs here has other files open.
    var areNotTheAgents: Bool {
        folder >= 0 && (isLocked(0, number) || isLocked(number + 1, 0))
    }

    /// Says that they are the agent's, until ``letGo()`` or the end of this process.
    func hold() { if folder >= 0 { clinux_share_bytes(folder, number, 1) } }

    func letGo() { if folder >= 0 { clinux_unlock_bytes(folder, number, 1) } }

    /// Of the log and its index: another pair has another number. Never 0, and below the largest offset of a lock.
    private var number: Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for inode in inodes.dropFirst() { hash = (hash ^ inode) &* 0x9e37_79b9_7f4a_7c15 }
        return Int64(hash >> 2) + 1
    }

    private func isLocked(_ start: Int64, _ length: Int64) -> Bool { clinux_bytes_are_locked(folder, start, length) > 0 }

    private static func inodes(_ directories: AppDirectories) -> [UInt64] {
        ["", "-wal", "-shm"].map { ending in
            var information = stat()
            return stat(directories.ledger.path + ending, &information) == 0 ? UInt64(information.st_ino) : 0
        }
    }
}
