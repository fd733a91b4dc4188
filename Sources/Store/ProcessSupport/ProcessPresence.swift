import CLinux
import Foundation
import Synchronization

/// Shows processes in other PID and time namespaces that this process is running. In other namespaces, this process has another
/// number and another start time.
///
/// The process holds a shared lock on one byte of a file next to the ledger. The offset of the byte is computed from the identity
/// of the process. The kernel releases the lock when the process ends.
package final class ProcessPresence: Sendable {
    private let process: ProcessIdentity
    private let directories: AppDirectories
    /// The descriptor of the lock file, or -1 if the file could not be opened and locked yet. In this case, processes in other
    /// namespaces assume that this process has ended.
    private let descriptor = Mutex<Int32>(-1)

    package init(of process: ProcessIdentity = .current, in directories: AppDirectories) {
        (self.process, self.directories) = (process, directories)
        show()
    }

    deinit {
        let held = descriptor.withLock { $0 }
        if held >= 0 { close(held) }
    }

    /// Takes the lock if an earlier call could not take the lock. If this process already holds the lock, the call is fast.
    package func show() {
        descriptor.withLock { held in
            guard held < 0 else { return }
            let opened = Self.open(directories, O_CREAT)
            guard opened >= 0 else { return }
            if clinux_share_bytes(opened, Self.byte(of: process), 1) == 0 { held = opened } else { close(opened) }
        }
    }

    /// Returns whether a process holds the lock that shows that it is running. If the state is unknown because of a temporary
    /// error, the result is `true`.
    package static func isShown(by process: ProcessIdentity, in directories: AppDirectories) -> Bool {
        FileLock.isLocked(directories.processLock, unknown: true) { clinux_bytes_are_locked($0, byte(of: process), 1) }
    }

    /// Waits until the process has ended. The call blocks the thread.
    package static func waitForEnd(of process: ProcessIdentity, in directories: AppDirectories) {
        while process.isAlive(in: directories) {
            let descriptor = open(directories)
            // A process can be running although its lock is free. In this case, `isAlive(in:)` finds the process in /proc, and
            // the loop waits one second.
            let wasLocked = descriptor >= 0 && clinux_bytes_are_locked(descriptor, byte(of: process), 1) > 0
            let hasWaited = wasLocked && clinux_wait_for_byte(descriptor, byte(of: process)) == 0
            if descriptor >= 0 { close(descriptor) }
            if !hasWaited { sleep(1) }
        }
    }

    private static func open(_ directories: AppDirectories, _ flags: Int32 = 0) -> Int32 {
        clinux_open(directories.processLock.path, O_RDWR | O_CLOEXEC | flags, 0o600)
    }

    /// Returns the offset of the byte. The offset is below the largest offset that a lock can have.
    private static func byte(of process: ProcessIdentity) -> Int64 {
        let number = UInt64(UInt32(bitPattern: process.pid))
        let mixed = (UInt64(bitPattern: process.start) ^ (number << 32)) &* 0x9e37_79b9_7f4a_7c15
        return Int64(mixed >> 2)
    }
}
