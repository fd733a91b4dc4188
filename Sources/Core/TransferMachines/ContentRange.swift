/// The `Content-Range` header (RFC 9110 §14.4), in bytes.
enum ContentRange: Equatable {
    /// `bytes 5-9/10`, `bytes 5-9/*`
    case part(first: Int64, last: Int64, total: Int64?)
    /// `bytes */10`
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

extension ResponseHead {
    /// `Content-Length`, if it is one number (doubled equal values are legal, RFC 9110 §8.6).
    var contentLength: Int64? {
        let values = Set(
            headers.filter { $0.name.lowercased() == "content-length" }.map {
                $0.value.filter { $0 != " " && $0 != "\t" }
            })
        guard values.count == 1, let text = values.first, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }

    /// The length of the body to come; `nil`: the server does not say (chunked, or until the connection ends).
    var announcedLength: Int64? {
        transferCoding == nil ? contentLength : nil
    }

    /// How the message itself is coded, in lower case: the last coding says where the body ends. `nil`: not at all, and that is what
    /// "identity" says, which RFC 7230 took away and old servers still send.
    package var transferCoding: String? {
        let last = headers.last { $0.name.lowercased() == "transfer-encoding" }?.value.split(separator: ",").last
        let coding = last.map { $0.lowercased().filter { $0 != " " && $0 != "\t" } } ?? ""
        return coding.isEmpty || coding == "identity" ? nil : coding
    }

    /// It says a length that is none: two different ones, more digits than a length can have, or no number. Where the body ends
    /// nobody can tell then (RFC 9112 §6.3: unrecoverable).
    var hasBrokenLength: Bool {
        transferCoding == nil && self["Content-Length"] != nil && contentLength == nil
    }
}
