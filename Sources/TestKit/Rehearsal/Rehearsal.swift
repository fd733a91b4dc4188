import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import CLinux
import FaultyServer
import Foundation
import ProcessSupport
import Synchronization

/// The home, the server and the processes of one scenario: a temporary home, a faulty server and real processes. Each call blocks
/// its thread, because each scenario has a separate thread.
final class Rehearsal: Sendable {
    /// The size of the downloaded file. A download syncs its partial file in steps, and this size is larger than two steps.
    static let fileSize = 20 << 20
    static let photoSize = 300_000

    let home: ThrowawayHome
    let photos: DavStore
    /// The machine of the scenario.
    let control: RehearsalControl
    private let current: Mutex<FaultyServer>
    /// The requests to servers that were replaced.
    private let former = Mutex<[RecordedRequest]>([])
    /// The versions of the file on the server.
    private let versions: [Payload]

    struct Stuck: Error, CustomStringConvertible {
        let description: String
    }

    /// The maximum disk space of a scenario in bytes: two versions of the file, the downloaded part, the ledger and the photos.
    static let spaceNeeded = 3 * fileSize + (8 << 20)

    /// Creates the home and the server of a scenario.
    ///
    /// - Parameters:
    ///   - name: The name of the scenario.
    ///   - budget: The time limit of a check, in seconds.
    ///   - grace: The time in seconds that a check has to end after its time limit. A download without its app continues for the
    ///     same time.
    ///   - server: A running server without routes.
    ///   - folder: The folder in which the temporary home is kept. `nil` if the home is removed at the end.
    /// - Throws: ``CommandFailure``. After an error, all files and processes of the scenario are removed.
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
        home.surroundings.withLock { [control] in $0.variables = { control.environment } }
        server.mount(photos)
    }

    /// The parts of the scenario in addition to the home.
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
            // The control is created last, because its folder would not be removed if a later step failed.
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

    // MARK: Commands

    /// Runs a command, like a user.
    ///
    /// - Parameter failure: The expected exit status; `nil` for success.
    /// - Returns: The output of the command.
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

    /// Serves a forecast of a storm. The second half of the response waits for ``continueResponses()``.
    func serveForecast() { serveForecast(DemoServers.halfForecast(now: control.now, until: "rest")) }

    /// Serves the complete forecast without a pause.
    func serveWholeForecast(on server: FaultyServer) {
        let forecast = DemoServers.stormyForecast(now: control.now)
        server.route("GET", Self.forecast, .json(String(decoding: forecast, as: UTF8.self)))
    }

    func serveForecast(_ script: ResponseScript) { server.route("GET", Self.forecast, script) }

    private static let forecast = "/v1/forecast*"

    /// Serves a file. The first response stops half-way until ``continueResponses()``.
    ///
    /// - Parameter changes: `true` if the server sends another version of the file at the second request.
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

    /// Serves the complete file.
    func serveWholeFile(on server: FaultyServer) { server.route("GET", "/file", .file(versions[0], etag: "\"v0\"")) }

    /// Continues the responses that wait at the gate.
    func continueResponses() { server.openGate("rest") }

    func dropConnections() {
        let server = server
        Self.blocking { await server.dropConnections() }
    }

    /// Stops the server, and starts another server on the same port. `setUp` prepares the new server.
    func replaceServer(_ setUp: @escaping @Sendable (FaultyServer) -> Void) throws {
        let old = server
        Self.blocking { await old.stop() }
        former.withLock { $0 += old.requests() }
        let port = old.port
        // The new server has its routes before the first connection, because a client of the old server can connect at any time.
        let new = Self.blocking { [photos] in
            try? await FaultyServer.start(port: port) { new in
                new.mount(photos)
                setUp(new)
            }
        }
        guard let new else { throw Stuck(description: "port \(port) was taken by another program") }
        current.withLock { $0 = new }
    }

    func waitForRequest(_ path: String) throws {
        // Bytes of the request or of its response have been transferred, so the response to this request is already chosen. A new
        // route affects only later requests.
        try waitForRequest("no request for \(path) arrived") {
            $0.path.hasPrefix(path) && $0.outcome == .open && $0.bodyBytesSent + $0.bodyByteCount > 0
        }
    }

    func waitForEndedRequest(_ method: String) throws {
        try waitForRequest("no \(method) request ended") { $0.method == method && $0.outcome == .answered }
    }

    private func waitForRequest(_ trouble: String, _ condition: @escaping @Sendable (RecordedRequest) -> Bool) throws {
        let server = server
        let found = Self.blocking { (try? await server.waitForRequest(timeout: .seconds(20), where: condition)) != nil }
        guard found else { throw Stuck(description: trouble) }
    }

    var forecastRequests: Int { server.requests(matching: Self.forecast).count }

    var fileRequests: [RecordedRequest] { server.requests(matching: "/file") }

    /// The requests in their order, including the requests to servers that were replaced.
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

    /// A role of a process: the agent, or the app that the agent launched.
    enum Role {
        case agent
        case app
    }

    func send(_ signal: Int32, to role: Role) throws {
        let process = try wait("the process of the app") { transaction in
            switch role {
            case .agent: try transaction.fact(.agent)?.process
            case .app: try transaction.liveLaunches().first?.process
            }
        }
        let descriptor = clinux_pidfd_open(process.pid)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        // The process is checked after the descriptor was opened, because the descriptor always refers to the same process.
        guard process.isAlive else { return }
        _ = clinux_pidfd_send_signal(descriptor, signal)
        var end = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&end, 1, 10_000)
    }

    /// Ends the agent with a signal, continues the waiting responses, and starts another agent, as the next login does.
    func replaceAgent(by signal: Int32) throws {
        try send(signal, to: .agent)
        continueResponses()
        try logIn()
    }

    /// Starts an agent, as the next login or any command does.
    func logIn() throws { try verb("status") }

    func wait<Value>(_ what: String, for question: (LedgerTransaction) throws -> Value?) throws -> Value {
        guard let value = try home.wait(40, for: question) else { throw Stuck(description: "the wait for \(what) failed") }
        return value
    }

    /// Waits until no work is running, no launch has to be retried, and no result has to be delivered.
    func waitForAllWork() throws {
        _ = try wait("the end of all work") { transaction in
            let isQuiet =
                try transaction.liveLaunches().isEmpty && transaction.undeliveredEvents().isEmpty
                && !transaction.requests().contains { $0.failures > 0 }
                && transaction.unfinishedTransfers().allSatisfy { $0.state == .paused || Self.isSuspicious($0) }
            return isQuiet ? true : nil
        }
    }

    /// Returns whether the transfer waits for another network or another time.
    static func isSuspicious(_ transfer: TransferRecord) -> Bool {
        transfer.state == .waiting && [-1202, -1010].contains(transfer.errorCode)
    }
}
