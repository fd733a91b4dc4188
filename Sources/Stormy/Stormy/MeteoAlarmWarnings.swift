import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather

// This extension requests MeteoAlarm's feeds, one feed for each country that has a place. The areas in a feed's entries are
// compared with a place before a document is fetched.
extension FeedWarnings {
    /// The countries whose feeds a place needs. `nil` if another service has the warnings for the place, or if MeteoAlarm does
    /// not cover the place.
    func meteoAlarmCountries(of place: Place) throws -> [MeteoAlarmCountry]? {
        let coverage = settings.warningCoverage(of: place, failing: try store.failingServices(at: place))
        guard let coordinates = place.coordinates, coverage?.sources.contains(where: { $0.service == .meteoAlarm }) == true
        else { return nil }
        return RegionCoverage(of: coordinates).countries
    }

    /// Returns whether MeteoAlarm is the first source for a place, because the place has no national service.
    func isMeteoAlarmFirst(at place: Place) -> Bool {
        settings.warningCoverage(of: place)?.sources.contains { $0.service == .meteoAlarm } ?? false
    }

    /// Requests MeteoAlarm for places if the national service sent no usable response, or does not cover the place. Call this
    /// method after the requests to the national services have ended.
    ///
    /// - Returns: the places for which MeteoAlarm was requested.
    @discardableResult
    func refreshSubstitutes(for places: [Place], within limit: Duration) async throws -> [Place] {
        let left = try places.filter { place in try !isMeteoAlarmFirst(at: place) && meteoAlarmCountries(of: place) != nil }
        if !left.isEmpty { try await refreshMeteoAlarm(left, within: limit) }
        return left
    }

    /// Reads MeteoAlarm's feeds for several places. If a feed cannot be read, the reason is stored for each place that needs the
    /// feed.
    ///
    /// - Returns: The number of new documents that were not requested.
    @discardableResult
    func refreshMeteoAlarm(_ places: [Place], within limit: Duration) async throws -> Int {
        if places.isEmpty { return 0 }
        let asked = Set(places.map(\.id))
        // A feed is stored with the parts for all places that need the feed.
        var all: [(place: Place, countries: [MeteoAlarmCountry])] = []
        for place in try store.places() {
            if let countries = try meteoAlarmCountries(of: place) { all.append((place, countries)) }
        }
        let needed = all.filter { asked.contains($0.place.id) }
        let countries = Set(needed.flatMap(\.countries))
        if countries.isEmpty { return 0 }
        let spots = Dictionary(
            uniqueKeysWithValues: countries.map { country in
                (country, Set(all.filter { $0.countries.contains(country) }.compactMap { $0.place.coordinates }))
            })
        let feeds = try await withThrowingTaskGroup(of: (MeteoAlarmCountry, CountryResponse).self) { group in
            for (country, places) in spots {
                group.addTask { (country, try await answer(of: country, at: places, within: limit)) }
            }
            return try await group.reduce(into: [MeteoAlarmCountry: CountryResponse]()) { $0[$1.0] = $1.1 }
        }
        var notRequested = 0
        for (place, countries) in needed {
            for country in countries {
                if let answer = feeds[country] { notRequested += try await store(answer, of: country, at: place) }
            }
        }
        return notRequested
    }

    /// Returns a sentence for the user about codes of areas that Stormy's table of regions does not contain. Each unknown code is
    /// reported only once.
    func unknownRegions() throws -> String? {
        let codes = try store.claimUnreportedCodes()
        return codes.isEmpty ? nil : "official warnings for unknown areas: " + codes.joined(separator: ", ")
    }

    private enum CountryResponse: Sendable {
        case feed(WarningFeed)
        /// The server has no feed, because the server is a mirror that contains only forecasts.
        case none
        case failed(String)
    }

    private func answer(
        of country: MeteoAlarmCountry, at places: Set<Coordinates>, within limit: Duration
    ) async throws -> CountryResponse {
        do {
            let request = try MeteoAlarmFeed.request(for: country, baseURL: settings.weatherBaseURL)
            return try await within(limit) {
                .feed(
                    try await list(
                        request, service: AlertService.meteoAlarm.rawValue, for: places.map { $0 },
                        mostBytes: MeteoAlarmFeed.maximumBytes
                    ) { data, _ in try read(data, at: places) })
            }
        } catch WeatherError.service(status: 404, _) where settings.weatherBaseURL != nil {
            return .none
        } catch {
            return .failed(try Self.reason(error))
        }
    }

    /// Reads the parts of a feed that are about the places.
    private func read(
        _ data: Data, at places: Set<Coordinates>
    ) throws -> (parts: [WarningFeed.Part], dataTime: Date?) {
        let feed = try MeteoAlarmFeed(reading: data, status: 200, baseURL: settings.weatherBaseURL)
        var (parts, unknown): ([WarningFeed.Part], Set<RegionCode>) = ([], [])
        for place in places {
            let content = feed.content(at: place)
            unknown.formUnion(content.unknownCodes)
            parts.append(WarningFeed.Part(place: place, entries: content.entries, leftOut: content.leftOut))
        }
        try store.storeUnknownCodes(unknown)
        return (parts, feed.updated)
    }

    /// Stores a country's response for a place. The response is compared only with the stored warnings of the same country.
    ///
    /// - Returns: The number of new documents that were not requested.
    private func store(_ answer: CountryResponse, of country: MeteoAlarmCountry, at place: Place) async throws -> Int {
        guard let coordinates = place.coordinates else { return 0 }
        let feed: WarningFeed
        switch answer {
        case .none:
            try store.recordOutsideArea(by: country.key, of: place, now: BGTaskScheduler.now)
            return 0
        case .failed(let why):
            try store.storeWarningTrouble(why, by: country.key, of: place)
            return 0
        case .feed(let received): feed = received
        }
        let found = try await messages(of: feed, at: coordinates)
        let standing = found.messages.filter { message in
            message.infos.contains { $0.until > BGTaskScheduler.now || $0.hasOpenEnd == true }
        }
        var reasons = found.lacking + limits(of: standing, at: place)
        let isComplete = found.lacking.isEmpty
        let meant = found.messages.filter { $0.kind == .cancel || $0.infos.contains { $0.contains(coordinates) == true } }
            .map(Self.attributed)
        let taken = try store.storeWarnings(
            meant, isComplete: isComplete, dataTime: feed.dataTime, by: country.key, of: place, rule: settings.rule,
            now: BGTaskScheduler.now)
        if taken.keptCount > 0, let dataTime = feed.dataTime {
            reasons.append(WeatherError.oldWarnings(kept: taken.keptCount, dataTime: dataTime).message)
        }
        reasons += taken.unused
        if !reasons.isEmpty {
            try store.storeWarningTrouble(
                reasons.joined(separator: "; "), isPartial: !meant.isEmpty || isComplete, by: country.key, of: place)
        }
        return found.notRequested
    }

    /// Adds MeteoAlarm's name to the name of the service, as MeteoAlarm's terms require.
    private static func attributed(_ message: AlertMessage) -> AlertMessage {
        var message = message
        for index in message.infos.indices {
            message.infos[index].issuer = AlertService.meteoAlarm.attribution(issuer: message.infos[index].issuer)
        }
        return message
    }
}
