import Foundation

/// The judgement every answer goes through before anybody looks for weather in it.
package enum ServiceAnswer {
    /// The largest that is looked at, in bytes (a usual one has about 10 KiB, MET Norway's 100).
    package static let maximumBytes = 4 * 1024 * 1024

    /// The JSON of a successful answer, or why there is none.
    static func json(_ data: Data, status: Int) throws(WeatherError) -> JSONValue {
        guard data.count <= maximumBytes else { throw .tooLarge(bytes: data.count) }
        let body = trimmed(data)
        let value = JSONValue(body)
        if value?["error"]?.isTrue == true || !(200...299).contains(status) {
            if status == 304 { throw .notModified }
            let reason = reason(value)
            throw isRateLimit(status: status, reason: reason)
                ? .rateLimited(reason: reason) : .service(status: status, reason: reason)
        }
        if let value {
            guard value.isObject || value.elements != nil else { throw .notJSON(excerpt: excerpt(body)) }
            return value
        }
        // Open-Meteo streams: an error in the middle of an answer comes as plain text inside open brackets, with
        // status 200, and ends the answer there. That too is "cut off".
        throw endsInside(body) ? .truncated : .notJSON(excerpt: excerpt(body))
    }

    /// Open-Meteo's `reason`; others have RFC 9457's `detail` and `title`, and a `description`.
    private static func reason(_ value: JSONValue?) -> String {
        let texts = ["reason", "detail", "title", "description"].lazy.compactMap { value?[$0]?.text }
        return (texts.first { !$0.isEmpty } ?? "").singleLine(limit: 200)
    }

    /// The same of a service that says 404 where it does not cover a place.
    static func jsonOfAPlace(_ data: Data, status: Int) throws(WeatherError) -> JSONValue {
        do { return try json(data, status: status) } catch .service(status: 404, _) { throw .notCovered }
    }

    private static func isRateLimit(status: Int, reason: String) -> Bool {
        status == 429 || reason.contains("request limit exceeded") || reason.contains("Too many concurrent requests")
    }

    private static func excerpt(_ body: Data) -> String {
        String(decoding: body.prefix(400), as: UTF8.self).singleLine(limit: 80)
    }

    /// Without a byte order mark and the blanks around.
    private static func trimmed(_ data: Data) -> Data {
        var body = data[...]
        if body.starts(with: [0xEF, 0xBB, 0xBF]) { body = body.dropFirst(3) }
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        while let first = body.first, blanks.contains(first) { body = body.dropFirst() }
        while let last = body.last, blanks.contains(last) { body = body.dropLast() }
        return Data(body)
    }

    /// Whether the bytes begin as an object or a list that is still open at their end. Nothing at all is cut off, too.
    private static func endsInside(_ body: Data) -> Bool {
        guard let first = body.first else { return true }
        guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return false }
        var depth = 0
        var inString = false
        var escaped = false
        for byte in body {
            if escaped {
                escaped = false
            } else if inString {
                if byte == UInt8(ascii: "\\") { escaped = true }
                if byte == UInt8(ascii: "\"") { inString = false }
            } else {
                switch byte {
                case UInt8(ascii: "\""): inString = true
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
                default: break
                }
            }
        }
        return inString || depth > 0
    }
}
