import Foundation

/// The state of a file at one time. If the file was replaced, or changed by another program, the state differs.
package struct FileVersion: Equatable, Sendable {
    let byteCount: Int64
    private let isRegular: Bool
    /// The time of the last change, in nanoseconds since 1970.
    private let modified: Int64
    /// The identity of the file; `nil` if only the content is compared.
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

    /// Returns the state of an open file, or `nil` (with `errno` set) if the call fails.
    static func open(_ descriptor: Int32, _ calls: FileCalls) -> FileVersion? {
        var found = stat()
        return calls.status(descriptor, &found) == 0 ? FileVersion(found) : nil
    }

    /// Returns the cached state of an open file, without a request to a file server; `nil`, with `errno`, if the call fails.
    static func cached(_ descriptor: Int32, _ calls: FileCalls) -> FileVersion? {
        var found = stat()
        return calls.cachedStatus(descriptor, &found) == 0 ? FileVersion(found) : nil
    }

    /// Returns the state of the file at a path. If the path is a link, returns the state of the link. Returns `nil`, with `errno`,
    /// if the call fails.
    static func named(_ path: String, _ calls: FileCalls) -> FileVersion? {
        var found = stat()
        return calls.statusOfName(path, &found) == 0 ? FileVersion(found) : nil
    }

    /// The state without the identity, for a comparison of the content alone. Some file systems without stable inode numbers return
    /// another identity at each call.
    var ofContent: FileVersion {
        var content = self
        content.identity = nil
        return content
    }

    /// Returns `true` if the file is a regular file with unchanged content. The identity is compared if both values have an
    /// identity.
    func isStill(_ other: FileVersion) -> Bool {
        guard isRegular, other.isRegular, byteCount == other.byteCount, modified == other.modified else { return false }
        guard let identity, let otherIdentity = other.identity else { return true }
        return identity == otherIdentity
    }
}
