import Foundation

/// The meaning of a system error number for a file of the spool, the ledger or a store. Only this type compares error numbers for
/// these files.
package enum FileFault: Equatable, Sendable {
    /// The file, or a folder above it, does not exist.
    case missing
    /// A component of the path is not a folder.
    case noFolder
    /// The path is not the path of a regular file.
    case notAFile
    case exists
    /// The file system does not support the operation.
    case unsupported
    /// The file system does not support the name or the size.
    case impossible
    case noRoom
    case notAllowed
    /// Any other error, for example too many open files, too little memory, or an error of the disk.
    case unavailable

    package init(_ number: Int32) {
        switch number {
        // For a file in /proc, ESRCH means that the process has ended.
        case ENOENT, ESRCH: self = .missing
        case ENOTDIR: self = .noFolder
        case EISDIR, ELOOP, ENXIO: self = .notAFile
        case EEXIST: self = .exists
        case EINVAL, ENOSYS, EOPNOTSUPP, EMLINK, EXDEV: self = .unsupported
        case ENAMETOOLONG, EFBIG: self = .impossible
        case ENOSPC, EDQUOT: self = .noRoom
        case EACCES, EPERM, EROFS: self = .notAllowed
        default: self = .unavailable
        }
    }

    /// Returns whether the call had no effect and can be repeated immediately.
    package static func isInterruption(_ number: Int32) -> Bool { number == EINTR || number == EAGAIN }

    /// Repeats a system call if a signal interrupts the call. The function makes at most 100 calls.
    package static func uninterrupted<Result: SignedInteger>(_ call: () -> Result) -> Result {
        for _ in 1..<100 {
            let result = call()
            guard result < 0, isInterruption(errno) else { return result }
        }
        return call()
    }

    /// The system's message for the error ``noRoom``.
    package static let noRoomReason = String(cString: strerror(ENOSPC))

    /// `true` if the same operation may succeed later.
    package var isPassing: Bool {
        switch self {
        case .missing, .noFolder, .notAFile, .exists, .unsupported, .impossible: false
        case .noRoom, .notAllowed, .unavailable: true
        }
    }

    /// `true` if the creation or the rename of a file may succeed later. For example, the folder of the file may exist again when
    /// the user connects the folder's drive.
    package var isPassingForNewFile: Bool { isPassing || isAbsence }

    /// `true` if the path does not exist.
    package var isAbsence: Bool { self == .missing || self == .noFolder }

    /// `true` if the same call on an open file may succeed later. The name and the kind of an open file cannot be the cause of an
    /// error.
    package var isPassingOnOpenFile: Bool { self != .impossible }
}
