import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather

/// A source of official warnings for one place.
struct WarningSource: Sendable {
    let service: AlertService
    let place: Place
    private let coordinates: Coordinates
    private let settings: StormySettings

    init?(_ service: AlertService, _ place: Place, _ settings: StormySettings) {
        guard let coordinates = place.coordinates else { return nil }
        (self.service, self.place, self.coordinates, self.settings) = (service, place, coordinates, settings)
    }

    /// The label of a transfer that continues in the agent. The label is shown to the user.
    var label: String { "\(place.name)\twarnings\t\(service.rawValue)" }

    /// - Throws: ``WeatherRequestError``
    func request() throws -> URLRequest {
        try URLRequest(service.request(for: coordinates, baseURL: settings.weatherBaseURL), userAgent: settings.userAgent)
    }

    func isAsked(by url: URL) -> Bool { (try? request())?.isAsked(by: url) ?? false }

    /// Reads a response, and stores its warnings.
    ///
    /// - Parameter separateTime: the result of ``separateDataTime(_:_:in:now:_:)``.
    /// - Throws: ``WeatherError``, or an error of the store.
    func storeResponse(
        _ data: Data, _ response: URLResponse?, into store: StormyStore, separateTime: Date? = nil, now: Date
    ) throws {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 200
        let answer = Result { () throws(WeatherError) in try service.read(data, status: status, now: now) }
        // Bright Sky responds with 404 outside Germany, and a mirror may have only forecasts. Stormy then records that the place
        // is not covered, and earlier warnings stay valid.
        if case .failure(.notCovered) = answer, service == .brightSky || settings.weatherBaseURL != nil {
            return try store.recordOutsideArea(by: service.rawValue, of: place, now: now)
        }
        let warned = try answer.get()
        let dataTime = warned.dataTime ?? separateTime
        let taken = try store.storeWarnings(
            warned.messages, isComplete: warned.unreadable == 0, dataTime: dataTime, hasOwnTime: warned.dataTime != nil,
            by: service.rawValue, of: place, rule: settings.rule, now: now)
        if warned.unreadable > 0 { throw WeatherError.unreadableWarnings(warned.unreadable) }
        if taken.keptCount > 0, let dataTime { throw WeatherError.oldWarnings(kept: taken.keptCount, dataTime: dataTime) }
        if !taken.unused.isEmpty { throw WeatherError.unusedReferences(taken.unused) }
    }

    /// Requests the time of the service's data. The request is sent only if the response has no such time and no longer lists a
    /// warning that has not ended.
    ///
    /// - Parameter ask: A closure that sends one request.
    /// - Returns: `nil` if the time is not needed, or cannot be received.
    func separateDataTime(
        _ data: Data, _ response: URLResponse?, in store: StormyStore, now: Date,
        _ ask: (URLRequest) async throws -> (Data, URLResponse)
    ) async throws -> Date? {
        guard let asked = try service.dataTimeRequest(for: coordinates, baseURL: settings.weatherBaseURL),
            let answer = try? service.read(data, status: (response as? HTTPURLResponse)?.statusCode ?? 200, now: now),
            answer.unreadable == 0, answer.dataTime == nil,
            try store.hasUnlisted(answer.messages, by: service.rawValue, of: place, now: now),
            let (body, head) = try? await ask(URLRequest(asked, userAgent: settings.userAgent))
        else { return nil }
        return service.dataTime(body, status: (head as? HTTPURLResponse)?.statusCode ?? 200)
    }
}

extension WarningSource {
    /// Returns the sources of warnings that can be requested for a place.
    ///
    /// - Parameter askedAt: The time of the last response of each service. A service is not requested again before its minimum
    ///   interval has passed.
    static func all(for place: Place, _ settings: StormySettings, askedAt: [String: Date] = [:]) -> [WarningSource] {
        let now = BGTaskScheduler.now
        return (settings.warningCoverage(of: place)?.sources ?? []).compactMap { source in
            // MeteoAlarm's feeds are not requested for a single place, because each feed is read for all places together.
            guard source.refusal == nil, let service = source.service, service != .meteoAlarm else { return nil }
            let isTooSoon =
                askedAt[service.rawValue].map { (0..<service.leastInterval).contains(now.timeIntervalSince($0)) } ?? false
            return isTooSoon ? nil : WarningSource(service, place, settings)
        }
    }
}
