import Foundation

/// The next hours of a place with the expected weather, for plots and pictures.
package struct PlottedHours: Sendable {
    /// The mark of an hour, which shows a storm or a doubtful storm.
    package enum Mark: Sendable, Equatable { case none, storm, doubtful }

    package struct Hour: Sendable, Equatable {
        package var start: Date
        package var rainMM: Double?
        package var gustsKMH: Double?
        package var temperatureC: Double?
        package var mark: Mark
    }

    package let hours: [Hour]
    package let timeZone: TimeZone
    package let locale: Locale
    package let units: WeatherUnits
    /// The lowest gusts that are a storm.
    package let gustsLimit: Double

    /// Creates the hours from a forecast. Hours without values are included as empty hours.
    ///
    /// - Parameters:
    ///   - count: the maximum number of hours from now.
    package init(
        _ forecast: Forecast, _ assessment: Assessment?, rule: StormRule, now: Date, count: Int, timeZone: TimeZone,
        locale: Locale, units: WeatherUnits
    ) {
        (self.timeZone, self.locale, self.units, gustsLimit) = (timeZone, locale, units, rule.gustsKMH)
        let first = Date(timeIntervalSince1970: (now.timeIntervalSince1970 / 3600).rounded(.down) * 3600)
        let known = Dictionary(forecast.hours.map { ($0.start, $0) }) { first, _ in first }
        // The hours of some services begin at half past the full hour.
        let offset = forecast.hours.first.map { $0.start.timeIntervalSince1970.truncatingRemainder(dividingBy: 3600) } ?? 0
        func isIn(_ reasons: [StormReason]?, _ start: Date) -> Bool {
            reasons?.contains { $0.from < start + 3600 && start < $0.until } ?? false
        }
        let all = (0..<max(0, count)).map { index -> Hour in
            let start = first + Double(index) * 3600 + offset
            let hour = known[start]
            let mark: Mark =
                isIn(assessment?.reasons, start) ? .storm : isIn(assessment?.unconfirmed, start) ? .doubtful : .none
            return Hour(
                start: start, rainMM: hour?.rainMM, gustsKMH: hour?.gustsKMH,
                temperatureC: hour?.temperatureC, mark: mark)
        }
        let last = all.lastIndex { $0.rainMM != nil || $0.gustsKMH != nil || $0.temperatureC != nil || $0.mark != .none }
        hours = last.map { Array(all[...$0]) } ?? []
    }

    private func number(_ hour: Hour) -> Int {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = timeZone
        return calendar.component(.hour, from: hour.start)
    }

    private var countsToTwelve: Bool { [.oneToTwelve, .zeroToEleven].contains(locale.hourCycle) }

    /// Returns the label of an hour: "14", or "2" in locales with a 12-hour clock.
    func label(_ hour: Hour) -> String {
        let number = number(hour)
        if countsToTwelve { return "\(number % 12 == 0 ? 12 : number % 12)" }
        return number < 10 ? "0\(number)" : "\(number)"
    }

    /// Returns "am" or "pm" for the first hour of each half of the day. `nil` in locales with a 24-hour clock.
    ///
    /// - Parameter isFirst: `true` if the hour is the first hour of the plot.
    func half(_ hour: Hour, isFirst: Bool) -> String? {
        let number = number(hour)
        guard countsToTwelve else { return nil }
        return isFirst || number % 12 == 0 ? number < 12 ? "am" : "pm" : ""
    }

    var mostRain: Double { hours.compactMap(\.rainMM).max() ?? 0 }
    var mostGusts: Double? { hours.compactMap(\.gustsKMH).max() }
}
