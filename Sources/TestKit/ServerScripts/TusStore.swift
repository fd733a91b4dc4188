import Foundation

/// A tus 1.0.0 server (creation, termination), with faults on demand. Mounted by `FaultyServer.mount(_:)`.
public final class TusStore: MountedStore {
    /// Its paths begin so.
    public let prefix: String
    /// What goes wrong with uploads to it.
    public let faults = UploadFaults()
    let table: PlaceTable

    /// A store under a prefix (no slash at its end).
    public init(prefix: String = "/files") {
        self.prefix = prefix
        table = PlaceTable(prefix: prefix)
    }

    package func exchange(for request: RecordedRequest) -> any Exchange { TusExchange(self, request) }

    /// The whole files.
    public var files: [Data] { table.whole }

    /// Body bytes taken, over all requests.
    public var bytesTaken: Int { table.bytesTaken }

    /// As a proxy in front: more than this in one request is refused (413).
    public func limit(to bytes: Int) { table.mostPerRequest = bytes }
}

/// One request to a tus store.
private final class TusExchange: Exchange {
    let opening: ResponseScript?
    private let store: TusStore
    private let request: RecordedRequest
    private let losesAnswer: Bool
    private var takesBody = false

    init(_ store: TusStore, _ request: RecordedRequest) {
        self.store = store
        self.request = request
        let beginning = PlaceOpening(store.faults, store.table, request)
        opening = beginning.script
        losesAnswer = beginning.losesAnswer
        takesBody = beginning.isHeard
        takesBody = takesBody && request.method == "PATCH" && obstacle == nil
    }

    func receive(_ bytes: Data) {
        if takesBody { store.table.append(bytes, to: request.path) }
    }

    func finish() -> ResponseScript {
        if let opening, opening.beginning == .afterBody { return opening }
        let answer = obstacleAtEnd ?? act()
        return losesAnswer ? .hangUp : answer
    }

    func abandon() {}

    /// Seen at the head, before a byte is taken.
    private var obstacle: ResponseScript? {
        guard request.method == "PATCH" else { return nil }
        guard let place = store.table[request.path] else { return .status(404) }
        guard request.headers["Content-Type"] == "application/offset+octet-stream" else { return .status(415) }
        return request.headers["Upload-Offset"] == "\(place.bytes.count)" ? nil : .status(409)
    }

    private var obstacleAtEnd: ResponseScript? {
        if request.method != "OPTIONS", request.headers["Tus-Resumable"] != "1.0.0" {
            return .status(412, headers: ["Tus-Version": "1.0.0"])
        }
        return request.method == "PATCH" && !takesBody ? obstacle : nil
    }

    private func act() -> ResponseScript {
        switch request.method {
        case "OPTIONS":
            return .status(204, headers: ["Tus-Version": "1.0.0", "Tus-Extension": "creation,termination"])
        case "POST":
            guard let length = request.headers["Upload-Length"].flatMap(Int.init) else { return .status(400) }
            return .status(201, headers: ["Location": store.table.make(length: length)])
        case "HEAD":
            guard let place = store.table[request.path] else { return .status(404) }
            return .status(
                200,
                headers: [
                    "Upload-Offset": "\(place.bytes.count)", "Upload-Length": "\(place.length)", "Cache-Control": "no-store",
                ])
        case "PATCH":
            guard let place = store.table[request.path] else { return .status(404) }
            return .status(204, headers: ["Upload-Offset": "\(place.bytes.count)"])
        case "DELETE": return .status(store.table.remove(request.path) ? 204 : 404)
        default: return .status(405)
        }
    }
}
