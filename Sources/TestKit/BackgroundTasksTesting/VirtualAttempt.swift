import ServerScripts
import Foundation
import TransferMachines

/// An attempt of a transfer on a virtual network. The attempt sends its request and receives the response piece by piece, in
/// virtual time.
final class VirtualAttempt: @unchecked Sendable {  // because only the host's run uses it, one caller at a time
    let id: AttemptID
    private(set) var origin: String
    private var request: WireRequest
    private var source: (any BodySource)?
    private let sink: any BodySink
    private let network: VirtualNetwork
    private let post: @Sendable (TransportEvent) -> Void
    private var exchange: VirtualExchange?
    private var server: VirtualServer?
    private var head: ResponseHead?
    private var sent: Int64 = 0
    private var received: Int64 = 0
    private var redirects = 0
    private var lastProgress = -Double.infinity
    /// The number of steps of this attempt so far. If a timer belongs to an earlier step, the timer is ignored.
    private var moment = 0
    private var isOver = false
    /// The last time when enough bytes of the response had arrived. `trickle` counts the bytes since that time.
    private var lastActivity: Double?
    private var trickle = 0

    init(
        _ id: AttemptID, _ request: WireRequest, _ source: (any BodySource)?, _ sink: any BodySink, _ network: VirtualNetwork,
        tell: @escaping @Sendable (TransportEvent) -> Void
    ) {
        (self.id, self.request, self.source, self.sink, self.network) = (id, request, source, sink, network)
        self.post = tell
        origin = URL(string: request.url).map(RedirectRule.origin) ?? ""
    }

    // MARK: Beginning and end

    /// Starts the attempt. Any thread may call this method. All other work happens while the host runs its events.
    func begin() { later(network.latency) { $0.connect() } }

    /// Cancels the attempt. Any thread may call this method.
    func cancel() { network.clock.schedule(after: 0) { [self] in fail(.cancelled) } }

    private func connect() {
        origin = URL(string: request.url).map(RedirectRule.origin) ?? ""
        switch network.route(request) {
        case .failure(let failure): fail(failure)
        case .exchange(let exchange, let server):
            (self.exchange, self.server) = (exchange, server)
            send()
        }
    }

    /// - Parameter byServer: `true` if the server or the network ended the connection.
    func fail(_ failure: WireFailure, byServer: Bool = false) {
        guard !isOver else { return }
        exchange?.abandon(byServer: byServer)
        end(failure)
    }

    private func end(_ failure: WireFailure?) {
        guard !isOver else { return }
        isOver = true
        post(.ended(id, WireEnd(head: head, failure: failure, bytesSent: sent, bytesReceived: received)))
    }

    /// Ends the attempt of an agent that was killed. The app is not notified, and the server sees a closed connection.
    func forget() {
        guard !isOver else { return }
        isOver = true
        exchange?.abandon()
    }

    private func later(_ seconds: Double, _ action: @escaping @Sendable (VirtualAttempt) -> Void) {
        moment += 1
        let expected = moment
        network.clock.schedule(after: seconds) { [self] in if !isOver, moment == expected { action(self) } }
    }

    private func pause(forBytes count: Int, sharing group: String? = nil) -> Double {
        let limit = request.rateLimit.map { min(Double($0), network.bytesPerSecond) } ?? network.bytesPerSecond
        let seconds = Double(count) / limit
        return group.map { network.pause(seconds, in: $0) } ?? seconds
    }

    // MARK: The request

    private func send() {
        guard !isOver, let exchange else { return }
        // The response began before the end of the request, so the rest of the request is not sent.
        guard !exchange.hasBegun || source == nil else { return pull() }
        guard let source, source.byteCount < 0 || sent < source.byteCount else {
            exchange.finishRequest()
            return pull()
        }
        var piece = Data(count: source.byteCount < 0 ? 65_536 : Int(min(65_536, source.byteCount - sent)))
        let count = piece.withUnsafeMutableBytes { source.read(into: $0) }
        if source.byteCount < 0, count == 0 {
            exchange.finishRequest()
            return pull()
        }
        guard let count, count > 0 else { return fail(.stoppedByOwner) }
        sent += Int64(count)
        exchange.receive(piece.prefix(count))
        reportProgress()
        later(pause(forBytes: count, sharing: request.rateGroup)) { $0.send() }
    }

    private func reportProgress() {
        let now = network.clock.awake
        guard now >= lastProgress + 0.25 else { return }
        lastProgress = now
        post(.progress(id, sent: sent, received: received))
    }

    // MARK: The response

    private func pull() {
        while !isOver, let exchange {
            switch exchange.next() {
            case .needsRequest: return
            case .wait(let seconds):
                guard seconds < request.idleTimeout, !isTrickling(seconds) else { return stall() }
                return later(seconds) { $0.pull() }
            case .hold(let gate):
                stall()
                let expected = moment
                server?.wait(at: gate) { [self] in
                    network.clock.schedule(after: 0) { [self] in if !isOver, moment == expected { pull() } }
                }
                return
            case .interim(let status, let headers):
                if status == 104 { post(.resumption(id, made(status, headers))) }
            case .head(let status, let headers):
                guard receive(made(status, headers)) else { return }
                (lastActivity, trickle) = (network.clock.awake, 0)
            case .body(let data):
                received += Int64(data.count)
                recordArrival(data.count)
                if let limit = request.maximumBodyBytes, received > limit { return fail(.bodyTooLarge) }
                guard data.withUnsafeBytes({ sink.write($0) }) else { return fail(.stoppedByOwner) }
                network.touchDisk()
                reportProgress()
                return later(pause(forBytes: data.count)) { $0.pull() }
            case .stopsReading: continue
            case .end: return end(nil)
            case .cut: return end(.connectionLost)
            case .stall: return stall()
            case .garbage: return fail(.badAnswer("not HTTP"))
            }
        }
    }

    /// Returns whether the response is too slow. Like the real transport, this attempt treats a very slow response like a
    /// response without data.
    private func isTrickling(_ seconds: Double) -> Bool {
        guard let lastActivity else { return false }
        return request.leastRate > 0 && network.clock.awake + seconds - lastActivity >= request.idleTimeout
    }

    private func recordArrival(_ count: Int) {
        let now = network.clock.awake
        trickle += count
        if let lastActivity, Double(trickle) < (now - lastActivity) * Double(request.leastRate) { return }
        (lastActivity, trickle) = (now, 0)
    }

    private func stall() { later(request.idleTimeout) { $0.fail(.stalled) } }

    private func made(_ status: Int, _ headers: HeaderList) -> ResponseHead {
        ResponseHead(status: status, headers: headers.lines.map { HeaderField($0.name, $0.value) }, url: request.url)
    }

    /// Handles response headers. Returns `false` if the attempt is over or follows a redirect.
    private func receive(_ head: ResponseHead) -> Bool {
        if request.maximumRedirects > 0 {
            do throws(RedirectRule.Refusal) {
                if let next = try RedirectRule.next(
                    method: request.method, url: request.url, headers: request.headers, head: head)
                {
                    return follow(next)
                }
            } catch {
                fail(.redirectToOtherScheme)
                return false
            }
        }
        self.head = head
        guard sink.receive(head: head) else {
            fail(.stoppedByOwner)
            return false
        }
        return true
    }

    private func follow(_ next: (method: String, url: String, headers: [HeaderField])) -> Bool {
        redirects += 1
        guard redirects <= request.maximumRedirects else {
            fail(.tooManyRedirects)
            return false
        }
        exchange?.abandon()
        // A redirect from POST to GET drops the body.
        if next.method != request.method { source = nil }
        (request.method, request.url, request.headers) = next
        sent = 0
        if source?.rewind() == false {
            fail(.stoppedByOwner)
            return false
        }
        later(network.latency) { $0.connect() }
        return false
    }
}
