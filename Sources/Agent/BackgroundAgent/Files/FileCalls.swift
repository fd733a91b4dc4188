import CLinux
import Foundation
import Synchronization

/// The agent's system calls on the files of its transfers. A test can have each of them fail, as on a machine without a free descriptor.
package final class FileCalls: Sendable {
    /// What is asked of the system.
    package enum Call: CaseIterable, Sendable {
        case open
        case status
        case read
        case write
        case truncate
        case sync
        /// A file gets another name, or a second one.
        case name
    }

    /// Returns the error number that a call fails with; `nil` if the call is made.
    package typealias Fault = @Sendable (Call) -> Int32?

    private let fault = Mutex<Fault?>(nil)

    package init() {}

    /// Has calls fail from now on; `nil` ends that.
    package func fail(by fault: Fault?) { self.fault.withLock { $0 = fault } }

    private func fails(_ call: Call) -> Bool {
        guard let rule = fault.withLock({ $0 }), let number = rule(call) else { return false }
        errno = number
        return true
    }

    // Each returns what its system call does, and sets `errno`.

    func open(_ path: String, _ flags: Int32, _ permissions: mode_t = 0) -> Int32 {
        fails(.open) ? -1 : clinux_open(path, flags, permissions)
    }

    func status(_ descriptor: Int32, _ information: inout stat) -> Int32 {
        fails(.status) ? -1 : fstat(descriptor, &information)
    }

    func status(of path: String, _ information: inout stat) -> Int32 { fails(.status) ? -1 : stat(path, &information) }

    func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int, at offset: Int64) -> Int {
        fails(.read) ? -1 : pread(descriptor, buffer, count, off_t(offset))
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, at offset: Int64) -> Int {
        fails(.write) ? -1 : pwrite(descriptor, bytes, count, off_t(offset))
    }

    func truncate(_ descriptor: Int32, to count: Int64) -> Int32 { fails(.truncate) ? -1 : ftruncate(descriptor, off_t(count)) }

    func syncData(_ descriptor: Int32) -> Int32 { fails(.sync) ? -1 : fdatasync(descriptor) }

    func syncFolder(_ descriptor: Int32) -> Int32 { fails(.sync) ? -1 : fsync(descriptor) }

    /// Never replaces a file.
    func giveName(_ path: String, _ name: String) -> Int32 { fails(.name) ? -1 : clinux_rename_new(path, name) }

    func replaceName(_ path: String, _ name: String) -> Int32 { fails(.name) ? -1 : rename(path, name) }

    func addName(_ path: String, _ name: String) -> Int32 { fails(.name) ? -1 : link(path, name) }
}
