import BackgroundTasks
import Foundation
import StormyWeather

/// Judges an answer and writes it down, for whoever asked.
struct AnswerTaking {
    /// Of another day, or with nothing in it: no answer, and never calm. What is stored stays.
    struct Unusable: Error {
        let why: String
    }

    /// An answer that was judged, and the forecast that was judged: hours that the service does not know are filled.
    struct Taken {
        var assessment: Assessment
        var forecast: Forecast
    }

    let store: StormyStore
    let settings: StormySettings

    /// - Parameter next: requests the next service that covers the place. It is called while thunder is unconfirmed, or hours just ahead are
    ///   unknown. It returns `nil` if no service is left.
    /// - Throws: ``Unusable``; what the store says.
    func take(
        _ fetched: FetchedForecast, of place: Place, next: () async throws -> Forecast?
    ) async throws -> Taken {
        let (alerts, rule) = (try store.warnings(of: place), settings.rule)
        var (fetched, second): (FetchedForecast, Forecast?) = (fetched, nil)
        while true {
            let now = BGTaskScheduler.now
            let known = rule.assess(fetched.content, beside: second, alerts: alerts, now: now)
            let isDoubtful = second == nil && known.isStormy != true && known.hasDoubtfulThunder
            guard isDoubtful || known.unknownHours != nil, let other = try await next() else { break }
            if isDoubtful { second = other }
            fetched.content = fetched.content.filled(known.unknownHours ?? [], from: other)
        }
        return Taken(assessment: try take(fetched, beside: second, of: place), forecast: fetched.content)
    }

    /// - Throws: ``Unusable``; what the store says.
    func take(_ fetched: FetchedForecast, beside second: Forecast?, of place: Place) throws -> Assessment {
        let (now, alerts) = (BGTaskScheduler.now, try store.warnings(of: place))
        if case .unknown(let why) = settings.rule.assess(fetched.content, beside: second, alerts: alerts, now: now).verdict {
            throw Unusable(why: why)
        }
        let assessment = try store.take(
            fetched, beside: second, of: place, fetchedAt: fetched.fetchedAt ?? now, rule: settings.rule, now: now)
        StormQuestion.withdrawTrouble(at: place)
        return assessment
    }
}
