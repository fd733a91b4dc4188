import Foundation

/// Checks every response before the weather in the response is read.
package enum ServiceResponse {
    /// The maximum size of a response in bytes. A usual response has about 10 KiB. A response of MET Norway has 100 KiB.
    package static let maximumBytes = 4 * 1024 * 1024

    /// Returns the JSON of a successful response. Throws the reason if the response was not successful, or is not JSON.
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
        // Open-Meteo streams its responses. If an error occurs in the middle, the response has status 200 and ends with plain
        // text inside open brackets. A response that ends inside open brackets counts as truncated.
        throw endsInside(body) ? .truncated : .notJSON(excerpt: excerpt(body))
    }

    /// Returns the error text: Open-Meteo's `reason`, the `detail` or `title` of RFC 9457, or a `description`.
    private static func reason(_ value: JSONValue?) -> String {
        let texts = ["reason", "detail", "title", "description"].lazy.compactMap { value?[$0]?.text }
        return (texts.first { !$0.isEmpty } ?? "").singleLine(limit: 200)
    }

    /// Returns the JSON of a service that responds with 404 if it does not cover a place.
    static func jsonOfAPlace(_ data: Data, status: Int) throws(WeatherError) -> JSONValue {
        do { return try json(data, status: status) } catch .service(status: 404, _) { throw .notCovered }
    }

    private static func isRateLimit(status: Int, reason: String) -> Bool {
        status == 429 || reason.contains("request limit exceeded") || reason.contains("Too many concurrent requests")
    }

    private static func excerpt(_ body: Data) -> String {
        String(decoding: body.prefix(400), as: UTF8.self).singleLine(limit: 80)
    }

    /// Returns the body without a byte order mark, and without blanks at its beginning and end.
    private static func trimmed(_ data: Data) -> Data {
        var body = data[...]
        if body.starts(with: [0xEF, 0xBB, 0xBF]) { body = body.dropFirst(3) }
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        while let first = body.first, blanks.contains(first) { body = body.dropFirst() }
        while let last = body.last, blanks.contains(last) { body = body.dropLast() }
        return Data(body)
    }

    /// Returns whether the bytes begin with a JSON object or list that is not closed at the end of the bytes. An empty response
    /// body also counts as truncated.
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
