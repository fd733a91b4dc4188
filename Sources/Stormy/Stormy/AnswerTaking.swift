import BackgroundTasks
import Foundation
import StormyWeather

/// Judges an answer and writes it down, for whoever asked.
struct AnswerTaking {
    /// Of another day, or with nothing in it: no answer, and never calm. What is stored stays.
    struct Unusable: Error {
        let why: String
    }

    let store: StormyStore
    let settings: StormySettings

    /// - Parameter secondWord: asks another service, where this one has thunder that nothing confirms.
    /// - Throws: ``Unusable``; what the store says.
    func take(
        _ fetched: FetchedForecast, of place: Place, secondWord: () async throws -> Forecast?
    ) async throws -> Assessment {
        let alerts = try store.warnings(of: place)
        let first = settings.rule.assess(fetched.content, alerts: alerts, now: BGTaskScheduler.now)
        let isDoubtful = first.isStormy != true && first.hasDoubtfulThunder
        return try take(fetched, beside: isDoubtful ? await secondWord() : nil, of: place)
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
