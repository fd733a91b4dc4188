import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather

/// The error if no new forecast could be downloaded. The text of the error contains only this reason.
package struct WeatherUnavailable: Error, CustomStringConvertible {
    package let description: String
}

/// A manual check of one place. The check runs in this process, and the result is shown to a waiting user. ``AsyncOpen`` and
/// ``AutoOpen`` run this check for each place.
package struct WeatherCheck: Sendable {
    /// The number of seconds without a byte after which Stormy assumes that a service is not available. The limit is short
    /// because the user waits.
    private static let patience: Double = 15
    /// The maximum number of seconds for a complete response, because a user or a script waits for the response.
    private static let longestAnswer: Double = 60
    static let longestWait: Duration = .seconds(longestAnswer)
    /// The number of seconds after which a stored forecast counts as stale.
    private static let staleAge: Double = 3 * 3600

    let store: StormyStore
    let settings: StormySettings

    init(store: StormyStore, settings: StormySettings = .current) {
        self.store = store
        self.settings = settings
    }

    /// Requests the weather services of a place, and stores their responses. The check also uses the stored official warnings.
    ///
    /// - Throws: ``WeatherUnavailable``, or an error of the store.
    func refresh(_ place: Place) async throws -> CheckOutcome {
        let sources = settings.sources(for: place)
        var reasons: [String] = []
        for (index, source) in sources.enumerated() {
            do {
                let fetched = try await fetch(source)
                return try await handle(fetched, of: place, others: sources[(index + 1)...], reasons)
            } catch let error as WeatherUnavailable {
                reasons.append(sources.count == 1 ? error.description : "\(source.name): \(error.description)")
            }
        }
        throw WeatherUnavailable(description: reasons.joined(separator: "; "))
    }

    /// Requests the official services of a place. Stores the warnings of the services, or the reason why no usable response
    /// arrived.
    ///
    /// - Throws: the store's errors.
    func requestWarnings(at place: Place) async throws {
        for source in try WarningSource.all(for: place, settings, askedAt: store.warningsAskedAt(at: place)) {
            let reason: String
            do {
                let session = Self.session
                let (data, response) = try await session.data(for: source.request())
                let now = BGTaskScheduler.now
                let time = try await source.separateDataTime(data, response, in: store, now: now) {
                    try await session.data(for: $0)
                }
                try source.storeResponse(data, response, into: store, separateTime: time, now: now)
                continue
            } catch let error as WeatherError {
                try store.storeWarningTrouble(error, by: source.service.rawValue, of: place)
                continue
            } catch let error where error is CancellationError || (error as? URLError)?.code == .cancelled {
                reason = "no response arrived within the time limit"
            } catch let error as URLError {
                reason = error.localizedDescription
            }
            try store.storeWarningTrouble(reason, by: source.service.rawValue, of: place)
        }
    }

    private func handle(
        _ fetched: FetchedForecast, of place: Place, others: ArraySlice<WeatherSource>, _ reasons: [String]
    ) async throws -> CheckOutcome {
        var (others, reasons) = (others, reasons)
        let taken: ForecastJudge.AssessedForecast
        do {
            taken = try await ForecastJudge(store: store, settings: settings).judge(fetched, of: place) {
                while let other = others.popFirst() {
                    do { return try await fetch(other).content } catch {
                        let why = (error as? WeatherUnavailable)?.description ?? "\(error)"
                        reasons.append("\(other.name) for the values that \(fetched.content.source) does not have: \(why)")
                    }
                }
                return nil
            }
        } catch let error as ForecastJudge.Unusable {
            throw WeatherUnavailable(description: "the weather service sent a forecast without values: \(error.why)")
        }
        // The place is read again, because the response may have set its time zone.
        let known = try store.places().first { $0.id == place.id } ?? place
        return CheckOutcome(
            place: known, assessment: taken.assessment, fetchedAt: fetched.fetchedAt ?? BGTaskScheduler.now, trouble: nil,
            isStale: false, source: fetched.content.source,
            notAnswered: try store.warningTroubles(of: place) + reasons, forecast: taken.forecast)
    }

    fileprivate static var session: URLSession {
        URLSession(configuration: .question(patience: patience, longest: longestAnswer))
    }

    private func fetch(_ source: WeatherSource) async throws -> FetchedForecast {
        let session = Self.session
        let now = BGTaskScheduler.now
        var last: URLResponse?
        do {
            return try await source.fetch(stored: store.lastAnswer(of: source.place, now: now), now: now) { request in
                let (data, response) = try await session.data(for: request)
                last = response
                return (data, response)
            }
        } catch WeatherError.rateLimited(let reason) {
            let seconds = (last as? HTTPURLResponse)?.value(forHTTPHeaderField: "Retry-After").flatMap { Int($0) }
            let wait = seconds.map { $0 > 0 ? "; the service requires a pause of \($0) s" : "" } ?? ""
            let said = reason.isEmpty ? "" : ": \(reason)"
            throw WeatherUnavailable(description: "the weather service received too many requests\(said)\(wait)")
        } catch let error as WeatherError {
            throw WeatherUnavailable(description: error.message)
        } catch let error as WeatherRequestError {
            throw error
        } catch {
            let host = (try? source.firstRequest(now: now))?.url?.host ?? "?"
            throw WeatherUnavailable(description: "the weather service at \(host): \(error.localizedDescription)")
        }
    }

    /// Returns the stored forecast with a new judgement, because the same forecast may be calm an hour later.
    func stored(_ place: Place, trouble: String?) throws -> CheckOutcome {
        let (now, record, alerts) = (BGTaskScheduler.now, try store.lastForecast(of: place), try store.warnings(of: place))
        // The age of a forecast is unknown if it was fetched while the clock was ahead.
        guard let record, record.fetchedAt <= now else {
            // Official warnings are used even if there is no forecast.
            let warned = settings.rule.assess(Forecast(hours: []), alerts: alerts, now: now)
            let why = record == nil ? "no forecast is stored yet" : "the stored forecast has a date in the future"
            return CheckOutcome(
                place: place, assessment: warned.isStormy == true ? warned : nil, fetchedAt: nil, trouble: trouble ?? why,
                isStale: true, source: record?.content.source ?? OpenMeteo.source,
                notAnswered: try store.warningTroubles(of: place))
        }
        return CheckOutcome(
            place: place, assessment: settings.rule.assess(record.content, beside: record.second, alerts: alerts, now: now),
            fetchedAt: record.fetchedAt, trouble: trouble,
            isStale: trouble != nil || now.timeIntervalSince(record.fetchedAt) > Self.staleAge, source: record.content.source,
            notAnswered: try store.warningTroubles(of: place), forecast: record.content)
    }
}

/// Searches for places with a given name. The search uses the geocoding service.
package struct PlaceSearch: Sendable {
    package init() {}

    /// Returns the matches, the best match first.
    package func matches(_ name: String) async throws -> [GeocodingMatch] {
        let language = UserLocale.current.language.languageCode?.identifier ?? "en"
        let text = try OpenMeteo.geocodingURL(
            name: name, count: 5, language: language, baseURL: StormySettings.current.geocodingBaseURL)
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        do {
            let (data, response) = try await WeatherCheck.session.data(from: url)
            return try OpenMeteo.parseGeocoding(data, status: (response as? HTTPURLResponse)?.statusCode ?? 200)
        } catch {
            let why = (error as? WeatherError)?.message ?? error.localizedDescription
            throw WeatherUnavailable(
                description: "\"\(name)\" could not be looked up: \(why) Give the coordinates of the place instead: NAME LAT,LON")
        }
    }
}
