import Foundation
import Synchronization

/// Files that this process puts into the spool before a row names them. As long as there is one, it shares a lock there; the agent,
/// which removes what no row names, does so only while nobody does. No age tells them from what a dead process left: a clock may
/// be set, and many photos be cleaned for longer than any patience.
final class SpoolClaims: Sendable {
    static let shared = SpoolClaims()

    private final class Claim {
        let lock: FileLock
        var names: Set<String> = []

        init(_ lock: consuming FileLock) { self.lock = lock }
    }

    /// By the lock's path: tests have many spools.
    private let claims = Mutex<[String: Claim]>([:])

    /// Before the file is made. Waits while an agent looks.
    func begin(_ name: String, in directories: AppDirectories) throws(LedgerError) {
        let path = directories.spoolLock.path
        let result = claims.withLock { claims in
            Result { () throws(LedgerError) in
                if claims[path] == nil { claims[path] = Claim(try FileLock.share(directories.spoolLock)) }
                claims[path]?.names.insert(name)
            }
        }
        try result.get()
    }

    /// A row names it, or it is gone.
    func end(_ name: String, in directories: AppDirectories) {
        let path = directories.spoolLock.path
        claims.withLock { claims in
            claims[path]?.names.remove(name)
            if claims[path]?.names.isEmpty == true { claims[path] = nil }
        }
    }
}
