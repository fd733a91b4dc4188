/// The meaning of a `Range` header for a file whose length is known.
enum ByteRange: Equatable {
    /// The header is not a single well-formed byte range. The server treats the header as absent (RFC 9110, 14.2).
    case ignored
    case satisfiable(Range<Int>)
    case unsatisfiable

    /// Parses a header. A header with several ranges is ignored. A server may always ignore a range, and our clients do not
    /// request several ranges.
    static func parse(_ text: String, length: Int) -> ByteRange {
        let halves = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2, halves[0].lowercased() == "bytes" else { return .ignored }
        let ends = halves[1].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return .ignored }
        if ends[0].isEmpty {
            guard let suffix = number(ends[1]) else { return .ignored }
            return suffix == 0 || length == 0 ? .unsatisfiable : .satisfiable(max(0, length - suffix)..<length)
        }
        guard let first = number(ends[0]) else { return .ignored }
        if ends[1].isEmpty {
            return first < length ? .satisfiable(first..<length) : .unsatisfiable
        }
        guard let last = number(ends[1]), last >= first else { return .ignored }
        return first < length ? .satisfiable(first..<(min(last, length - 1) + 1)) : .unsatisfiable
    }

    /// Parses a number that consists of digits only, because `Int(_:)` alone would accept a sign. If the number is too large for
    /// `Int`, the position is beyond the end of any file.
    private static func number(_ digits: Substring) -> Int? {
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int(digits) ?? Int.max
    }
}
