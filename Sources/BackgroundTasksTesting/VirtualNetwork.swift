import FaultyServer
import Foundation
import Synchronization
import TransferMachines

/// The network of a virtual machine: servers by origin, each with its routes, scripts and stores, reached in virtual time.
///
/// What nobody made a server or a route for is not answered by a guess: the test that reaches it fails.
public final class VirtualNetwork: Sendable {
    private struct State {
        var servers: [String: VirtualServer] = [:]
        var absent: Set<String> = []
        var isUp = true
        var bytesPerSecond = 4_000_000.0
        var latency = 0.02
        var unimplemented: [String] = []
        var attempts: [AttemptID: VirtualAttempt] = [:]
        var tell: @Sendable (TransportEvent) -> Void = { _ in }
        var disk: DiskFollower?
    }

    private let state = Mutex(State())
    let clock: VirtualClock

    init(clock: VirtualClock) { self.clock = clock }

    /// The server of an origin, such as `https://api.example.org` (a port other than the scheme's own is part of it). Made at
    /// the first call.
    public func server(_ origin: String) -> VirtualServer {
        let name = Self.origin(of: origin)
        return state.withLock { state in
            if let known = state.servers[name] { return known }
            let clock = clock
            let server = VirtualServer(now: { clock.date })
            state.servers[name] = server
            return server
        }
    }

    private static func origin(of url: String) -> String { URL(string: url).map(RedirectRule.origin) ?? url }

    /// Bytes per second of either direction.
    public var bytesPerSecond: Double {
        get { state.withLock { $0.bytesPerSecond } }
        set { state.withLock { $0.bytesPerSecond = max(1, newValue) } }
    }

    /// Seconds until a request is at its server.
    public var latency: Double {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = max(0, newValue) } }
    }

    // MARK: Faults

    /// Every connection breaks; new ones can be made.
    public func cutConnections() { for attempt in attempts { attempt.fail(.connectionLost, byServer: true) } }

    /// Nobody listens at an origin from here on, until `comeBack(_:)`; its connections break.
    public func takeAway(_ origin: String) {
        let name = Self.origin(of: origin)
        state.withLock { _ = $0.absent.insert(name) }
        for attempt in attempts where attempt.origin == name { attempt.fail(.connectionLost, byServer: true) }
    }

    /// The server of an origin is there again, with all that it had.
    public func comeBack(_ origin: String) { state.withLock { _ = $0.absent.remove(Self.origin(of: origin)) } }

    /// The whole network goes or comes. The desktop's conditions say so too: see ``TestDriver/setConditions(_:)``.
    func setUp(_ isUp: Bool) {
        state.withLock { $0.isUp = isUp }
        if !isUp { cutConnections() }
    }

    /// Requests that nobody had made a server or a route for.
    var unimplemented: [String] { state.withLock { $0.unimplemented } }

    // MARK: For attempts

    func connect(_ tell: @escaping @Sendable (TransportEvent) -> Void) {
        for attempt in attempts { attempt.forget() }
        state.withLock { ($0.tell, $0.attempts) = (tell, [:]) }
    }

    func follow(with disk: DiskFollower) { state.withLock { $0.disk = disk } }

    func setDiskFull(_ isFull: Bool) { state.withLock { $0.disk }?.setFull(isFull) }

    /// Bytes went into a file.
    func touchDisk() { state.withLock { $0.disk }?.touch() }

    private var attempts: [VirtualAttempt] {
        state.withLock { $0.attempts.values.sorted { ($0.id.transfer, $0.id.number) < ($1.id.transfer, $1.id.number) } }
    }

    func say(_ event: TransportEvent) { state.withLock { $0.tell }(event) }

    func ended(_ id: AttemptID) { state.withLock { _ = $0.attempts.removeValue(forKey: id) } }

    enum Route {
        case exchange(VirtualExchange, VirtualServer)
        case failure(WireFailure)
    }

    func route(_ request: WireRequest) -> Route {
        guard let url = URL(string: request.url), let host = url.host, !host.isEmpty else { return .failure(.unsupportedURL) }
        let name = RedirectRule.origin(of: url)
        let (server, isUp, isAbsent) = state.withLock { ($0.servers[name], $0.isUp, $0.absent.contains(name)) }
        guard isUp else { return .failure(.couldNotResolveHost) }
        guard !isAbsent else { return .failure(.couldNotConnect) }
        let query = url.query(percentEncoded: true).map { "?" + $0 } ?? ""
        let path = url.path(percentEncoded: true)
        let target = (path.isEmpty ? "/" : path) + query
        guard
            let server,
            let exchange = server.begin(
                method: request.method, target: target, headers: request.headers.map { ($0.name, $0.value) })
        else {
            let what = server == nil ? "no server was made for \(name)" : "no route was made for it"
            state.withLock { $0.unimplemented.append("\(request.method) \(request.url): \(what)") }
            return .failure(.couldNotConnect)
        }
        return .exchange(exchange, server)
    }
}

extension VirtualNetwork: Transport {
    public func start(_ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink) {
        let made = VirtualAttempt(attempt, request, source, sink, self)
        state.withLock { $0.attempts[attempt] = made }
        made.begin()
    }

    public func cancel(_ attempt: AttemptID) {
        state.withLock { $0.attempts[attempt] }?.fail(.cancelled)
    }
}
