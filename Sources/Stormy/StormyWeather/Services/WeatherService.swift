import Foundation

/// A GET request to a weather service.
package struct WeatherRequest: Sendable, Equatable {
    package var url: String
    /// The headers in addition to the User-Agent.
    package var headers: [String: String]

    package init(url: String, headers: [String: String] = [:]) { (self.url, self.headers) = (url, headers) }
}

/// The result of reading a response.
package enum WeatherResponse: Sendable, Equatable {
    case forecast(Forecast)
    /// Another request is necessary: the response contains the address of the forecast, or is too old and is requested again in
    /// another way.
    case more(WeatherRequest)
}

/// A public weather service. A service of this protocol creates requests and reads responses, and does not use the network.
package protocol WeatherService: Sendable {
    /// The name of the service that is credited. ``Forecast/source`` has the same value.
    var source: String { get }
    /// The number of seconds after which a forecast is old. `nil` if the service's responses do not contain the time of the
    /// forecast.
    var longestAge: TimeInterval? { get }

    /// Returns whether the service has forecasts for a place.
    func covers(_ place: Coordinates) -> Bool

    /// Returns the first request. Requests for the same place are equal on one day. A later request can then continue the
    /// transfer of an equal request, and the caches of the service are used.
    ///
    /// - Throws: ``WeatherRequestError/invalidBaseURL(_:)``
    func request(for place: Coordinates, now: Date) throws(WeatherRequestError) -> WeatherRequest

    /// Reads a response. Single values may be absent, but an incomplete response is an error, and never a calm forecast.
    ///
    /// - Parameters:
    ///   - data: the body, decompressed.
    ///   - status: the HTTP status.
    ///   - request: the request of the response.
    func read(_ data: Data, status: Int, to request: WeatherRequest, now: Date) throws(WeatherError) -> WeatherResponse
}

/// The address of a service.
struct ServiceAddress: Sendable, Equatable {
    /// The scheme and host, for example "https://api.example.org".
    let origin: String
    /// An address that replaces the origin, for tests and mirrors. If this address has a path, the path becomes a prefix.
    let replacement: String?

    init(_ origin: String, replacement: String? = nil) {
        (self.origin, self.replacement) = (origin, replacement.flatMap { $0.isEmpty ? nil : $0 })
    }

    /// - Throws: ``WeatherRequestError/invalidBaseURL(_:)``
    func url(_ path: String) throws(WeatherRequestError) -> String {
        guard let replacement else { return origin + path }
        guard let parts = URLComponents(string: replacement),
            let scheme = parts.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = parts.host, !host.isEmpty,
            parts.query == nil, parts.fragment == nil
        else { throw .invalidBaseURL(replacement) }
        var base = replacement
        while base.hasSuffix("/") { base.removeLast() }
        // A replacement may already contain the path, if the user copied the complete address from the service's manual.
        return base.hasSuffix(path) ? base : base + path
    }
}

extension Forecast {
    /// Returns whether the forecast is so old that the service should have a newer forecast.
    package func isOld(for service: some WeatherService, now: Date) -> Bool {
        guard let issuedAt, let longest = service.longestAge else { return false }
        return now.timeIntervalSince(issuedAt) > longest
    }

    /// Returns the age of the forecast in hours, according to its service.
    package func age(at now: Date) -> Int { Int(now.timeIntervalSince(issuedAt ?? now) / 3600) }
}
