import NIOCore
import ServerScripts
import Synchronization

/// An event that closes a connection without close_notify.
struct ConnectionCut: Sendable {}

/// The first handler in every pipeline. On ``ConnectionCut`` it closes the socket directly, so that the other handlers do not
/// send close_notify.
final class CutHandler: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is ConnectionCut else { return context.triggerUserOutboundEvent(event, promise: promise) }
        context.close(promise: promise)
    }
}

/// Plays a greeting other than HTTP on each new connection.
final class GreetingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let greeting: Greeting
    private var hasAnswered = false

    init(_ greeting: Greeting) { self.greeting = greeting }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasAnswered else { return }
        hasAnswered = true
        switch greeting {
        case .http, .https: preconditionFailure("an HTTP or HTTPS connection has no greeting")
        case .alert(let description): answer([21, 3, 3, 0, 2, 2, description], context)
        case .garbage: answer(Array("220 this is another service\r\n".utf8), context)
        case .hangUp: context.close(promise: nil)
        case .silence: break
        }
    }

    private func answer(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes))).whenComplete { _ in channel.close(promise: nil) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ServerClosing { context.close(promise: nil) }
    }
}

/// The greeting of the next connections.
final class GreetingBook: Sendable {
    private let greeting = Mutex(Greeting.http)

    var current: Greeting {
        get { greeting.withLock { $0 } }
        set { greeting.withLock { $0 = newValue } }
    }
}
