import Foundation
import StormyWeather
import Testing

private let noon = Date(timeIntervalSince1970: 1_770_465_600)

private func hour(
    _ offset: Double, code: Int? = 3, rain: Double? = 2, gusts: Double? = 10, showers: Double? = nil, cape: Double? = nil
) -> ForecastHour {
    ForecastHour(
        start: noon + offset * 3600, weatherCode: code, precipitationMM: rain, showersMM: showers, gustsKMH: gusts, cape: cape)
}

private func day(_ changes: [Int: ForecastHour] = [:], hours: Range<Int> = -12..<48) -> Forecast {
    Forecast(hours: hours.map { changes[$0] ?? hour(Double($0)) })
}

private func why(_ assessment: Assessment) -> String? {
    if case .unknown(let why) = assessment.verdict { why } else { nil }
}

@Suite struct StormRuleTests {
    private let rule = StormRule()

    @Test func `a day without severe values is calm`() {
        #expect(rule.assess(day(), now: noon) == Assessment(verdict: .calm))
    }

    @Test func `contiguous hours are one reason, and near reasons are one window`() {
        let forecast = day([
            5: hour(5, code: 95), 6: hour(6, code: 96, gusts: 92.4), 7: hour(7, code: 95, rain: 24), 9: hour(9, code: 99),
        ])
        let assessment = rule.assess(forecast, now: noon + 1800)
        #expect(assessment.verdict == .stormy)
        #expect(
            assessment.reasons.map(\.detail) == [
                "strong thunderstorm (WMO 96)", "gusts up to 92 km/h", "rain up to 24 mm per hour",
                "heavy thunderstorm (WMO 99)",
            ])
        #expect(assessment.reasons[0].from == noon + 5 * 3600)
        #expect(assessment.reasons[0].until == noon + 8 * 3600)
        #expect(assessment.windows == [StormWindow(from: noon + 5 * 3600, until: noon + 10 * 3600)])
    }

    @Test func `the horizon includes the present hour and excludes an hour that begins at its end`() {
        let now = noon + 1800
        #expect(rule.assess(day([-1: hour(-1, code: 95)]), now: now).isStormy == false)
        #expect(rule.assess(day([0: hour(0, code: 95)]), now: now).isStormy == true)
        #expect(rule.assess(day([24: hour(24, code: 95)]), now: now).isStormy == true)
        #expect(rule.assess(day([24: hour(24, code: 95)]), now: noon).isStormy == false)
        #expect(rule.assess(day([-1: hour(-1, code: 95)]), now: noon).isStormy == false)
    }

    @Test(arguments: [nil, NoDanger.past, .unlikely, .allClear])
    func `a warning confirms thunder unless it reports no danger`(_ noDanger: NoDanger?) {
        let dry = day([4: hour(4, code: 95, rain: 0)])
        #expect(rule.assess(dry, now: noon).isStormy == false)
        var info = AlertInfo(
            event: "Thunderstorm", hazard: .thunderstorm, severity: noDanger == nil ? .minor : nil, from: noon,
            until: noon + 9 * 3600, issuer: "Met X", areas: [])
        info.noDanger = noDanger
        let event = AlertEvent(messages: ["a"], state: .standing, infos: [info])
        #expect(rule.assess(dry, alerts: [event], now: noon).isStormy == (noDanger == nil))
    }

    @Test func `a value equal to its limit is a storm`() {
        #expect(rule.assess(day([1: hour(1, gusts: 75)]), now: noon).isStormy == true)
        #expect(rule.assess(day([1: hour(1, gusts: 74.9)]), now: noon).isStormy == false)
        #expect(rule.assess(day([1: hour(1, rain: 20)]), now: noon).isStormy == true)
        #expect(rule.assess(day([1: hour(1, rain: 19.9)]), now: noon).isStormy == false)
        #expect(StormRule(thunderstorm: false).assess(day([1: hour(1, code: 99)]), now: noon).isStormy == false)
    }

    @Test func `too little data is unknown, not calm`() {
        let blind = Forecast(hours: (0..<48).map { hour(Double($0), code: nil, rain: nil, gusts: nil) })
        #expect(why(rule.assess(blind, now: noon)) == "the forecast has no weather values for the next 24 hours")
        #expect(why(rule.assess(Forecast(hours: []), now: noon)) == "the forecast contains no hours")
        #expect(why(rule.assess(day(hours: -48..<(-2)), now: noon)) == "the forecast is too old: it ended 2 h 0 min ago")
        #expect(why(rule.assess(day(hours: 2..<48), now: noon)) == "the forecast begins only in 2 h 0 min")
        #expect(
            why(rule.assess(day(hours: -48..<5), now: noon)) == "the forecast is too old: it covers only 5 of the next 24 hours")
        #expect(rule.assess(day(hours: -48..<6), now: noon).verdict == .calm)
        let codeless = Forecast(hours: (0..<48).map { hour(Double($0), code: $0 < 3 ? 3 : nil) })
        #expect(why(rule.assess(codeless, now: noon)) == "the forecast has values for only 3 of the next 24 hours")
        #expect(StormRule(thunderstorm: false).assess(codeless, now: noon).verdict == .calm)
        #expect(StormRule(horizonHours: 3).assess(codeless, now: noon).verdict == .calm)
        let gap = Forecast(hours: [hour(-2)] + (1..<20).map { hour(Double($0)) })
        #expect(why(rule.assess(gap, now: noon)) == "the forecast has no values for the present hour")
    }

    @Test func `one stormy hour is a storm although other data is missing`() {
        #expect(rule.assess(Forecast(hours: [hour(2, code: 95, gusts: nil)]), now: noon).isStormy == true)
    }

    /// Each row contains rain and showers in millimetres, gusts in km/h, CAPE in J/kg, and whether thunder is part of a storm
    /// with these values. `nil` means that a value is unknown.
    @Test(
        arguments: [
            (0.1, nil, 10, 2000, false), (0.4, 0.4, 37.4, 2000, false), (0.5, nil, 10, 2000, true), (0.5, nil, 10, nil, true),
            (0, 0.5, nil, 100, true), (nil, 0.6, nil, 300, true), (5, nil, 10, 99, false), (0, nil, 37.5, 0, true),
            (0.1, nil, 80, nil, true),
            (0, nil, nil, nil, false), (nil, nil, 10, 2000, nil), (nil, nil, nil, nil, nil), (nil, nil, 40, nil, true),
        ] as [(Double?, Double?, Double?, Double?, Bool?)])
    func `thunder counts only with a confirming condition`(
        _ rain: Double?, _ showers: Double?, _ gusts: Double?, _ cape: Double?, _ counts: Bool?
    ) {
        let thunder = hour(3, code: 95, rain: rain, gusts: gusts, showers: showers, cape: cape)
        let assessment = rule.assess(day([3: thunder]), now: noon)
        #expect(assessment.isStormy == counts)
        #expect(assessment.reasons.contains { $0.kind == .thunderstorm && $0.key != nil } == (counts == true))
        let isCounted = counts == true
        #expect(
            assessment.unconfirmed?.map(\.window)
                == (isCounted ? [] : [StormWindow(from: noon + 3 * 3600, until: noon + 4 * 3600)]))
        if counts == nil {
            #expect(why(assessment) == "thunder is forecast in 3 h 0 min, but the amount of rain is not known")
        }
        #expect(StormRule(thunderstorm: false).assess(day([3: thunder]), now: noon).unconfirmed == [])
    }

    @Test func `the explanation of a reason contains its values and its source`() {
        let forecast = day([
            3: hour(3, code: 95, rain: 0.9, cape: 400), 4: hour(4, code: 96, rain: 4.2, gusts: 80, cape: 900),
            8: hour(8, code: 95, rain: 0.1, gusts: 40),
        ])
        #expect(
            rule.assess(forecast, now: noon).reasons.map { $0.explanation(in: .metric) } == [
                "strong thunderstorm (WMO 96) with rain of 4.2 mm per hour in unstable air (CAPE 900 J/kg): Open-Meteo",
                "gusts up to 80 km/h, the limit is 75 km/h: Open-Meteo",
                "thunderstorm (WMO 95) with gusts of 40 km/h: Open-Meteo",
            ])
    }

    @Test func `missing gusts do not make a forecast unknown`() {
        let forecast = Forecast(hours: (0..<24).map { hour(Double($0), gusts: nil) })
        #expect(rule.assess(forecast, now: noon).verdict == .calm)
    }

    @Test func `all weather codes are known`() {
        #expect(
            WeatherCode.all == [
                0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86, 95, 96, 99,
            ])
        #expect(WeatherCode.text(82) == "violent rain showers")
        #expect(WeatherCode.text(4) == nil)
        #expect((0...99).filter(WeatherCode.isThunderstorm) == [95, 96, 97, 98, 99])
    }

    @Test func `an assessment is equal after it is encoded and decoded`() throws {
        for assessment in [
            rule.assess(day([1: hour(1, code: 95)]), now: noon), rule.assess(Forecast(hours: []), now: noon),
            rule.assess(day(), now: noon),
        ] {
            #expect(try JSONDecoder().decode(Assessment.self, from: JSONEncoder().encode(assessment)) == assessment)
        }
    }

    @Test func `texts use the given time zone, locale and units`() throws {
        let zone = try #require(TimeZone(identifier: "Australia/Sydney"))
        let reason = { (kind: StormReasonKind, peak: Double, from: Double, until: Double) in
            StormReason(kind: kind, peak: peak, from: noon + from * 3600, until: noon + until * 3600)
        }
        // In Sydney's summer, noon GMT is 23:00 local time.
        let storm = [reason(.gusts, 92, 18, 19), reason(.thunderstorm, 96, 18, 21)]
        let british = Locale(identifier: "en_GB")
        #expect(
            StormText.body(storm, timeZone: zone, reader: zone, locale: british, units: .metric)
                == "Strong thunderstorm 17:00–20:00, gusts up to 92 km/h.")
        #expect(
            StormText.body(storm, timeZone: zone, reader: zone, locale: Locale(identifier: "en_US"), units: .unitedStates)
                == "Strong thunderstorm 5:00 PM–8:00 PM, gusts up to 57 mph.")
        let apart = [reason(.gusts, 80, 18, 19), reason(.rain, 24.5, 20, 22)]
        #expect(
            StormText.body(apart, timeZone: zone, reader: zone, locale: british, units: .metric)
                == "Gusts up to 80 km/h 17:00–18:00, rain up to 24.5 mm per hour 19:00–21:00.")
        #expect(
            StormText.body([reason(.gusts, 80, 0, 24)], timeZone: .gmt, reader: .gmt, locale: british, units: .metric).contains(
                "Sat 12:00–Sun 12:00"))
        // If the reader is in another time zone, the text must contain the time zone of the place.
        let elsewhere = TimeZone(identifier: "Europe/Berlin")!
        #expect(
            StormText.body(storm, timeZone: zone, reader: elsewhere, locale: british, units: .metric)
                == "Strong thunderstorm 17:00–20:00 (Australia/Sydney time), gusts up to 92 km/h.")
        #expect(
            !StormText.body(
                storm, timeZone: TimeZone(identifier: "Europe/Paris")!, reader: elsewhere, locale: british, units: .metric
            ).contains(
                "("))
        // Each value and its limit have the units of the reader.
        let rain = StormReason(kind: .rain, peak: 24.5, from: noon, until: noon + 3600, key: .limit(20), source: "X")
        #expect(
            WeatherUnits.allCases.map { rain.explanation(in: $0) } == [
                "rain up to 24.5 mm per hour, the limit is 20 mm per hour: X",
                "rain up to 24.5 mm per hour, the limit is 20 mm per hour: X",
                "rain up to 0.96 in per hour, the limit is 0.79 in per hour: X",
            ])
        let gusts = StormReason(kind: .gusts, peak: 92, from: noon, until: noon + 3600, key: .limit(75), source: "X")
        #expect(
            WeatherUnits.allCases.map { gusts.explanation(in: $0) } == [
                "gusts up to 92 km/h, the limit is 75 km/h: X", "gusts up to 57 mph, the limit is 47 mph: X",
                "gusts up to 57 mph, the limit is 47 mph: X",
            ])
        #expect(StormText.body([], timeZone: zone, reader: zone, locale: british, units: .metric).isEmpty)
        #expect(StormText.title(place: "Syd\u{1B}ney\n") == "Storm expected in Syd ney")
        #expect(StormText.title(place: "Sydney", .extreme) == "Extreme storm expected in Sydney")
        #expect(StormText.calledOff(place: "Sydney") == "No longer expected: storm in Sydney")
    }

    /// If a storm has already begun, only the time at which it ends is new information. Some desktops show only one line, so the
    /// text contains only this time.
    @Test func `the text of a storm that has begun contains only its end`() {
        func words(_ from: Double, _ until: Double, at hour: Double) -> String {
            let gusts = StormReason(kind: .gusts, peak: 80, from: noon + from * 3_600, until: noon + until * 3_600)
            return StormText.body(
                [gusts], timeZone: .gmt, reader: .gmt, locale: Locale(identifier: "en_GB"), units: .metric,
                now: noon + hour * 3_600)
        }
        let midnight = 12.0
        #expect(words(0, midnight, at: 1) == "Gusts up to 80 km/h until midnight.")
        #expect(!words(1, 3, at: 0).contains("until"))
        #expect(words(0, midnight + 48, at: 1).contains("until ") && !words(0, midnight + 48, at: 1).contains("midnight"))
    }

    @Test func `the severity of a storm is the severity of its worst reason`() {
        func severity(_ kind: StormReasonKind, _ peak: Double) -> StormSeverity {
            StormSeverity([StormReason(kind: kind, peak: peak, from: noon, until: noon + 3_600)])
        }
        #expect(severity(.gusts, 104.9) == .moderate && severity(.gusts, 105) == .severe && severity(.gusts, 140) == .extreme)
        #expect(severity(.rain, 24.9) == .moderate && severity(.rain, 25) == .severe && severity(.rain, 40) == .extreme)
        #expect(severity(.alert, 2) == .moderate && severity(.alert, 3) == .severe && severity(.alert, 4) == .extreme)
        #expect(severity(.thunderstorm, 99) == .moderate, "a weather code has a kind but no severity")
        let both = [
            StormReason(kind: .gusts, peak: 150, from: noon, until: noon),
            StormReason(kind: .rain, peak: 30, from: noon, until: noon),
        ]
        #expect(StormSeverity(both) == .extreme && StormSeverity([]) == .moderate)
    }
}
