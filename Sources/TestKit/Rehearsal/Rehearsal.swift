import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import CLinux
import FaultyServer
import Foundation
import ProcessSupport
import Synchronization

/// The equipment of one scenario: a throw-away home, a faulty server beside it, real processes. Blocking calls: each scenario has a
/// thread of its own.
final class Rehearsal: Sendable {
    /// Bytes of the file that is downloaded: more than two of the steps in which a part is made durable.
    static let fileSize = 20 << 20
    static let photoSize = 300_000

    let home: ThrowawayHome
    let photos: DavStore
    /// Its machine.
    let control: RehearsalControl
    private let current: Mutex<FaultyServer>
    /// What servers heard that were replaced.
    private let former = Mutex<[RecordedRequest]>([])
    /// What the file on the server is.
    private let versions: [Payload]

    struct Stuck: Error, CustomStringConvertible {
        let description: String
    }

    /// Bytes that one of them takes on the disk, at most: two versions of the file, what is downloaded of it, ledger and photos.
    static let spaceNeeded = 3 * fileSize + (8 << 20)

    /// - Parameters:
    ///   - name: the scenario's.
    ///   - budget: seconds that a check has.
    ///   - grace: seconds that it has to end, and for which a download is kept whose app is gone.
    ///   - server: running, without routes.
    ///   - folder: where the home is kept for whoever looks into it; `nil`: nowhere.
    /// - Throws: ``CommandFailure``; then nothing of it is left.
    init(_ name: String, budget: Int, grace: Int, server: FaultyServer, keptIn folder: URL?) throws {
        let home = try ThrowawayHome(
            folder == nil ? "stormy-rehearsal" : name, in: folder, isSilent: true,
            configuration: ThrowawayHome.configuration(
                server: server.url, budget: budget, grace: grace, destination: "rehearsal"))
        let equipment: Equipment
        do {
            equipment = try Equipment(home)
        } catch {
            home.discard()
            throw CommandFailure(cannotWriteIn: home.folder, error)
        }
        self.home = home
        (control, photos, versions) = (equipment.control, equipment.photos, equipment.versions)
        current = Mutex(server)
        home.surroundings.withLock { [control] in $0 = { control.environment } }
        server.mount(photos)
    }

    /// What a home has beside it.
    private struct Equipment {
        let control: RehearsalControl
        let photos: DavStore
        let versions: [Payload]

        init(_ home: ThrowawayHome) throws {
            photos = try DavStore(prefix: "/photos", directory: home.folder.appendingPathComponent("received"))
            versions = try ["one", "two"].map { name in
                let file = home.folder.appendingPathComponent("version-\(name)")
                try Rehearsal.noise(Rehearsal.fileSize).write(to: file)
                return .file(path: file.path, count: Rehearsal.fileSize)
            }
            // Last: whatever fails before leaves no folder of its behind.
            control = try RehearsalControl()
            do { try control.mark(home.folder) } catch {
                control.close()
                throw error
            }
        }
    }

    private static func noise(_ count: Int) throws -> Data {
        let source = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/dev/urandom"))
        defer { try? source.close() }
        return try source.read(upToCount: count) ?? Data()
    }

    // MARK: Verbs

    /// As a person would.
    /// - Parameter failure: how it ends when all is well; `nil`: with success.
    /// - Returns: what it prints.
    @discardableResult
    func verb(_ arguments: String..., ending failure: ExitStatus? = nil) throws -> Data { try verb(arguments, ending: failure) }

    @discardableResult
    func verb(_ arguments: [String], ending failure: ExitStatus? = nil) throws -> Data {
        let result = try home.stormy(arguments)
        guard result.status == failure?.rawValue ?? 0 else {
            let words = home.lastError.map { ": " + $0 } ?? ""
            throw Stuck(description: "`stormy \(arguments.joined(separator: " "))` ended with \(result.status)\(words)")
        }
        return result.output
    }

    // MARK: The server

    var server: FaultyServer { current.withLock { $0 } }

    /// A forecast of a storm whose second half waits for ``go()``.
    func serveForecast() { serveForecast(DemoServers.halfForecast(now: control.now, until: "rest")) }

    /// The same, whole and at once.
    func serveWholeForecast(on server: FaultyServer) {
        let forecast = DemoServers.stormyForecast(now: control.now)
        server.route("GET", Self.forecast, .json(String(decoding: forecast, as: UTF8.self)))
    }

    func serveForecast(_ script: ResponseScript) { server.route("GET", Self.forecast, script) }

    private static let forecast = "/v1/forecast*"

    /// A file that stops half-way, the first time, until ``go()``.
    /// - Parameter changes: the server has another version by the second request.
    func serveFile(hasValidator: Bool = true, changes: Bool = false, fault: ServedFile.RangeFault? = nil) {
        func tag(_ version: Int) -> String? { hasValidator ? "\"v\(version)\"" : nil }
        var headers: HeaderList = ["Content-Length": "\(Self.fileSize)", "Accept-Ranges": "bytes"]
        if let tag = tag(0) { headers.append("ETag", tag) }
        let half = Self.fileSize / 2 + (1 << 20)
        let first = ResponseScript([
            .status(200), .headers(headers), .body(versions[0].slice(0..<half)), .hold(until: "rest"),
            .body(versions[0].slice(half..<Self.fileSize)),
        ])
        var then = ServedFile(versions[changes ? 1 : 0], etag: tag(changes ? 1 : 0))
        then.rangeFault = fault
        server.route("GET", "/file", first, .served(then))
    }

    /// The same file, whole.
    func serveWholeFile(on server: FaultyServer) { server.route("GET", "/file", .file(versions[0], etag: "\"v0\"")) }

    /// What was held back goes on.
    func go() { server.openGate("rest") }

    func dropConnections() {
        let server = server
        Self.blocking { await server.dropConnections() }
    }

    /// The server is away for a while, and comes back at the same port with what `setUp` gives it.
    func replaceServer(_ setUp: @escaping @Sendable (FaultyServer) -> Void) throws {
        let old = server
        Self.blocking { await old.stop() }
        former.withLock { $0 += old.requests() }
        let port = old.port
        // With its routes from the first connection on: who lost the old one comes again at any moment.
        let new = Self.blocking { [photos] in
            try? await FaultyServer.start(port: port) { new in
                new.mount(photos)
                setUp(new)
            }
        }
        guard let new else { throw Stuck(description: "port \(port) was taken meanwhile") }
        current.withLock { $0 = new }
    }

    func waitForRequest(_ path: String) throws {
        // With bytes of either side: by then its answer is chosen, and what is served next concerns the next request.
        try waitForRequest("nobody asked for \(path)") {
            $0.path.hasPrefix(path) && $0.outcome == .open && $0.bodyBytesSent + $0.bodyByteCount > 0
        }
    }

    func waitForEndedRequest(_ method: String) throws {
        try waitForRequest("there was no \(method)") { $0.method == method && $0.outcome == .answered }
    }

    private func waitForRequest(_ trouble: String, _ condition: @escaping @Sendable (RecordedRequest) -> Bool) throws {
        let server = server
        let found = Self.blocking { (try? await server.waitForRequest(timeout: .seconds(20), where: condition)) != nil }
        guard found else { throw Stuck(description: trouble) }
    }

    var forecastRequests: Int { server.requests(matching: Self.forecast).count }

    var fileRequests: [RecordedRequest] { server.requests(matching: "/file") }

    /// In their order, also those to a server that was replaced.
    var photoRequests: [RecordedRequest] {
        (former.withLock { $0 } + server.requests()).filter { $0.path.hasPrefix("/photos/") }
    }

    private static func blocking<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value {
        let done = DispatchSemaphore(value: 0)
        let result = Mutex<Value?>(nil)
        Task.detached {
            let value = await body()
            result.withLock { $0 = value }
            done.signal()
        }
        done.wait()
        return result.withLock { $0 }!
    }

    // MARK: The host

    /// The process of the agent, or of the app that it launched.
    enum Role {
        case agent
        case app
    }

    func send(_ signal: Int32, to role: Role) throws {
        let process = try wait("its process") { transaction in
            switch role {
            case .agent: try transaction.fact(.agent)?.process
            case .app: try transaction.liveLaunches().first?.process
            }
        }
        let descriptor = clinux_pidfd_open(process.pid)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        // After opening: from here on the descriptor means the process that is compared.
        guard process.isAlive else { return }
        _ = clinux_pidfd_send_signal(descriptor, signal)
        var end = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&end, 1, 10_000)
    }

    /// The agent ends by a signal, what was held back goes on, and the next login brings another.
    func replaceAgent(by signal: Int32) throws {
        try send(signal, to: .agent)
        go()
        try logIn()
    }

    /// As the next login, or any verb, brings an agent back.
    func logIn() throws { try verb("status") }

    func wait<Value>(_ what: String, for question: (LedgerTransaction) throws -> Value?) throws -> Value {
        guard let value = try home.wait(40, for: question) else { throw Stuck(description: "waited in vain for \(what)") }
        return value
    }

    /// Until nothing moves, and nothing is left to make up for or to deliver.
    func settle() throws {
        _ = try wait("everything to end") { transaction in
            let isQuiet =
                try transaction.liveLaunches().isEmpty && transaction.undeliveredEvents().isEmpty
                && !transaction.requests().contains { $0.failures > 0 }
                && transaction.unfinishedTransfers().allSatisfy { $0.state == .paused || Self.isSuspicious($0) }
            return isQuiet ? true : nil
        }
    }

    /// It waits for another network or another time.
    static func isSuspicious(_ transfer: TransferRecord) -> Bool {
        transfer.state == .waiting && [-1202, -1010].contains(transfer.errorCode)
    }
}
