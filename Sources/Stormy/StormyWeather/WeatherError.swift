import Foundation
import TransferMachines

/// Why no request can be written.
package enum WeatherRequestError: Error, Equatable, Sendable {
    /// The replacement address is not `http(s)://HOST[:PORT][/PATH]`.
    case invalidBaseURL(String)
    /// The geocoding service needs at least two letters.
    case nameTooShort(String)
    /// The service has no address for the place.
    case notCovered

    /// One sentence for a person.
    package var message: String {
        switch self {
        case .invalidBaseURL(let text):
            "“\(text.singleLine(limit: 120))” is not a service's address: write http:// or https://, a host and perhaps a port"
        case .nameTooShort(let name):
            "“\(name.singleLine(limit: 60))” is too short to look up: write at least two letters, or give LAT,LON"
        case .notCovered: "the service does not cover this place"
        }
    }
}

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
    /// What is stored is still the newest (304).
    case notModified
    /// The service has no forecasts for that place.
    case notCovered
    /// No warning of the Common Alerting Protocol, nor a feed of them.
    case notCAP
    /// So many of its warnings cannot be understood.
    case unreadableWarnings(Int)
    /// References and other parts of its warnings that are not used as the service wrote them, one sentence each.
    case unusedReferences([String])
    /// The service's data is not newer than before. A number of warnings that the service no longer lists are kept.
    case oldWarnings(kept: Int, dataTime: Date)
    /// Made so long ago that it says little of today.
    case old(hours: Int)
    /// More bytes than an answer may have.
    case tooLarge(bytes: Int, most: Int = ServiceAnswer.maximumBytes)
    /// More elements and attributes of XML than an answer may have.
    case tooManyElements
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
        case .notModified: "the weather service has nothing newer, and nothing is stored"
        case .notCovered: "the weather service does not cover this place"
        case .notCAP: "the answer is no official warning (CAP 1.2), nor a feed of them"
        case .unreadableWarnings(let count):
            "\(count) of its warnings cannot be read; what it warned of before stands"
        case .unusedReferences(let sentences): sentences.joined(separator: "; ")
        case .oldWarnings(let kept, let dataTime):
            "its data of \(dataTime.formatted(.iso8601)) is not newer than before; it no longer lists "
                + (kept == 1 ? "1 warning, which is kept" : "\(kept) warnings, which are kept")
        case .old(let hours): "the weather service's newest forecast is \(hours) h old"
        case .tooLarge(let bytes, let most):
            "the answer of the weather service is too large (\(bytes) bytes, at most \(most))"
        case .tooManyElements: "the answer has more than \(AnswerXML.maximumNodes) elements"
        case .noData: "the answer of the weather service has no usable hour"
        }
    }

    /// Whether the answer was used, apart from what the error is about.
    package var isOfUsedAnswer: Bool {
        switch self {
        case .unreadableWarnings, .oldWarnings, .unusedReferences: true
        default: false
        }
    }

    /// Whether the same request may succeed later without a change.
    package var isTransient: Bool {
        switch self {
        case .notJSON, .notCAP, .unreadableWarnings, .oldWarnings, .unusedReferences, .truncated, .rateLimited, .noData,
            .notModified, .old:
            true
        case .service(let status, _): status >= 500 || status == 408
        case .tooLarge, .tooManyElements, .notCovered: false
        }
    }

    /// Reads an answer that has warnings in XML.
    static func xml(_ data: Data) throws(WeatherError) -> AnswerXML {
        do {
            return try AnswerXML.parse(data)
        } catch {
            switch error {
            case .tooManyElements: throw .tooManyElements
            case .notReadable: throw .notCAP
            }
        }
    }
}
