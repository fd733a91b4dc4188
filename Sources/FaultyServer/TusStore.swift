import Foundation
import NIOCore
import Synchronization

/// A tus 1.0.0 server (creation, termination), with faults on demand. Mounted by `FaultyServer.mount(_:)`. What arrives is kept
/// byte by byte, in memory, as a real one keeps it: also of a request that was cut.
public final class TusStore: MountedStore {
    private struct Place {
        var bytes = Data()
        let length: Int
    }

    private struct State {
        var places: [String: Place] = [:]
        var made = 0
        var mostPerRequest = Int.max
        /// Bytes taken, over all requests.
        var taken = 0
    }

    public let prefix: String
    public let faults = UploadFaults()
    private let state = Mutex(State())

    /// A store under a prefix (no slash at its end).
    public init(prefix: String = "/files") { self.prefix = prefix }

    func exchange(for request: RecordedRequest) -> any Exchange { TusExchange(self, request) }

    /// The whole files.
    public var files: [Data] { state.withLock { $0.places.values.filter { $0.bytes.count == $0.length }.map(\.bytes) } }

    /// Body bytes taken, over all requests.
    public var bytesTaken: Int { state.withLock { $0.taken } }

    /// As a proxy in front: more than this in one request is refused (413).
    public func limit(to bytes: Int) { state.withLock { $0.mostPerRequest = bytes } }

    // MARK: For its exchanges

    var mostPerRequest: Int { state.withLock { $0.mostPerRequest } }

    func make(length: Int) -> String {
        state.withLock { state in
            state.made += 1
            let path = "\(prefix)/\(state.made)"
            state.places[path] = Place(length: length)
            return path
        }
    }

    func offset(of path: String) -> (offset: Int, length: Int)? {
        state.withLock { state in state.places[path].map { ($0.bytes.count, $0.length) } }
    }

    func append(_ bytes: Data, to path: String) {
        state.withLock { state in
            guard var place = state.places[path] else { return }
            let taken = bytes.prefix(place.length - place.bytes.count)
            place.bytes += taken
            state.taken += taken.count
            state.places[path] = place
        }
    }

    func remove(_ path: String) -> Bool { state.withLock { $0.places.removeValue(forKey: path) != nil } }
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
        let length = request.headers["Content-Length"].flatMap(Int.init) ?? 0
        let fault = store.faults.take(for: request.method)
        let isTooMuch = fault == nil && length > store.mostPerRequest
        opening = isTooMuch ? .status(413).begins(.afterBody) : fault?.opening()
        losesAnswer = fault?.losesAnswer == true
        takesBody = !isTooMuch && fault?.refuses != true
        takesBody = takesBody && request.method == "PATCH" && obstacle == nil
    }

    func receive(_ bytes: ByteBuffer) {
        if takesBody { store.append(Data(bytes.readableBytesView), to: request.path) }
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
        guard let place = store.offset(of: request.path) else { return .status(404) }
        guard request.headers["Content-Type"] == "application/offset+octet-stream" else { return .status(415) }
        return request.headers["Upload-Offset"] == "\(place.offset)" ? nil : .status(409)
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
            return .status(201, headers: ["Location": store.make(length: length)])
        case "HEAD":
            guard let place = store.offset(of: request.path) else { return .status(404) }
            return .status(
                200,
                headers: [
                    "Upload-Offset": "\(place.offset)", "Upload-Length": "\(place.length)", "Cache-Control": "no-store",
                ])
        case "PATCH":
            guard let place = store.offset(of: request.path) else { return .status(404) }
            return .status(204, headers: ["Upload-Offset": "\(place.offset)"])
        case "DELETE": return .status(store.remove(request.path) ? 204 : 404)
        default: return .status(405)
        }
    }
}
