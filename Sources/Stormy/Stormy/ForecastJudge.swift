import BackgroundTasks
import Foundation
import StormyWeather

/// Decides whether responses of weather services contain a storm, and stores the responses.
struct ForecastJudge {
    /// The error if a response has no usable hours, for example a forecast of another day. A response without usable hours never
    /// counts as calm, and does not replace the stored forecast.
    struct Unusable: Error {
        let why: String
    }

    /// An assessment, and the forecast that was judged. Hours without values of the service are filled with the values of other
    /// services.
    struct AssessedForecast {
        var assessment: Assessment
        var forecast: Forecast
    }

    let store: StormyStore
    let settings: StormySettings

    /// Judges and stores a forecast.
    ///
    /// - Parameter next: A closure that requests the next service that covers the place. The closure is called again if thunder
    ///   is still unconfirmed, or if the next hours still have no values. The closure returns `nil` if no service is left.
    /// - Throws: ``Unusable``, or an error of the store.
    func judge(
        _ fetched: FetchedForecast, of place: Place, next: () async throws -> Forecast?
    ) async throws -> AssessedForecast {
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
        return AssessedForecast(assessment: try judge(fetched, beside: second, of: place), forecast: fetched.content)
    }

    /// Judges and stores a forecast, with the forecast of a second service if a second service was requested.
    ///
    /// - Throws: ``Unusable``, or an error of the store.
    func judge(_ fetched: FetchedForecast, beside second: Forecast?, of place: Place) throws -> Assessment {
        let (now, alerts) = (BGTaskScheduler.now, try store.warnings(of: place))
        if case .unknown(let why) = settings.rule.assess(fetched.content, beside: second, alerts: alerts, now: now).verdict {
            throw Unusable(why: why)
        }
        let assessment = try store.storeResponse(
            fetched, beside: second, of: place, fetchedAt: fetched.fetchedAt ?? now, rule: settings.rule, now: now)
        StormQuery.withdrawTrouble(at: place)
        return assessment
    }
}
