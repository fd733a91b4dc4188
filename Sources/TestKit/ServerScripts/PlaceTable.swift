import Foundation
import Synchronization

/// The table of uploads that arrive in pieces. Each upload has a place. Bytes are kept in memory as they arrive, even if the
/// request is interrupted, as on a real server.
final class PlaceTable: Sendable {
    struct Place {
        var bytes = Data()
        let length: Int
        var isComplete = false
    }

    private struct State {
        var places: [String: Place] = [:]
        var made = 0
        var mostPerRequest = Int.max
        var taken = 0
    }

    private let prefix: String
    private let state = Mutex(State())

    init(prefix: String) { self.prefix = prefix }

    var whole: [Data] { state.withLock { $0.places.values.filter { $0.bytes.count == $0.length }.map(\.bytes) } }

    var complete: [Data] { state.withLock { $0.places.values.filter(\.isComplete).map(\.bytes) } }

    var bytesTaken: Int { state.withLock { $0.taken } }

    var mostPerRequest: Int {
        get { state.withLock { $0.mostPerRequest } }
        set { state.withLock { $0.mostPerRequest = newValue } }
    }

    func make(length: Int) -> String {
        state.withLock { state in
            state.made += 1
            let path = "\(prefix)/\(state.made)"
            state.places[path] = Place(length: length)
            return path
        }
    }

    subscript(path: String) -> Place? { state.withLock { $0.places[path] } }

    func append(_ bytes: Data, to path: String) {
        state.withLock { state in
            guard var place = state.places[path] else { return }
            let taken = bytes.prefix(place.length - place.bytes.count)
            place.bytes += taken
            state.taken += taken.count
            state.places[path] = place
        }
    }

    func complete(_ path: String) { state.withLock { $0.places[path]?.isComplete = true } }

    func remove(_ path: String) -> Bool { state.withLock { $0.places.removeValue(forKey: path) != nil } }
}

/// The first decision about a request to a store with a ``PlaceTable``: a fault, the refusal of a proxy, or the normal handling.
struct PlaceOpening {
    let script: ResponseScript?
    let losesAnswer: Bool
    /// `true` if the store receives the request.
    let isReceived: Bool

    init(_ faults: UploadFaults, _ table: PlaceTable, _ request: RecordedRequest) {
        let length = request.headers["Content-Length"].flatMap(Int.init) ?? 0
        let fault = faults.consumeFault(for: request.method)
        let isTooMuch = fault == nil && length > table.mostPerRequest
        script = isTooMuch ? .status(413).begins(.afterBody) : fault?.opening()
        losesAnswer = fault?.losesAnswer == true
        isReceived = !isTooMuch && fault?.refuses != true
    }
}
