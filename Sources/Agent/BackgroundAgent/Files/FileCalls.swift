import CLinux
import Foundation
import ProcessSupport
import Synchronization

/// The agent's system calls for the files of its transfers. A test can make each call fail, for example to simulate a machine
/// without free file descriptors.
package final class FileCalls: Sendable {
    /// The kind of a system call.
    package enum Call: CaseIterable, Sendable {
        case open
        case status
        case read
        case write
        case truncate
        case sync
        /// A file is renamed, or gets a second name (a hard link).
        case name
    }

    /// Returns the error number if a call has to fail, or `nil` if the real system call is made.
    package typealias Fault = @Sendable (Call) -> Int32?

    /// A lock that protects a function directly would wrap the function again at each access, without a limit.
    private struct Rule {
        var fault: Fault?
    }

    private let rule = Mutex(Rule())

    package init() {}

    /// Makes system calls fail as `fault` decides. If `fault` is `nil`, the real system calls are made again.
    package func fail(by fault: Fault?) { rule.withLock { $0.fault = fault } }

    private func fails(_ call: Call) -> Bool {
        guard let fault = rule.withLock({ $0.fault }), let number = fault(call) else { return false }
        errno = number
        return true
    }

    private func make<Result: SignedInteger>(_ call: Call, _ system: () -> Result) -> Result {
        FileFault.uninterrupted { fails(call) ? -1 : system() }
    }

    /// Syncs a file. If the file system does not support sync, written bytes are treated as stored on the disk.
    private func sync(_ system: () -> Int32) -> Int32 {
        let result = make(.sync, system)
        return result != 0 && FileFault(errno) == .unsupported ? 0 : result
    }

    // The following functions set `errno` and return the result of the system call.

    func open(_ path: String, _ flags: Int32, _ permissions: mode_t = 0) -> Int32 {
        make(.open) { clinux_open(path, flags, permissions) }
    }

    func status(_ descriptor: Int32, _ information: inout stat) -> Int32 {
        make(.status) { fstat(descriptor, &information) }
    }

    /// Reads the cached status of an open file, without a request to a file server.
    func cachedStatus(_ descriptor: Int32, _ information: inout stat) -> Int32 {
        make(.status) { clinux_cached_status(descriptor, &information) }
    }

    /// Reads the status of the file at a path. If the path is a symbolic link, the status of the link is read.
    func statusOfName(_ path: String, _ information: inout stat) -> Int32 { make(.status) { lstat(path, &information) } }

    func status(of path: String, _ information: inout stat) -> Int32 { make(.status) { stat(path, &information) } }

    func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int, at offset: Int64) -> Int {
        make(.read) { pread(descriptor, buffer, count, off_t(offset)) }
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, at offset: Int64) -> Int {
        make(.write) { pwrite(descriptor, bytes, count, off_t(offset)) }
    }

    func truncate(_ descriptor: Int32, to count: Int64) -> Int32 { make(.truncate) { ftruncate(descriptor, off_t(count)) } }

    func syncData(_ descriptor: Int32) -> Int32 { sync { fdatasync(descriptor) } }

    func syncFolder(_ descriptor: Int32) -> Int32 { sync { fsync(descriptor) } }

    /// Renames a file. The call fails if a file with the new name exists.
    func renameWithoutReplacing(_ path: String, _ name: String) -> Int32 { make(.name) { clinux_rename_new(path, name) } }

    func replaceName(_ path: String, _ name: String) -> Int32 { make(.name) { rename(path, name) } }

    func addName(_ path: String, _ name: String) -> Int32 { make(.name) { link(path, name) } }
}
