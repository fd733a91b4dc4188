import Foundation
import Synchronization

/// What Nextcloud's chunked uploads (version 2) promise in its developer manual, with faults on demand: a stand-in, as Nextcloud
/// itself comes in no package. Mounted by `FaultyServer.mount(_:)`; files are under `…/remote.php/dav/files/me/`.
public final class NextcloudStore: MountedStore {
    private struct State {
        var folders: Set<String> = ["files/me", "uploads/me"]
        var files: [String: Data] = [:]
        var taken = 0
    }

    /// Its paths begin so.
    public let prefix: String
    /// What goes wrong with uploads to it.
    public let faults = UploadFaults()
    private let state = Mutex(State())

    /// A site under a prefix (no slash at its end).
    public init(prefix: String = "/cloud") { self.prefix = prefix }

    /// The files, without the chunks that wait.
    public var files: [Data] { state.withLock { $0.files.filter { $0.key.hasPrefix("files/") }.map(\.value) } }

    /// Body bytes of whole requests, over all.
    public var bytesTaken: Int { state.withLock { $0.taken } }

    /// Folders of chunks that nobody put together or took away.
    public var openUploads: Int { state.withLock { $0.folders.filter { $0.hasPrefix("uploads/me/") }.count } }

    package func exchange(for request: RecordedRequest) -> any Exchange { CollectedExchange(faults, request, act: act) }

    private func act(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        guard let place = place(of: request.path) else { return .status(404) }
        let destination = request.headers["Destination"].flatMap { URLComponents(string: $0)?.percentEncodedPath }
            .flatMap { self.place(of: $0) }
        return state.withLock { state in
            state.taken += body.count
            let parent = Self.parent(of: place)
            switch request.method {
            case "HEAD":
                guard let file = state.files[place] else { return .status(404) }
                return .head(["Content-Length": "\(file.count)"])
            case "MKCOL":
                if state.folders.contains(place) { return .status(405) }
                guard state.folders.contains(parent) else { return .status(409) }
                if place.hasPrefix("uploads/") {
                    // Without it, it is an upload of the first version, whose chunks are named otherwise.
                    guard let destination, state.folders.contains(Self.parent(of: destination)) else { return .status(409) }
                }
                state.folders.insert(place)
                return .status(201)
            case "PROPFIND":
                guard state.folders.contains(place) else { return .status(404) }
                return .xml(Self.listing(of: place, prefix, state), status: 207)
            case "PUT":
                guard state.folders.contains(parent) else { return .status(404) }
                guard let number = Int(place.split(separator: "/").last ?? ""), (1...10_000).contains(number), destination != nil
                else { return .status(400) }
                state.files[place] = body
                return .status(201)
            case "MOVE":
                guard place.hasSuffix("/.file"), state.folders.contains(parent), let destination else { return .status(404) }
                return Self.assemble(parent, as: destination, request, &state)
            case "DELETE":
                guard state.folders.remove(place) != nil else { return .status(404) }
                state.files = state.files.filter { !$0.key.hasPrefix(place + "/") }
                return .status(204)
            default: return .status(405)
            }
        }
    }

    /// `files/me/photos/noon.jpg`, `uploads/me/TOKEN/00001`.
    private func place(of path: String) -> String? {
        let root = prefix + "/remote.php/dav/"
        guard path.hasPrefix(root), let decoded = path.dropFirst(root.count).removingPercentEncoding else { return nil }
        return decoded.split(separator: "/").joined(separator: "/")
    }

    private static func parent(of place: String) -> String { place.split(separator: "/").dropLast().joined(separator: "/") }

    private static func listing(of folder: String, _ prefix: String, _ state: State) -> String {
        let chunks = state.files.filter { $0.key.hasPrefix(folder + "/") }.map { place, bytes in
            "<d:response><d:href>\(prefix)/remote.php/dav/\(place)</d:href><d:propstat><d:prop><d:getcontentlength>\(bytes.count)"
                + "</d:getcontentlength></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
        }
        return "<d:multistatus xmlns:d=\"DAV:\"><d:response><d:href>\(prefix)/remote.php/dav/\(folder)/</d:href></d:response>"
            + chunks.joined() + "</d:multistatus>"
    }

    private static func assemble(
        _ folder: String, as destination: String, _ request: RecordedRequest, _ state: inout State
    ) -> ResponseScript {
        guard state.folders.contains(parent(of: destination)) else { return .status(409) }
        if request.headers["Overwrite"] == "F", state.files[destination] != nil { return .status(412) }
        let chunks = state.files.filter { $0.key.hasPrefix(folder + "/") }.sorted { $0.key < $1.key }
        let whole = chunks.reduce(Data()) { $0 + $1.value }
        if let length = request.headers["OC-Total-Length"].flatMap(Int.init), length != whole.count { return .status(400) }
        state.files[destination] = whole
        state.folders.remove(folder)
        for chunk in chunks { state.files[chunk.key] = nil }
        return .status(201)
    }
}
