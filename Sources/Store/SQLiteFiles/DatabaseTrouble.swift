import Foundation
import GRDB
import ProcessSupport

/// The meaning of a SQLite error for code that opens, reads or writes a file.
package enum DatabaseTrouble: Sendable {
    /// The file is not a database, or is damaged.
    case damaged
    /// The file or its folder cannot be written.
    case notWritable
    case busy
    /// The disk has no space for bytes or files, or the owner has no quota left.
    case noRoom
    /// A temporary error: another attempt may succeed. If the owner has no quota left, the error can also be reported as
    /// temporary, because SQLite does not always report the exact reason.
    case passing(reason: String)
    case other(reason: String)

    package init(_ error: DatabaseError, path: String) {
        let readFault = SQLiteOpening.consumeReadFault()
        if readFault != 0, [.SQLITE_NOTADB, .SQLITE_CORRUPT].contains(error.resultCode) {
            // If a read of the disk failed, the error is temporary, although SQLite may report a damaged database.
            self = .passing(reason: String(cString: strerror(readFault)))
        } else {
            self.init(error, path: path) { Self.fault(at: path) }
        }
    }

    /// - Parameter fault: a closure that returns the error number of the failed system call, or `nil` if the number is unknown.
    package init(_ error: DatabaseError, path: String, fault: () -> Int32?) {
        let reason = error.message ?? "\(error.resultCode)"
        self =
            switch error.resultCode {
            case .SQLITE_NOTADB, .SQLITE_CORRUPT: .damaged
            // If the disk has no free inodes, SQLite could not create the write-ahead log or the index of the log.
            case .SQLITE_CANTOPEN where DiskSpace.hasNoFreeInodes(at: path): .noRoom
            // If the error number is unknown, the error may be temporary.
            case .SQLITE_CANTOPEN: fault().map(Self.init(openingFailedWith:)) ?? .passing(reason: reason)
            case .SQLITE_READONLY, .SQLITE_PERM: .notWritable
            case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
            case .SQLITE_FULL: .noRoom
            // The index of the write-ahead log could not be extended to the required size.
            case .SQLITE_IOERR
            where [.SQLITE_IOERR_SHMSIZE, .SQLITE_IOERR_SHMOPEN].contains(error.extendedResultCode): .noRoom
            case .SQLITE_IOERR, .SQLITE_NOMEM: .passing(reason: reason)
            default: .other(reason: reason)
            }
    }

    private init(openingFailedWith number: Int32) {
        self =
            switch FileFault(number) {
            case .noRoom: .noRoom
            case .unavailable: .passing(reason: String(cString: strerror(number)))
            case .notAllowed, .missing, .noFolder, .notAFile, .exists, .unsupported, .impossible: .notWritable
            }
    }

    /// Returns the error number of a failed `open`, because SQLite does not report this number. The function does not open the
    /// file again, because closing the file would release the locks of other connections of this process.
    private static func fault(at path: String) -> Int32? {
        let number = SQLiteOpening.fault
        if number != 0 { return number }
        for place in [path, (path as NSString).deletingLastPathComponent] where access(place, R_OK | W_OK) != 0 { return errno }
        return nil
    }
}
