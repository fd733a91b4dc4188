import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Synchronization

/// A web socket server on loopback. The server and the tested client use different implementations of web sockets. The path
/// selects the behaviour:
///
/// - `/echo` sends each message back. `/protocol` selects the second protocol of the request. `/cookie` sets a cookie.
/// - `/ping` sends a ping, and the message "answered" after the pong. `/fragments` sends "Hello" in fragments with a ping between
///   them.
/// - `/large/N` sends a message of N bytes. `/flood/N` sends N messages of 1 MiB as fast as the client accepts them.
/// - `/bye/CODE/REASON` sends a close frame. `/drop-at-close` closes the connection without a close frame when the client sends
///   one.
/// - `/lost` closes the connection immediately and without a reset. `/reset` resets the connection when a message arrives.
/// - `/masked` sends a masked frame, which a server must not send.
/// - `/refuse` responds with status 403, `/hang-up` closes the connection without a response, and `/wait` never responds.
final class SocketServer: Sendable {
    struct Seen: Sendable {
        var requests: [HTTPRequestHead] = []
        /// The codes and reasons that clients sent. A code is `nil` if the close frame has no code.
        var closes: [(code: Int?, reason: String)] = []
        /// The number of messages of `/flood` that the system accepted.
        var flooded = 0
    }

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    let port: Int
    private let listener: any Channel
    private let log: Log
    /// A stream that yields after each recorded event, and after the end of each connection.
    let changes: AsyncStream<Void>

    static func start() async throws -> SocketServer {
        let (changes, change) = AsyncStream.makeStream(of: Void.self)
        let log = Log(change)
        let listener = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    channel.closeFuture.whenComplete { _ in change.yield() }
                    let upgrader = NIOWebSocketServerUpgrader(
                        maxFrameSize: 1 << 26, automaticErrorHandling: false,
                        shouldUpgrade: { channel, head in
                            log.note { $0.requests.append(head) }
                            return channel.eventLoop.makeSucceededFuture(Self.headers(for: head))
                        },
                        upgradePipelineHandler: { channel, head in
                            channel.pipeline.removeHandler(name: "plain").flatMapThrowing {
                                try channel.pipeline.syncOperations.addHandler(Talker(head.uri, log))
                            }
                        })
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                        withServerUpgrade: ([upgrader], { _ in }))
                    try channel.pipeline.syncOperations.addHandler(Plain(), name: "plain")
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return SocketServer(listener, log, changes)
    }

    private init(_ listener: any Channel, _ log: Log, _ changes: AsyncStream<Void>) {
        self.listener = listener
        port = listener.localAddress?.port ?? 0
        self.log = log
        self.changes = changes
    }

    deinit { listener.close(promise: nil) }

    func stop() async { try? await listener.close() }

    func url(_ path: String) -> URL { URL(string: "ws://127.0.0.1:\(port)\(path)") ?? URL(filePath: "/") }

    var now: Seen { log.seen.withLock { $0 } }

    /// Waits until the recorded events meet the condition.
    func wait(until isSeen: (Seen) -> Bool) async {
        if isSeen(now) { return }
        for await _ in changes { if isSeen(now) { return } }
    }

    private static func headers(for head: HTTPRequestHead) -> HTTPHeaders? {
        switch head.uri.split(separator: "?").first ?? "" {
        case "/refuse", "/hang-up", "/wait": return nil
        case "/protocol":
            let offered = head.headers[canonicalForm: "Sec-WebSocket-Protocol"]
            return offered.count > 1 ? ["Sec-WebSocket-Protocol": String(offered[1])] : [:]
        case "/cookie": return ["Set-Cookie": "fruit=apple; Path=/"]
        default: return [:]
        }
    }

    /// The record that all channels write to.
    final class Log: Sendable {
        let seen = Mutex(Seen())
        private let change: AsyncStream<Void>.Continuation

        init(_ change: AsyncStream<Void>.Continuation) { self.change = change }

        func note(_ body: (inout Seen) -> Void) {
            seen.withLock { body(&$0) }
            change.yield()
        }
    }
}

/// Responds to requests that are not upgraded to a web socket.
private final class Plain: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private var path = ""

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): path = head.uri
        case .body: break
        case .end:
            switch path {
            case "/hang-up": context.close(promise: nil)
            case "/wait": break
            default:
                let head = HTTPResponseHead(
                    version: .http1_1, status: .forbidden, headers: ["Content-Length": "0", "X-Why": "no"])
                context.write(wrapOutboundOut(.head(head)), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }
}

private final class Talker: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let words: [String]
    private let log: SocketServer.Log

    init(_ path: String, _ log: SocketServer.Log) {
        words = path.split(separator: "/").map(String.init)
        self.log = log
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let number = words.count > 1 ? Int(words[1]) ?? 0 : 0
        switch words.first {
        case "ping": send(context, .ping, "Hi")
        case "fragments":
            send(context, .text, "Hel", isFinal: false)
            send(context, .ping, "you")
            send(context, .continuation, "", isFinal: false)
            send(context, .continuation, "lo")
        case "large": send(context, .binary, bytes: [UInt8](repeating: 7, count: number))
        case "flood": Self.flood(context.channel, number, log)
        case "bye":
            var buffer = context.channel.allocator.buffer(capacity: 16)
            if number > 0 { buffer.writeInteger(UInt16(number)) }
            buffer.writeString(words.count > 2 ? words[2] : "")
            write(context, WebSocketFrame(fin: true, opcode: .connectionClose, data: buffer))
        case "lost": context.close(promise: nil)
        case "masked":
            var buffer = context.channel.allocator.buffer(capacity: 16)
            buffer.writeString("hidden")
            write(context, WebSocketFrame(fin: true, opcode: .text, maskKey: [1, 2, 3, 4], data: buffer))
        default: break
        }
    }

    private static func flood(_ channel: any Channel, _ left: Int, _ log: SocketServer.Log) {
        guard left > 0 else { return }
        let frame = WebSocketFrame(fin: true, opcode: .binary, data: ByteBuffer(repeating: UInt8(left & 0xFF), count: 1 << 20))
        channel.writeAndFlush(frame).whenSuccess {
            log.note { $0.flooded += 1 }
            flood(channel, left - 1, log)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        var payload = frame.unmaskedData
        switch frame.opcode {
        case .ping: write(context, WebSocketFrame(fin: true, opcode: .pong, data: payload))
        case .pong: if words.first == "ping", payload == ByteBuffer(string: "Hi") { send(context, .text, "answered") }
        case .connectionClose:
            let answer = payload
            let code = payload.readInteger(as: UInt16.self).map(Int.init)
            let reason = String(buffer: payload)
            log.note { $0.closes.append((code, reason)) }
            if words.first != "drop-at-close", words.first != "bye" {
                write(context, WebSocketFrame(fin: true, opcode: .connectionClose, data: answer))
            }
            context.close(promise: nil)
        case .text, .binary:
            if words.first == "reset" {
                let channel = context.channel
                // If a connection is closed with a linger time of 0, it is reset.
                (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
                    channel.close(promise: nil)
                }
            } else {
                write(context, WebSocketFrame(fin: true, opcode: frame.opcode, data: payload))
            }
        default: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func send(_ context: ChannelHandlerContext, _ opcode: WebSocketOpcode, _ text: String, isFinal: Bool = true) {
        send(context, opcode, bytes: Array(text.utf8), isFinal: isFinal)
    }

    private func send(_ context: ChannelHandlerContext, _ opcode: WebSocketOpcode, bytes: [UInt8], isFinal: Bool = true) {
        write(context, WebSocketFrame(fin: isFinal, opcode: opcode, data: ByteBuffer(bytes: bytes)))
    }

    private func write(_ context: ChannelHandlerContext, _ frame: WebSocketFrame) {
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }
}
