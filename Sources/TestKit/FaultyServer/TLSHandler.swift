import COpenSSL
import NIOCore

/// Handles TLS on one connection. OpenSSL reads from memory and writes into memory, and the handler carries the bytes to and from
/// the socket.
final class TLSHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        case shakingHands
        case established
        /// The TLS connection has ended. No more bytes are read, and writes fail.
        case ended
    }

    private let connection: OpaquePointer
    /// OpenSSL's memory for bytes from the socket, and for bytes to the socket. OpenSSL's connection owns both objects.
    private let (incoming, outgoing): (OpaquePointer, OpaquePointer)
    private var state = State.shakingHands

    init(_ context: TLSContext) throws(OpenSSLError) {
        guard let made = SSL_new(context.pointer) else { throw OpenSSLError("no TLS connection") }
        guard let read = BIO_new(BIO_s_mem()), let write = BIO_new(BIO_s_mem()) else {
            SSL_free(made)
            throw OpenSSLError("no memory is available for TLS")
        }
        (connection, incoming, outgoing) = (made, read, write)
        SSL_set_bio(made, read, write)
        SSL_set_accept_state(made)
    }

    deinit { SSL_free(connection) }

    // MARK: From the socket

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        unwrapInboundIn(data).withUnsafeReadableBytes { _ = BIO_write(incoming, $0.baseAddress, Int32($0.count)) }
        if case .shakingHands = state { shakeHands(context) }
        if case .established = state { read(context) }
    }

    private func shakeHands(_ context: ChannelHandlerContext) {
        ERR_clear_error()
        let result = SSL_do_handshake(connection)
        // The call of `send` also sends the TLS alert if the handshake failed.
        send(context, promise: nil)
        context.flush()
        if result == 1 {
            state = .established
        } else if SSL_get_error(connection, result) != SSL_ERROR_WANT_READ {
            fail("no handshake", context)
        }
    }

    private func read(_ context: ChannelHandlerContext) {
        while case .established = state {
            ERR_clear_error()
            var count: Int32 = 0
            var buffer = context.channel.allocator.buffer(capacity: 16_384)
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 16_384) { space in
                count = SSL_read(connection, space.baseAddress, Int32(space.count))
                return Int(max(0, count))
            }
            if count > 0 {
                context.fireChannelRead(wrapInboundOut(buffer))
                continue
            }
            switch SSL_get_error(connection, count) {
            case SSL_ERROR_WANT_READ:
                // OpenSSL may have bytes to send, for example a response to a key update.
                send(context, promise: nil)
                return context.flush()
            case SSL_ERROR_ZERO_RETURN:
                // The client sent close_notify.
                return context.pipeline.close(mode: .all, promise: nil)
            default:
                // The call of `send` also sends the TLS alert that reports the error.
                send(context, promise: nil)
                context.flush()
                fail("the connection cannot be read", context)
            }
        }
    }

    private func fail(_ what: String, _ context: ChannelHandlerContext) {
        state = .ended
        context.fireErrorCaught(OpenSSLError(what))
    }

    // MARK: To the socket

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .established = state else { return promise?.fail(ChannelError.ioOnClosedChannel) ?? () }
        ERR_clear_error()
        let buffer = unwrapOutboundIn(data)
        let written = buffer.withUnsafeReadableBytes { bytes in
            // OpenSSL cannot write an empty buffer, so 1 is the result for no bytes. OpenSSL's memory accepts all bytes in one
            // call.
            bytes.isEmpty ? 1 : SSL_write(connection, bytes.baseAddress, Int32(bytes.count))
        }
        guard written > 0 else { return promise?.fail(OpenSSLError("the bytes cannot be encrypted for the connection")) ?? () }
        send(context, promise: promise)
    }

    /// Sends the bytes that OpenSSL has for the client.
    private func send(_ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        let count = BIO_ctrl_pending(outgoing)
        var buffer = context.channel.allocator.buffer(capacity: count)
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
            Int(max(0, BIO_read(outgoing, space.baseAddress, Int32(count))))
        }
        guard buffer.readableBytes > 0 else { return promise?.succeed() ?? () }
        context.write(wrapOutboundOut(buffer), promise: promise)
    }

    /// Sends close_notify, and then closes the connection. A ``ConnectionCut`` does not call this method: see ``CutHandler``.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .established = state, mode != .input {
            state = mode == .output ? .established : .ended
            ERR_clear_error()
            _ = SSL_shutdown(connection)
            send(context, promise: nil)
            context.flush()
        }
        context.close(mode: mode, promise: promise)
    }
}
