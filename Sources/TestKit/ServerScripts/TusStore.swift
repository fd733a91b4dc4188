import Foundation

/// A tus 1.0.0 server (creation, termination), with faults on demand. `FaultyServer.mount(_:)` mounts it.
public final class TusStore: MountedStore {
    /// The path prefix of the store.
    public let prefix: String
    /// The faults of uploads to this store.
    public let faults = UploadFaults()
    let table: PlaceTable

    /// Creates a store. The paths of its URLs begin with `prefix`, which does not end with a slash.
    public init(prefix: String = "/files") {
        self.prefix = prefix
        table = PlaceTable(prefix: prefix)
    }

    package func exchange(for request: RecordedRequest) -> any Exchange { TusExchange(self, request) }

    /// The complete files.
    public var files: [Data] { table.whole }

    /// The number of body bytes that were accepted in all requests.
    public var bytesTaken: Int { table.bytesTaken }

    /// Refuses requests with more bytes (413), like a proxy before the server.
    public func limit(to bytes: Int) { table.mostPerRequest = bytes }
}

/// A request to a tus store.
private final class TusExchange: Exchange {
    let opening: ResponseScript?
    private let store: TusStore
    private let request: RecordedRequest
    private let losesAnswer: Bool
    private var acceptsBody = false

    init(_ store: TusStore, _ request: RecordedRequest) {
        self.store = store
        self.request = request
        let beginning = PlaceOpening(store.faults, store.table, request)
        opening = beginning.script
        losesAnswer = beginning.losesAnswer
        acceptsBody = beginning.isReceived
        acceptsBody = acceptsBody && request.method == "PATCH" && obstacle == nil
    }

    func receive(_ bytes: Data) {
        if acceptsBody { store.table.append(bytes, to: request.path) }
    }

    func finish() -> ResponseScript {
        if let opening, opening.beginning == .afterBody { return opening }
        let answer = obstacleAtEnd ?? act()
        return losesAnswer ? .hangUp : answer
    }

    func abandon() {}

    /// The refusal that follows from the headers, before a byte of the body is accepted.
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
        return request.method == "PATCH" && !acceptsBody ? obstacle : nil
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
