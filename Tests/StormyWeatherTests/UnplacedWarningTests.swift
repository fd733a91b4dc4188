import Foundation
import StormyWeather
import Testing

/// Tests warnings whose areas cannot be compared with a place.
@Suite struct UnplacedWarningTests {
    private let noon = Date(timeIntervalSince1970: 1_782_907_200)
    private let north = "<polygon>10,10 10,11 11,11 11,10</polygon>"
    private let here = "<polygon>47,8 47,9 48,9 48,8</polygon>"

    private func area(_ content: String) -> String { "<area><areaDesc>x</areaDesc>\(content)</area>" }

    private func code(_ value: String, _ type: String = "EMMA_ID") -> String {
        "<geocode><valueName>\(type)</valueName><value>\(value)</value></geocode>"
    }

    private func info(_ areas: String..., severity: String = "Severe", hours: Double = 8) -> String {
        """
        <info><category>Met</category><event>Tornado</event><severity>\(severity)</severity>
        <expires>\((noon + hours * 3600).formatted(.iso8601))</expires>\(areas.map(area).joined())</info>
        """
    }

    private func unplaced(
        _ infos: String..., kind: String = "Alert", least: CAPSeverity = .severe
    ) throws -> AlertMessage.Unplaced? {
        let text = """
            <alert><identifier>a</identifier><sender>s</sender><sent>2026-07-01T10:00:00Z</sent><status>Actual</status>
            <msgType>\(kind)</msgType>\(infos.joined())</alert>
            """
        let message = try #require(try CAPDocument.parse(Data(text.utf8)))
        return message.unplaced(at: try Coordinates(latitude: 47.37, longitude: 8.54), least: least, now: noon)
    }

    @Test func `a warning that is drawn in part elsewhere and has an area by code alone is reported`() throws {
        let fips = code("017001", "FIPS6")
        #expect(try unplaced(info(north, fips)) == .some)
        #expect(try unplaced(info(fips, "")) == .all && unplaced(info()) == .all)
        // The warning has two parts, and only the second part is severe enough.
        #expect(try unplaced(info(north, severity: "Moderate"), info(fips, severity: "Extreme")) == .all)
        #expect(try unplaced(info(north, severity: "Severe"), info(fips, severity: "Extreme")) == .some)
        #expect(
            try unplaced(info(here, severity: "Moderate"), info(fips, severity: "Extreme")) == .all,
            "the part here does not count")
    }

    @Test func `a warning with a known code elsewhere and an unknown code is reported`() throws {
        #expect(try unplaced(info(code("AT901"), code("FR999"))) == .some)
        #expect(try unplaced(info(code("AT901") + code("FR999"))) == .some, "in one area")
        #expect(try unplaced(info(code("AT901 FR999"))) == .some, "in one value")
        // Two codes of different types are two names of one area.
        #expect(try unplaced(info(code("AT901") + code("AT999", "NUTS3"))) == nil)
        #expect(try unplaced(info(code("AT901") + code("12345", "WARNCELLID"))) == nil)
    }

    @Test func `a warning that is shown, over, cancelled or below the severity is not reported`() throws {
        let fips = code("017001", "FIPS6")
        #expect(try unplaced(info(here, fips)) == nil && unplaced(info(north, fips, here)) == nil)
        #expect(try unplaced(info(here, severity: "Severe"), info(fips, severity: "Extreme")) == nil, "it is shown")
        #expect(
            try unplaced(info(fips, severity: "Moderate")) == nil
                && unplaced(info(fips, severity: "Moderate"), least: .moderate) == .all)
        #expect(try unplaced(info(fips, severity: "Unknown")) == nil)
        #expect(try unplaced(info(fips, hours: -1)) == nil && unplaced(info(fips), kind: "Cancel") == nil)
        #expect(try unplaced(info(north)) == nil && unplaced(info(north + fips)) == nil, "a drawn area needs no code")
    }
}
