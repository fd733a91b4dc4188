import Foundation
import Synchronization

/// A WebDAV-like sink for uploads, with faults on demand. Mounted by `FaultyServer.mount(_:)`. Bodies go straight to
/// disk, whatever their size: into a hidden file first, then in place by one rename, so a broken upload leaves nothing.
public final class DavStore: Sendable {
    /// Where the store hangs on the server, such as `/dav`.
    public let prefix: String
    /// The folder that holds the files.
    public let directory: URL

    let tree: DavTree
    private let isTemporary: Bool
    private let faults = Mutex<[DavFault]>([])

    /// A store under a prefix (no slash at its end).
    /// - Parameter directory: kept afterwards. `nil`: a temporary one, removed with the store. There is no variant in
    ///   memory: one code path, and large uploads stay cheap.
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

    // MARK: What is there

    /// The bytes at a path below the prefix (`/photos/a.jpg`, decoded), or `nil`.
    public func contents(of path: String) -> Data? {
        tree.resolve(path).flatMap { FileManager.default.contents(atPath: $0) }
    }

    /// Creates a collection, with those above it.
    public func makeCollection(_ path: String) throws {
        guard let place = tree.resolve(path) else { throw CocoaError(.fileWriteInvalidFileName) }
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
    }

    /// All files, as sorted paths below the prefix. Uploads not finished are not among them.
    public var files: [String] { tree.files }

    /// Hidden files of uploads under way, or left behind.
    public var unfinishedUploads: Int { tree.unfinishedUploads }

    // MARK: Faults, taken in the order they were asked for

    /// Refuses the next requests with a status (507, 423, 403, 500). With `Expect: 100-continue` the answer comes
    /// before the body, else after it. `method` `nil`: any.
    public func refuse(status: Int, method: String? = nil, next count: Int = 1, headers: HeaderList = [:]) {
        add(.init(kind: .refuse(status, headers), method: method, remaining: count))
    }

    /// Closes the connection of the next PUTs once this many body bytes arrived.
    public func cutUploads(afterBytes bytes: Int, next count: Int = 1) {
        add(.init(kind: .cut(afterBytes: bytes), method: "PUT", remaining: count))
    }

    /// Reads no further than about this many body bytes of the next PUTs, and never answers. See
    /// `ResponseScript.Step.stopReading` for what the log can still know.
    public func stallUploads(afterBytes bytes: Int, next count: Int = 1) {
        add(.init(kind: .stall(afterBytes: bytes), method: "PUT", remaining: count))
    }

    /// Does what the next requests of a method ask, then closes the connection in place of the answer.
    public func loseAnswers(to method: String, next count: Int = 1) {
        add(.init(kind: .loseAnswer, method: method, remaining: count))
    }

    /// Takes back all faults that were not used.
    public func clearFaults() { faults.withLock { $0 = [] } }

    private func add(_ fault: DavFault) { faults.withLock { $0.append(fault) } }

    /// The fault for a request, consumed.
    func takeFault(for method: String) -> DavFault.Kind? {
        faults.withLock { faults in
            faults.removeAll { $0.remaining <= 0 }
            guard let index = faults.firstIndex(where: { $0.method == nil || $0.method == method }) else { return nil }
            faults[index].remaining -= 1
            return faults[index].kind
        }
    }
}

/// A fault waiting for its request.
struct DavFault {
    enum Kind {
        case refuse(Int, HeaderList)
        case cut(afterBytes: Int)
        case stall(afterBytes: Int)
        case loseAnswer
    }

    let kind: Kind
    let method: String?
    var remaining: Int
}
