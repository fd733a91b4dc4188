import CLinux
import Foundation

/// Shows to other PID namespaces that a process is alive: its number means another process there.
///
/// The process shares a lock on one byte of a file beside the ledger. The byte follows from its identity, and the kernel ends the lock
/// with the process.
package final class ProcessPresence: Sendable {
    /// -1 if the file cannot be opened. Other namespaces then take the process for ended.
    private let descriptor: Int32

    package init(of process: ProcessIdentity = .current, in directories: AppDirectories) {
        descriptor = Self.open(directories, O_CREAT)
        if descriptor >= 0 { clinux_share_bytes(descriptor, Self.byte(of: process), 1) }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    package static func isShown(by process: ProcessIdentity, in directories: AppDirectories) -> Bool {
        let descriptor = open(directories)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return clinux_bytes_are_locked(descriptor, byte(of: process), 1) != 0
    }

    /// Returns when the process has ended. Blocks.
    package static func waitForEnd(of process: ProcessIdentity, in directories: AppDirectories) {
        let descriptor = open(directories)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        while clinux_wait_for_byte(descriptor, byte(of: process)) != 0, errno == EINTR {}
    }

    private static func open(_ directories: AppDirectories, _ flags: Int32 = 0) -> Int32 {
        clinux_open(directories.processLock.path, O_RDWR | O_CLOEXEC | flags, 0o600)
    }

    /// Below the largest offset of a lock.
    private static func byte(of process: ProcessIdentity) -> Int64 {
        let number = UInt64(UInt32(bitPattern: process.pid))
        let mixed = (UInt64(bitPattern: process.start) ^ (number << 32)) &* 0x9e37_79b9_7f4a_7c15
        return Int64(mixed >> 2)
    }
}
