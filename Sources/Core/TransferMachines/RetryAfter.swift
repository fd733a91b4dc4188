import Foundation

/// The `Retry-After` header (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Returns the seconds to wait. A date in the past is 0. A value above `maximum` (seconds) is `maximum`, for any number of digits. A
    /// text that is neither a number nor a date is `nil`.
    package static func seconds(_ value: String, now: Date, maximum: Double) -> Double? {
        let text = value.trimmingCharacters(in: .whitespaces)
        if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
            // Twenty digits do not fit an integer; as a floating-point number they are merely large.
            return min(Double(text) ?? maximum, maximum)
        }
        guard let date = HTTPDate.parse(value, now: now) else { return nil }
        return min(max(0, date.timeIntervalSince(now)), maximum)
    }
}
