import Foundation
import GRDB
import ProcessSupport

/// What an error of SQLite's means for whoever wanted to open, read or write a file.
package enum DatabaseTrouble: Sendable {
    /// Not a database, or a broken one.
    case damaged
    /// The file or its folder does not let itself be written.
    case notWritable
    case busy
    /// No room on its disk for bytes or for files, or in its owner's quota.
    case noRoom
    /// What another try may do; also a quota that is used up, which SQLite does not tell apart.
    case passing(reason: String)
    case other(reason: String)

    package init(_ error: DatabaseError, path: String) {
        let readFault = SQLiteOpening.takeReadFault()
        if readFault != 0, [.SQLITE_NOTADB, .SQLITE_CORRUPT].contains(error.resultCode) {
            // SQLite calls a database damaged if its disk did not read it once.
            self = .passing(reason: String(cString: strerror(readFault)))
        } else {
            self.init(error, path: path) { Self.fault(at: path) }
        }
    }

    /// - Parameter fault: Returns the error number of the call that failed; `nil` if it is unknown.
    package init(_ error: DatabaseError, path: String, fault: () -> Int32?) {
        let reason = error.message ?? "\(error.resultCode)"
        self =
            switch error.resultCode {
            case .SQLITE_NOTADB, .SQLITE_CORRUPT: .damaged
            // The log or its index could not be made.
            case .SQLITE_CANTOPEN where DiskSpace.takesNoMoreFiles(at: path): .noRoom
            // An unknown reason may pass.
            case .SQLITE_CANTOPEN: fault().map(Self.init(openingFailedWith:)) ?? .passing(reason: reason)
            case .SQLITE_READONLY, .SQLITE_PERM: .notWritable
            case .SQLITE_BUSY, .SQLITE_LOCKED: .busy
            case .SQLITE_FULL: .noRoom
            // The index of its log could not be made as long as that has to be.
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

    /// SQLite does not report why it cannot open a file. The file is not opened for that, because closing it would release the locks
    /// of other connections of this process.
    private static func fault(at path: String) -> Int32? {
        let number = SQLiteOpening.fault
        if number != 0 { return number }
        for place in [path, (path as NSString).deletingLastPathComponent] where access(place, R_OK | W_OK) != 0 { return errno }
        return nil
    }
}
