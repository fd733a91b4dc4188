import Foundation
import TransferMachines

/// The reason why a request cannot be created.
package enum WeatherRequestError: Error, Equatable, Sendable {
    /// The configured address that replaces the service's address is not of the form `http(s)://HOST[:PORT][/PATH]`.
    case invalidBaseURL(String)
    /// The name is too short, because the geocoding service needs at least two letters.
    case nameTooShort(String)
    /// The service does not cover the place.
    case notCovered

    /// A sentence for the user.
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

/// The reason why a response of a weather service has no usable forecast.
package enum WeatherError: Error, Equatable, Sendable {
    /// The response is not JSON, or is JSON of another kind, for example the page of a captive portal. The excerpt is the
    /// beginning of the response.
    case notJSON(excerpt: String)
    /// The response begins like JSON but is incomplete.
    case truncated
    /// The service reports an error, or responded with a status outside 200...299.
    case service(status: Int, reason: String)
    /// The service received too many requests. A later request may succeed.
    case rateLimited(reason: String)
    /// The stored response is current (status 304).
    case notModified
    /// The service has no data for the place.
    case notCovered
    /// The response is neither a warning of the Common Alerting Protocol nor a warning feed.
    case notCAP
    /// The number of warnings that cannot be read.
    case unreadableWarnings(Int)
    /// The parts of warnings that Stormy cannot use unchanged, for example references. Each part is described by one sentence.
    case unusedReferences([String])
    /// The service's data is not newer than in the previous response. Warnings that the data does not contain are kept. `kept` is
    /// the number of these warnings.
    case oldWarnings(kept: Int, dataTime: Date)
    /// The forecast was made too long ago.
    case old(hours: Int)
    /// The response is larger than the limit.
    case tooLarge(bytes: Int, most: Int = ServiceResponse.maximumBytes)
    /// The response has more XML elements and attributes than the limit.
    case tooManyElements
    /// The response is valid, but contains no usable hour.
    case noData

    /// A sentence for the user.
    package var message: String {
        switch self {
        case .notJSON(let excerpt):
            "the response is not from the weather service, but perhaps from a login page of the network: “\(excerpt)”"
        case .truncated: "the response of the weather service is incomplete"
        case .service(let status, let reason):
            reason.isEmpty
                ? "the weather service responded with status \(status)"
                : "the weather service responded with status \(status): \(reason)"
        case .rateLimited(let reason):
            reason.isEmpty
                ? "the weather service received too many requests" : "the weather service received too many requests: \(reason)"
        case .notModified: "the weather service has no newer forecast, and no forecast is stored"
        case .notCovered: "the weather service does not cover this place"
        case .notCAP: "the response is not an official warning (CAP 1.2) and not a feed of warnings"
        case .unreadableWarnings(let count):
            "\(count) of the warnings cannot be read; earlier warnings remain valid"
        case .unusedReferences(let sentences): sentences.joined(separator: "; ")
        case .oldWarnings(let kept, let dataTime):
            "the service has no newer data since \(dataTime.formatted(.iso8601)); "
                + (kept == 1
                    ? "1 warning remains valid, although the service no longer lists it"
                    : "\(kept) warnings remain valid, although the service no longer lists them")
        case .old(let hours): "the weather service's newest forecast is \(hours) h old"
        case .tooLarge(let bytes, let most):
            "the response of the weather service is too large (\(bytes) bytes, at most \(most))"
        case .tooManyElements: "the response of the weather service has more than \(ResponseXML.maximumNodes) XML elements"
        case .noData: "the response of the weather service has no usable values"
        }
    }

    /// `true` if the other parts of the response were used.
    package var isOfUsedAnswer: Bool {
        switch self {
        case .unreadableWarnings, .oldWarnings, .unusedReferences: true
        default: false
        }
    }

    /// `true` if the same request may succeed later without a change.
    package var isTransient: Bool {
        switch self {
        case .notJSON, .notCAP, .unreadableWarnings, .oldWarnings, .unusedReferences, .truncated, .rateLimited, .noData,
            .notModified, .old:
            true
        case .service(let status, _): status >= 500 || status == 408
        case .tooLarge, .tooManyElements, .notCovered: false
        }
    }

    /// Parses a response with warnings in XML.
    static func xml(_ data: Data) throws(WeatherError) -> ResponseXML {
        do {
            return try ResponseXML.parse(data)
        } catch {
            switch error {
            case .tooManyElements: throw .tooManyElements
            case .notReadable: throw .notCAP
            }
        }
    }
}
