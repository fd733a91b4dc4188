import BackgroundTransfer
import ServerScripts
import Foundation
import Synchronization
import TransferMachines

/// The network of a simulated host. The network contains servers by origin, each with its routes, scripts and stores. Virtual
/// time passes during requests.
///
/// Background and ordinary sessions of the app reach only these servers. A request without a server or a route receives no
/// response, and makes the test fail.
public final class VirtualNetwork: Sendable {
    private struct State {
        var servers: [String: VirtualServer] = [:]
        var absent: Set<String> = []
        var distrusted: Set<String> = []
        var isUp = true
        var bytesPerSecond = 4_000_000.0
        var latency = 0.02
        /// The time when the last transmission of each group ends. A group consists of requests with a common rate limit.
        var busyUntil: [String: Double] = [:]
        var unimplemented: [String] = []
        /// The running attempts of the agent's transfers.
        var attempts: [AttemptID: VirtualAttempt] = [:]
        var post: @Sendable (TransportEvent) -> Void = { _ in }
        /// The running attempts of the app's ordinary sessions, each with the launch that began the attempt.
        var ordinary: [AttemptID: (attempt: VirtualAttempt, launch: Int64?)] = [:]
        var ordinaryChanged: @Sendable () -> Void = {}
        var isClosed = false
        var disk: DiskFollower?
    }

    private let state = Mutex(State())
    let clock: VirtualClock

    init(clock: VirtualClock) { self.clock = clock }

    /// Returns the server of an origin, for example `https://api.example.org`. A port other than the default of the scheme is part of the
    /// origin. The first call creates the server.
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

    /// The speed in bytes per second, in each direction.
    public var bytesPerSecond: Double {
        get { state.withLock { $0.bytesPerSecond } }
        set { state.withLock { $0.bytesPerSecond = max(1, newValue) } }
    }

    /// The time in seconds until a request reaches its server.
    public var latency: Double {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = max(0, newValue) } }
    }

    // MARK: Faults

    /// Breaks every connection. New connections can be made.
    public func cutConnections() { for attempt in attempts { attempt.fail(.connectionLost, byServer: true) } }

    /// Makes an origin unreachable until `comeBack(_:)`. The connections to this origin break.
    public func takeAway(_ origin: String) {
        let name = Self.origin(of: origin)
        state.withLock { _ = $0.absent.insert(name) }
        for attempt in attempts where attempt.origin == name { attempt.fail(.connectionLost, byServer: true) }
    }

    /// Makes an origin reachable again, with its earlier contents.
    public func comeBack(_ origin: String) { state.withLock { _ = $0.absent.remove(Self.origin(of: origin)) } }

    /// Gives the server of an origin an untrusted certificate, or restores its certificate.
    package func distrust(_ origin: String, _ isDistrusted: Bool) {
        let name = Self.origin(of: origin)
        state.withLock { state in
            if isDistrusted { state.distrusted.insert(name) } else { state.distrusted.remove(name) }
        }
    }

    /// Switches the network on or off. The desktop's conditions change at the same time: see ``TestDriver/setConditions(_:)``.
    func setUp(_ isUp: Bool) {
        state.withLock { $0.isUp = isUp }
        if !isUp { cutConnections() }
    }

    /// The requests for which the test has defined no server or no route.
    var unimplemented: [String] { state.withLock { $0.unimplemented } }

    // MARK: Calls of attempts

    /// Returns the seconds until the bytes of a group with a common rate limit are sent. The transmissions of a group are sent
    /// one after another.
    func pause(_ seconds: Double, in group: String) -> Double {
        let now = clock.awake
        return state.withLock { state in
            let end = max(now, state.busyUntil[group] ?? now) + seconds
            state.busyUntil[group] = end
            return end - now
        }
    }

    func connect(_ tell: @escaping @Sendable (TransportEvent) -> Void) {
        let old = state.withLock { state in
            defer { (state.post, state.attempts) = (tell, [:]) }
            return Array(state.attempts.values)
        }
        for attempt in old { attempt.forget() }
    }

    func follow(with disk: DiskFollower) { state.withLock { $0.disk = disk } }

    /// Records that bytes were written to a file.
    func touchDisk() { state.withLock { $0.disk }?.touch() }

    private var attempts: [VirtualAttempt] {
        let (agents, apps) = state.withLock { (Array($0.attempts.values), $0.ordinary.values.map(\.attempt)) }
        return [agents, apps].flatMap { $0.sorted { ($0.id.transfer, $0.id.number) < ($1.id.transfer, $1.id.number) } }
    }

    enum Route {
        case exchange(VirtualExchange, VirtualServer)
        case failure(WireFailure)
    }

    func route(_ request: WireRequest) -> Route {
        guard let url = URL(string: request.url), let host = url.host, !host.isEmpty else { return .failure(.unsupportedURL) }
        let name = RedirectRule.origin(of: url)
        var headers = request.headers.map { ($0.name, $0.value) }
        if let credential = request.credential {
            guard !credential.isDigest else { return unknown(request, "no virtual server supports Digest authentication") }
            let words = Data("\(credential.user):\(credential.password)".utf8).base64EncodedString()
            headers.append(("Authorization", "Basic " + words))
        }
        let (server, isUp, isAbsent, isDistrusted) = state.withLock {
            ($0.servers[name], $0.isUp, $0.absent.contains(name), $0.distrusted.contains(name))
        }
        guard isUp else { return .failure(.couldNotResolveHost) }
        guard !isAbsent else { return .failure(.couldNotConnect) }
        guard !isDistrusted else { return .failure(.tlsUntrusted("self-signed certificate")) }
        let query = url.query(percentEncoded: true).map { "?" + $0 } ?? ""
        let path = url.path(percentEncoded: true)
        let target = (path.isEmpty ? "/" : path) + query
        guard
            let server,
            let exchange = server.begin(method: request.method, target: target, headers: headers)
        else {
            return unknown(
                request,
                server == nil ? "no virtual server was created for \(name)" : "the virtual server has no route for this request")
        }
        return .exchange(exchange, server)
    }

    private func unknown(_ request: WireRequest, _ what: String) -> Route {
        state.withLock { $0.unimplemented.append("\(request.method) \(request.url): \(what)") }
        return .failure(.couldNotConnect)
    }
}

/// The network of the agent.
extension VirtualNetwork: Transport {
    /// Begins an exchange. The agent and the sessions call this method. A test defines responses with ``server(_:)``.
    package func start(_ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink) {
        let made = VirtualAttempt(attempt, request, source, sink, self) { [self] event in
            let tell = state.withLock { state in
                if case .ended = event { state.attempts[attempt] = nil }
                return state.post
            }
            tell(event)
        }
        state.withLock { $0.attempts[attempt] = made }
        made.begin()
    }

    /// Ends an exchange from the client's side. The agent calls this method. A test uses ``cutConnections()``.
    package func cancel(_ attempt: AttemptID) {
        state.withLock { $0.attempts[attempt] }?.fail(.cancelled)
    }
}

/// The network of the app's ordinary sessions.
extension VirtualNetwork {
    /// Sets the action that is called when a request of an ordinary session begins or ends.
    func onOrdinaryRequests(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.ordinaryChanged = action } }

    /// Returns whether the launch awaits a response, which needs virtual time.
    func isAsking(launch: Int64) -> Bool { state.withLock { $0.ordinary.values.contains { $0.launch == launch } } }

    /// Ends the connections of a process that has ended. The app's tasks are cancelled but continue to run, like all code of a
    /// dead simulated process.
    func processEnded(launch: Int64) {
        let gone = state.withLock { $0.ordinary.values.filter { $0.launch == launch }.map(\.attempt) }
        for attempt in gone { attempt.cancel() }
    }

    /// Closes the network after the test. Only the caller that runs the host may call this method.
    func close() {
        let rest = state.withLock { state in
            state.isClosed = true
            return state.ordinary.values.map(\.attempt)
        }
        for attempt in rest { attempt.fail(.cancelled) }
    }

    /// The network as the app's process uses it.
    struct AppWire: TestWire {
        let network: VirtualNetwork

        func start(
            _ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink, launch: Int64?,
            handler: @escaping @Sendable (TransportEvent) -> Void
        ) {
            let made = VirtualAttempt(attempt, request, source, sink, network) { [network] event in
                guard case .ended = event else { return handler(event) }
                let changed = network.state.withLock { state in
                    state.ordinary[attempt] = nil
                    return state.ordinaryChanged
                }
                handler(event)
                changed()
            }
            let (isClosed, changed) = network.state.withLock { state in
                if !state.isClosed { state.ordinary[attempt] = (made, launch) }
                return (state.isClosed, state.ordinaryChanged)
            }
            guard !isClosed else {
                return handler(.ended(attempt, WireEnd(head: nil, failure: .couldNotConnect, bytesSent: 0, bytesReceived: 0)))
            }
            made.begin()
            changed()
        }

        /// Does nothing. A sink accepts all data in virtual time, so no attempt waits.
        func continueWork(_ attempt: AttemptID) {}

        func cancel(_ attempt: AttemptID) { network.state.withLock { $0.ordinary[attempt]?.attempt }?.cancel() }
    }
}
