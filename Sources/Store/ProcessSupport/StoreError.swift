import Foundation

/// An error of the files of a ledger or a store. The message of each case contains the path of the file and a solution for the
/// user.
package enum StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    case cannotCreate(path: String, reason: String)
    /// The folder belongs to another user, or other users can write to the folder. Another attempt would also fail.
    case unsafeFolder(path: String)
    case notADatabase(path: String)
    case newerVersion(path: String)
    case readOnly(path: String)
    case busy(path: String)
    case diskFull(path: String)
    /// The disk or the limit of open files caused an error. Another attempt may succeed.
    case troubled(path: String, reason: String)
    case failed(path: String, reason: String)
    /// The ledger, its write-ahead log or the index of the log was removed or replaced while this process had the file open.
    case replaced(path: String)
    /// The database's write-ahead log, or the index of this log, was removed while the agent had the file open. The agent has not
    /// yet copied the content of the removed file into the database.
    case unsaved(path: String)
    /// The folder that an environment variable contains cannot be used.
    case unusableFolder(variable: String, fault: FolderFault)

    package enum FolderFault: Sendable {
        case notUTF8
        case lineBreak
    }

    /// Returns the error for a failed `open` of a file of the store.
    package static func notOpened(_ path: String, _ number: Int32) -> StoreError {
        switch FileFault(number) {
        case .notAllowed: .readOnly(path: path)
        case .noRoom: .diskFull(path: path)
        case .unavailable where number != 0: .troubled(path: path, reason: String(cString: strerror(number)))
        case .missing, .noFolder, .notAFile, .exists, .unsupported, .impossible, .unavailable:
            .cannotCreate(path: path, reason: String(cString: strerror(number)))
        }
    }

    /// Returns the error for a failed call of inotify or epoll. If too many watches exist, these calls report the error number of
    /// a full disk. For this reason, an error of these calls is never reported as a full disk.
    package static func notWatched(_ path: String, _ number: Int32, _ what: String) -> StoreError {
        let reason = what + String(cString: strerror(number))
        return FileFault(number).isPassing ? .troubled(path: path, reason: reason) : .failed(path: path, reason: reason)
    }

    /// `true` if another attempt may succeed after a wait, or after the store is opened again. The store itself is intact.
    package var isPassing: Bool {
        switch self {
        case .busy, .diskFull, .troubled, .replaced, .unsaved: true
        case .cannotCreate, .unsafeFolder, .notADatabase, .newerVersion, .readOnly, .failed, .unusableFolder: false
        }
    }

    /// `true` if another attempt may succeed after some minutes, because permissions can change and a disk can be mounted again.
    /// Commands do not wait, but report such an error immediately.
    package var mayPass: Bool {
        switch self {
        case .cannotCreate, .readOnly: true
        case .unsafeFolder, .notADatabase, .newerVersion, .failed, .unusableFolder: false
        case .busy, .diskFull, .troubled, .replaced, .unsaved: true
        }
    }

    /// `true` if the disk may be full. SQLite does not distinguish an exceeded quota from a damaged disk.
    package var mayMeanFullDisk: Bool {
        switch self {
        case .diskFull, .troubled: true
        case .busy, .cannotCreate, .unsafeFolder, .notADatabase, .newerVersion, .readOnly, .failed, .replaced, .unsaved,
            .unusableFolder:
            false
        }
    }

    package var description: String {
        switch self {
        case .cannotCreate(let path, let reason):
            "\(path) cannot be created: \(reason)"
        case .unsafeFolder(let path):
            "\(path) cannot be created: the folder belongs to another user, or other users can write to it"
        case .notADatabase(let path):
            "\(path) is damaged, or is not a ledger. The file was not changed. To start with an empty ledger, move the file away"
        case .newerVersion(let path):
            "\(path) was written by a newer version of the app. The file was not changed. Install the newer version again"
        case .readOnly(let path):
            "\(path) cannot be written: \(Self.adviceForUnwritable(path))"
        case .busy(let path):
            "\(path) is being written by \(LockHolder.find(database: path)?.description ?? "another process"): try again"
        case .diskFull(let path):
            "no space is left for \(path) on its disk, or in the quota of its owner"
        case .replaced(let path):
            "\(path) or a file of the same database was removed or replaced while this program used it. Start the program again"
        case .unsaved(let path):
            """
            a file beside \(path) was removed while \(LockHolder.find(lock: Self.folder(of: path))?.description ?? "the agent") \
            used the file. The contents of the removed file are not stored yet. Try again
            """
        case .troubled(let path, let reason), .failed(let path, let reason):
            "\(path): \(reason)"
        case .unusableFolder(let variable, .notUTF8):
            "\(variable) names a folder whose path is not valid UTF-8: set \(variable) to another folder"
        case .unusableFolder(let variable, .lineBreak):
            "\(variable) names a folder whose path contains a line break: set \(variable) to another folder"
        }
    }

    /// - Parameter path: The path of the file that cannot be written or created.
    package static func adviceForUnwritable(_ path: String) -> String {
        [path, folder(of: path)].contains(where: DiskSpace.isReadOnly)
            ? "the disk is mounted read-only" : "check the permissions of the file and its folder"
    }

    private static func folder(of path: String) -> String { URL(fileURLWithPath: path).deletingLastPathComponent().path }
}

extension StoreError: LocalizedError {
    package var errorDescription: String? { description }
}
