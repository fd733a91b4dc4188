import CLinux
import Foundation
import Synchronization

/// Shows to other PID and time namespaces that a process is alive: its number or its start time is another one there.
///
/// The process shares a lock on one byte of a file beside the ledger. The byte follows from its identity, and the kernel ends the lock
/// with the process.
package final class ProcessPresence: Sendable {
    private let process: ProcessIdentity
    private let directories: AppDirectories
    /// -1 until the file can be opened and locked. Other namespaces take the process for ended until then.
    private let descriptor = Mutex<Int32>(-1)

    package init(of process: ProcessIdentity = .current, in directories: AppDirectories) {
        (self.process, self.directories) = (process, directories)
        show()
    }

    deinit {
        let held = descriptor.withLock { $0 }
        if held >= 0 { close(held) }
    }

    /// Tries again what failed before. Cheap if nothing failed.
    package func show() {
        descriptor.withLock { held in
            guard held < 0 else { return }
            let opened = Self.open(directories, O_CREAT)
            guard opened >= 0 else { return }
            if clinux_share_bytes(opened, Self.byte(of: process), 1) == 0 { held = opened } else { close(opened) }
        }
    }

    /// An error that may pass does not end a process.
    package static func isShown(by process: ProcessIdentity, in directories: AppDirectories) -> Bool {
        FileLock.isLocked(directories.processLock, unknown: true) { clinux_bytes_are_locked($0, byte(of: process), 1) }
    }

    /// Returns when the process has ended. Blocks.
    package static func waitForEnd(of process: ProcessIdentity, in directories: AppDirectories) {
        while process.isAlive(in: directories) {
            let descriptor = open(directories)
            // A lock that is free ends no process that is seen to run.
            let wasLocked = descriptor >= 0 && clinux_bytes_are_locked(descriptor, byte(of: process), 1) > 0
            let hasWaited = wasLocked && clinux_wait_for_byte(descriptor, byte(of: process)) == 0
            if descriptor >= 0 { close(descriptor) }
            if !hasWaited { sleep(1) }
        }
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
