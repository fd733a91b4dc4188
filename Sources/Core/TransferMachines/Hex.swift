import Foundation

/// Converts bytes to hexadecimal text, and hexadecimal text to bytes.
package enum Hex {
    package static func text(_ data: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in data {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes of a hexadecimal text. Returns `nil` if the text is empty, has an odd number of digits, or is not
    /// hexadecimal.
    static func bytes(of text: String) -> Data? {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2), !digits.isEmpty, !digits.contains(nil) else { return nil }
        return Data(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0]! << 4 | digits[$0 + 1]!) })
    }
}
