import Foundation
import Synchronization

/// A `FaultyServer` without sockets and without real time. Routes, scripts, stores and faults work as in `FaultyServer`. The test
/// kit performs the steps of a script in virtual time. The test kit's network creates a server for each origin.
public final class VirtualServer: Sendable {
    private let routes = RouteTable()
    private let log = Mutex(ServerActivity())
    private let gates = GateKeeper()
    private let now: @Sendable () -> Date

    /// - Parameter now: A closure that returns the time of the virtual clock.
    package init(now: @escaping @Sendable () -> Date) { self.now = now }

    // MARK: Routes

    /// Sets the response to a method (`nil` for any method) and a path. The path is exact, or a prefix that ends with `*`. An
    /// exact path has priority over a prefix, and a longer prefix has priority over a shorter prefix. Each request uses the next
    /// script. When no script is left, every further request uses the last script. A new route replaces an earlier route of the
    /// same method and path. If a test requests a path without a route, the test fails.
    public func route(_ method: String?, _ path: String, _ scripts: ResponseScript...) { route(method, path, scripts) }

    /// Sets the responses as a list of scripts. The list must not be empty.
    public func route(_ method: String?, _ path: String, _ scripts: [ResponseScript]) {
        routes.set(method, path, scripts)
    }

    /// Sets a function that returns the response from the request's headers, as in `FaultyServer`.
    public func handle(_ method: String?, _ path: String, _ handler: @escaping @Sendable (RecordedRequest) -> ResponseScript) {
        routes.set(method, path, .handler(handler))
    }

    /// Adds a store of uploads. The store handles all requests whose path begins with its prefix.
    public func mount(_ store: some UploadStore) { routes.mount(store) }

    // MARK: Gates

    /// Opens a gate. Every script that waits at the gate continues, and later scripts do not wait.
    public func openGate(_ name: String) { gates.open(name) }

    /// Closes a gate. Scripts that reach the gate from now on wait there.
    public func closeGate(_ name: String) { gates.close(name) }

    /// Calls `resume` when the gate is open. If the gate is open already, calls `resume` immediately.
    package func wait(at gate: String, resume: @escaping @Sendable () -> Void) { _ = gates.wait(at: gate, resume: resume) }

    // MARK: Activity

    /// The events on this server up to now.
    public var activity: ServerActivity { log.withLock { $0 } }

    /// Returns the requests so far: all requests, or only the requests to a path. The path is exact, or a prefix that ends with
    /// `*`.
    public func requests(matching path: String = "*") -> [RecordedRequest] {
        activity.requests(matching: path)
    }

    // MARK: Serving

    /// Receives the headers of a request. Returns `nil` if no route matches the request.
    package func begin(method: String, target: String, headers: [(String, String)]) -> VirtualExchange? {
        let list = HeaderList(headers.map { HeaderLine($0.0, $0.1) })
        let request = log.withLock { log in
            log.connectionsAccepted += 1
            return log.receive(
                connection: log.connectionsAccepted, method: method, uri: target, headers: list, at: now())
        }
        guard routes.knows(request) else { return nil }
        return VirtualExchange(request, routes.exchange(for: request)) { [self] id, change in
            log.withLock { $0.change(id, change) }
        }
    }
}

/// A request to a ``VirtualServer`` and its response. The test host requests the output step by step. One thread at a time uses
/// this object.
package final class VirtualExchange {
    /// The next output on the wire.
    package enum Output {
        /// The next output follows when the rest of the request has arrived.
        case needsRequest
        case wait(Double)
        case hold(gate: String)
        case interim(Int, HeaderList)
        case head(Int, HeaderList)
        case body(Data)
        /// The server stops reading the request.
        case stopsReading
        /// The response is complete.
        case end
        /// The connection ended before the response was complete.
        case cut
        /// No more output follows.
        case stall
        /// Bytes that are not HTTP.
        case garbage
    }

    private let request: RecordedRequest
    private let exchange: any Exchange
    private let update: (Int, (inout RecordedRequest) -> Void) -> Void
    private var received = 0
    private var isRequestDone = false
    private var steps: ArraySlice<ResponseScript.Step>?
    private var framing = ResponseFraming()
    private var head: (status: Int, headers: HeaderList)?
    private var isHeadOut = false
    private var body: (payload: Payload, delivery: ResponseScript.Delivery, offset: Int, pieces: Int)?
    private var mustPause: Double?
    private var isOver = false

    init(
        _ request: RecordedRequest, _ exchange: any Exchange,
        update: @escaping (Int, (inout RecordedRequest) -> Void) -> Void
    ) {
        (self.request, self.exchange, self.update) = (request, exchange, update)
        if let opening = exchange.opening, opening.beginning == .atHead { steps = opening.steps[...] }
    }

    /// `true` if the response has begun. In this case the rest of the request may be unnecessary.
    package var hasBegun: Bool { steps != nil }

    /// Receives bytes of the request's body.
    package func receive(_ bytes: Data) {
        guard !isOver else { return }
        received += bytes.count
        let total = received
        update(request.id) { $0.bodyByteCount = total }
        exchange.receive(bytes)
        if steps == nil, let opening = exchange.opening, case .afterBodyBytes(let count) = opening.beginning, total >= count {
            steps = opening.steps[...]
        }
    }

    /// Handles the end of the request.
    package func finishRequest() {
        guard !isOver, !isRequestDone else { return }
        isRequestDone = true
        update(request.id) { $0.isComplete = true }
        if steps == nil { steps = exchange.finish().steps[...] }
    }

    /// Handles the loss of the client or of the network.
    package func abandon(byServer: Bool = false) {
        guard !isOver else { return }
        isOver = true
        if !isRequestDone { exchange.abandon() }
        update(request.id) { $0.outcome = byServer ? .serverClosed : .clientClosed }
    }

    /// Returns the next output.
    ///
    /// - Parameter pieceLimit: The maximum number of body bytes in one piece.
    package func next(pieceLimit: Int = 65_536) -> Output {
        guard !isOver else { return .stall }
        if let pause = mustPause {
            mustPause = nil
            return .wait(pause)
        }
        if body != nil, let piece = nextPiece(pieceLimit) { return .body(piece) }
        while steps != nil {
            guard let step = steps?.popFirst() else { return conclude() }
            if let output = perform(step, pieceLimit) { return output }
        }
        return .needsRequest
    }

    private func perform(_ step: ResponseScript.Step, _ pieceLimit: Int) -> Output? {
        switch step {
        case .status(let code, _):
            framing.begin(status: code, method: request.method)
            head = (code, [:])
            update(request.id) { $0.status = code }
        case .headers(let list):
            framing.announce(list)
            head?.headers.lines += list.lines
        case .interim(let code, let list): return .interim(code, list)
        case .body(let payload, let delivery):
            if request.method != "HEAD" { body = (payload, delivery, 0, 0) }
            if let head = headOut() {
                return head
            }
            if body != nil, let piece = nextPiece(pieceLimit) { return .body(piece) }
        case .chunkEnd:
            framing.hasLastChunk = true
            return headOut()
        case .resource(let file):
            steps = (file.answer(method: request.method, headers: request.headers) + (steps ?? []))[...]
        case .raw: return finish(.cutByScript, .garbage)
        case .delay(let seconds): return .wait(seconds)
        case .hold(let gate):
            // The script's headers are sent before this step.
            if !isHeadOut, head != nil {
                steps = [step] + (steps ?? [])
                return headOut()
            }
            return .hold(gate: gate)
        case .stopReading: return .stopsReading
        case .stall:
            if !isHeadOut, head != nil {
                steps = [step] + (steps ?? [])
                return headOut()
            }
            return .stall
        case .cut, .reset: return finish(.cutByScript, .cut)
        }
        return nil
    }

    private func headOut() -> Output? {
        guard !isHeadOut, let head else { return nil }
        isHeadOut = true
        _ = framing.endHead()
        return .head(head.status, head.headers)
    }

    private func nextPiece(_ limit: Int) -> Data? {
        guard var current = body else { return nil }
        let size = min(current.delivery.size(ofPiece: current.pieces), limit)
        let bytes = current.payload.read(at: current.offset, length: size)
        guard !bytes.isEmpty else {
            body = nil
            return nil
        }
        current.offset += bytes.count
        current.pieces += 1
        let isLast = current.offset >= current.payload.count
        body = isLast ? nil : current
        if !isLast, current.delivery.interval > 0 { mustPause = current.delivery.interval }
        framing.sent += bytes.count
        update(request.id) { $0.bodyBytesSent += bytes.count }
        return bytes
    }

    private func conclude() -> Output {
        if let head = headOut() { return head }
        return framing.isWhole ? finish(.answered, .end) : finish(.cutByScript, .cut)
    }

    private func finish(_ outcome: RecordedRequest.Outcome, _ output: Output) -> Output {
        isOver = true
        if !isRequestDone { exchange.abandon() }
        update(request.id) { $0.outcome = outcome }
        return output
    }
}
