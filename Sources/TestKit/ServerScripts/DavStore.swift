import Foundation

/// A WebDAV-like store for uploads, with faults on demand. `FaultyServer.mount(_:)` mounts it. Bodies of any size are written to
/// disk: first into a hidden file, which is then renamed. An interrupted upload therefore leaves no file.
public final class DavStore: MountedStore {
    /// The path prefix of the store on the server, such as `/dav`.
    public let prefix: String
    /// The folder that contains the files.
    public let directory: URL

    let tree: DavTree
    private let isTemporary: Bool
    /// The faults of uploads to this store.
    public let faults = UploadFaults()

    /// Creates a store. The paths of its URLs begin with `prefix`. The files are always on disk, so that large uploads need
    /// little memory.
    ///
    /// - Parameters:
    ///   - prefix: The path prefix, without a slash at its end.
    ///   - directory: The folder for the files, which is not removed with the store. If `nil`, a temporary folder is used and
    ///     removed with the store.
    /// - Throws: An error if the folder cannot be created.
    public init(prefix: String = "/dav", directory: URL? = nil) throws {
        self.prefix = prefix
        isTemporary = directory == nil
        let temporary = FileManager.default.temporaryDirectory.appendingPathComponent("dav-\(UUID().uuidString)")
        self.directory = directory ?? temporary
        tree = try DavTree(root: self.directory)
    }

    deinit {
        if isTemporary { try? FileManager.default.removeItem(at: directory) }
    }

    package func exchange(for request: RecordedRequest) -> any Exchange { DavExchange(self, request) }

    // MARK: Content

    /// Returns the bytes at a path below the prefix (`/photos/a.jpg`, decoded); `nil` if there is no file at the path.
    public func contents(of path: String) -> Data? {
        tree.resolve(path).flatMap { FileManager.default.contents(atPath: $0) }
    }

    /// Creates a collection and its parents.
    /// - Throws: An error if the folder cannot be created.
    public func makeCollection(_ path: String) throws {
        guard let place = tree.resolve(path) else { throw CocoaError(.fileWriteInvalidFileName) }
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    }

    /// Responds to the next PUTs with a success status, and does not store their bodies.
    public func keepNothing(ofNext count: Int = 1) { faults.add(.keepNothing, "PUT", count) }

    /// All files, as sorted paths below the prefix, without incomplete uploads.
    public var files: [String] { tree.files }

    /// The number of hidden files of running or abandoned uploads.
    public var unfinishedUploads: Int { tree.unfinishedUploads }
}
