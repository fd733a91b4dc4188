import Foundation

/// A digest that a file must have before the file is accepted as complete. The caller sets the digest, or the server announces
/// the digest in a header.
package struct RequiredDigest: Equatable, Sendable {
    package enum Algorithm: Equatable, Sendable {
        case sha256
        case sha512
        case md5
    }

    package var algorithm: Algorithm
    package var bytes: [UInt8]
    /// The name of the response header that contained the digest. `nil` if the caller set the digest.
    package var header: String?

    package init(algorithm: Algorithm, bytes: [UInt8], header: String?) {
        self.algorithm = algorithm
        self.bytes = bytes
        self.header = header
    }

    /// Creates a digest. Returns `nil` if the text does not consist of 64 hexadecimal digits.
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

    /// Returns the digest that a response announces for the file. A single digest is sufficient, because all announced digests
    /// belong to the same bytes.
    ///
    /// `Repr-Digest` (RFC 9530 §3) is the digest of the complete file, even in the response to a range. `Content-Digest` (§2) and
    /// `Content-MD5` (RFC 1864) are digests of the bytes in this response. So in a 206 response, only `Repr-Digest` is the digest
    /// of the complete file.
    package static func announced(in head: ResponseHead) -> RequiredDigest? {
        if let digest = strongest(head["Repr-Digest"], header: "Repr-Digest") { return digest }
        guard head.status == 200 else { return nil }
        if let digest = strongest(head["Content-Digest"], header: "Content-Digest") { return digest }
        guard let text = head["Content-MD5"], let bytes = Data(base64Encoded: text), bytes.count == 16 else { return nil }
        return RequiredDigest(algorithm: .md5, bytes: Array(bytes), header: "Content-MD5")
    }

    /// Reads a dictionary of structured fields (RFC 9651), for example `sha-256=:base64:, sha-512=:base64:`. Unreadable members
    /// are ignored, because a digest is optional. A server with an incorrect header may still send the correct file.
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
            // SHA-256 is computed while the bytes arrive. For other algorithms the file has to be read again.
            if name == "sha-256", bytes.count == 32 {
                return RequiredDigest(algorithm: .sha256, bytes: Array(bytes), header: header)
            }
            if name == "sha-512", bytes.count == 64 {
                found = RequiredDigest(algorithm: .sha512, bytes: Array(bytes), header: header)
            }
        }
        return found
    }

    /// Returns the error for a digest that does not match.
    func mismatch(found: String) -> TransferTrouble {
        let why =
            header.map { "The received bytes do not match the server's \($0)." }
            ?? "The file does not match the expected SHA-256. The SHA-256 of the file is \(found)."
        return TransferTrouble(code: -1016, message: why)
    }
}
