import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather

/// Why a fresh answer could not be had.
package struct WeatherUnavailable: Error, CustomStringConvertible {
    package let description: String
}

/// A check by hand: in this process, at once, with an answer for a person who waits.
package struct WeatherCheck: Sendable {
    package enum Mode: Sendable {
        /// Refresh; fall back to the stored copy.
        case refreshOrStored
        /// Refresh or fail.
        case fresh
        /// The stored copy only.
        case offline
    }

    /// A person waits: seconds without a byte before the service is called unavailable.
    private static let patience: Double = 15
    /// Seconds for all of an answer, however it drips: a person or a script waits for it.
    fileprivate static let longestAnswer: Double = 60
    /// Seconds after which a stored copy is called stale.
    private static let staleAge: Double = 3 * 3600

    let store: StormyStore
    let settings: StormySettings

    package init(store: StormyStore, settings: StormySettings = .current) {
        self.store = store
        self.settings = settings
    }

    /// - Throws: ``WeatherUnavailable`` in `.fresh` mode; store errors always.
    package func run(_ place: Place, _ mode: Mode) async throws -> CheckOutcome {
        switch mode {
        case .offline: return try stored(place, trouble: nil)
        case .fresh, .refreshOrStored:
            do {
                return try await refresh(place)
            } catch let error as WeatherUnavailable {
                try store.noteTrouble(error.description, of: place, now: BGTaskScheduler.now)
                if case .fresh = mode { throw error }
                return try stored(place, trouble: error.description)
            }
        }
    }

    private func refresh(_ place: Place) async throws -> CheckOutcome {
        let forecast: Forecast
        do {
            forecast = try await fetch(place)
        } catch let error as WeatherUnavailable {
            throw error
        } catch let error as WeatherError {
            throw WeatherUnavailable(description: error.message)
        } catch {
            let host = (try? WeatherSession.request(for: place))?.url?.host ?? "?"
            throw WeatherUnavailable(description: "the weather service at \(host): \(error.localizedDescription)")
        }
        let now = BGTaskScheduler.now
        // Of another day, or with nothing in it: no answer. What is stored stays.
        if case .unknown(let why) = settings.rule.assess(forecast, now: now).verdict {
            throw WeatherUnavailable(description: "the weather service answered with a forecast that says nothing: \(why)")
        }
        let assessment = try store.take(forecast, of: place, fetchedAt: now, rule: settings.rule, now: now)
        StormQuestion.withdrawTrouble(at: place)
        // The answer told the place's time zone.
        let known = try store.places().first { $0.id == place.id } ?? place
        return CheckOutcome(
            place: known, assessment: assessment, fetchedAt: now, trouble: nil, isStale: false, source: forecast.source)
    }

    private func fetch(_ place: Place) async throws -> Forecast {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = Self.patience
        configuration.timeoutIntervalForResource = Self.longestAnswer
        configuration.maximumBodyBytes = Int64(OpenMeteo.maximumAnswerBytes)
        let request = try WeatherSession.request(for: place)
        let session = URLSession(configuration: configuration)
        let (data, response) = try await session.data(for: request)
        let http = response as? HTTPURLResponse
        let answer = Result { () throws(WeatherError) in
            try OpenMeteo.parseForecast(data, status: http?.statusCode ?? 200)
        }
        if case .failure(.rateLimited(let reason)) = answer {
            let seconds = http?.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) }
            let wait = seconds.map { "; it asks to wait \($0) s" } ?? ""
            let said = reason.isEmpty ? "" : ": \(reason)"
            throw WeatherUnavailable(description: "the weather service is asked too often\(said)\(wait)")
        }
        return try answer.get()
    }

    /// Judged now: the same forecast may be calm an hour later.
    private func stored(_ place: Place, trouble: String?) throws -> CheckOutcome {
        let now = BGTaskScheduler.now
        guard let (forecast, fetchedAt) = try store.lastForecast(of: place) else {
            return CheckOutcome(
                place: place, assessment: nil, fetchedAt: nil, trouble: trouble ?? "no forecast is stored yet", isStale: true,
                source: OpenMeteo.source)
        }
        // Fetched under a clock that was ahead: nobody knows how old it is.
        guard fetchedAt <= now else {
            return CheckOutcome(
                place: place, assessment: nil, fetchedAt: nil, trouble: trouble ?? "the stored forecast is dated in the future",
                isStale: true, source: forecast.source)
        }
        return CheckOutcome(
            place: place, assessment: settings.rule.assess(forecast, now: now), fetchedAt: fetchedAt, trouble: trouble,
            isStale: trouble != nil || now.timeIntervalSince(fetchedAt) > Self.staleAge, source: forecast.source)
    }
}

/// Looks a name up through the geocoding service.
package struct PlaceSearch: Sendable {
    package init() {}

    /// Best match first; empty when there is none.
    package func matches(_ name: String) async throws -> [GeocodingMatch] {
        let language = PersonLocale.current.language.languageCode?.identifier ?? "en"
        let text = try OpenMeteo.geocodingURL(
            name: name, count: 5, language: language, baseURL: StormySettings.current.geocodingBaseURL)
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = 15
        configuration.timeoutIntervalForResource = WeatherCheck.longestAnswer
        configuration.maximumBodyBytes = Int64(OpenMeteo.maximumAnswerBytes)
        do {
            let (data, response) = try await URLSession(configuration: configuration).data(from: url)
            return try OpenMeteo.parseGeocoding(data, status: (response as? HTTPURLResponse)?.statusCode ?? 200)
        } catch {
            let why = (error as? WeatherError)?.message ?? error.localizedDescription
            throw WeatherUnavailable(
                description: "\"\(name)\" could not be looked up: \(why) With its coordinates no look-up is needed: NAME LAT,LON")
        }
    }
}
