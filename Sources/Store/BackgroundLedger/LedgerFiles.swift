import CLinux
import Foundation
import ProcessSupport

/// The identity of the files of a ledger, as one process opened them. The files are SQLite's database, the write-ahead log and
/// the index of the log.
///
/// A user may delete the log and the index, because these files look like temporary files. A process that still has the deleted
/// files open writes to files that no other process reads, and the next process creates new files. Each of these processes would
/// miss the commits of the other process. For this reason, a running agent shows other processes which files it has open. The
/// agent holds a shared lock on a byte of the state folder, and the offset of the byte identifies the files. As long as the lock
/// is held, no process opens other files. A process of the app takes no such lock, because its commits are also in the agent's
/// log.
final class LedgerFiles: Sendable {
    private let directories: AppDirectories
    /// The inode numbers of the files. The number is 0 if a file does not exist, and `nil` if the file system did not respond.
    private let inodes: [UInt64?]
    /// The descriptor of the state folder, or -1 if the folder cannot be opened or the file system does not support locks. If the
    /// value is -1, this process does not take the lock, and does not wait for the agent.
    private let folder: Int32

    /// Records the identity of the files that have the ledger's names now.
    init(_ directories: AppDirectories) {
        self.directories = directories
        // The offset of the agent's lock is computed from these inode numbers. With a wrong offset, commands would treat the
        // agent's files as different files and could not write.
        var inodes = Self.inodes(directories)
        for _ in 1..<Self.attempts where inodes.contains(nil) { inodes = Self.inodes(directories) }
        self.inodes = inodes
        folder = clinux_open(directories.state.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    }

    deinit { if folder >= 0 { close(folder) } }

    /// `true` if other files now have the names of these files, or if the files do not exist any more.
    var areReplaced: Bool {
        // A ledger that one process opened in exclusive mode has no index. An index that appears later belongs to the same
        // ledger.
        zip(inodes, Self.inodes(directories)).contains { before, now in
            guard let before, let now else { return false }
            return before != 0 && before != now
        }
    }

    /// `true` if the ledger itself was removed, or another file replaced it, for example a backup.
    var areAnotherLedgers: Bool {
        guard let before = inodes[0], let now = Self.inodes(directories)[0] else { return false }
        return before != now
    }

    /// `true` if the running agent has other files open.
    var areNotTheAgents: Bool {
        folder >= 0 && (isLocked(0, number) || isLocked(number + 1, 0))
    }

    /// Shows other processes that the agent has these files open, until ``releaseHold()`` is called or this process ends.
    func hold() { if folder >= 0 { clinux_share_bytes(folder, number, 1) } }

    func releaseHold() { if folder >= 0 { clinux_unlock_bytes(folder, number, 1) } }

    /// The offset of the lock, which identifies the write-ahead log and the index. If these files are replaced, the new files
    /// have another offset. The offset is never 0, and is below the largest offset that a lock can have.
    private var number: Int64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for inode in inodes.dropFirst() { hash = (hash ^ (inode ?? 0)) &* 0x9e37_79b9_7f4a_7c15 }
        return Int64(hash >> 2) + 1
    }

    private func isLocked(_ start: Int64, _ length: Int64) -> Bool { clinux_bytes_are_locked(folder, start, length) > 0 }

    private static let attempts = 15

    private static func inodes(_ directories: AppDirectories) -> [UInt64?] {
        ["", "-wal", "-shm"].map { ending in
            switch PathStatus.at(directories.ledger.path + ending) {
            case .found(let information): UInt64(information.st_ino)
            case .absent: 0
            case .unreadable: nil
            }
        }
    }
}
