import Foundation

/// A value that proves that two responses contain the same bytes. Only strong validators are stored for files. Two responses with
/// equal weak validators may contain different bytes. If parts of such responses were combined, the file could be damaged.
package enum Validator: Codable, Equatable, Hashable, Sendable {
    /// An entity tag with its quotes. ``from(_:receivedAt:)`` accepts only strong tags.
    case entityTag(String)
    /// A `Last-Modified` date that is strong by RFC 9110 §8.8.2.2. The text is exactly the text that the server sent.
    case lastModified(String)

    /// The value of the header `If-Range`, which a resumed download sends.
    package var ifRange: String {
        switch self {
        case .entityTag(let tag): tag
        case .lastModified(let date): date
        }
    }

    /// Returns the strong validator of a response, or `nil` if the response contains no strong validator.
    ///
    /// `Last-Modified` is used only if the response contains no entity tag, not even a weak tag (RFC 9110 §13.1.5). The date must
    /// also be older than the response. The minimum difference is 1 s to the server's `Date`, which comes from the same clock, or
    /// 60 s to the local clock.
    /// - Parameter receivedAt: The time at which the response arrived, which is used if the server sends no `Date`.
    package static func from(_ head: ResponseHead, receivedAt: Date? = nil) -> Validator? {
        let tags = Set(head.headers.filter { $0.name.lowercased() == "etag" }.map { trimmed($0.value) })
        if let tag = tags.first {
            return tags.count == 1 && isStrong(tag) ? .entityTag(tag) : nil
        }
        guard let text = head["Last-Modified"].map(trimmed), let modified = HTTPDate.parse(text) else { return nil }
        if let served = head["Date"].flatMap({ HTTPDate.parse($0) }) {
            return served.timeIntervalSince(modified) >= 1 ? .lastModified(text) : nil
        }
        guard let receivedAt, receivedAt.timeIntervalSince(modified) >= 60 else { return nil }
        return .lastModified(text)
    }

    /// Returns the validator for a conditional request. The server sends a complete response to a conditional request only if the
    /// content changed. Returns `nil` if the response contains no validator.
    ///
    /// Weak entity tags are used (RFC 9110 §13.1.2). An invalid entity tag is ignored. A date ahead of the local clock is also
    /// ignored, because changes would not be detected after the clock is corrected.
    package static func toRevalidate(_ head: ResponseHead, receivedAt: Date) -> Validator? {
        let tags = Set(head.headers.filter { $0.name.lowercased() == "etag" }.map { trimmed($0.value) })
        if let tag = tags.first, tags.count == 1, isStrong(tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag) {
            return .entityTag(tag)
        }
        var dated = head
        dated.headers.removeAll { $0.name.lowercased() == "etag" }
        guard case .lastModified(let text)? = from(dated, receivedAt: receivedAt),
            let modified = HTTPDate.parse(text), modified <= receivedAt
        else { return nil }
        return .lastModified(text)
    }

    /// The header that makes a GET conditional.
    package var condition: HeaderField {
        switch self {
        case .entityTag(let tag): HeaderField("If-None-Match", tag)
        case .lastModified(let date): HeaderField("If-Modified-Since", date)
        }
    }

    /// Returns whether a response has exactly this validator. If the header is missing, the result is `false`, because a missing
    /// header does not prove equality.
    package func matches(_ head: ResponseHead) -> Bool {
        switch self {
        case .entityTag(let tag): head["ETag"].map(Self.trimmed) == tag
        case .lastModified(let date): head["Last-Modified"].map(Self.trimmed) == date
        }
    }

    private static func isStrong(_ tag: String) -> Bool {
        let bytes = Array(tag.utf8)
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22 else { return false }
        return bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || ($0 > 0x22 && $0 != 0x7F) }
    }

    private static func trimmed(_ text: String) -> String {
        var rest = Substring(text)
        while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
        return String(rest.drop(while: { $0 == " " || $0 == "\t" }))
    }
}
