import Foundation
import Testing

@testable import TransferMachines

/// Returns a frame of a server. The properties of the frame may be invalid.
private func frame(
    _ opcode: UInt8, _ payload: Data, isFinal: Bool = true, bits: UInt8 = 0, lengthBytes: Int? = nil, isMasked: Bool = false
) -> Data {
    var bytes = Data([opcode | (isFinal ? 0x80 : 0) | bits])
    let width = lengthBytes ?? (payload.count <= 125 ? 0 : payload.count <= 0xFFFF ? 2 : 8)
    let mark: UInt8 = isMasked ? 0x80 : 0
    bytes.append(mark | (width == 0 ? UInt8(payload.count) : width == 2 ? 126 : 127))
    for place in stride(from: width - 1, through: 0, by: -1) { bytes.append(UInt8(payload.count >> (8 * place) & 0xFF)) }
    return bytes + (isMasked ? Data([0, 0, 0, 0]) : Data()) + payload
}

private func frame(_ opcode: UInt8, _ text: String, isFinal: Bool = true) -> Data {
    frame(opcode, Data(text.utf8), isFinal: isFinal)
}

private func closing(_ code: Int, _ reason: String = "") -> Data {
    frame(0x8, Data([UInt8(code >> 8), UInt8(code & 0xFF)]) + Data(reason.utf8))
}

private let key = "dGhlIHNhbXBsZSBub25jZQ=="
/// The accept key of the example in RFC 6455, 1.3.
private let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

private func handshake(_ url: String = "http://example.org/chat?x=1", _ headers: [HeaderField] = []) -> WebSocketHandshake {
    WebSocketHandshake(url: url, headers: headers, key: key) { $0 == key ? accept : "" }
}

private func answer(_ changes: [String: String?] = [:], status: String = "101 Switching Protocols") -> Data {
    var fields: [String: String] = ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept]
    for (name, value) in changes { fields[name] = value }
    let lines = ["HTTP/1.1 \(status)"] + fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    return Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
}

private let offering = [HeaderField("Sec-WebSocket-Protocol", "chat, soap")]

private func asking(_ headers: [HeaderField] = [], size: Int = 1 << 20) -> WebSocketMachine {
    var machine = WebSocketMachine(handshake("http://example.org/", headers), maximumMessageSize: size)
    _ = machine.connected()
    return machine
}

private func opened(size: Int = 1 << 20) -> WebSocketMachine {
    var machine = asking(size: size)
    _ = machine.received(answer())
    return machine
}

extension [WebSocketMachine.Command] {
    fileprivate var refusal: WebSocketHandshake.Refusal? {
        if case .failed(.refused(let refusal))? = last, count == 1 { refusal } else { nil }
    }

    /// The kind of the broken rule if both the server and the app receive the code of this rule; otherwise `nil`.
    fileprivate var brokenRule: WebSocketMachine.BrokenRule.Kind? {
        guard count >= 2, case .failed(.brokenRule(let rule)) = self[count - 1],
            case .transmit(let frame) = self[count - 2], frame.opcode == .close,
            frame.payload == Data([UInt8(rule.kind.code >> 8), UInt8(rule.kind.code & 0xFF)])
        else { return nil }
        return rule.kind
    }
}

@Suite struct WebSocketHandshakeTests {
    @Test func `the handshake request follows RFC 6455`() throws {
        let own = [
            HeaderField("Origin", "http://example.org"), HeaderField("Content-Length", "5"), HeaderField("Upgrade", "h2c"),
            HeaderField("Sec-WebSocket-Extensions", "permessage-deflate"), HeaderField("sec-websocket-protocol", "chat, soap"),
        ]
        let text = String(decoding: handshake("http://user:pass%20word@example.org:8080/a%20b?q=%2F", own).request, as: UTF8.self)
        #expect(
            text.components(separatedBy: "\r\n") == [
                "GET /a%20b?q=%2F HTTP/1.1", "Host: example.org:8080", "Upgrade: websocket", "Connection: Upgrade",
                "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: chat, soap",
                "Authorization: Basic dXNlcjpwYXNzIHdvcmQ=", "Origin: http://example.org", "", "",
            ])
    }

    @Test(arguments: [
        ("https://example.org:443", "example.org", "/"), ("http://[::1]:80/", "[::1]", "/"), ("http://a:443/x", "a:443", "/x"),
    ])
    func `the Host header has the port unless it is the default`(_ url: String, _ host: String, _ path: String) {
        let lines = String(decoding: handshake(url).request, as: UTF8.self).components(separatedBy: "\r\n")
        #expect(lines[0] == "GET \(path) HTTP/1.1" && lines[1] == "Host: \(host)")
    }

    @Test func `a valid key of the app is used`() {
        let other = Data(repeating: 7, count: 16).base64EncodedString()
        #expect(handshake("http://a/", [HeaderField("Sec-WebSocket-Key", other)]).key == other)
        #expect(handshake("http://a/", [HeaderField("Sec-WebSocket-Key", "short")]).key == key)
        #expect(WebSocketHandshake.proof(of: key) == Data((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
    }

    @Test func `a valid handshake response is accepted`() {
        for (changes, headers, chosen) in [
            ([:], [], nil), (["Sec-WebSocket-Protocol": "soap"], offering, "soap"), ([:], offering, nil),
            (["Upgrade": "WebSocket", "Connection": "keep-alive, upgrade"], [], nil), (["Sec-WebSocket-Extensions": ""], [], nil),
        ] as [([String: String?], [HeaderField], String?)] {
            var machine = asking(headers)
            let commands = machine.received(answer(changes))
            guard case .opened(let subprotocol, let head)? = commands.first, commands.count == 1 else {
                Issue.record("\(changes): \(commands)")
                continue
            }
            #expect(subprotocol == chosen && head.status == 101 && machine.isOpen)
        }
    }

    @Test(
        arguments: [
            ["Upgrade": nil], ["Upgrade": "h2c"], ["Connection": nil], ["Connection": "close"], ["Sec-WebSocket-Accept": nil],
            ["Sec-WebSocket-Accept": "wrong"], ["Sec-WebSocket-Accept": accept.lowercased()],
            ["Sec-WebSocket-Extensions": "permessage-deflate"], ["Sec-WebSocket-Protocol": "other"],
            ["Sec-WebSocket-Protocol": "chat, soap"],
        ] as [[String: String?]])
    func `an invalid handshake response is refused`(_ changes: [String: String?]) {
        var machine = asking(offering)
        #expect(machine.received(answer(changes)).refusal?.head?.status == 101)
        #expect(machine.isOver && machine.received(frame(0x1, "late")) == [])
    }

    @Test func `a response that is not a WebSocket handshake is refused`() {
        var plain = asking()
        #expect(plain.received(answer(status: "403 Forbidden")).refusal?.head?.status == 403)
        for text in ["SSH-2.0-x\r\n", "HTTP/2 101\r\n\r\n", "HTTP/1.1 what\r\n\r\n", "HTTP/1.1\r\n\r\n"] {
            var machine = asking()
            #expect(machine.received(Data(text.utf8)).refusal?.head == nil && machine.isOver, "\(text)")
        }
        var endless = asking()
        #expect(endless.received(Data("HTTP/1.1 101 x\r\n".utf8)) == [])
        #expect(endless.received(Data(repeating: 0x41, count: WebSocketHandshake.headLimit)).refusal != nil)
        var silent = asking()
        #expect(silent.ended(isOrderly: true) == [.failed(.noAnswer)])
    }

    @Test func `interim responses and early messages are read`() {
        var machine = asking()
        let bytes = Data("HTTP/1.1 103 Early\r\nLink: x\r\n\r\n".utf8) + answer() + frame(0x1, "hi")
        let commands = machine.received(bytes)
        #expect(commands.count == 2 && commands.last == .deliver(.text("hi")))
    }
}

@Suite struct WebSocketMachineTests {
    // MARK: Frames

    @Test func `frames of the client are masked`() {
        #expect(
            WebSocketFrame(.text, Data("Hello".utf8)).bytes(mask: 0x37FA_213D)
                == Data([
                    0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58,
                ]))
        #expect(Array(WebSocketFrame(.ping).bytes(mask: 1)) == [0x89, 0x80, 0, 0, 0, 1])
        for (count, head) in [
            (125, [0x82, 0xFD]), (126, [0x82, 0xFE, 0, 126]), (0xFFFF, [0x82, 0xFE, 0xFF, 0xFF]),
            (0x1_0000, [0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] as [(Int, [UInt8])] {
            let bytes = WebSocketFrame(.binary, Data(count: count)).bytes(mask: 0)
            #expect(Array(bytes.prefix(head.count)) == head && bytes.count == head.count + 4 + count)
        }
    }

    @Test(arguments: [0, 1, 125, 126, 127, 0xFFFF, 0x1_0000, 300_000]) func `every payload length is read`(_ count: Int) {
        let payload = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) })
        for width in [0, 2, 8] where width == 8 || (width == 2 ? count <= 0xFFFF : count <= 125) {
            var machine = opened()
            // A length field may use more bytes than the length requires.
            #expect(machine.received(frame(0x2, payload, lengthBytes: width)) == [.deliver(.binary(payload))])
        }
    }

    @Test func `parts of a message are joined around control frames`() {
        var machine = opened()
        let bytes =
            frame(0x1, "Hel", isFinal: false) + frame(0x9, "you") + frame(0x0, "", isFinal: false) + frame(0xA, "nobody asked")
            + frame(0x0, "lo") + frame(0x2, Data([0xFF]))
        #expect(
            machine.received(bytes) == [
                .transmit(WebSocketFrame(.pong, Data("you".utf8))), .deliver(.text("Hello")), .deliver(.binary(Data([0xFF]))),
            ])
    }

    /// A character may be split between two parts of a message.
    @Test func `text is validated after its parts are joined`() {
        var machine = opened()
        let bytes = Array("é".utf8)
        #expect(
            machine.received(frame(0x1, Data(bytes[..<1]), isFinal: false) + frame(0x0, Data(bytes[1...]))) == [
                .deliver(.text("é"))
            ])
        #expect(machine.received(frame(0x1, Data(bytes[..<1]))).brokenRule == .invalidPayload)
        #expect(machine.isOver)
    }

    @Test(arguments: [
        frame(0x1, Data(), bits: 0x40), frame(0x1, Data(), bits: 0x20), frame(0x2, Data(), bits: 0x10), frame(0x3, ""),
        frame(0x7, ""), frame(0xB, ""), frame(0xF, ""), frame(0x1, Data("x".utf8), isMasked: true), frame(0x0, "no message"),
        frame(0x1, "a", isFinal: false) + frame(0x1, "b"), frame(0x1, "a", isFinal: false) + frame(0x2, "b", isFinal: false),
        frame(0x9, "", isFinal: false), frame(0x8, "", isFinal: false), frame(0x9, Data(count: 126)),
        frame(0xA, Data(count: 70_000)),
        Data([0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]), frame(0x8, Data([3])), closing(999), closing(1004), closing(1005),
        closing(1006), closing(1015), closing(1016), closing(2999), closing(5000), closing(0),
    ])
    func `a frame that violates the protocol ends the connection`(_ bytes: Data) {
        var machine = opened()
        #expect(machine.received(bytes).brokenRule == .protocolError)
        #expect(machine.isOver && machine.received(frame(0x1, "late")) == [] && machine.ended(isOrderly: true) == [])
    }

    @Test func `a message that is too long is refused by its announced length`() {
        var exact = opened(size: 10)
        #expect(exact.received(frame(0x2, Data(count: 10))) == [.deliver(.binary(Data(count: 10)))])
        // The header of the frame already shows that the message is too big.
        #expect(exact.received(frame(0x2, Data(count: 11)).prefix(2)).brokenRule == .tooBig)
        var parts = opened(size: 10)
        #expect(parts.received(frame(0x2, Data(count: 6), isFinal: false)) == [])
        #expect(parts.received(frame(0x0, Data(count: 5)).prefix(2)).brokenRule == .tooBig)
        var changed = opened(size: 10)
        changed.maximumMessageSize = 11
        #expect(changed.received(frame(0x2, Data(count: 11))) == [.deliver(.binary(Data(count: 11)))])
        var endless = opened()
        #expect(endless.received(Data([0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])).brokenRule == .tooBig)
    }

    // MARK: Requests of the app

    @Test func `messages and pings are sent only while the connection is open`() {
        var machine = asking()
        #expect(machine.send(.text("early")) == [] && machine.ping(1) == [] && machine.close(code: 1000, reason: Data()) == [])
        #expect(machine.connected() == [])
        _ = machine.received(answer())
        #expect(machine.send(.text("é")) == [.transmit(WebSocketFrame(.text, Data("é".utf8)))])
        #expect(machine.send(.binary(Data([1]))) == [.transmit(WebSocketFrame(.binary, Data([1])))])
        #expect(machine.ping(7) == [.transmit(WebSocketFrame(.ping))] && machine.ping(8) == [.transmit(WebSocketFrame(.ping))])
        #expect(machine.received(frame(0xA, "") + frame(0xA, "") + frame(0xA, "")) == [.answered(ping: 7), .answered(ping: 8)])
    }

    // MARK: The end

    @Test(arguments: [1000, 1001, 1003, 1007, 1014, 3000, 4999])
    func `a close by the server is answered and reported`(_ code: Int) {
        var machine = opened()
        let payload = Data([UInt8(code >> 8), UInt8(code & 0xFF)]) + Data("why".utf8)
        #expect(
            machine.received(closing(code, "why") + frame(0x1, "late")) == [
                .transmit(WebSocketFrame(.close, payload)), .closed(code: code, reason: Data("why".utf8)),
            ])
        #expect(machine.isOver && machine.ended(isOrderly: true) == [] && machine.send(.text("late")) == [])
    }

    @Test func `a close without a code is reported as no status`() {
        var machine = opened()
        #expect(
            machine.received(frame(0x8, "")) == [
                .transmit(WebSocketFrame(.close)), .closed(code: WebSocketMachine.Code.noStatus, reason: Data()),
            ])
        var bad = opened()
        #expect(bad.received(frame(0x8, Data([3, 0xE8, 0xFF]))).brokenRule == .invalidPayload)
    }

    @Test func `a close by the app is sent once and reported with its code`() {
        var machine = opened()
        let frames = machine.close(code: 1001, reason: Data("bye".utf8))
        #expect(frames == [.transmit(WebSocketFrame(.close, Data([3, 0xE9]) + Data("bye".utf8)))])
        #expect(machine.isClosing && machine.close(code: 1000, reason: Data()) == [] && machine.send(.text("x")) == [])
        // Later frames are not delivered, but they must be valid.
        let late = frame(0x1, "a", isFinal: false) + frame(0x9, "") + frame(0x0, "b")
        #expect(machine.received(late) == [])
        #expect(machine.received(closing(4000, "other")) == [.closed(code: 1001, reason: Data("bye".utf8))])
        var lost = opened()
        _ = lost.close(code: 1000, reason: Data())
        #expect(lost.ended(isOrderly: false) == [.closed(code: 1000, reason: Data())])
        var broken = opened()
        _ = broken.close(code: 1000, reason: Data())
        // A close frame is sent only once.
        guard case .failed(.brokenRule)? = broken.received(frame(0x3, "")).first else {
            Issue.record("no failure")
            return
        }
    }

    @Test(arguments: [0, 999, 1005, 1006, 1015, 2000, 70_000, -1]) func `an invalid close code is left out`(_ code: Int) {
        var machine = opened()
        #expect(machine.close(code: code, reason: Data("why".utf8)) == [.transmit(WebSocketFrame(.close))])
    }

    @Test func `a long close reason is cut between characters`() {
        var machine = opened()
        let reason = String(repeating: "a", count: 122) + "é" + "b"
        let cut = Data(String(repeating: "a", count: 122).utf8)
        #expect(
            machine.close(code: 1000, reason: Data(reason.utf8)) == [.transmit(WebSocketFrame(.close, Data([3, 0xE8]) + cut))])
        var odd = opened()
        #expect(odd.close(code: 1000, reason: Data([0xFF])) == [.transmit(WebSocketFrame(.close, Data([3, 0xE8])))])
    }

    @Test(arguments: [true, false]) func `a lost connection is reported once`(_ isOrderly: Bool) {
        var machine = opened()
        #expect(machine.ended(isOrderly: isOrderly) == [.failed(.lost(isOrderly: isOrderly))])
        #expect(machine.ended(isOrderly: isOrderly) == [])
    }

    // MARK: Pieces

    @Test(arguments: 0..<200) func `the result does not depend on how the stream is cut`(_ seed: Int) {
        var random = Seeded(state: UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1)
        var bytes = Int.random(in: 0..<4, using: &random) == 0 ? Data("HTTP/1.1 100 Continue\r\n\r\n".utf8) : Data()
        bytes += answer(Int.random(in: 0..<8, using: &random) == 0 ? ["Upgrade": nil] : [:])
        for _ in 0..<Int.random(in: 1..<12, using: &random) { bytes += Self.anything(&random) }
        func commands(_ pieces: [Data]) -> [WebSocketMachine.Command] {
            var machine = asking(size: 2000)
            return pieces.flatMap { machine.received($0) } + machine.ended(isOrderly: true)
        }
        let whole = commands([bytes])
        #expect(commands(bytes.map { Data([$0]) }) == whole)
        for _ in 0..<10 {
            var (pieces, rest) = ([Data](), bytes)
            while !rest.isEmpty {
                let count = min(rest.count, Int.random(in: 1...(Bool.random(using: &random) ? 3 : 500), using: &random))
                // The piece is a slice of the data, because callers may pass slices.
                pieces.append(rest.prefix(count))
                rest = rest.dropFirst(count)
            }
            #expect(commands(pieces) == whole)
        }
    }

    private static func anything(_ random: inout Seeded) -> Data {
        let size = [0, 1, 5, 125, 126, 600, 1999].randomElement(using: &random) ?? 0
        switch Int.random(in: 0..<24, using: &random) {
        case 0: return closing(1000, "bye")
        case 1: return frame(0x3, "")
        case 2: return frame(0x2, Data(count: 2001))
        case 3: return frame(0x1, Data([0xC3]))
        case 4...7: return frame(0x9, Data(count: min(size, 125)))
        case 8...10: return frame(0xA, Data(count: min(size, 125)))
        case 11...15:
            let text = String(repeating: "é", count: size / 4)
            let bytes = Array(text.utf8)
            let middle = bytes.count / 2
            return frame(0x1, Data(bytes[..<middle]), isFinal: false) + frame(0x9, "p") + frame(0x0, Data(bytes[middle...]))
        case 16...19: return frame(0x1, String(repeating: "t", count: size))
        default: return frame(0x2, Data(repeating: 0xFE, count: size))
        }
    }
}

private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }
}
