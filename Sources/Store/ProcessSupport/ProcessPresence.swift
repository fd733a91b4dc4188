import CLinux
import Foundation
import Synchronization

/// Shows other PID and time namespaces that a process is alive, because its number and start time have no meaning there.
///
/// The process shares a lock on one byte of a file beside the ledger. The offset of the byte is computed from the identity of the process.
/// The kernel ends the lock with the process.
package final class ProcessPresence: Sendable {
    private let process: ProcessIdentity
    private let directories: AppDirectories
    /// -1 until the file can be opened and locked. Until then, processes in other namespaces treat this process as ended.
    private let descriptor = Mutex<Int32>(-1)

    package init(of process: ProcessIdentity = .current, in directories: AppDirectories) {
        (self.process, self.directories) = (process, directories)
        show()
    }

    deinit {
        let held = descriptor.withLock { $0 }
        if held >= 0 { close(held) }
    }

    /// Tries again if the lock could not be taken before. The call is cheap if the lock is held.
    package func show() {
        descriptor.withLock { held in
            guard held < 0 else { return }
            let opened = Self.open(directories, O_CREAT)
            guard opened >= 0 else { return }
            if clinux_share_bytes(opened, Self.byte(of: process), 1) == 0 { held = opened } else { close(opened) }
        }
    }

    /// Returns whether a process shows that it is alive. The result is `true` if an error that may pass hides the state.
    package static func isShown(by process: ProcessIdentity, in directories: AppDirectories) -> Bool {
        FileLock.isLocked(directories.processLock, unknown: true) { clinux_bytes_are_locked($0, byte(of: process), 1) }
    }

    /// Returns when the process has ended. Blocks.
    package static func waitForEnd(of process: ProcessIdentity, in directories: AppDirectories) {
        while process.isAlive(in: directories) {
            let descriptor = open(directories)
            // A free lock does not mean that a process has ended if the process is visible in /proc.
            let wasLocked = descriptor >= 0 && clinux_bytes_are_locked(descriptor, byte(of: process), 1) > 0
            let hasWaited = wasLocked && clinux_wait_for_byte(descriptor, byte(of: process)) == 0
            if descriptor >= 0 { close(descriptor) }
            if !hasWaited { sleep(1) }
        }
    }

    private static func open(_ directories: AppDirectories, _ flags: Int32 = 0) -> Int32 {
        clinux_open(directories.processLock.path, O_RDWR | O_CLOEXEC | flags, 0o600)
    }

    /// The offset of the byte, below the largest offset of a lock.
    private static func byte(of process: ProcessIdentity) -> Int64 {
        let number = UInt64(UInt32(bitPattern: process.pid))
        let mixed = (UInt64(bitPattern: process.start) ^ (number << 32)) &* 0x9e37_79b9_7f4a_7c15
        return Int64(mixed >> 2)
    }
}
