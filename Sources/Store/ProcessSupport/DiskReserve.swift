import CLinux
import Foundation

/// A file that takes room on the ledger's disk to give it up when the disk is full: what a person asks for then (a cancel, a quit) can be
/// written, and so can the end of what fills the disk.
package enum DiskReserve {
    /// Many transactions.
    private static let byteCount: Int64 = 1 << 20
    /// It is taken where so many bytes are left for others.
    private static let wantedRoom: Int64 = 4 << 20

    private static func file(_ directories: AppDirectories) -> URL { directories.state.appendingPathComponent("agent.reserve") }

    /// Takes the room, if it is not taken and there is enough.
    package static func take(_ directories: AppDirectories) {
        let path = file(directories).path
        var information = stat()
        guard stat(path, &information) != 0, DiskSpace.left(at: directories.state.path) ?? 0 > wantedRoom else { return }
        let descriptor = clinux_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        if posix_fallocate(descriptor, 0, off_t(byteCount)) != 0 { unlink(path) }
    }

    /// `true`: there is more room now.
    package static func giveUp(_ directories: AppDirectories) -> Bool { unlink(file(directories).path) == 0 }
}
