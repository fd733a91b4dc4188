import Foundation

/// A frame of the WebSocket protocol. RFC 6455, section 5, defines the rules.
package struct WebSocketFrame: Equatable, Sendable {
    package enum Opcode: UInt8, Sendable {
        case continuation = 0x0
        case text = 0x1
        case binary = 0x2
        case close = 0x8
        case ping = 0x9
        case pong = 0xA

        /// `true` if the frame is a control frame. A control frame is small and is not split. A control frame can be sent between
        /// the parts of a message.
        var isControl: Bool { rawValue >= 0x8 }
    }

    /// The maximum number of bytes of a control frame.
    static let controlLimit = 125

    package var opcode: Opcode
    /// `true` if the frame is the last frame of its message.
    package var isFinal: Bool
    package var payload: Data

    package init(_ opcode: Opcode, _ payload: Data = Data(), isFinal: Bool = true) {
        (self.opcode, self.payload, self.isFinal) = (opcode, payload, isFinal)
    }

    /// Returns the bytes of the frame that a client sends.
    ///
    /// - Parameter mask: An unpredictable value, which must be new for each frame.
    package func bytes(mask: UInt32) -> Data {
        var bytes = Data(capacity: payload.count + 14)
        bytes.append(opcode.rawValue | (isFinal ? 0x80 : 0))
        switch payload.count {
        case ...125: bytes.append(UInt8(payload.count) | 0x80)
        case ...0xFFFF:
            bytes.append(126 | 0x80)
            Self.append(UInt16(payload.count), to: &bytes)
        default:
            bytes.append(127 | 0x80)
            Self.append(UInt64(payload.count), to: &bytes)
        }
        Self.append(mask, to: &bytes)
        let start = bytes.count
        bytes.append(payload)
        bytes.withUnsafeMutableBytes { bytes in
            for index in start..<bytes.count {
                bytes[index] ^= UInt8(truncatingIfNeeded: mask >> (24 - 8 * ((index - start) % 4)))
            }
        }
        return bytes
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout Data) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
}

extension WebSocketFrame {
    /// The header of a server's frame. The header is sent before the payload.
    struct Header: Equatable {
        var opcode: Opcode
        var isFinal: Bool
        /// The number of bytes of this header.
        var byteCount: Int
        var payloadCount: Int
    }

    /// Returns the header, or `nil` if the header is not complete yet.
    ///
    /// The length may be encoded in more bytes than necessary, because this does no harm.
    /// - Throws: ``WebSocketMachine/BrokenRule`` as soon as the available bytes violate a rule.
    static func header(in bytes: Data) throws(WebSocketMachine.BrokenRule) -> Header? {
        let start = bytes.startIndex
        guard let first = bytes.first else { return nil }
        guard first & 0x70 == 0 else { throw .init(.protocolError, "a reserved bit is set, and no extension was agreed on") }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw .init(.protocolError, "the opcode of a frame is unknown") }
        let isFinal = first & 0x80 != 0
        guard isFinal || !opcode.isControl else { throw .init(.protocolError, "a control frame is split into parts") }
        guard bytes.count >= 2 else { return nil }
        let second = bytes[start + 1]
        guard second & 0x80 == 0 else { throw .init(.protocolError, "a server's frame is masked") }
        let short = Int(second & 0x7F)
        guard short <= controlLimit || !opcode.isControl else { throw .init(.protocolError, "a control frame is too long") }
        let width = short == 126 ? 2 : short == 127 ? 8 : 0
        guard bytes.count >= 2 + width else { return nil }
        if width == 0 { return Header(opcode: opcode, isFinal: isFinal, byteCount: 2, payloadCount: short) }
        let count = bytes[(start + 2)..<(start + 2 + width)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let payloadCount = Int(exactly: count) else { throw .init(.protocolError, "the length of a frame is not valid") }
        return Header(opcode: opcode, isFinal: isFinal, byteCount: 2 + width, payloadCount: payloadCount)
    }
}
