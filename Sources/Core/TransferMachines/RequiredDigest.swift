import Foundation

/// A digest that a whole file must have before it counts as whole: the asker's own, or one that the server announced.
package struct RequiredDigest: Equatable, Sendable {
    package enum Algorithm: Equatable, Sendable {
        case sha256
        case sha512
        case md5
    }

    package var algorithm: Algorithm
    package var bytes: [UInt8]
    /// Where it is from: a header's name; `nil`: whoever asked for the file knew it.
    package var header: String?

    package init(algorithm: Algorithm, bytes: [UInt8], header: String?) {
        self.algorithm = algorithm
        self.bytes = bytes
        self.header = header
    }

    /// `nil`: not 64 hex digits.
    package init?(askedSHA256 hex: String) {
        let digits = Array(hex.utf8)
        guard digits.count == 64 else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: 64, by: 2) {
            guard let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16),
                digits[index] != 0x2B, digits[index] != 0x2D
            else { return nil }
            bytes.append(byte)
        }
        self.init(algorithm: .sha256, bytes: bytes, header: nil)
    }

    /// What an answer announces of the file it carries, one digest at most: they all speak of the same bytes.
    ///
    /// `Repr-Digest` (RFC 9530 §3) is of the whole file, also on the answer to a range. `Content-Digest` (§2) and
    /// `Content-MD5` (RFC 1864) are of the bytes in this answer: on a 206 they say nothing of the file.
    package static func announced(in head: ResponseHead) -> RequiredDigest? {
        if let digest = strongest(head["Repr-Digest"], header: "Repr-Digest") { return digest }
        guard head.status == 200 else { return nil }
        if let digest = strongest(head["Content-Digest"], header: "Content-Digest") { return digest }
        guard let text = head["Content-MD5"], let bytes = Data(base64Encoded: text), bytes.count == 16 else { return nil }
        return RequiredDigest(algorithm: .md5, bytes: Array(bytes), header: "Content-MD5")
    }

    /// A dictionary of structured fields (RFC 9651): `sha-256=:base64:, sha-512=:base64:`. What cannot be read counts as not
    /// said: a digest is a help, and a server that writes it wrongly still sends its file.
    private static func strongest(_ text: String?, header: String) -> RequiredDigest? {
        guard let text, text.utf8.count <= 4096 else { return nil }
        var found: RequiredDigest?
        for member in text.split(separator: ",") {
            let pair = member.split(separator: "=", maxSplits: 1)
            guard pair.count == 2 else { continue }
            let name = pair[0].trimmingCharacters(in: .whitespaces)
            let value = pair[1].prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
            guard value.count >= 2, value.hasPrefix(":"), value.hasSuffix(":"),
                let bytes = Data(base64Encoded: String(value.dropFirst().dropLast()))
            else { continue }
            // SHA-256 is computed as the bytes pass; another costs reading the file once more.
            if name == "sha-256", bytes.count == 32 {
                return RequiredDigest(algorithm: .sha256, bytes: Array(bytes), header: header)
            }
            if name == "sha-512", bytes.count == 64 {
                found = RequiredDigest(algorithm: .sha512, bytes: Array(bytes), header: header)
            }
        }
        return found
    }

    /// The trouble that another digest is.
    func mismatch(found: String) -> TransferTrouble {
        let why =
            header.map { "The bytes that arrived are not the ones that the server's \($0) announced." }
            ?? "The file is not the one asked for: its SHA-256 is \(found)."
        return TransferTrouble(code: -1016, message: why)
    }
}
