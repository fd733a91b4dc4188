/// Why an answer of a weather service gives no forecast.
package enum WeatherError: Error, Equatable, Sendable {
    /// Not JSON, or JSON of another kind (a captive portal's login page, for example); the excerpt is its beginning.
    case notJSON(excerpt: String)
    /// The answer begins like JSON and stops in the middle.
    case truncated
    /// The service says what is wrong, or answered with a status outside 200...299.
    case service(status: Int, reason: String)
    /// Too many requests; try later.
    case rateLimited(reason: String)
    /// More bytes than an answer may have.
    case tooLarge(bytes: Int)
    /// Well-formed, but without a single usable hour.
    case noData

    /// One sentence for a person.
    package var message: String {
        switch self {
        case .notJSON(let excerpt):
            "the answer is not a weather service's (a login page of the network?): “\(excerpt)”"
        case .truncated: "the answer of the weather service is cut off"
        case .service(let status, let reason):
            reason.isEmpty
                ? "the weather service answered with status \(status)"
                : "the weather service answered with status \(status): \(reason)"
        case .rateLimited(let reason):
            reason.isEmpty
                ? "the weather service asks for fewer requests" : "the weather service asks for fewer requests: \(reason)"
        case .tooLarge(let bytes):
            "the answer of the weather service is too large (\(bytes) bytes, at most \(OpenMeteo.maximumAnswerBytes))"
        case .noData: "the answer of the weather service has no usable hour"
        }
    }

    /// Whether the same request may succeed later without a change.
    package var isTransient: Bool {
        switch self {
        case .notJSON, .truncated, .rateLimited, .noData: true
        case .service(let status, _): status >= 500 || status == 408
        case .tooLarge: false
        }
    }
}
