import CLinux
import Foundation
import Glibc

/// The identity of a process, which consists of process number, start time and PID namespace. The number alone is not sufficient,
/// because a later process can get the same number. A process of another namespace, for example in a container with the same home
/// folder, can even have the same number at the same time.
package struct ProcessIdentity: Sendable, Hashable {
    package let pid: Int32
    /// The start time in clock ticks after boot, as read from /proc. The upper bits contain the PID namespace, so that the ledger
    /// stores and compares only one number. For the first namespace of a machine, the upper bits are 0, because earlier versions
    /// stored only the start time.
    package let start: Int64

    package init(pid: Int32, start: Int64) {
        self.pid = pid
        self.start = start
    }

    /// Reads the identity of a running process. Returns `nil` if no process with this number is running in this PID namespace, or
    /// if /proc cannot be read.
    package init?(pid: Int32) {
        guard case .process(let start, _) = Entry(of: pid) else { return nil }
        self.init(pid: pid, start: start)
    }

    /// The entry of a process number in /proc.
    private enum Entry {
        case process(start: Int64, isZombie: Bool)
        case missing
        /// The entry cannot be read, for example because no more files can be opened.
        case unknown

        init(of pid: Int32) {
            let descriptor = clinux_open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC, 0)
            guard descriptor >= 0 else {
                self = FileFault(errno).isAbsence ? .missing : .unknown
                return
            }
            defer { close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 2_048)
            let count = read(descriptor, &bytes, bytes.count)
            self =
                count < 0
                ? FileFault(errno).isAbsence ? .missing : .unknown
                : Self(String(decoding: bytes.prefix(count), as: UTF8.self))
        }

        private init(_ text: String) {
            self = .unknown
            // The name of the program in the second field may contain spaces and brackets. The other fields are therefore counted
            // after the last bracket.
            guard let bracket = text.lastIndex(of: ")") else { return }
            let fields = text[text.index(after: bracket)...].split(separator: " ")
            guard fields.count > 19, let ticks = Int64(fields[19]) else { return }
            self = .process(start: ProcessIdentity.ownNamespace << ProcessIdentity.tickBits | ticks, isZombie: fields[0] == "Z")
        }
    }

    package static let current = ProcessIdentity(pid: getpid()) ?? ProcessIdentity(pid: getpid(), start: 0)

    /// The number of bits for the start time. The bits are sufficient for ten years after boot.
    private static let tickBits: Int64 = 35

    /// The number of this process's PID namespace. The number is 0 for the first namespace of the machine, or if the namespace is
    /// unknown.
    private static let ownNamespace: Int64 = {
        var information = stat()
        // The first namespace has the inode number 0xEFFFFFFC in every kernel. Other namespaces have numbers from 0xF0000000.
        guard stat("/proc/self/ns/pid", &information) == 0, information.st_ino != 0xEFFF_FFFC else { return 0 }
        return Int64(information.st_ino & 0x0FFF_FFFF)
    }()

    /// `true` if the process is in another PID namespace than the caller. In the caller's namespace, the same number can belong
    /// to another process.
    package var isOfAnotherNamespace: Bool { start >> Self.tickBits != Self.ownNamespace }

    /// `true` if the process is still running. The value is `false` for a zombie, and always `false` for a process of another PID
    /// namespace (see ``isAlive(in:)``). If the state is unknown because of a temporary error, the value is `true`.
    package var isAlive: Bool {
        guard !isOfAnotherNamespace else { return false }
        switch Entry(of: pid) {
        case .process(let start, let isZombie): return start == self.start && !isZombie
        case .missing: return false
        case .unknown: return true
        }
    }

    /// Returns whether the process is still running. The process may be in another PID or time namespace, or on another machine
    /// with the same home folder. Such a process holds a lock that shows that it is running (see ``ProcessPresence``).
    package func isAlive(in directories: AppDirectories) -> Bool {
        isAlive || ProcessPresence.isShown(by: self, in: directories)
    }
}
