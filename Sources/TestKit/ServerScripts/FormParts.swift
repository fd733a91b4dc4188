import Foundation

/// The parts of a `multipart/form-data` body (RFC 7578, RFC 2046 §5.1).
struct FormParts {
    struct Part {
        let name: String
        let fileName: String?
        let contents: Data
    }

    let parts: [Part]

    /// Parses a body. Returns `nil` if the body is not a complete form.
    init?(_ body: Data, type: String) {
        guard let start = type.range(of: "boundary=") else { return nil }
        let boundary = Data("\r\n--\(type[start.upperBound...])".utf8)
        let whole = Data("\r\n".utf8) + body
        guard whole.starts(with: boundary), whole.suffix(boundary.count + 4) == boundary + Data("--\r\n".utf8) else { return nil }
        var parts: [Part] = []
        var rest = whole.dropFirst(boundary.count)
        while let end = rest.range(of: boundary) {
            guard let part = Self.part(rest[..<end.lowerBound]) else { return nil }
            parts.append(part)
            rest = rest[end.upperBound...]
        }
        self.parts = parts
    }

    private static func part(_ bytes: Data) -> Part? {
        guard let head = bytes.range(of: Data("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes[..<head.lowerBound], as: UTF8.self)
        func value(_ name: String) -> String? {
            guard let start = lines.range(of: " \(name)=\"") else { return nil }
            return String(lines[start.upperBound...].prefix { $0 != "\"" })
        }
        guard let name = value("name") else { return nil }
        return Part(name: name, fileName: value("filename"), contents: Data(bytes[head.upperBound...]))
    }

    subscript(name: String) -> String? {
        parts.first { $0.name == name && $0.fileName == nil }.map { String(decoding: $0.contents, as: UTF8.self) }
    }

    /// The last part that contains a file.
    var file: Part? { parts.last { $0.fileName != nil } }
}
