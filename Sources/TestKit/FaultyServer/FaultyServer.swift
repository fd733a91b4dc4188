import NIOCore
import NIOHTTP1
import NIOPosix
@_exported import ServerScripts
import Synchronization

/// A scripted HTTP/1.1 server on the loopback interface, for tests, demonstrations and rehearsals: it answers slowly,
/// partly, wrongly or not at all, exactly as told, and records what clients did.
public final class FaultyServer: Sendable {
    /// The port it listens on.
    public let port: Int

    private let listener: any Channel
    private let log: RequestLog
    private let routes: RouteTable
    private let gates: GateKeeper
    private let connections: ConnectionRegistry
    private let greetings: GreetingBook
    private let authority: CertificateAuthority
    private let isStopped = Mutex(false)

    private init(
        listener: any Channel, port: Int, log: RequestLog, routes: RouteTable,
        gates: GateKeeper, connections: ConnectionRegistry, greetings: GreetingBook, authority: CertificateAuthority
    ) {
        self.listener = listener
        self.port = port
        self.log = log
        self.routes = routes
        self.gates = gates
        self.connections = connections
        self.greetings = greetings
        self.authority = authority
    }

    /// Starts a server on 127.0.0.1.
    /// - Parameters:
    ///   - port: 0 lets the system choose. A port just left by a stopped server can be taken again.
    ///   - logFile: where requests are appended as JSON lines, on arrival and at the end (the last line of an id
    ///     holds).
    ///   - prepare: gives it its routes before it takes the first connection: at a port that is known already somebody may be waiting
    ///     for it.
    /// - Throws: the system's error when the port is taken, or when the log cannot be written.
    public static func start(
        port: Int = 0, logFile: String? = nil, preparing prepare: (FaultyServer) -> Void = { _ in }
    ) async throws -> FaultyServer {
        // One thread of them: everything on the wire happens in one order.
        let loop = Self.loops.next()
        let log = try RequestLog(eventLoop: loop, file: logFile)
        let (routes, gates, connections, greetings) = (RouteTable(), GateKeeper(), ConnectionRegistry(), GreetingBook())
        let authority = CertificateAuthority()
        let listener = try await ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: 256)
            // Who connects waits until it is prepared.
            .serverChannelOption(.autoRead, value: false)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = log.connectionOpened()
                    connections.add(channel, number)
                    channel.closeFuture.whenComplete { _ in
                        connections.remove(number)
                        log.connectionClosed()
                    }
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(CutHandler())
                    switch greetings.current {
                    case .http: break
                    case .https(let certificate):
                        try pipeline.addHandler(TLSHandler(authority.context(for: certificate)))
                    case let greeting: return try pipeline.addHandler(GreetingHandler(greeting))
                    }
                    try pipeline.addHandler(
                        ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
                    try pipeline.addHandler(
                        ConnectionHandler(number: number, log: log, routes: routes, gates: gates))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        let server = FaultyServer(
            listener: listener, port: listener.localAddress?.port ?? port, log: log,
            routes: routes, gates: gates, connections: connections, greetings: greetings, authority: authority)
        prepare(server)
        try await listener.setOption(.autoRead, value: true).get()
        return server
    }

    /// Of all servers of this process: each has one of them for as long as it lives.
    private static let loops = MultiThreadedEventLoopGroup(numberOfThreads: 8)

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// The same for connections that are greeted with TLS.
    public var secureURL: String { "https://127.0.0.1:\(port)" }

    /// The certificate, in PEM, of the authority that signs this server's: for clients that shall trust it. Made when the server was,
    /// and valid for 30 days; its key is nowhere but in memory.
    public var certificateAuthority: String { get throws { try authority.pem } }

    /// Closes the port and all connections at once; whoever waits for events is told. May be called twice.
    public func stop() async {
        let isFirst = isStopped.withLock { stopped in
            defer { stopped = true }
            return !stopped
        }
        guard isFirst else { return }
        try? await listener.close()
        await dropConnections()
        log.finish()
    }

    /// Closes all connections, as a network that goes away would; the port stays open.
    public func dropConnections() async {
        for channel in connections.all {
            channel.pipeline.fireUserInboundEventTriggered(ServerClosing())
            try? await channel.closeFuture.get()
        }
    }

    /// How connections are greeted that are opened from now on.
    public func greet(with greeting: Greeting) { greetings.current = greeting }

    // MARK: Routes

    /// Sets the answer to a method (`nil`: any) and a path: exact, or a prefix ending in `*`. Exact wins over prefix,
    /// long over short. Of several scripts each request takes the next, and all further ones the last. Replaces an
    /// earlier route of the same method and path; may be called while requests run. Other paths get 404.
    public func route(_ method: String?, _ path: String, _ scripts: ResponseScript...) {
        route(method, path, scripts)
    }

    /// The same with the scripts as a list, which must not be empty.
    public func route(_ method: String?, _ path: String, _ scripts: [ResponseScript]) {
        routes.set(method, path, scripts)
    }

    /// Answers by a function of the request's head (its body is still to come). Runs on the server's only thread: it
    /// must be quick.
    public func handle(
        _ method: String?, _ path: String, _ handler: @escaping @Sendable (RecordedRequest) -> ResponseScript
    ) {
        routes.set(method, path, .handler(handler))
    }

    /// Sets the routes of a script, and greets as it says.
    public func serve(_ script: ScriptFile) {
        greet(with: script.greeting)
        for route in script.routes { self.route(route.method, route.path, route.answers) }
    }

    /// Serves a store of uploads under its prefix.
    public func mount(_ store: some UploadStore) { routes.mount(store) }

    // MARK: Gates

    /// Opens a gate: every script that holds there goes on, and later ones pass.
    public func openGate(_ name: String) { gates.open(name) }

    /// Closes a gate for scripts that come to it from now on.
    public func closeGate(_ name: String) { gates.close(name) }

    // MARK: What happened

    /// Everything so far.
    public var activity: ServerActivity { log.activity }

    /// Connections accepted since the start.
    public var connectionCount: Int { log.activity.connectionsAccepted }

    /// Requests received so far, all or those to a path (exact, or a prefix ending in `*`).
    public func requests(matching path: String = "*") -> [RecordedRequest] {
        log.activity.requests(matching: path)
    }

    /// Requests to paths that have no route, in their order: they got 404. A test that must not guess expects this to be empty.
    public var unroutedRequests: [RecordedRequest] { log.activity.requests.filter { !routes.knows($0) } }

    /// The first request for which the condition holds, now or after a later event (arrival, bytes, end).
    /// - Parameters:
    ///   - timeout: generous by default: only a test that fails waits for so long, and on a busy machine none fails for it.
    ///   - condition: must not ask the server itself.
    /// - Throws: `WaitFailure`, or `CancellationError`.
    @discardableResult
    public func waitForRequest(
        timeout: Duration = .seconds(120), where condition: @escaping @Sendable (RecordedRequest) -> Bool
    ) async throws -> RecordedRequest {
        try await log.wait(timeout: timeout) { $0.requests.first(where: condition) }
    }

    /// Waits until a condition over everything that happened holds. The condition must not ask the server itself.
    /// - Throws: `WaitFailure`, or `CancellationError`.
    @discardableResult
    public func waitUntil(
        timeout: Duration = .seconds(120), _ condition: @escaping @Sendable (ServerActivity) -> Bool
    ) async throws -> ServerActivity {
        try await log.wait(timeout: timeout) { condition($0) ? $0 : nil }
    }
}

/// The connections open now.
final class ConnectionRegistry: Sendable {
    private let channels = Mutex<[Int: any Channel]>([:])

    var all: [any Channel] { channels.withLock { Array($0.values) } }

    func add(_ channel: any Channel, _ number: Int) { channels.withLock { $0[number] = channel } }

    func remove(_ number: Int) { channels.withLock { _ = $0.removeValue(forKey: number) } }
}
