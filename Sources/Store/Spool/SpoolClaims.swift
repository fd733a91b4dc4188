import ProcessSupport
import Foundation
import Synchronization

/// A file that this process made in the spool and that is its own until a row names it: whoever lets go of it before, by whatever
/// way out, leaves nothing.
final class SpoolCopy: Sendable {
    let name: String
    private let directories: AppDirectories
    private let isOwn = Mutex(true)

    /// Before the file is made. Waits while an agent looks for what dead processes left.
    init(_ name: String, in directories: AppDirectories) throws(StoreError) {
        (self.name, self.directories) = (name, directories)
        try SpoolClaims.shared.begin(name, in: directories)
    }

    var path: String { directories.spooled(name).path }

    /// A row names it, durably.
    func keep() { if giveUp() { SpoolClaims.shared.end(name, in: directories) } }

    /// No row will. Not after ``keep()``.
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

/// What this process puts into the spool before a row names it. As long as there is something, it shares a lock there; the agent,
/// which removes what no row names, does so only while nobody does. No age tells that from what a dead process left: a clock may be
/// set, and many photos be cleaned for longer than any patience.
private final class SpoolClaims: Sendable {
    static let shared = SpoolClaims()

    private final class Claim {
        let lock: FileLock
        var names: Set<String> = []

        init(_ lock: consuming FileLock) { self.lock = lock }
    }

    /// By the lock's path: tests have many spools.
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
