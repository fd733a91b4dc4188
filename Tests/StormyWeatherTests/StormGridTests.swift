import Foundation
import StormyWeather
import Testing

/// Compares the storm rule with the thunder score of Open-Meteo's server for more than 20,000 combinations of values.
@Suite struct StormGridTests {
    private let rule = StormRule()
    private let noon = Date(timeIntervalSince1970: 1_770_465_600)

    private func hour(_ air: OpenMeteoScore) -> ForecastHour {
        ForecastHour(
            start: noon, weatherCode: air.thunderCode ?? 3, precipitationMM: air.precipitation, showersMM: air.showers,
            gustsKMH: air.gusts.map { $0 * 3.6 }, cape: air.cape, convectiveInhibition: air.inhibition,
            liftedIndex: air.liftedIndex)
    }

    /// All combinations of values. In each combination, different shares of the rain are showers. The share `nil` means that the
    /// weather model has no value for showers.
    private static let grid: [OpenMeteoScore] = {
        var grid: [OpenMeteoScore] = []
        for cape in [0, 11, 100, 300, 800, 1500, 2500, 4000] as [Double] {
            for liftedIndex in [nil, 3, 0, -4, -8] as [Double?] {
                for inhibition in [nil, 0, 40, 120] as [Double?] {
                    for rain in [0, 0.1, 0.4, 0.5, 2, 8, 20] as [Double] {
                        for showers in [nil, 0, 1] as [Double?] {
                            for gusts in [nil, 5, 10.4, 15, 18, 25] as [Double?] {
                                for latitude in [0, 50] as [Double] {
                                    grid.append(
                                        OpenMeteoScore(
                                            cape: cape, liftedIndex: liftedIndex, inhibition: inhibition, precipitation: rain,
                                            showers: showers.map { $0 * rain }, gusts: gusts, cloudCover: 100, latitude: latitude)
                                    )
                                }
                            }
                        }
                    }
                }
            }
        }
        return grid
    }()

    /// Drizzle in unstable air has the code of a thunderstorm. A winter squall does not have this code.
    @Test func `the score gives the same thunder codes as the server`() {
        let drizzle = OpenMeteoScore(
            cape: 2000, liftedIndex: -5, inhibition: 0, precipitation: 0.2, showers: 0.2, gusts: 8, cloudCover: 100)
        #expect(drizzle.thunderCode == 95)
        let squall = OpenMeteoScore(
            cape: 300, liftedIndex: 0, inhibition: 0, precipitation: 8, showers: 8, gusts: 18, cloudCover: 100)
        #expect(squall.thunderCode == nil)
        #expect(OpenMeteoScore(cape: 10, precipitation: 20, cloudCover: 100).score == 0)
    }

    @Test func `values over the limits are a storm, and values under the limits are not`() {
        #expect(Self.grid.count >= 20_000, "\(Self.grid.count)")
        var (falseCodes, thunders, squalls) = (0, 0, 0)
        for air in Self.grid {
            let (hour, gusts) = (hour(air), (air.gusts ?? 0) * 3.6)
            let isStormy = rule.assess(Forecast(hours: [hour]), now: noon).isStormy == true
            let isSquall = gusts >= rule.gustsKMH || air.precipitation >= rule.rainMMPerHour
            let hasSecondKey = gusts >= rule.gustsKMH / 2 || air.precipitation >= 0.5 && air.cape >= StormRule.confirmingCAPE
            if isSquall {
                squalls += 1
                #expect(isStormy, "\(air)")
            } else if air.thunderCode == nil || !hasSecondKey {
                #expect(!isStormy, "\(air)")
                falseCodes += air.thunderCode == nil ? 0 : 1
            } else {
                thunders += 1
                #expect(isStormy, "\(air)")
            }
        }
        // The grid contains enough combinations of each kind for a useful test.
        #expect(falseCodes > 200 && thunders > 1000 && squalls > 1000, "\(falseCodes), \(thunders), \(squalls)")
    }

    /// Compares the page in the documentation with the results. If `WRITE_TABLES=1` is set, the test writes the page.
    @Test func `the documentation page contains the results of the rule`() throws {
        let airs: [(String, OpenMeteoScore)] = [
            ("drizzle in unstable air", air(cape: 2000, -5, 0, rain: 0.2, gusts: 8)),
            ("drizzle in very unstable air", air(cape: 4000, -8, 0, rain: 0.4, gusts: 5)),
            ("a dry, unstable afternoon", air(cape: 4000, -8, 0, rain: 0, gusts: 5)),
            ("an unstable afternoon with drizzle and stronger wind", air(cape: 4000, -8, 0, rain: 0.2, gusts: 12)),
            ("a shower with thunder", air(cape: 1500, -4, 10, rain: 0.8, gusts: 8)),
            ("a thunderstorm of summer", air(cape: 2500, -6, 0, rain: 6, gusts: 16)),
            ("a squall of winter", air(cape: 300, 0, 0, rain: 8, gusts: 18)),
            ("a stronger squall of winter", air(cape: 150, 1, 0, rain: 8, gusts: 22)),
            ("a cloudburst without thunder", air(cape: 200, 1, 60, rain: 24, gusts: 9)),
            ("a gale in clear air", air(cape: 0, 5, 0, rain: 0, gusts: 25)),
        ]
        let rows = airs.map { name, air in
            let assessment = rule.assess(Forecast(hours: [hour(air)]), now: noon)
            let reasons = assessment.reasons.map { "\($0.kind.rawValue): \($0.keyWords ?? "")" }
            let said =
                reasons.isEmpty
                ? (assessment.unconfirmed == [] ? "" : "thunder without a confirming condition") : reasons.joined(separator: "; ")
            let value = { (value: Double) in value == value.rounded() ? "\(Int(value))" : "\(value)" }
            return
                "| \(name) | \(value(air.cape)) | \(value(air.precipitation)) | \(value((air.gusts! * 3.6 * 10).rounded() / 10)) "
                + "| \(air.thunderCode.map(String.init) ?? "none") | \(assessment.reasons.isEmpty ? "calm" : "**storm**") | \(said) |"
        }
        let page = """
            # When it is a storm

            Shows which hours Stormy counts as a storm. The table also shows which hours have a code for thunder from Open-Meteo's server.

            ## Overview

            An hour counts as a storm if the gusts or the rain reach their limit. The section `[storm]` of the configuration sets the limits. This page uses the
            default limits of \(Int(rule.gustsKMH)) km/h for gusts and \(Int(rule.rainMMPerHour)) mm per hour for rain. Thunder counts only with a confirming condition, because the weather code
            for thunder is only a score of how unstable the air is. Each of these two conditions confirms thunder:

            - The rain or the showers are at least \(StormRule.confirmingRainMM) mm per hour, and the CAPE is at least \(Int(StormRule.confirmingCAPE)) J/kg if the service sends a CAPE. The CAPE is the energy of unstable air.
            - The gusts are at least half of the limit for gusts.

            Thunder without a confirming condition does not count, but the command `stormy check` reports the thunder. If a forecast has no value of rain
            for an hour with thunder, the weather of this hour is unknown, and the command reports the hour. The weather code 96 means thunder with hail.
            Stormy does not show hail for this code, because Open-Meteo's server computes the code from this score, and no value of the score measures
            hail.

            A test writes this page with the command `WRITE_TABLES=1 swift test --filter StormGridTests`. The test checks \(Self.grid.count) combinations of weather
            values. The test checks that values below the limits without a confirming condition never count, and that every squall above the limits counts.

            | Air | CAPE, J/kg | Rain, mm/h | Gusts, km/h | Thunder code | Result | Reason |
            | --- | --- | --- | --- | --- | --- | --- |
            \(rows.joined(separator: "\n"))

            """
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/Stormy/StormyWeather/StormyWeather.docc/StormRule.md").standardized
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(page.utf8).write(to: file) }
        #expect(try String(contentsOf: file, encoding: .utf8) == page, "WRITE_TABLES=1 writes the page again")
    }

    private func air(cape: Double, _ liftedIndex: Double, _ inhibition: Double, rain: Double, gusts: Double) -> OpenMeteoScore {
        OpenMeteoScore(
            cape: cape, liftedIndex: liftedIndex, inhibition: inhibition, precipitation: rain, showers: rain, gusts: gusts,
            cloudCover: 100)
    }
}
