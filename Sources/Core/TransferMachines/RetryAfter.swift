import Foundation

/// The `Retry-After` header (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Returns the number of seconds to wait. For a date in the past, the result is 0. For a value above `maximum` (in seconds),
    /// the result is `maximum`. The number may have any number of digits. If the text is not a number or a date, the result is
    /// `nil`.
    package static func seconds(_ value: String, now: Date, maximum: Double) -> Double? {
        let text = value.trimmingCharacters(in: .whitespaces)
        if !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) {
            // The digits are read as a floating-point number, because an integer cannot store twenty digits.
            return min(Double(text) ?? maximum, maximum)
        }
        guard let date = HTTPDate.parse(value, now: now) else { return nil }
        return min(max(0, date.timeIntervalSince(now)), maximum)
    }
}
