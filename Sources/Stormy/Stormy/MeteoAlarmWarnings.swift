import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather

// MeteoAlarm's feeds, one for each country of the places. The entries are compared with a place before a document is fetched.
extension FeedWarnings {
    /// The countries whose feeds a place needs. `nil` if another service warns there, or MeteoAlarm does not serve the place.
    func meteoAlarmCountries(of place: Place) throws -> [MeteoAlarmCountry]? {
        let coverage = settings.warningCoverage(of: place, failing: try store.failingServices(at: place))
        guard let coordinates = place.coordinates, coverage?.sources.contains(where: { $0.service == .meteoAlarm }) == true
        else { return nil }
        return RegionCoverage(of: coordinates).countries
    }

    /// - Returns: why feeds could not be read, and codes that the region table lacks.
    func refreshMeteoAlarm(_ places: [Place], within limit: Duration) async throws -> [String] {
        var needed: [(place: Place, countries: [MeteoAlarmCountry])] = []
        for place in places {
            if let countries = try meteoAlarmCountries(of: place) {
                needed.append((place, countries))
            } else {
                // The country's own service answers again. The warnings of both would count twice.
                try store.removeWarnings(by: Self.meteoAlarm, of: place)
            }
        }
        let countries = Set(needed.flatMap(\.countries))
        if countries.isEmpty { return [] }
        let feeds = try await withThrowingTaskGroup(of: (MeteoAlarmCountry, CountryAnswer).self) { group in
            for country in countries { group.addTask { (country, try await answer(of: country, within: limit)) } }
            return try await group.reduce(into: [MeteoAlarmCountry: CountryAnswer]()) { $0[$1.0] = $1.1 }
        }
        var (sentences, unknown): ([String], Set<String>) = ([], [])
        for (place, countries) in needed {
            let answers = countries.compactMap { feeds[$0] }
            if let why = try await take(answers, at: place, &unknown), !sentences.contains(why) {
                sentences.append(why)
            }
        }
        if !unknown.isEmpty {
            sentences.append("MeteoAlarm: areas that are not known: " + unknown.sorted().joined(separator: ", "))
        }
        return sentences
    }

    private static let meteoAlarm = AlertService.meteoAlarm.rawValue

    private enum CountryAnswer: Sendable {
        case feed(MeteoAlarmFeed)
        /// A mirror of the forecasts has no feed.
        case none
        case failed(String)
    }

    private func answer(of country: MeteoAlarmCountry, within limit: Duration) async throws -> CountryAnswer {
        do {
            let request = try MeteoAlarmFeed.request(for: country, baseURL: settings.weatherBaseURL)
            return try await within(limit) {
                .feed(try MeteoAlarmFeed(reading: await fetch(request), status: 200, baseURL: settings.weatherBaseURL))
            }
        } catch WeatherError.service(status: 404, _) where settings.weatherBaseURL != nil {
            return .none
        } catch {
            return .failed("\(country.name): \(try Self.reason(error))")
        }
    }

    /// - Returns: why the answers say less than they could.
    private func take(_ answers: [CountryAnswer], at place: Place, _ unknown: inout Set<String>) async throws -> String? {
        guard let coordinates = place.coordinates else { return nil }
        var (messages, reasons, dataTimes): ([AlertMessage], [String], [Date?]) = ([], [], [])
        var isComplete = true
        for answer in answers {
            switch answer {
            case .none: continue
            case .failed(let why):
                reasons.append(why)
                isComplete = false
            case .feed(let feed):
                let content = feed.content(at: coordinates)
                unknown.formUnion(content.unknownCodes.map { "\($0.type) \($0.value)" })
                let found = try await self.messages(of: content.entries, leftOut: content.leftOut)
                messages += found.messages
                dataTimes.append(feed.updated)
                let lacking = found.missing + found.leftOut + feed.unusable
                if lacking > 0 {
                    reasons.append("\(lacking) of its documents could not be read")
                    isComplete = false
                }
            }
        }
        guard !dataTimes.isEmpty else {
            if reasons.isEmpty {
                try store.noteOutside(by: Self.meteoAlarm, of: place, now: BGTaskScheduler.now)
                return nil
            }
            return try note(reasons, at: place)
        }
        let meant = messages.filter { $0.kind == .cancel || $0.infos.contains { $0.contains(coordinates) == true } }
            .map(Self.attributed)
        let taken = try store.takeWarnings(
            meant, isComplete: isComplete, dataTime: dataTimes.contains(nil) ? nil : dataTimes.compactMap { $0 }.min(),
            by: Self.meteoAlarm, of: place, rule: settings.rule, now: BGTaskScheduler.now)
        reasons += taken.unused
        return reasons.isEmpty ? nil : try note(reasons, at: place)
    }

    private func note(_ reasons: [String], at place: Place) throws -> String {
        let why = reasons.joined(separator: "; ")
        try store.noteWarningTrouble(why, by: Self.meteoAlarm, of: place)
        return "warnings of MeteoAlarm: \(why)"
    }

    /// MeteoAlarm's terms require its name beside the name of the service.
    private static func attributed(_ message: AlertMessage) -> AlertMessage {
        var message = message
        for index in message.infos.indices {
            message.infos[index].issuer = AlertService.meteoAlarm.attribution(issuer: message.infos[index].issuer)
        }
        return message
    }
}
