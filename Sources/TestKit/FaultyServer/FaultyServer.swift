import NIOCore
import NIOHTTP1
import NIOPosix
@_exported import ServerScripts
import Synchronization

/// A scripted HTTP/1.1 server on the loopback interface, for tests, demonstrations and rehearsals. The server responds slowly, partly,
/// incorrectly or not at all, exactly as scripted, and records what clients did.
public final class FaultyServer: Sendable {
    /// The port on which the server listens.
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
    ///   - port: The port; 0 lets the system choose. A port that a stopped server just released can be used again.
    ///   - logFile: The file to which requests are appended as JSON lines, on arrival and at the end. If several lines have the
    ///     same id, the last of these lines is valid.
    ///   - prepare: Sets the routes before the server accepts the first connection. At a known port, a client may already be
    ///     waiting.
    /// - Throws: The system's error if the port is taken, or if the log cannot be written.
    public static func start(
        port: Int = 0, logFile: String? = nil, preparing prepare: (FaultyServer) -> Void = { _ in }
    ) async throws -> FaultyServer {
        // The server uses one thread of the group, so that all events on the network have one order.
        let loop = Self.loops.next()
        let log = try RequestLog(eventLoop: loop, file: logFile)
        let (routes, gates, connections, greetings) = (RouteTable(), GateKeeper(), ConnectionRegistry(), GreetingBook())
        let authority = CertificateAuthority()
        let listener = try await ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: 256)
            // Clients wait until the server is prepared.
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

    /// The event loops of all servers in this process. Each server uses one event loop until the server stops.
    private static let loops = MultiThreadedEventLoopGroup(numberOfThreads: 8)

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// `https://127.0.0.1:PORT`, for connections that are greeted with TLS.
    public var secureURL: String { "https://127.0.0.1:\(port)" }

    /// The certificate, in PEM, of the authority that signs this server's certificate. Clients have to trust this authority. The
    /// certificate is valid for 30 days. The key is created when it is first needed, and exists only in memory.
    public var certificateAuthority: String { get throws { try authority.pem } }

    /// Closes the port and all connections immediately. Waiting calls fail with an error. A second call has no effect.
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

    /// Closes all connections, like a failing network. The port stays open.
    public func dropConnections() async {
        for channel in connections.all {
            channel.pipeline.fireUserInboundEventTriggered(ServerClosing())
            try? await channel.closeFuture.get()
        }
    }

    /// Sets the greeting of connections that are opened from now on.
    public func greet(with greeting: Greeting) { greetings.current = greeting }

    // MARK: Routes

    /// Sets the response to a method (`nil` for any method) and a path. The path is exact, or a prefix that ends with `*`. An
    /// exact path has priority over a prefix, and a longer prefix has priority over a shorter prefix. Each request uses the next
    /// script, and all further requests use the last script. A new route replaces an earlier route of the same method and path,
    /// even while requests are running. The response to other paths is 404.
    public func route(_ method: String?, _ path: String, _ scripts: ResponseScript...) {
        route(method, path, scripts)
    }

    /// Sets the responses as a list of scripts. The list must not be empty.
    public func route(_ method: String?, _ path: String, _ scripts: [ResponseScript]) {
        routes.set(method, path, scripts)
    }

    /// Sets a function that returns the response from the request's headers, before the request's body arrives. The function runs
    /// on the server's only thread, so the function must be fast.
    public func handle(
        _ method: String?, _ path: String, _ handler: @escaping @Sendable (RecordedRequest) -> ResponseScript
    ) {
        routes.set(method, path, .handler(handler))
    }

    /// Sets the routes and the greeting of a script.
    public func serve(_ script: ScriptFile) {
        greet(with: script.greeting)
        for route in script.routes { self.route(route.method, route.path, route.answers) }
    }

    /// Adds a store of uploads. The store handles all requests whose path begins with its prefix.
    public func mount(_ store: some UploadStore) { routes.mount(store) }

    // MARK: Gates

    /// Opens a gate. Every script that waits at the gate continues, and later scripts do not wait.
    public func openGate(_ name: String) { gates.open(name) }

    /// Closes a gate. Scripts that reach the gate from now on wait there.
    public func closeGate(_ name: String) { gates.close(name) }

    // MARK: Activity

    /// The events on this server up to now.
    public var activity: ServerActivity { log.activity }

    /// The number of connections accepted since the start.
    public var connectionCount: Int { log.activity.connectionsAccepted }

    /// Returns the requests so far: all requests, or only the requests to a path. The path is exact, or a prefix that ends with
    /// `*`.
    public func requests(matching path: String = "*") -> [RecordedRequest] {
        log.activity.requests(matching: path)
    }

    /// The requests to paths that have no route, in order. The server responded with 404. A strict test expects an empty list.
    public var unroutedRequests: [RecordedRequest] { log.activity.requests.filter { !routes.knows($0) } }

    /// Returns the first request for which the condition is true, now or after a later event (arrival, bytes, end).
    /// - Parameters:
    ///   - timeout: The maximum time. The default is long, so that a busy machine causes no failure. Only a failing test waits
    ///     until the limit.
    ///   - condition: A function that must not call the server itself.
    /// - Throws: `WaitFailure`, or `CancellationError`.
    @discardableResult
    public func waitForRequest(
        timeout: Duration = .seconds(120), where condition: @escaping @Sendable (RecordedRequest) -> Bool
    ) async throws -> RecordedRequest {
        try await log.wait(timeout: timeout) { $0.requests.first(where: condition) }
    }

    /// Waits until a condition on all events is true. The condition must not call the server itself.
    /// - Throws: `WaitFailure`, or `CancellationError`.
    @discardableResult
    public func waitUntil(
        timeout: Duration = .seconds(120), _ condition: @escaping @Sendable (ServerActivity) -> Bool
    ) async throws -> ServerActivity {
        try await log.wait(timeout: timeout) { condition($0) ? $0 : nil }
    }
}

/// The open connections.
final class ConnectionRegistry: Sendable {
    private let channels = Mutex<[Int: any Channel]>([:])

    var all: [any Channel] { channels.withLock { Array($0.values) } }

    func add(_ channel: any Channel, _ number: Int) { channels.withLock { $0[number] = channel } }

    func remove(_ number: Int) { channels.withLock { _ = $0.removeValue(forKey: number) } }
}
