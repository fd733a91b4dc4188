import Foundation
import FoundationNetworking
import StormyWeather
import TransferMachines

/// One service's word on one place: what it is asked, and what its answers come to.
struct WeatherSource: Sendable {
    let provider: WeatherProvider
    let place: Place
    private let coordinates: Coordinates
    private let service: any WeatherService
    private let userAgent: String

    /// More steps than any service needs.
    private static let mostSteps = 4

    init?(_ provider: WeatherProvider, _ place: Place, _ settings: StormySettings) {
        guard let coordinates = place.coordinates else { return nil }
        (self.provider, self.place, self.coordinates) = (provider, place, coordinates)
        (service, userAgent) = (provider.service(baseURL: settings.weatherBaseURL), settings.userAgent)
    }

    /// Whom to credit.
    var name: String { service.source }

    /// By which a transfer that was handed over finds its place again.
    var label: String { provider == .openMeteo ? place.name : "\(place.name)\t\(provider.rawValue)" }

    func isMeant(by label: String?) -> Bool { label == self.label }

    /// - Throws: ``WeatherRequestError``
    func firstRequest(now: Date) throws -> URLRequest { try urlRequest(service.request(for: coordinates, now: now)) }

    private func urlRequest(_ asked: WeatherRequest) throws -> URLRequest { try URLRequest(asked, userAgent: userAgent) }

    /// What an answer comes to: a forecast, or the next request.
    enum Answer {
        case forecast(FetchedForecast)
        case more(URLRequest)
    }

    /// - Parameter stored: what an answer without anything newer confirms.
    func read(
        _ data: Data, _ response: URLResponse?, to request: URLRequest, stored: FetchedForecast?, now: Date
    ) throws(WeatherError) -> Answer {
        let http = response as? HTTPURLResponse
        let asked = WeatherRequest(
            url: request.url?.absoluteString ?? "",
            headers: request.value(forHTTPHeaderField: "Accept").map { ["Accept": $0] } ?? [:])
        let answer: WeatherAnswer
        do {
            answer = try service.read(data, status: http?.statusCode ?? 200, to: asked, now: now)
        } catch .notModified {
            guard let stored, stored.provider == provider else { throw .notModified }
            // What is confirmed is no younger by that.
            if stored.content.isOld(for: service, now: now) { throw .old(hours: stored.content.age(at: now)) }
            // This response does not confirm the hours that other services filled.
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

    /// Asks until the answer is a forecast.
    ///
    /// - Parameters:
    ///   - stored: the last answer; not asked again before it expires, and only for a newer one.
    ///   - ask: one request and its answer.
    /// - Throws: ``WeatherError``, and what `ask` throws.
    func fetch(
        stored: FetchedForecast?, now: Date, _ ask: (URLRequest) async throws -> (Data, URLResponse)
    ) async throws -> FetchedForecast {
        let own = stored?.provider == provider ? stored : nil
        if let own, let expires = own.expiresAt, expires > now, expires.timeIntervalSince(now) < FetchedForecast.longestValidity {
            return own
        }
        var request = try firstRequest(now: now)
        // Whoever has nothing newer than what is old already is asked for all of it.
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

/// A forecast with what its service said of asking again.
struct FetchedForecast: Sendable, Equatable {
    var content: Forecast
    /// `nil`: stored by an earlier version.
    var provider: WeatherProvider?
    /// As it was written, for the next question.
    var lastModified: String?
    /// Before that there is nothing newer.
    var expiresAt: Date?
    /// Of one that is stored, and was not asked for again; `nil`: now.
    var fetchedAt: Date?

    /// Seconds: what is valid for longer is a mistake, and would keep a check from seeing anything.
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
    /// Those that are asked about a place, in this order.
    func sources(for place: Place) -> [WeatherSource] {
        guard let coordinates = place.coordinates else { return [] }
        let first = place.provider ?? weatherProvider
        return WeatherProvider.candidates(for: coordinates, first: first, hasContact: hasContact)
            .compactMap { WeatherSource($0, place, self) }
    }
}
