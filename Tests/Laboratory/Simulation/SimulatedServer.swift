import Spool
import BackgroundLedger
import BackgroundTasksTesting
import ServerScripts
import Foundation
import Synchronization

/// The server of the simulation. The server has weather, files that change, and three kinds of upload destinations for photos.
/// Random numbers decide each fault.
final class SimulatedServer: Sendable {
    static let origin = "http://server.test"

    private struct State {
        var versions: [String: Int] = [:]
        var digests: [String: [String]] = [:]
        var isKind = false
    }

    let dav: DavStore
    let tus = TusStore()
    let resumable = ResumableStore()
    private let state = Mutex(State())
    private let dice: Dice

    init(_ network: VirtualNetwork, _ folder: URL, _ dice: Dice) throws {
        self.dice = dice
        dav = try DavStore(directory: folder.appendingPathComponent("dav"))
        let server = network.server(Self.origin)
        server.mount(dav)
        server.mount(tus)
        server.mount(resumable)
        server.handle("GET", "/file/*") { [unowned self] in file($0) }
        server.handle("GET", "/weather") { [unowned self] _ in weather() }
    }

    /// Ends all faults of the server.
    func becomeKind() {
        state.withLock { $0.isKind = true }
        for store in stores { store.clearFaults() }
    }

    private var isKind: Bool { state.withLock { $0.isKind } }
    private var stores: [any UploadStore] { [dav, tus, resumable] }

    // MARK: Files

    /// Changes the content of a file.
    func change(_ name: String) { state.withLock { $0.versions[name, default: 0] += 1 } }

    private static func size(_ name: String) -> Int { 20_000 + abs(name.utf8.reduce(7) { ($0 &* 131 &+ Int($1)) % 250_001 }) }

    static func contents(_ name: String, version: Int) -> Payload {
        let size = size(name)
        let offset = 8_000_009 * (version + 1) + size
        return .pattern(offset + size).slice(offset..<offset + size)
    }

    /// Returns the digests of all versions of a file.
    func digests(_ name: String) -> Set<String> {
        state.withLock { state in
            let known = state.digests[name] ?? []
            let newest = state.versions[name] ?? 0
            let new = (known.count..<max(known.count, newest + 1)).map {
                FileDigest.sha256(of: Self.contents(name, version: $0).data)
            }
            state.digests[name] = known + new
            return Set(known + new)
        }
    }

    private func file(_ request: RecordedRequest) -> ResponseScript {
        let name = String(request.path.dropFirst(6))
        let version = state.withLock { $0.versions[name] ?? 0 }
        var file = ServedFile(Self.contents(name, version: version), etag: "\"\(name)-\(version)\"")
        guard !isKind else { return .served(file) }
        switch dice.number(0..<12) {
        case 0: return .status(dice.one(of: [500, 503, 429]), headers: ["Retry-After": "\(dice.number(0..<900))"])
        case 1: return .hangUp
        case 2: return .silence
        case 3...6:
            let ending = dice.one(of: [ServedFile.Ending.cut, .reset, .stall])
            file.interruption = .init(afterBytes: dice.number(0..<Self.size(name)), ending: ending)
        case 7: file.rangeFault = dice.one(of: [.ignoresIfRange, .shiftedStart(1), .missingContentRange])
        case 8: file = ServedFile(Self.contents(name, version: version), etag: nil)
        case 9: return .redirect(to: Self.origin + request.path)
        default: break
        }
        return .served(file)
    }

    // MARK: Weather

    static let forecast = "{\"storm\":\"" + String(repeating: "thunder ", count: 500) + "\"}"

    private func weather() -> ResponseScript {
        guard !isKind else { return .json(Self.forecast) }
        switch dice.number(0..<8) {
        case 0: return .status(503)
        case 1: return .hangUp
        case 2: return .silence
        case 3, 4: return .dripping(Self.forecast, seconds: dice.between(1, 90))
        default: return .json(Self.forecast)
        }
    }

    // MARK: Photos

    func addFault() {
        let store = dice.one(of: stores)
        let method = dice.one(of: ["PUT", "MOVE", "POST", "PATCH", "HEAD", "PROPFIND"])
        switch dice.number(0..<5) {
        case 0: store.refuse(status: dice.one(of: [500, 503, 429]), method: method, next: dice.number(1..<4))
        case 1: store.cutUploads(afterBytes: dice.number(0..<300_000), method: dice.one(of: ["PUT", "PATCH"]))
        case 2: store.stallUploads(afterBytes: dice.number(0..<300_000))
        case 3: dav.keepNothing(ofNext: dice.number(1..<4))
        default: store.loseAnswers(to: method)
        }
    }

    /// Returns the number of files with exactly these bytes.
    func count(_ photo: Data) -> Int {
        dav.files.count { dav.contents(of: $0) == photo } + tus.files.count { $0 == photo }
            + resumable.files.count { $0 == photo }
    }
}
