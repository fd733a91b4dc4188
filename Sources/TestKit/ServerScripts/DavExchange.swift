import Foundation

/// A request to a WebDAV store.
final class DavExchange: Exchange {
    let opening: ResponseScript?
    private let store: DavStore
    private let request: RecordedRequest
    private let place: String?
    private let losesAnswer: Bool
    private let keepsNothing: Bool
    private var upload: (place: String, handle: FileHandle)?
    private var couldNotWrite = false

    init(_ store: DavStore, _ request: RecordedRequest) {
        self.store = store
        self.request = request
        place = Self.place(of: request.path, in: store)
        let expects = request.headers.tokens("Expect").contains("100-continue")
        let fault = store.faults.consumeFault(for: request.method)
        var refusal = fault?.opening(refusesAt: expects ? .atHead : .afterBody)
        var acceptsBody = request.method == "PUT" && fault?.refuses != true
        if fault == nil, expects {
            // A client that waits for status 100 receives the refusal before the client sends the body. The check is repeated at
            // the end of the request, because another upload may have been stored in the meantime.
            refusal = Self.obstacle(to: request, at: place, in: store)
            refusal?.beginning = .atHead
            acceptsBody = acceptsBody && refusal == nil
        }
        opening = refusal
        losesAnswer = fault?.losesAnswer == true
        keepsNothing = fault?.keepsNothing == true
        if acceptsBody, let place = store.tree.newUpload(), let handle = FileHandle(forWritingAtPath: place) {
            upload = (place, handle)
        }
    }

    deinit { abandon() }

    // MARK: Exchange

    func receive(_ bytes: Data) {
        guard let upload, !couldNotWrite else { return }
        do {
            try upload.handle.write(contentsOf: bytes)
        } catch {
            couldNotWrite = true
        }
    }

    func finish() -> ResponseScript {
        // The hidden file is removed before the response is sent. When a client has received the response, no hidden file of a
        // refused body exists any more.
        defer { abandon() }
        if let opening, opening.beginning == .afterBody { return opening }
        let answer = Self.obstacle(to: request, at: place, in: store) ?? act()
        return losesAnswer ? .hangUp : answer
    }

    func abandon() {
        guard let upload else { return }
        try? upload.handle.close()
        _ = store.tree.remove(upload.place)
        self.upload = nil
    }

    // MARK: Methods

    private func act() -> ResponseScript {
        guard let place else { return .status(403) }
        switch request.method {
        case "PUT": return put(place)
        case "GET", "HEAD": return get(place)
        case "MOVE": return move(place)
        case "DELETE": return .status(store.tree.remove(place) ? 204 : 403)
        case "MKCOL": return .status(store.tree.makeCollection(place) ? 201 : 507)
        case "PROPFIND": return DavListing(store, path: request.path, place: place).answer(request.headers["Depth"])
        case "OPTIONS": return .status(200, headers: ["DAV": "1", "Allow": Self.methods])
        default: return .status(405, headers: ["Allow": Self.methods])
        }
    }

    private static let methods = "OPTIONS, GET, HEAD, PUT, MOVE, DELETE, MKCOL, PROPFIND"

    private func put(_ place: String) -> ResponseScript {
        guard let upload, !couldNotWrite else { return .status(507) }
        let existed = store.tree.kind(place) == .file
        if keepsNothing { return .status(existed ? 204 : 201) }
        try? upload.handle.close()
        guard store.tree.move(upload.place, to: place) else { return .status(507) }
        self.upload = nil
        let etag = store.tree.facts(place)?.etag ?? ""
        return .status(existed ? 204 : 201, headers: ["ETag": etag])
    }

    private func get(_ place: String) -> ResponseScript {
        guard let facts = store.tree.facts(place) else { return .status(404) }
        return .file(.file(path: place, count: facts.size), etag: facts.etag)
    }

    private func move(_ source: String) -> ResponseScript {
        guard let destination = Self.destination(of: request, in: store) else { return .status(403) }
        let existed = store.tree.kind(destination) != .nothing
        return .status(store.tree.move(source, to: destination) ? (existed ? 204 : 201) : 500)
    }

    // MARK: Obstacles

    /// Returns the refusal that a correct server would send; `nil` if the server can carry out the request.
    private static func obstacle(
        to request: RecordedRequest, at place: String?, in store: DavStore
    ) -> ResponseScript? {
        guard let place else { return .status(403) }
        let tree = store.tree
        let kind = tree.kind(place)
        switch request.method {
        case "PUT":
            if request.headers["Content-Range"] != nil { return .status(400) }
            if kind == .collection { return .status(405) }
            if !tree.hasParent(place) { return .status(409) }
            return precondition(request, kind == .file ? tree.facts(place)?.etag : nil)
        case "MKCOL":
            if kind != .nothing { return .status(405) }
            return tree.hasParent(place) ? nil : .status(409)
        case "MOVE":
            return kind == .nothing ? .status(404) : obstacleToMove(request, from: place, in: store)
        case "GET", "HEAD":
            return kind == .file ? nil : .status(kind == .nothing ? 404 : 405)
        case "DELETE", "PROPFIND":
            return kind == .nothing ? .status(404) : nil
        default:
            return nil
        }
    }

    private static func obstacleToMove(
        _ request: RecordedRequest, from source: String, in store: DavStore
    ) -> ResponseScript? {
        guard request.headers["Destination"] != nil else { return .status(400) }
        guard let destination = destination(of: request, in: store), destination != source else { return .status(403) }
        if !store.tree.hasParent(destination) { return .status(409) }
        let mayReplace = request.headers["Overwrite"]?.uppercased() != "F"
        return !mayReplace && store.tree.kind(destination) != .nothing ? .status(412) : nil
    }

    private static func precondition(_ request: RecordedRequest, _ etag: String?) -> ResponseScript? {
        if let unwanted = request.headers["If-None-Match"], let etag, unwanted == "*" || unwanted == etag {
            return .status(412)
        }
        if let wanted = request.headers["If-Match"], etag == nil || (wanted != "*" && wanted != etag) {
            return .status(412)
        }
        return nil
    }

    /// Returns the place that the header `Destination` names. The header is a complete URL or a path. The host is ignored,
    /// because the store has only one host.
    private static func destination(of request: RecordedRequest, in store: DavStore) -> String? {
        guard let text = request.headers["Destination"] else { return nil }
        guard text.hasPrefix("http") else { return place(of: text, in: store) }
        return URLComponents(string: text).flatMap { place(of: $0.percentEncodedPath, in: store) }
    }

    private static func place(of path: String, in store: DavStore) -> String? {
        guard path == store.prefix || path.hasPrefix(store.prefix + "/"),
            let decoded = path.dropFirst(store.prefix.count).removingPercentEncoding
        else { return nil }
        return store.tree.resolve(decoded)
    }
}
