/// The `Content-Range` header (RFC 9110 §14.4), in bytes.
enum ContentRange: Equatable {
    /// The server sends a part, for example `bytes 5-9/10`, or `bytes 5-9/*` if the length is unknown.
    case part(first: Int64, last: Int64, total: Int64?)
    /// The server cannot send the requested range, for example `bytes */10`.
    case unsatisfied(total: Int64)

    init?(_ text: String) {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\t" })
        guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
        let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let total = Self.number(halves[1])
        guard total != nil || halves[1] == "*" else { return nil }
        if halves[0] == "*" {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            last < total ?? .max
        else { return nil }
        self = .part(first: first, last: last, total: total)
    }

    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text)
    }
}
