import Foundation

/// The state of a file at one time. The state changes if another program replaces or changes the file.
package struct FileVersion: Equatable, Sendable {
    let byteCount: Int64
    private let isRegular: Bool
    /// The time of the last change of the content, in nanoseconds since 1970.
    private let modified: Int64
    /// The identity of the file: device, inode and time of the last status change. `nil` if only the content is compared.
    private var identity: Identity?

    private struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        /// The time of the last status change, in nanoseconds since 1970.
        let changed: Int64
    }

    private init(_ found: stat) {
        byteCount = Int64(found.st_size)
        isRegular = found.st_mode & S_IFMT == S_IFREG
        modified = Self.nanoseconds(found.st_mtim)
        identity = Identity(
            device: UInt64(found.st_dev), inode: UInt64(found.st_ino), changed: Self.nanoseconds(found.st_ctim))
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000).partialValue &+ Int64(time.tv_nsec)
    }

    /// Returns the state of an open file. Returns `nil` and sets `errno` if the call fails.
    static func open(_ descriptor: Int32, _ calls: FileCalls) -> FileVersion? {
        var found = stat()
        return calls.status(descriptor, &found) == 0 ? FileVersion(found) : nil
    }

    /// Returns the cached state of an open file, without a request to a file server. Returns `nil` and sets `errno` if the call
    /// fails.
    static func cached(_ descriptor: Int32, _ calls: FileCalls) -> FileVersion? {
        var found = stat()
        return calls.cachedStatus(descriptor, &found) == 0 ? FileVersion(found) : nil
    }

    /// Returns the state of the file at a path. If the path is a symbolic link, the state of the link is returned. Returns `nil`
    /// and sets `errno` if the call fails.
    static func named(_ path: String, _ calls: FileCalls) -> FileVersion? {
        var found = stat()
        return calls.statusOfName(path, &found) == 0 ? FileVersion(found) : nil
    }

    /// The state of the file without the identity. Some file systems return another identity at each call, so this state is used
    /// to compare only the content.
    var ofContent: FileVersion {
        var content = self
        content.identity = nil
        return content
    }

    /// Returns `true` if the file is a regular file and its content has not changed. The identities are compared if both states
    /// have an identity.
    func isStill(_ other: FileVersion) -> Bool {
        guard isRegular, other.isRegular, byteCount == other.byteCount, modified == other.modified else { return false }
        guard let identity, let otherIdentity = other.identity else { return true }
        return identity == otherIdentity
    }
}
