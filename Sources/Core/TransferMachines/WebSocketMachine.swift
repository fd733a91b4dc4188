import Foundation

/// The states of a web socket on the client's side, from the handshake to the end. RFC 6455 defines the rules.
///
/// The machine receives the server's bytes and the app's calls. The machine returns frames to send, and events. The machine has
/// no connection and no random numbers, so the caller masks the frames.
package struct WebSocketMachine: Sendable {
    package enum Message: Equatable, Sendable {
        case text(String)
        case binary(Data)

        /// The number of bytes of the payload.
        package var byteCount: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .binary(let data): data.count
            }
        }
    }

    /// The close codes, which announce the end of a web socket. RFC 6455, section 7.4.1, defines these codes.
    package enum Code {
        package static let normal = 1000
        package static let protocolError = 1002
        package static let noStatus = 1005
        package static let invalidPayload = 1007
        package static let tooBig = 1009

        /// Returns whether the protocol permits sending a code. The result is `true` for codes that are registered with the IANA,
        /// and for the codes of apps.
        package static func isSendable(_ code: Int) -> Bool {
            [1000...1003, 1007...1014, 3000...4999].contains { $0.contains(code) }
        }
    }

    /// A violation of the protocol by the server.
    package struct BrokenRule: Error, Equatable, Sendable {
        package enum Kind: Sendable {
            case protocolError
            case invalidPayload
            case tooBig

            package var code: Int {
                switch self {
                case .protocolError: Code.protocolError
                case .invalidPayload: Code.invalidPayload
                case .tooBig: Code.tooBig
                }
            }
        }

        package var kind: Kind
        package var why: String

        package init(_ kind: Kind, _ why: String) { (self.kind, self.why) = (kind, why) }
    }

    package enum Failure: Equatable, Sendable {
        /// The response to the handshake did not open a web socket.
        case refused(WebSocketHandshake.Refusal)
        /// The connection ended before the server responded.
        case noAnswer
        case brokenRule(BrokenRule)
        /// The connection ended without a close frame.
        ///
        /// - Parameter isOrderly: `true` if the server closed the connection, and `false` if the connection was lost.
        case lost(isOrderly: Bool)
    }

    package enum Command: Equatable, Sendable {
        /// Send the bytes of the handshake unchanged.
        case ask(Data)
        /// Mask and send a frame.
        case transmit(WebSocketFrame)
        case opened(subprotocol: String?, ResponseHead)
        case deliver(Message)
        /// The server responded to the ping with this number.
        case answered(ping: Int)
        /// The web socket is closed: the caller sends the pending frames and then ends the connection.
        ///
        /// - Parameters: code: ``Code/noStatus`` if the close frame has no code.
        case closed(code: Int, reason: Data)
        case failed(Failure)
    }

    private enum State {
        case fresh
        case requesting
        case open(Assembly?)
        /// The client announced the end and waits for the server's close frame. The parts of a message must still follow the
        /// protocol.
        case closing(Assembly?, code: Int, reason: Data)
        case over
    }

    /// A message whose parts are arriving.
    private struct Assembly {
        var isText: Bool
        var bytes: Data
    }

    /// The maximum number of bytes of a message. Frames announce their length, so a longer message is refused before its content
    /// arrives.
    package var maximumMessageSize: Int
    private let handshake: WebSocketHandshake
    private var state = State.fresh
    /// The received bytes that were not processed yet.
    private var pending = Data()
    /// The numbers of the pings without a response, from the oldest to the newest.
    private var pings: [Int] = []

    package init(_ handshake: WebSocketHandshake, maximumMessageSize: Int) {
        (self.handshake, self.maximumMessageSize) = (handshake, maximumMessageSize)
    }

    package var isOpen: Bool { if case .open = state { true } else { false } }
    package var isClosing: Bool { if case .closing = state { true } else { false } }
    package var isOver: Bool { if case .over = state { true } else { false } }

    // MARK: Requests

    /// Starts the handshake. Call this method after the connection is established.
    package mutating func connected() -> [Command] {
        guard case .fresh = state else { return [] }
        state = .requesting
        return [.ask(handshake.request)]
    }

    /// Sends a message if the web socket is open.
    package mutating func send(_ message: Message) -> [Command] {
        guard case .open = state else { return [] }
        return switch message {
        case .text(let text): [.transmit(WebSocketFrame(.text, Data(text.utf8)))]
        case .binary(let data): [.transmit(WebSocketFrame(.binary, data))]
        }
    }

    /// Sends a ping if the web socket is open.
    ///
    /// - Parameter number: A number that is reported with the response. All pings have the same content, so each response belongs
    ///   to the oldest ping.
    package mutating func ping(_ number: Int) -> [Command] {
        guard case .open = state else { return [] }
        pings.append(number)
        return [.transmit(WebSocketFrame(.ping))]
    }

    /// Sends a close frame if the web socket is open.
    ///
    /// - Parameters:
    ///   - code: The close code. If the protocol does not permit sending this code, the code and the reason are not sent.
    ///   - reason: The reason in UTF-8. At most 123 bytes of the reason are sent.
    package mutating func close(code: Int, reason: Data) -> [Command] {
        guard case .open(let assembly) = state else { return [] }
        let reason = Self.fitting(reason)
        state = .closing(assembly, code: code, reason: reason)
        return [.transmit(Self.closeFrame(code, reason))]
    }

    /// Handles the end of the connection.
    ///
    /// - Parameter isOrderly: `true` if the server closed the connection, and `false` if the connection was lost.
    package mutating func ended(isOrderly: Bool) -> [Command] {
        defer { state = .over }
        return switch state {
        case .fresh, .requesting: [.failed(.noAnswer)]
        case .open: [.failed(.lost(isOrderly: isOrderly))]
        case .closing(_, let code, let reason): [.closed(code: code, reason: reason)]
        case .over: []
        }
    }

    // MARK: Bytes

    package mutating func received(_ bytes: Data) -> [Command] {
        if case .over = state { return [] }
        pending.append(bytes)
        var commands: [Command] = []
        if case .requesting = state {
            do {
                guard let head = try handshake.answer(in: &pending) else { return [] }
                let chosen = try handshake.judge(head)
                state = .open(nil)
                commands.append(.opened(subprotocol: chosen, head))
            } catch {
                state = .over
                return [.failed(.refused(error))]
            }
        }
        do {
            while let frame = try nextFrame() { commands += try handle(frame) }
        } catch {
            // If the client already announced the end, it does not send a second close frame.
            if case .open = state { commands.append(.transmit(Self.closeFrame(error.kind.code, Data()))) }
            state = .over
            commands.append(.failed(.brokenRule(error)))
        }
        // The memory of the processed bytes is freed.
        if case .over = state { pending = Data() } else if pending.startIndex != 0 { pending = Data(pending) }
        return commands
    }

    private mutating func nextFrame() throws(BrokenRule) -> WebSocketFrame? {
        let assembly: Assembly?
        switch state {
        case .open(let begun), .closing(let begun, _, _): assembly = begun
        case .fresh, .requesting, .over: return nil
        }
        guard let header = try WebSocketFrame.header(in: pending) else { return nil }
        if !header.opcode.isControl {
            guard (header.opcode == .continuation) == (assembly != nil) else {
                throw .init(
                    .protocolError,
                    assembly == nil
                        ? "a frame continues a message that did not begin" : "a message begins inside another message")
            }
            guard header.payloadCount <= maximumMessageSize - (assembly?.bytes.count ?? 0) else {
                throw .init(.tooBig, "a message has more than \(maximumMessageSize) bytes")
            }
        }
        guard pending.count - header.byteCount >= header.payloadCount else { return nil }
        let payload = pending.dropFirst(header.byteCount).prefix(header.payloadCount)
        defer { pending = pending.dropFirst(header.byteCount + header.payloadCount) }
        return WebSocketFrame(header.opcode, Data(payload), isFinal: header.isFinal)
    }

    private mutating func handle(_ frame: WebSocketFrame) throws(BrokenRule) -> [Command] {
        switch frame.opcode {
        case .ping:
            if case .closing = state { return [] }
            return [.transmit(WebSocketFrame(.pong, frame.payload))]
        case .pong:
            // The client's pings have no payload. So a pong with a payload is not a response to these pings.
            guard frame.payload.isEmpty, !pings.isEmpty else { return [] }
            return [.answered(ping: pings.removeFirst())]
        case .close: return try handleCloseFrame(frame.payload)
        case .text, .binary: return try handle(Assembly(isText: frame.opcode == .text, bytes: frame.payload), frame.isFinal)
        case .continuation:
            switch state {
            case .open(var assembly?):
                // The state gives up its reference to the received bytes first, because Swift would otherwise copy all these
                // bytes for each part.
                state = .open(nil)
                assembly.bytes.append(frame.payload)
                return try handle(assembly, frame.isFinal)
            case .closing(var assembly?, let code, let reason):
                state = .closing(nil, code: code, reason: reason)
                assembly.bytes.append(frame.payload)
                return try handle(assembly, frame.isFinal)
            case .open(nil), .closing(nil, _, _), .fresh, .requesting, .over: return []
            }
        }
    }

    private mutating func handle(_ assembly: Assembly, _ isWhole: Bool) throws(BrokenRule) -> [Command] {
        let message = isWhole ? try Self.message(assembly) : nil
        if case .closing(_, let code, let reason) = state {
            // The client already announced the end, so the app receives no more messages.
            state = .closing(isWhole ? nil : assembly, code: code, reason: reason)
            return []
        }
        state = .open(isWhole ? nil : assembly)
        return message.map { [.deliver($0)] } ?? []
    }

    private static func message(_ assembly: Assembly) throws(BrokenRule) -> Message {
        guard assembly.isText else { return .binary(assembly.bytes) }
        guard let text = String(validating: assembly.bytes, as: UTF8.self) else {
            throw .init(.invalidPayload, "a text is not UTF-8")
        }
        return .text(text)
    }

    private mutating func handleCloseFrame(_ payload: Data) throws(BrokenRule) -> [Command] {
        guard payload.count != 1 else { throw .init(.protocolError, "the close code is incomplete") }
        let bytes = Array(payload)
        let code = bytes.isEmpty ? Code.noStatus : Int(bytes[0]) << 8 | Int(bytes[1])
        let reason = Data(bytes.dropFirst(2))
        guard bytes.isEmpty || Code.isSendable(code) else { throw .init(.protocolError, "the close code \(code) is not allowed") }
        guard String(validating: reason, as: UTF8.self) != nil else {
            throw .init(.invalidPayload, "the close reason is not UTF-8")
        }
        defer { state = .over }
        // Only the close code that was announced first is reported.
        if case .closing(_, let said, let ownReason) = state { return [.closed(code: said, reason: ownReason)] }
        return [.transmit(WebSocketFrame(.close, payload)), .closed(code: code, reason: reason)]
    }

    private static func closeFrame(_ code: Int, _ reason: Data) -> WebSocketFrame {
        guard Code.isSendable(code) else { return WebSocketFrame(.close) }
        return WebSocketFrame(.close, Data([UInt8(code >> 8), UInt8(code & 0xFF)]) + reason)
    }

    /// Returns the reason without the characters that exceed the limit. The cut is never inside a character. Returns empty data
    /// if the reason is not UTF-8.
    private static func fitting(_ reason: Data) -> Data {
        let limit = WebSocketFrame.controlLimit - 2
        guard let text = String(validating: reason, as: UTF8.self) else { return Data() }
        guard reason.count > limit else { return reason }
        var (kept, count) = (String.UnicodeScalarView(), 0)
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            guard count <= limit else { break }
            kept.append(scalar)
        }
        return Data(String(kept).utf8)
    }
}
