import ProcessSupport
import Foundation
import Synchronization

/// A file that this process created in the spool. The file belongs to this process until a row of the ledger contains its name.
/// If the last reference is released before a row contains the name, the file is removed.
final class SpoolCopy: Sendable {
    let name: String
    private let directories: AppDirectories
    private let isOwn = Mutex(true)

    /// Claims the name before the file is created. Waits while an agent searches for files of processes that have ended.
    init(_ name: String, in directories: AppDirectories) throws(StoreError) {
        (self.name, self.directories) = (name, directories)
        try SpoolClaims.shared.begin(name, in: directories)
    }

    var path: String { directories.spooled(name).path }

    /// Passes the ownership of the file to the agent, because a durable row contains the file's name.
    func keep() { if giveUp() { SpoolClaims.shared.end(name, in: directories) } }

    /// Removes the file, because no row will contain its name. After ``keep()``, this call has no effect.
    func discard() {
        guard giveUp() else { return }
        unlink(path)
        SpoolClaims.shared.end(name, in: directories)
    }

    private func giveUp() -> Bool { isOwn.withLock { isOwn in exchange(&isOwn, false) } }

    private func exchange(_ value: inout Bool, _ new: Bool) -> Bool {
        defer { value = new }
        return value
    }

    deinit { discard() }
}

/// The files of this process in the spool that have no row yet. While such files exist, the process holds a shared lock. The
/// agent removes files without a row only if no process holds the lock. The age of a file is not used for this decision. The age
/// would not be reliable, because the clock may be changed, and because a process may clean many photos for a very long time.
private final class SpoolClaims: Sendable {
    static let shared = SpoolClaims()

    private final class Claim {
        let lock: FileLock
        var names: Set<String> = []

        init(_ lock: consuming FileLock) { self.lock = lock }
    }

    /// The claims, by the path of the spool's lock file. A process usually has one spool, but a test process has many.
    private let claims = Mutex<[String: Claim]>([:])

    func begin(_ name: String, in directories: AppDirectories) throws(StoreError) {
        let path = directories.spoolLock.path
        let result = claims.withLock { claims in
            Result { () throws(StoreError) in
                if claims[path] == nil { claims[path] = Claim(try FileLock.share(directories.spoolLock)) }
                claims[path]?.names.insert(name)
            }
        }
        try result.get()
    }

    func end(_ name: String, in directories: AppDirectories) {
        let path = directories.spoolLock.path
        claims.withLock { claims in
            claims[path]?.names.remove(name)
            if claims[path]?.names.isEmpty == true { claims[path] = nil }
        }
    }
}
