import BackgroundRuntime
import Foundation
import FoundationNetworking
import TransferMachines

/// A connection that carries messages both ways (RFC 6455). It begins with `resume()`; what is sent before waits for it. Ordinary sessions
/// only: in a background session it ends in `URLError.unsupportedURL`.
///
/// Differs from Apple: the handshake follows no redirects and answers no challenges: what is no web socket ends the task in
/// `URLError.badServerResponse`, with the answer in ``URLSessionTask/response``. A configuration's `timeoutIntervalForRequest` is for the
/// connection and the answer to the handshake; a socket that is open may be silent for ever. `waitsForConnectivity`, `timeoutIntervalForResource`
/// and ``URLProtocol`` have no effect on it. No message is compressed.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {  // because its base is
    /// Why a web socket is closed. Source: RFC 6455, 7.4.
    ///
    /// As with Apple's, every number is one: an app's own, 3000 to 4999, is ``other(_:)``, with its `rawValue`.
    public enum CloseCode: RawRepresentable, Hashable, Sendable {
        /// It is not closed.
        case invalid
        case normalClosure
        case goingAway
        case protocolError
        case unsupportedData
        /// Closed without a code.
        case noStatusReceived
        /// The connection broke.
        case abnormalClosure
        case invalidFramePayloadData
        case policyViolation
        case messageTooBig
        case mandatoryExtensionMissing
        case internalServerError
        case tlsHandshakeFailure
        /// A number without a name here.
        case other(Int)

        private static let named: [CloseCode] = [
            .invalid, .normalClosure, .goingAway, .protocolError, .unsupportedData, .noStatusReceived, .abnormalClosure,
            .invalidFramePayloadData, .policyViolation, .messageTooBig, .mandatoryExtensionMissing, .internalServerError,
            .tlsHandshakeFailure,
        ]

        /// Never `nil`.
        public init?(rawValue: Int) { self = Self.named.first { $0.rawValue == rawValue } ?? .other(rawValue) }

        /// The number, as it goes over the wire.
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

    /// What is sent and received.
    public enum Message: Sendable {
        case data(Data)
        case string(String)
    }

    let exchange = WebSocketExchange()

    init(session: URLSession, request: URLRequest) { super.init(session: session, request: request) }

    // MARK: Messages

    /// Sends a message, after those before.
    ///
    /// - Throws: `URLError`: `.networkConnectionLost` where the socket is closed or lost, or what else ended the task; `.cancelled` when the awaiting
    ///   task is cancelled: the message may be sent all the same.
    open func send(_ message: Message) async throws {
        try await answered { exchange.send(message.onWire, $0) }
    }

    /// The same; the handler is called on the session's delegate queue when the message is with the system, whole.
    @preconcurrency open func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
        exchange.send(message.onWire) { [self] error in post { completionHandler(error) } }
    }

    /// The next message. Those that come unasked are kept, up to a megabyte of them: then the server is made to wait.
    ///
    /// - Throws: `URLError`: `.networkConnectionLost` where the socket is closed or lost and every message was given out, or what else ended the
    ///   task; `.dataLengthExceedsMaximum` after a message above ``maximumMessageSize``; `.cancelled` when the awaiting task is cancelled, which
    ///   loses no message (differs from Apple, where it has no effect).
    open func receive() async throws -> Message {
        let number = exchange.reserve()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (done: CheckedContinuation<Message, any Error>) in
                exchange.receive(number) { done.resume(with: $0.map(Message.init(onWire:)).mapError { $0 as any Error }) }
                // A cancellation that came first found nobody.
                if Task.isCancelled { exchange.giveUp(number) }
            }
        } onCancel: {
            exchange.giveUp(number)
        }
    }

    /// The same; the handler is called on the session's delegate queue.
    @preconcurrency open func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
        exchange.receive { [self] result in
            let result = result.map(Message.init(onWire:)).mapError { $0 as any Error }
            post { completionHandler(result) }
        }
    }

    /// Asks the server for a sign of life. The handler is called on the session's delegate queue when it came, or with what ended the task.
    @preconcurrency open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
        exchange.ping { [self] error in post { pongReceiveHandler(error) } }
    }

    /// Asks the server for a sign of life, and waits for it.
    ///
    /// - Throws: `URLError`: what ended the task before; `.cancelled` when the awaiting task is cancelled.
    open func sendPing() async throws {
        try await answered { exchange.ping($0) }
    }

    /// Waits for an answer, or until the awaiting task is cancelled.
    private func answered(_ ask: (@escaping @Sendable ((any Error)?) -> Void) -> Void) async throws {
        let answer = AwaitedAnswer()
        ask { answer.give($0) }
        try await withTaskCancellationHandler {
            try await answer.wait()
        } onCancel: {
            answer.give(URLError(.cancelled))
        }
    }

    /// Bytes of a message that is received, at most; 1 MiB. A longer one ends the task, and the server is told why.
    open var maximumMessageSize: Int {
        get { exchange.maximumMessageSize }
        set { exchange.maximumMessageSize = newValue }
    }

    // MARK: The end

    /// Says the end to the server, after what was sent before, and ends when the server has said so too; ten seconds later at the latest. The task
    /// then has no error. Before the socket is open it is the same as `cancel()`.
    ///
    /// - Parameters:
    ///   - closeCode: those that the protocol lets nobody send (``CloseCode/invalid``, ``CloseCode/noStatusReceived``,
    ///     ``CloseCode/abnormalClosure``, ``CloseCode/tlsHandshakeFailure``) are left out on the wire, and the reason with them.
    ///   - reason: UTF-8; what is above 123 bytes is cut off.
    open func cancel(with closeCode: CloseCode, reason: Data?) {
        guard let engine = session.engine as? OrdinarySession else { return cancel() }
        engine.close(self, closeCode.rawValue, reason ?? Data())
    }

    /// Why it was closed: what was said first, by either side. ``CloseCode/invalid`` until then, and where there never was an open socket.
    open var closeCode: CloseCode { CloseCode(rawValue: exchange.closing.code) ?? .invalid }

    /// What was said with the code.
    open var closeReason: Data? { exchange.closing.reason }

    /// On the delegate's queue, in order.
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
