import Foundation
import NIOCore
import NIOHTTP1
import ServerScripts

/// An event that ends a connection, because the server closes the connection.
struct ServerClosing: Sendable {}

/// The handler of a connection. The handler accepts requests one after another, passes each request to an exchange, and plays the
/// script.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    /// The current request.
    private struct Current {
        let request: RecordedRequest
        let exchange: any Exchange
        let keepsAlive: Bool
        var received = 0
        var isRequestDone = false
        /// `true` if the last byte of the response was written.
        var isAnswerDone = false
        var player: ScriptPlayer?
    }

    private enum State {
        case idle
        case working(Current)
        /// The connection has ended. No more responses are sent, and further bytes are read and dropped.
        case ended
    }

    private let number: Int
    private let log: RequestLog
    private let routes: RouteTable
    private let gates: GateKeeper
    private var state = State.idle
    /// The parts of later requests that were sent before the response to the earlier request was complete (pipelining).
    private var pending = CircularBuffer<HTTPServerRequestPart>()
    private var isReadingPaused = false

    init(number: Int, log: RequestLog, routes: RouteTable, gates: GateKeeper) {
        self.number = number
        self.log = log
        self.routes = routes
        self.gates = gates
    }

    // MARK: Events of the channel

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        if case .working(let current) = state, current.isRequestDone {
            pending.append(part)
            // A client that sends many requests without reading responses must not fill the server's memory.
            if pending.count >= 64 { setReading(false, context.channel) }
        } else {
            receive(part, context.channel)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(as: .clientClosed)
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ServerClosing else { return context.fireUserInboundEventTriggered(event) }
        end(as: .serverClosed)
        context.triggerUserOutboundEvent(ConnectionCut(), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // If the bytes are not HTTP, the usual error response is sent. If the connection is broken, no response is sent, because
        // `channelInactive` follows.
        guard error is HTTPParserError, case .idle = state else {
            context.close(promise: nil)
            return
        }
        state = .ended
        let answer = ByteBuffer(string: "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        context.channel.writeAndFlush(answer).whenComplete { [channel = context.channel] _ in
            channel.close(promise: nil)
        }
    }

    // MARK: The request

    private func receive(_ part: HTTPServerRequestPart, _ channel: any Channel) {
        switch (part, state) {
        case (.head(let head), .idle):
            begin(head, channel)
        case (.body(let bytes), .working(var current)):
            current.received += bytes.readableBytes
            state = .working(current)
            let total = current.received
            log.update(current.request.id) { $0.bodyByteCount = total }
            current.exchange.receive(Data(bytes.readableBytesView))
            if case .afterBodyBytes(let count) = current.exchange.opening?.beginning, total >= count {
                play(current.exchange.opening, channel)
            }
        case (.end, .working(var current)):
            current.isRequestDone = true
            state = .working(current)
            log.update(current.request.id) { $0.isComplete = true }
            if current.player == nil {
                play(current.exchange.finish(), channel)
            } else if current.isAnswerDone {
                next(channel)
            }
        case (_, .ended), (.head, .working), (.body, .idle), (.end, .idle):
            break
        }
    }

    private func begin(_ head: HTTPRequestHead, _ channel: any Channel) {
        let headers = HeaderList(head.headers.map { HeaderLine($0.name, $0.value) })
        let request = log.received(
            connection: number, method: head.method.rawValue, uri: head.uri, headers: headers)
        let exchange = routes.exchange(for: request)
        let opening = exchange.opening
        state = .working(Current(request: request, exchange: exchange, keepsAlive: head.isKeepAlive))
        if case .atHead = opening?.beginning {
            play(opening, channel)
        } else if opening?.grantsContinue ?? true, headers.tokens("Expect").contains("100-continue") {
            channel.writeAndFlush(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"), promise: nil)
        }
    }

    // MARK: The response

    /// Starts a script unless one was started for this request.
    private func play(_ script: ResponseScript?, _ channel: any Channel) {
        guard let script, case .working(var current) = state, current.player == nil else { return }
        let player = ScriptPlayer(
            script, for: current.request, clientKeepsAlive: current.keepsAlive, on: channel, gates: gates
        ) { [weak self] event in
            self?.handle(event, channel)
        }
        current.player = player
        state = .working(current)
        player.start()
    }

    private func handle(_ event: ScriptPlayer.Event, _ channel: any Channel) {
        guard case .working(var current) = state else { return }
        switch event {
        case .wroteStatus(let status):
            log.update(current.request.id) { $0.status = status }
        case .sentBody(let count):
            log.update(current.request.id) { $0.bodyBytesSent += count }
        case .stopReading:
            setReading(false, channel)
        case .closing:
            end(as: .cutByScript)
        case .finished(let isWhole, let keep):
            log.update(current.request.id) { $0.outcome = isWhole ? .answered : .cutByScript }
            current.isAnswerDone = true
            state = .working(current)
            if keep {
                if current.isRequestDone { next(channel) }
            } else {
                end(as: .answered)
                closeGently(channel, clientIsSending: !current.isRequestDone)
            }
        }
    }

    private func next(_ channel: any Channel) {
        state = .idle
        while !pending.isEmpty {
            if case .working(let current) = state, current.isRequestDone { break }
            receive(pending.removeFirst(), channel)
        }
        if pending.count < 64 { setReading(true, channel) }
    }

    /// Closes the connection. If the kernel still had unread bytes, it would send a reset that can overtake the response. If the
    /// client is still sending, only the server's direction is closed. The other direction is closed when the client closes the
    /// connection.
    private func closeGently(_ channel: any Channel, clientIsSending: Bool) {
        setReading(true, channel)
        channel.close(mode: clientIsSending ? .output : .all, promise: nil)
    }

    /// Ends the work on the current request. If the request ends more than once, the request log keeps the first outcome.
    private func end(as outcome: RecordedRequest.Outcome) {
        if case .working(let current) = state {
            current.player?.abandon()
            if !current.isRequestDone { current.exchange.abandon() }
            log.update(current.request.id) { $0.outcome = outcome }
        }
        state = .ended
        pending.removeAll()
    }

    private func setReading(_ isOn: Bool, _ channel: any Channel) {
        guard isReadingPaused == isOn else { return }
        isReadingPaused = !isOn
        try? channel.syncOptions?.setOption(.autoRead, value: isOn)
    }
}
