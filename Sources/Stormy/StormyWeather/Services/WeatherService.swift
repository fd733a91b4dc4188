import Foundation

/// What is asked of a weather service: one GET.
package struct WeatherRequest: Sendable, Equatable {
    package var url: String
    /// Beside the User-Agent.
    package var headers: [String: String]

    package init(url: String, headers: [String: String] = [:]) { (self.url, self.headers) = (url, headers) }
}

/// What an answer comes to.
package enum WeatherAnswer: Sendable, Equatable {
    case forecast(Forecast)
    /// It names where the forecast is, or is too old to be the last word.
    case more(WeatherRequest)
}

/// A public weather service: how it is asked and what its answers mean, without a network.
package protocol WeatherService: Sendable {
    /// Whom to credit; also ``Forecast/source``.
    var source: String { get }
    /// Seconds after which its newest forecast is old; `nil`: its answers do not say when they were made.
    var longestAge: TimeInterval? { get }

    /// Whether it has forecasts for a place at all.
    func covers(_ place: Coordinates) -> Bool

    /// The first request. The same place always gives the same text on one day: a cancelled transfer is adopted again under its
    /// URL, and the service's caches work.
    ///
    /// - Throws: ``WeatherRequestError/invalidBaseURL(_:)``
    func request(for place: Coordinates, now: Date) throws(WeatherRequestError) -> WeatherRequest

    /// Reads an answer, tolerant in details and strict in the whole. An answer that is not complete is an error, never a calm sky.
    ///
    /// - Parameters:
    ///   - data: the body, decompressed.
    ///   - status: the HTTP status.
    ///   - request: what was asked.
    func read(_ data: Data, status: Int, to request: WeatherRequest, now: Date) throws(WeatherError) -> WeatherAnswer
}

/// Where a service is reached.
struct ServiceAddress: Sendable, Equatable {
    /// "https://api.example.org".
    let origin: String
    /// Instead of it, for tests and mirrors; a path in it becomes a prefix.
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
        // Who copied the whole address from the service's manual means the same.
        return base.hasSuffix(path) ? base : base + path
    }
}

extension Forecast {
    /// It was made so long ago that a newer one should be there.
    package func isOld(for service: some WeatherService, now: Date) -> Bool {
        guard let issuedAt, let longest = service.longestAge else { return false }
        return now.timeIntervalSince(issuedAt) > longest
    }

    /// Hours since it was made, as its service says.
    package func age(at now: Date) -> Int { Int(now.timeIntervalSince(issuedAt ?? now) / 3600) }
}
