import Foundation
import FoundationNetworking
import StormyWeather
import TransferMachines

/// A weather service for one place. The type creates the requests and reads the responses.
struct WeatherSource: Sendable {
    let provider: WeatherProvider
    let place: Place
    private let coordinates: Coordinates
    private let service: any WeatherService
    private let userAgent: String

    /// The maximum number of requests for one forecast. No service needs this many requests.
    private static let mostSteps = 4

    init?(_ provider: WeatherProvider, _ place: Place, _ settings: StormySettings) {
        guard let coordinates = place.coordinates else { return nil }
        (self.provider, self.place, self.coordinates) = (provider, place, coordinates)
        service = provider.service(baseURL: settings.weatherBaseURL, days: settings.rule.forecastDays)
        userAgent = settings.userAgent
    }

    /// The name of the service that must be credited.
    var name: String { service.source }

    /// The label of the transfer if the request continues in the agent. The label identifies the place.
    var label: String { provider == .openMeteo ? place.name : "\(place.name)\t\(provider.rawValue)" }

    func isMeant(by label: String?) -> Bool { label == self.label }

    /// - Throws: ``WeatherRequestError``
    func firstRequest(now: Date) throws -> URLRequest { try urlRequest(service.request(for: coordinates, now: now)) }

    private func urlRequest(_ asked: WeatherRequest) throws -> URLRequest { try URLRequest(asked, userAgent: userAgent) }

    /// The result of reading a response: a forecast, or the next request to send.
    enum ReadResult {
        case forecast(FetchedForecast)
        case more(URLRequest)
    }

    /// - Parameter stored: the forecast that a response with status 304 confirms.
    func read(
        _ data: Data, _ response: URLResponse?, to request: URLRequest, stored: FetchedForecast?, now: Date
    ) throws(WeatherError) -> ReadResult {
        let http = response as? HTTPURLResponse
        let asked = WeatherRequest(
            url: request.url?.absoluteString ?? "",
            headers: request.value(forHTTPHeaderField: "Accept").map { ["Accept": $0] } ?? [:])
        let answer: WeatherResponse
        do {
            answer = try service.read(data, status: http?.statusCode ?? 200, to: asked, now: now)
        } catch .notModified {
            guard let stored, stored.provider == provider else { throw .notModified }
            // A forecast that the service confirms with status 304 keeps its age.
            if stored.content.isOld(for: service, now: now) { throw .old(hours: stored.content.age(at: now)) }
            // The response confirms only the values of this service. The values that other services filled in are removed.
            return .forecast(FetchedForecast(stored.content.unfilled, by: provider, http, lastModified: stored.lastModified))
        }
        switch answer {
        case .forecast(let forecast):
            if forecast.isOld(for: service, now: now) {
                throw .old(hours: forecast.age(at: now))
            }
            return .forecast(FetchedForecast(forecast.trimmed(around: now), by: provider, http))
        case .more(let next):
            do { return .more(try urlRequest(next)) } catch { throw .noData }
        }
    }

    /// Sends requests until a response is a forecast.
    ///
    /// - Parameters:
    ///   - stored: The last response. Until the stored response expires, the method returns this response without a request.
    ///     After the response has expired, the request is conditional.
    ///   - ask: A closure that sends one request and returns its response.
    /// - Throws: ``WeatherError``, and the errors of `ask`.
    func fetch(
        stored: FetchedForecast?, now: Date, _ ask: (URLRequest) async throws -> (Data, URLResponse)
    ) async throws -> FetchedForecast {
        let own = stored?.provider == provider ? stored : nil
        if let own, let expires = own.expiresAt, expires > now, expires.timeIntervalSince(now) < FetchedForecast.longestValidity {
            return own
        }
        var request = try firstRequest(now: now)
        // If the stored forecast is old, the request is unconditional, because a confirmation of an old forecast would not help.
        if let own, let date = own.lastModified, !own.content.isOld(for: service, now: now) {
            request.setValue(date, forHTTPHeaderField: "If-Modified-Since")
        }
        for _ in 0..<Self.mostSteps {
            let (data, response) = try await ask(request)
            switch try read(data, response, to: request, stored: own, now: now) {
            case .forecast(let forecast): return forecast
            case .more(let next): request = next
            }
        }
        throw WeatherError.noData
    }
}

/// A forecast, and the values of the response headers that are needed for the next request.
struct FetchedForecast: Sendable, Equatable {
    var content: Forecast
    /// `nil` if an earlier version stored the forecast.
    var provider: WeatherProvider?
    /// The value of the header Last-Modified, unchanged for the next request.
    var lastModified: String?
    /// The time before which the service has no newer forecast.
    var expiresAt: Date?
    /// The time at which a stored forecast was fetched, if the forecast was not requested again. `nil` for a forecast that was
    /// fetched now.
    var fetchedAt: Date?

    /// The maximum number of seconds until a forecast expires. If a service states a longer period, this is an error of the
    /// service. With a longer period, checks would not receive new data.
    static let longestValidity: Double = 6 * 3600

    init(content: Forecast, provider: WeatherProvider?, lastModified: String?, expiresAt: Date?) {
        (self.content, self.provider, self.lastModified, self.expiresAt) = (content, provider, lastModified, expiresAt)
    }

    init(_ content: Forecast, by provider: WeatherProvider, _ response: HTTPURLResponse?, lastModified: String? = nil) {
        self.init(
            content: content, provider: provider,
            lastModified: response?.value(forHTTPHeaderField: "Last-Modified") ?? lastModified,
            expiresAt: response?.value(forHTTPHeaderField: "Expires").flatMap { HTTPDate.parse($0) })
    }
}

extension StormySettings {
    /// Returns the services that are requested for a place, in their order.
    func sources(for place: Place) -> [WeatherSource] {
        guard let coordinates = place.coordinates else { return [] }
        let first = place.provider ?? weatherProvider
        return WeatherProvider.candidates(for: coordinates, first: first, hasContact: hasContact)
            .compactMap { WeatherSource($0, place, self) }
    }
}
