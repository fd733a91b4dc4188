import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather

/// One service's official warnings at one place.
struct WarningSource: Sendable {
    let service: AlertService
    let place: Place
    private let coordinates: Coordinates
    private let settings: StormySettings

    init?(_ service: AlertService, _ place: Place, _ settings: StormySettings) {
        guard let coordinates = place.coordinates else { return nil }
        (self.service, self.place, self.coordinates, self.settings) = (service, place, coordinates, settings)
    }

    /// By which a transfer that was handed over is known to a person.
    var label: String { "\(place.name)\twarnings\t\(service.rawValue)" }

    /// - Throws: ``WeatherRequestError``
    func request() throws -> URLRequest {
        try URLRequest(service.request(for: coordinates, baseURL: settings.weatherBaseURL), userAgent: settings.userAgent)
    }

    func isAsked(by url: URL) -> Bool { (try? request())?.isAsked(by: url) ?? false }

    /// Reads an answer, and takes what it warns of.
    ///
    /// - Throws: ``WeatherError``, what the store says.
    func take(_ data: Data, _ response: URLResponse?, into store: StormyStore, now: Date) throws {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 200
        let answer = Result { () throws(WeatherError) in try service.read(data, status: status, now: now) }
        // Nobody warns there, or a mirror has forecasts alone: nothing to say, and nothing taken back.
        if case .failure(.notCovered) = answer, service == .brightSky || settings.weatherBaseURL != nil { return }
        let warned = try answer.get()
        let unused = try store.takeWarnings(
            warned.messages, isComplete: warned.unreadable == 0, by: service.rawValue, of: place, rule: settings.rule, now: now)
        if warned.unreadable > 0 { throw WeatherError.unreadableWarnings(warned.unreadable) }
        if !unused.isEmpty { throw WeatherError.unusedReferences(unused) }
    }
}

extension StormySettings {
    /// Who warns of storms at a place, and can be asked.
    ///
    /// - Parameter askedAt: when each answered last: none is asked more often than it wants.
    func warningSources(for place: Place, askedAt: [String: Date] = [:]) -> [WarningSource] {
        guard let coordinates = place.coordinates, rule.alertSeverity != .off else { return [] }
        let now = BGTaskScheduler.now
        return AlertService.allCases.filter { service in
            let isTooSoon =
                askedAt[service.rawValue].map { (0..<service.leastInterval).contains(now.timeIntervalSince($0)) } ?? false
            return service.covers(coordinates) && (hasContact || !service.needsContact) && !isTooSoon
        }.compactMap { WarningSource($0, place, self) }
    }
}
