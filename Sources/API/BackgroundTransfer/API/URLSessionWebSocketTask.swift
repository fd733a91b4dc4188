import BackgroundRuntime
import Foundation
import FoundationNetworking
import TransferMachines

/// A connection that carries messages in both directions (RFC 6455). `resume()` opens the connection. Messages that the app sends
/// earlier wait until the connection is open. Only ordinary sessions support web sockets. In a background session the task fails
/// with `URLError.unsupportedURL`.
///
/// Differs from Apple: the handshake does not follow redirects and does not respond to authentication challenges. If the server
/// does not accept the handshake, the task fails with `URLError.badServerResponse`, and ``URLSessionTask/response`` contains the
/// server's response. A configuration's `timeoutIntervalForRequest` applies to the connection and to the response to the
/// handshake. An open socket has no timeout. `waitsForConnectivity`, `timeoutIntervalForResource` and ``URLProtocol`` have no
/// effect on the task. Messages are not compressed.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {  // because the base class is unchecked Sendable
    /// The reason why a web socket is closed. Source: RFC 6455, 7.4.
    ///
    /// As in Apple's type, every number is a close code. A code that an app defines (3000 to 4999) is ``other(_:)``, and
    /// `rawValue` contains the number.
    public enum CloseCode: RawRepresentable, Hashable, Sendable {
        /// The socket is not closed.
        case invalid
        case normalClosure
        case goingAway
        case protocolError
        case unsupportedData
        /// The socket was closed without a code.
        case noStatusReceived
        /// The connection was lost.
        case abnormalClosure
        case invalidFramePayloadData
        case policyViolation
        case messageTooBig
        case mandatoryExtensionMissing
        case internalServerError
        case tlsHandshakeFailure
        /// A number for which this type has no other case.
        case other(Int)

        private static let named: [CloseCode] = [
            .invalid, .normalClosure, .goingAway, .protocolError, .unsupportedData, .noStatusReceived, .abnormalClosure,
            .invalidFramePayloadData, .policyViolation, .messageTooBig, .mandatoryExtensionMissing, .internalServerError,
            .tlsHandshakeFailure,
        ]

        /// Creates the close code with the given number. The result is never `nil`.
        public init?(rawValue: Int) { self = Self.named.first { $0.rawValue == rawValue } ?? .other(rawValue) }

        /// The number of the close code in the WebSocket protocol.
        public var rawValue: Int {
            switch self {
            case .invalid: 0
            case .normalClosure: 1000
            case .goingAway: 1001
            case .protocolError: 1002
            case .unsupportedData: 1003
            case .noStatusReceived: 1005
            case .abnormalClosure: 1006
            case .invalidFramePayloadData: 1007
            case .policyViolation: 1008
            case .messageTooBig: 1009
            case .mandatoryExtensionMissing: 1010
            case .internalServerError: 1011
            case .tlsHandshakeFailure: 1015
            case .other(let number): number
            }
        }
    }

    /// A message that is sent or received.
    public enum Message: Sendable {
        case data(Data)
        case string(String)
    }

    let exchange = WebSocketExchange()

    init(session: URLSession, request: URLRequest) { super.init(session: session, request: request) }

    // MARK: Messages

    /// Sends a message. Messages are sent in the order of the calls.
    ///
    /// - Throws: `URLError`. The code is `.networkConnectionLost` if the connection is closed or lost, and `.cancelled` if the
    ///   awaiting task is cancelled. After a cancellation, the message may still be sent. If the task has failed, the method
    ///   throws the task's error.
    open func send(_ message: Message) async throws {
        try await answered { exchange.send(message.onWire, $0) }
    }

    /// Sends a message. The handler is called on the session's delegate queue after the system has accepted the complete message.
    @preconcurrency open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        exchange.send(message.onWire) { [self] error in post { completionHandler(error) } }
    }

    /// Returns the next message. Messages that the app has not received yet are kept, up to one megabyte. If more messages
    /// arrive, the server has to wait.
    ///
    /// - Throws: `URLError`. The code is `.networkConnectionLost` if the connection is closed or lost and the app has received
    ///   all messages. The code is `.dataLengthExceedsMaximum` after a message that is longer than ``maximumMessageSize``. The
    ///   code is `.cancelled` if the awaiting task is cancelled. No message is lost after a cancellation (on iOS a cancellation
    ///   has no effect). If the task has failed, the method throws the task's error.
    open func receive() async throws -> Message {
        let number = exchange.reserve()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (done: CheckedContinuation<Message, any Error>) in
                exchange.receive(number) { done.resume(with: $0.map(Message.init(onWire:)).mapError { $0 as any Error }) }
                // The caller's Swift task may have been cancelled before the receiver was registered.
                if Task.isCancelled { exchange.giveUp(number) }
            }
        } onCancel: {
            exchange.giveUp(number)
        }
    }

    /// Receives the next message. The handler is called on the session's delegate queue.
    @preconcurrency open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        exchange.receive { [self] result in
            let result = result.map(Message.init(onWire:)).mapError { $0 as any Error }
            post { completionHandler(result) }
        }
    }

    /// Sends a ping to the server. When the pong arrives, the handler is called on the session's delegate queue with `nil`. If
    /// the task fails first, the handler is called with the task's error.
    @preconcurrency open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        exchange.ping { [self] error in post { pongReceiveHandler(error) } }
    }

    /// Sends a ping to the server, and waits for the pong.
    ///
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled. If the task fails before the pong
    ///   arrives, the method throws the task's error.
    open func sendPing() async throws {
        try await answered { exchange.ping($0) }
    }

    /// Waits until `ask` calls its handler, or until the awaiting task is cancelled.
    private func answered(_ ask: (@escaping @Sendable ((any Error)?) -> Void) -> Void) async throws {
        let answer = AwaitedResponse()
        ask { answer.resume($0) }
        try await withTaskCancellationHandler {
            try await answer.wait()
        } onCancel: {
            answer.resume(URLError(.cancelled))
        }
    }

    /// The maximum size of a received message, in bytes (default: 1 MiB). If a message is longer, the task fails, and the server
    /// receives the close code 1009.
    open var maximumMessageSize: Int {
        get { exchange.maximumMessageSize }
        set { exchange.maximumMessageSize = newValue }
    }

    // MARK: The end

    /// Sends a close frame to the server, after all earlier messages. The task ends without an error when the server has
    /// confirmed the close frame, at the latest after ten seconds. If the connection is not open yet, this method does the same
    /// as `cancel()`.
    ///
    /// - Parameters:
    ///   - closeCode: the code to send. The WebSocket protocol does not allow the codes ``CloseCode/invalid``,
    ///     ``CloseCode/noStatusReceived``, ``CloseCode/abnormalClosure`` and ``CloseCode/tlsHandshakeFailure`` in a frame. For
    ///     these codes, the close frame contains no code and no reason.
    ///   - reason: a text in UTF-8. Only the first 123 bytes are sent.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        guard let engine = session.engine as? OrdinarySession else { return cancel() }
        engine.close(self, closeCode.rawValue, reason ?? Data())
    }

    /// The close code of the side that closed the connection first. The value is ``CloseCode/invalid`` if the connection is open
    /// or was never open.
    open var closeCode: CloseCode { CloseCode(rawValue: exchange.closing.code) ?? .invalid }

    /// The reason that was sent with the close code.
    open var closeReason: Data? { exchange.closing.reason }

    /// Calls a handler of the app on the delegate's queue. The handlers are called in the order of these calls.
    func post(_ call: @escaping @Sendable () -> Void) {
        let calls = OutstandingCalls.shared
        calls.enter()
        session.onDelegateQueue {
            call()
            calls.leave()
        }
    }
}

extension URLSessionWebSocketTask.Message {
    var onWire: WebSocketMachine.Message {
        switch self {
        case .data(let data): .binary(data)
        case .string(let text): .text(text)
        }
    }

    init(onWire message: WebSocketMachine.Message) {
        switch message {
        case .text(let text): self = .string(text)
        case .binary(let data): self = .data(data)
        }
    }
}
