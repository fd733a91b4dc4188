import Foundation

/// The state of a file at one moment. Another file under the same name, and a change by another program, give another value.
package struct FileSight: Equatable, Sendable {
    let byteCount: Int64
    private let isRegular: Bool
    /// Nanoseconds since 1970.
    private let modified: Int64
    /// `nil` if only the content counts.
    private var identity: Identity?

    private struct Identity: Equatable {
        let device: UInt64
        let inode: UInt64
        /// Nanoseconds since 1970.
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

    /// An open file. Returns `nil`, with `errno`, if the call fails.
    static func open(_ descriptor: Int32, _ calls: FileCalls) -> FileSight? {
        var found = stat()
        return calls.status(descriptor, &found) == 0 ? FileSight(found) : nil
    }

    /// An open file, as this machine knows it: no file server is asked. Returns `nil`, with `errno`, if the call fails.
    static func cached(_ descriptor: Int32, _ calls: FileCalls) -> FileSight? {
        var found = stat()
        return calls.cachedStatus(descriptor, &found) == 0 ? FileSight(found) : nil
    }

    /// The file at a path. A link is not followed. Returns `nil`, with `errno`, if the call fails.
    static func named(_ path: String, _ calls: FileCalls) -> FileSight? {
        var found = stat()
        return calls.statusOfName(path, &found) == 0 ? FileSight(found) : nil
    }

    /// The content alone. File systems without stable inode numbers show another identity at each look.
    var ofContent: FileSight {
        var content = self
        content.identity = nil
        return content
    }

    /// Returns whether the file is a regular file with unchanged content. The identity counts if both values have one.
    func isStill(_ other: FileSight) -> Bool {
        guard isRegular, other.isRegular, byteCount == other.byteCount, modified == other.modified else { return false }
        guard let identity, let otherIdentity = other.identity else { return true }
        return identity == otherIdentity
    }
}
