import CLinux
import Foundation

/// A file that reserves space on the ledger's disk. The file is removed when the disk is full. The space that becomes free is
/// used to record commands of the user (cancel, quit) and the result of a large transfer.
package enum DiskReserve {
    /// The number of reserved bytes. This space is sufficient for many transactions.
    private static let byteCount: Int64 = 1 << 20
    /// The number of bytes that must be free on the disk before the reserve is created.
    private static let wantedRoom: Int64 = 4 << 20

    private static func file(_ directories: AppDirectories) -> URL { directories.state.appendingPathComponent("agent.reserve") }

    /// Creates the file if it does not exist and the disk has enough space.
    package static func create(_ directories: AppDirectories) {
        let path = file(directories).path
        var information = stat()
        guard stat(path, &information) != 0, DiskSpace.left(at: directories.state.path) ?? 0 > wantedRoom else { return }
        let descriptor = clinux_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        if posix_fallocate(descriptor, 0, off_t(byteCount)) != 0 { unlink(path) }
    }

    /// Removes the file. Returns `true` if space was released.
    package static func giveUp(_ directories: AppDirectories) -> Bool { unlink(file(directories).path) == 0 }
}
