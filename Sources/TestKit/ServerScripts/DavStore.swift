import Foundation

/// A WebDAV-like sink for uploads, with faults on demand. Mounted by `FaultyServer.mount(_:)`. Bodies go straight to
/// disk, whatever their size: into a hidden file first, then in place by one rename, so a broken upload leaves nothing.
public final class DavStore: MountedStore {
    /// Where the store hangs on the server, such as `/dav`.
    public let prefix: String
    /// The folder that holds the files.
    public let directory: URL

    let tree: DavTree
    private let isTemporary: Bool
    /// What goes wrong with uploads to it.
    public let faults = UploadFaults()

    /// A store under a prefix. There is no variant in memory: one code path, and large uploads stay cheap.
    ///
    /// - Parameters:
    ///   - prefix: without a slash at its end.
    ///   - directory: kept afterwards. `nil`: a temporary one, removed with the store.
    /// - Throws: when the folder cannot be made.
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

    // MARK: What is there

    /// The bytes at a path below the prefix (`/photos/a.jpg`, decoded), or `nil`.
    public func contents(of path: String) -> Data? {
        tree.resolve(path).flatMap { FileManager.default.contents(atPath: $0) }
    }

    /// Creates a collection, with those above it.
    /// - Throws: when the folder cannot be made.
    public func makeCollection(_ path: String) throws {
        guard let place = tree.resolve(path) else { throw CocoaError(.fileWriteInvalidFileName) }
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    }

    /// Accepts the next PUTs with the status of success, and keeps nothing of their bodies.
    public func keepNothing(ofNext count: Int = 1) { faults.add(.keepNothing, "PUT", count) }

    /// All files, as sorted paths below the prefix. Uploads not finished are not among them.
    public var files: [String] { tree.files }

    /// Hidden files of uploads under way, or left behind.
    public var unfinishedUploads: Int { tree.unfinishedUploads }
}
