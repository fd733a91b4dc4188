import Foundation
import Synchronization

/// A `FaultyServer` without sockets and without real time: the same routes, scripts, stores and faults, played by whoever
/// keeps a virtual clock. Given out by the test kit's network, one for each origin.
public final class VirtualServer: Sendable {
    private let routes = RouteTable()
    private let log = Mutex(ServerActivity())
    private let gates = GateKeeper()
    private let now: @Sendable () -> Date

    /// - Parameter now: the virtual clock.
    package init(now: @escaping @Sendable () -> Date) { self.now = now }

    // MARK: Routes

    /// Sets the answer to a method (`nil`: any) and a path: exact, or a prefix ending in `*`. Exact wins over prefix, long over
    /// short. Of several scripts each request takes the next, and all further ones the last. Replaces an earlier route of the
    /// same method and path. A path without a route fails the test that reaches it.
    public func route(_ method: String?, _ path: String, _ scripts: ResponseScript...) { route(method, path, scripts) }

    /// The same with the scripts as a list, which must not be empty.
    public func route(_ method: String?, _ path: String, _ scripts: [ResponseScript]) {
        routes.set(method, path, scripts)
    }

    /// Answers by a function of the request's head, as `FaultyServer` does.
    public func handle(_ method: String?, _ path: String, _ handler: @escaping @Sendable (RecordedRequest) -> ResponseScript) {
        routes.set(method, path, .handler(handler))
    }

    /// Serves a store of uploads under its prefix.
    public func mount(_ store: some UploadStore) { routes.mount(store) }

    // MARK: Gates

    /// Opens a gate: every script that holds there goes on, and later ones pass.
    public func openGate(_ name: String) { gates.open(name) }

    /// Closes a gate for scripts that come to it from now on.
    public func closeGate(_ name: String) { gates.close(name) }

    /// Calls `resume` when the gate is open; at once if it is.
    package func wait(at gate: String, resume: @escaping @Sendable () -> Void) { _ = gates.wait(at: gate, resume: resume) }

    // MARK: What happened

    /// Everything so far.
    public var activity: ServerActivity { log.withLock { $0 } }

    /// Requests received so far, all or those to a path (exact, or a prefix ending in `*`).
    public func requests(matching path: String = "*") -> [RecordedRequest] {
        activity.requests(matching: path)
    }

    // MARK: Serving

    /// A request arrives. `nil`: no route was made for it.
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

/// One request of a ``VirtualServer`` and the way to its end, pulled step by step by whoever keeps the clock. One thread at a
/// time.
package final class VirtualExchange {
    /// What comes next on the wire.
    package enum Output {
        /// The rest of the request is needed first.
        case needsRequest
        case wait(Double)
        case hold(gate: String)
        case interim(Int, HeaderList)
        case head(Int, HeaderList)
        case body(Data)
        /// The server takes no more of the request.
        case stopsReading
        /// The answer is whole.
        case end
        /// The connection ended before the answer did.
        case cut
        /// Nothing more comes.
        case stall
        /// Something that is no HTTP.
        case garbage
    }

    private let request: RecordedRequest
    private let exchange: any Exchange
    private let update: (Int, (inout RecordedRequest) -> Void) -> Void
    private var received = 0
    private var isRequestDone = false
    private var steps: ArraySlice<ResponseScript.Step>?
    private var framing = AnswerFraming()
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

    /// The answer began: what is still to be sent may be of no use.
    package var hasBegun: Bool { steps != nil }

    /// Bytes of the request's body arrive.
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

    /// The request is whole.
    package func finishRequest() {
        guard !isOver, !isRequestDone else { return }
        isRequestDone = true
        update(request.id) { $0.isComplete = true }
        if steps == nil { steps = exchange.finish().steps[...] }
    }

    /// The client, or the network, is gone.
    package func abandon(byServer: Bool = false) {
        guard !isOver else { return }
        isOver = true
        if !isRequestDone { exchange.abandon() }
        update(request.id) { $0.outcome = byServer ? .serverClosed : .clientClosed }
    }

    /// - Parameter pieceLimit: bytes of body handed out at once, at most.
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
            // What was written before is on its way.
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
