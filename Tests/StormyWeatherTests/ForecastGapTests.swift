import Foundation
import StormyWeather
import Testing

private let noon = Date(timeIntervalSince1970: 1_770_465_600)

private func window(_ from: Double, _ until: Double) -> StormWindow {
    StormWindow(from: noon + from * 3600, until: noon + until * 3600)
}

private func day(_ source: String = "One", hours: Range<Int> = 0..<48, _ change: (Int, inout ForecastHour) -> Void = { _, _ in })
    -> Forecast
{
    Forecast(
        hours: hours.map { number in
            var hour = ForecastHour(
                start: noon + Double(number) * 3600, weatherCode: 3, precipitationMM: 0, gustsKMH: 20, cape: 0)
            change(number, &hour)
            return hour
        }, source: source)
}

/// Tests hours without values in the near future of a forecast, and how another service fills these hours.
@Suite struct ForecastGapTests {
    private let rule = StormRule()

    /// A forecast without weather codes in the next six hours.
    private let sixUnknown = day { number, hour in if number < 6 { hour.weatherCode = nil } }

    @Test func `unknown hours just ahead are reported although the verdict is calm`() {
        let assessment = rule.assess(sixUnknown, now: noon + 600)
        #expect(assessment.verdict == .calm && assessment.unknownHours == [window(0, 6)])
        #expect(assessment.unknownHours?.hourCount == 6)
        #expect(rule.assess(day(), now: noon).unknownHours == nil)
    }

    @Test func `hours that are missing, or lack gusts or rain that other hours have, are unknown`() {
        let cases: [(Forecast, [StormWindow])] = [
            (day(hours: 0..<8), [window(8, 24)]),
            (
                Forecast(hours: day().hours.filter { ![3, 4, 9].contains(Int($0.start.timeIntervalSince(noon) / 3600)) }),
                [
                    window(3, 5), window(9, 10),
                ]
            ),
            (day { number, hour in if number == 2 { hour.gustsKMH = nil } }, [window(2, 3)]),
            (day { number, hour in if number == 2 { hour.precipitationMM = nil } }, [window(2, 3)]),
            // Hours without values are reported up to the horizon, which is 24 hours ahead.
            (day { number, hour in if [23, 24].contains(number) { hour.weatherCode = nil } }, [window(23, 24)]),
            // Some services have no values for gusts.
            (day { _, hour in hour.gustsKMH = nil }, []),
            (day { number, hour in if number > 5 { hour.gustsKMH = nil } }, [window(6, 24)]),
        ]
        for (forecast, expected) in cases { #expect(rule.unknownHours(in: forecast, now: noon) == expected) }
        #expect(StormRule(horizonHours: 3).unknownHours(in: day(hours: 0..<2), now: noon) == [window(2, 3)])
        #expect(StormRule(thunderstorm: false).unknownHours(in: sixUnknown, now: noon) == [], "no code is needed")
    }

    @Test(arguments: [(1, 3), (24, 3), (48, 3), (49, 4), (168, 8)])
    func `a forecast is requested up to the horizon`(_ horizon: Int, _ days: Int) {
        #expect(StormRule(horizonHours: horizon).forecastDays == days)
    }

    @Test func `hours that begin at the half hour are known`() {
        var forecast = day(hours: -2..<48)
        for index in forecast.hours.indices { forecast.hours[index].start += 1800 }
        #expect(rule.unknownHours(in: forecast, now: noon + 60) == [])
        forecast.hours[4].weatherCode = nil
        #expect(rule.unknownHours(in: forecast, now: noon + 60) == [window(2.5, 3.5)])
        // The hours of the second service begin at full hours. If an hour of the first service begins at half past, it is filled
        // with the worse of two values.
        let other = day("Two") { number, hour in if number == 3 { hour.gustsKMH = 90 } }
        let filled = forecast.filled([window(2.5, 3.5)], from: other)
        #expect(filled.hours[4].gustsKMH == 90 && filled.hours[4].source == "Two" && filled.hours.count == forecast.hours.count)
        #expect(rule.unknownHours(in: filled, now: noon + 60) == [])
    }

    @Test func `the next service judges the unknown hours only`() {
        let other = day("Two") { number, hour in
            if number == 4 || number == 20 { (hour.weatherCode, hour.precipitationMM, hour.cape) = (95, 3, nil) }
        }
        let filled = sixUnknown.filled(rule.unknownHours(in: sixUnknown, now: noon), from: other)
        let assessment = rule.assess(filled, now: noon)
        #expect(assessment.verdict == .stormy && assessment.unknownHours == nil)
        // The second service forecasts thunder. The calm values of the first service do not refute this thunder.
        #expect(assessment.reasons.map(\.from) == [noon + 4 * 3600] && assessment.reasons.map(\.source) == ["One and Two"])
        #expect(filled.filledHours.map(\.window) == [window(0, 6)] && filled.filledHours.map(\.source) == ["Two"])
        #expect(filled.source == "One" && filled.hours.map(\.start) == sixUnknown.hours.map(\.start))
    }

    @Test func `a storm that the first service sees in an unknown hour stays`() {
        let windy = day { number, hour in if number < 6 { (hour.weatherCode, hour.gustsKMH) = (nil, 90) } }
        let filled = windy.filled([window(0, 6)], from: day("Two"))
        #expect(rule.assess(filled, now: noon).reasons.map(\.peak) == [90])
    }

    @Test func `a service that does not know the hours does not fill them`() {
        let filled = sixUnknown.filled([window(0, 6)], from: day("Two", hours: 3..<24) { _, hour in hour.temperatureC = 1 })
        #expect(rule.unknownHours(in: filled, now: noon) == [window(0, 3)])
        let blind = Forecast(hours: (0..<24).map { ForecastHour(start: noon + Double($0) * 3600) }, source: "Three")
        #expect(filled.filled([window(0, 3)], from: blind) == filled)
        #expect(filled.filled([window(0, 3)], from: day("Four")).filledHours.map(\.source) == ["Four", "Two"])
    }

    /// Only one service forecasts the thunder, and its hours also fill gaps in the other forecast. The hours that this service
    /// filled do not confirm its own thunder.
    @Test func `a filled hour does not confirm the thunder of its service`() {
        let other = day("Two") { number, hour in if number == 4 { (hour.weatherCode, hour.cape) = (95, nil) } }
        let filled = sixUnknown.filled([window(0, 6)], from: other)
        let assessment = rule.assess(filled, beside: other, now: noon)
        #expect(assessment.isStormy == false && assessment.hasDoubtfulThunder)
        let third = day("Three") { number, hour in if number == 4 { hour.weatherCode = 95 } }
        #expect(rule.assess(filled, beside: third, now: noon).isStormy == true)
    }

    @Test func `a response that confirms a forecast does not confirm the hours of other services`() {
        let filled = sixUnknown.filled([window(0, 6)], from: day("Two"))
        #expect(rule.unknownHours(in: filled.unfilled, now: noon) == [window(0, 6)])
        #expect(day().unfilled == day())
    }

    @Test func `a forecast that an earlier version stored is read`() throws {
        let stored = Data(#"{"utcOffsetSeconds":0,"source":"One","hours":[{"start":0,"weatherCode":3}]}"#.utf8)
        #expect(try JSONDecoder().decode(Forecast.self, from: stored).hours.map(\.source) == [nil])
        let assessment = Data(#"{"verdict":{"calm":{}},"reasons":[]}"#.utf8)
        #expect(try JSONDecoder().decode(Assessment.self, from: assessment).unknownHours == nil)
    }
}
