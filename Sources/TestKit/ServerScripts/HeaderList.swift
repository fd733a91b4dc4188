/// A header line, exactly as on the wire.
public struct HeaderLine: Hashable, Sendable, Codable {
    /// The name as it is written on the wire.
    public var name: String
    /// The value.
    public var value: String

    /// Creates a line from a name and a value. The text is not checked, because invalid lines are often intended.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// Header lines in order, including duplicates. In code, the list can be a dictionary literal: `["ETag": "\"1\"", "ETag":
/// "\"2\""]`.
public struct HeaderList: Hashable, Sendable, Codable, ExpressibleByDictionaryLiteral {
    /// The lines in the order of the wire.
    public var lines: [HeaderLine]

    /// Creates a list of lines.
    public init(_ lines: [HeaderLine] = []) { self.lines = lines }

    /// Creates a list from a literal. Order and duplicates are kept.
    public init(dictionaryLiteral elements: (String, String)...) {
        lines = elements.map { HeaderLine($0.0, $0.1) }
    }

    /// Returns the value of the first line with this name. Names are compared without case.
    public subscript(name: String) -> String? {
        let wanted = name.lowercased()
        return lines.first { $0.name.lowercased() == wanted }?.value
    }

    /// Returns the values of all lines with this name, in order.
    public func values(_ name: String) -> [String] {
        let wanted = name.lowercased()
        return lines.filter { $0.name.lowercased() == wanted }.map(\.value)
    }

    /// Adds a line at the end.
    public mutating func append(_ name: String, _ value: String) { lines.append(HeaderLine(name, value)) }

    /// Returns the comma-separated words in all lines with this name, in lower case. For example, `Connection` and
    /// `Transfer-Encoding` contain such words.
    package func tokens(_ name: String) -> [String] {
        values(name).flatMap { $0.lowercased().split(whereSeparator: { $0 == "," || $0 == " " }).map(String.init) }
    }

    /// The lines as bytes, without the empty line that ends the headers.
    package var wire: String { lines.map { "\($0.name): \($0.value)\r\n" }.joined() }
}

extension HeaderList {
    /// Reads header lines as pairs of name and value, for example `[["ETag", "\"1\""]]`. Pairs keep the order of the lines and
    /// duplicate names. A JSON object would lose both.
    public init(from decoder: any Decoder) throws {
        let pairs = try [[String]](from: decoder)
        lines = try pairs.map { pair in
            guard pair.count == 2 else {
                throw DecodingError.dataCorrupted(
                    .init(codingPath: decoder.codingPath, debugDescription: "a header line must have a name and a value"))
            }
            return HeaderLine(pair[0], pair[1])
        }
    }

    /// Writes the lines as `init(from:)` reads them.
    public func encode(to encoder: any Encoder) throws {
        try lines.map { [$0.name, $0.value] }.encode(to: encoder)
    }
}
