import Foundation

/// A server for the resumable uploads of the IETF (draft-ietf-httpbis-resumable-upload) in one interop version, with faults on
/// demand. `FaultyServer.mount(_:)` mounts the server.
public final class ResumableStore: MountedStore {
    /// The path prefix of the store.
    public let prefix: String
    /// The faults of uploads to this store.
    public let faults = UploadFaults()
    /// The only supported interop version. If a client uses another version, the store reports this version.
    let version: Int
    let table: PlaceTable

    /// Creates a store. The paths of its URLs begin with `prefix`, which does not end with a slash.
    public init(prefix: String = "/resumable", version: Int = 8) {
        self.prefix = prefix
        self.version = version
        table = PlaceTable(prefix: prefix)
    }

    package func exchange(for request: RecordedRequest) -> any Exchange { ResumableExchange(self, request) }

    /// The files that are complete, because the client announced their end.
    public var files: [Data] { table.complete }

    /// The number of body bytes that were accepted in all requests.
    public var bytesTaken: Int { table.bytesTaken }

    /// Refuses requests with more bytes (413), like a proxy before the server.
    public func limit(to bytes: Int) { table.mostPerRequest = bytes }
}

/// A request to a store of resumable uploads.
private final class ResumableExchange: Exchange {
    let opening: ResponseScript?
    private let store: ResumableStore
    private let request: RecordedRequest
    private let losesAnswer: Bool
    private var acceptsBody: Bool

    init(_ store: ResumableStore, _ request: RecordedRequest) {
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
        let answer = acceptsBody ? act() : obstacle ?? act()
        return losesAnswer ? .hangUp : answer
    }

    func abandon() {}

    private var own: HeaderLine { HeaderLine("Upload-Draft-Interop-Version", "\(store.version)") }

    /// `true` if the client announces that this request is the last request; `nil` if the request does not have the header.
    private var announcesComplete: Bool? {
        let name = store.version == 3 ? "Upload-Incomplete" : "Upload-Complete"
        let value = request.headers[name].map { $0 == "?1" }
        return store.version == 3 ? value.map { !$0 } : value
    }

    private func state(_ offset: Int, isComplete: Bool) -> HeaderList {
        let word =
            store.version == 3
            ? HeaderLine("Upload-Incomplete", isComplete ? "?0" : "?1")
            : HeaderLine("Upload-Complete", isComplete ? "?1" : "?0")
        return HeaderList([own, word, HeaderLine("Upload-Offset", "\(offset)")])
    }

    private var obstacle: ResponseScript? {
        guard request.headers["Upload-Draft-Interop-Version"] == "\(store.version)" else {
            return .status(400, headers: HeaderList([own]))
        }
        guard request.method == "PATCH" else { return nil }
        guard let place = store.table[request.path] else { return .status(404, headers: HeaderList([own])) }
        let type = request.headers["Content-Type"]
        if store.version >= 6, type != "application/partial-upload" { return .status(415, headers: HeaderList([own])) }
        guard request.headers["Upload-Offset"] == "\(place.bytes.count)", !place.isComplete else {
            return .status(409, headers: state(place.bytes.count, isComplete: place.isComplete))
        }
        return nil
    }

    private func act() -> ResponseScript {
        switch request.method {
        case "POST":
            // The oldest version does not announce the length.
            let length = request.headers["Upload-Length"].flatMap(Int.init) ?? Int.max / 2
            guard announcesComplete == false else { return .status(400, headers: HeaderList([own])) }
            var headers = state(0, isComplete: false)
            headers.append("Location", store.table.make(length: length))
            return .status(201, headers: headers)
        case "HEAD":
            guard let place = store.table[request.path] else { return .status(404, headers: HeaderList([own])) }
            var headers = state(place.bytes.count, isComplete: place.isComplete)
            headers.append("Cache-Control", "no-store")
            return .status(204, headers: headers)
        case "PATCH":
            guard let place = store.table[request.path] else { return .status(404, headers: HeaderList([own])) }
            let isComplete = announcesComplete == true
            if isComplete { store.table.complete(request.path) }
            return .status(isComplete ? 200 : 201, headers: state(place.bytes.count, isComplete: isComplete))
        case "DELETE": return .status(store.table.remove(request.path) ? 204 : 404, headers: HeaderList([own]))
        default: return .status(405)
        }
    }
}
