import BackgroundTasksTesting
import Foundation
import ServerScripts
import Stormy
import StormyFixtures
import Testing

@testable import StormyCommand

/// Tests official warnings in the output of commands: the services of a place, their responses, and the reason for a missing
/// response.
@Suite(.timeLimit(.minutes(30))) struct OfficialWarningTests {
    private static let warningsOfUS = "/alerts/active*"

    private func play(
        _ place: String, _ configuration: String = "", _ body: @Sendable (VirtualHome) async throws -> Void
    ) async throws {
        try await VirtualHome.play(configuration) { home in
            home.server.route(nil, "*", .status(404))
            home.serveCalm()
            home.server.route("GET", Self.warningsOfUS, Self.answer(home, []))
            let added = try await home.stormy("place", "add", "Here", place, "--no-sync")
            #expect(added.status == 0 && added.output.contains("  Official warnings: "), "\(added)")
            try await body(home)
        }
    }

    /// - Parameters:
    ///   - identifiers: The severe warnings in the response.
    ///   - hours: The time of the service's data, in hours from now.
    private static func answer(_ home: VirtualHome, _ identifiers: [String], hours: Double = 0) -> ResponseScript {
        func time(_ hours: Double) -> String { home.now.addingTimeInterval(hours * 3600).formatted(.iso8601) }
        let features = identifiers.map { identifier in
            """
            {"properties":{"id":"\(identifier)","event":"Tornado Warning","messageType":"Alert","status":"Actual","severity":"Severe",
            "sent":"\(time(-0.1))","onset":"\(time(0))","ends":"\(time(9))","senderName":"NWS Miami FL"}}
            """
        }
        return .json("{\"features\":[\(features.joined(separator: ","))],\"updated\":\"\(time(hours))\"}")
    }

    private func warnings(_ home: VirtualHome) async throws -> [[String: Any]] {
        try await home.rows("check").first?["officialWarnings"] as? [[String: Any]] ?? []
    }

    // MARK: Without a contact

    @Test func `a US warning is shown without a contact`() async throws {
        try await play("25.76,-80.19") { home in
            home.server.route("GET", Self.warningsOfUS, Self.answer(home, ["a"]))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Severe storm expected in Here"])
            let request = try #require(home.server.requests(matching: Self.warningsOfUS).first)
            #expect(request.headers["User-Agent"] == "Stormy/0.2.0")
            let said = try await home.stormy("check").output
            #expect(said.contains("\n  Official warnings: US National Weather Service, 1 warning, "), "\(said)")
        }
    }

    @Test func `the US service is a forecast service without a contact`() async throws {
        try await play("30,-85", "provider = \"nws\"\n") { home in
            home.server.route("GET", NationalWeatherServiceAnswer.pointsPath, .json(NationalWeatherServiceAnswer.points))
            home.server.route(
                "GET", NationalWeatherServiceAnswer.forecastPath,
                .json(NationalWeatherServiceAnswer.forecast(thunder: true, from: home.now)))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && said.output.contains("Forecast of US National Weather Service"), "\(said)")
            #expect(try await home.stormy("place", "add", "There", "30,-85", "--provider", "nws").status == 0)
        }
    }

    @Test func `the missing contact for MET Norway is shown with the line to add`() async throws {
        try await VirtualHome.play { home in
            home.server.route(nil, "*", .status(404))
            home.serveCalm()
            let line = "add contact = \"you@example.org\" to [weather] in "
            let file = home.directories.configuration.appendingPathComponent("config.toml").path
            let expected =
                "MET Norway, not requested, because the service requires a contact. To receive these warnings, \(line)\(file)."
            for arguments in [
                ["place", "add", "Oslo", "59.91,10.75", "--no-sync"], ["place", "add", "Bergen", "60.39,5.32"],
                ["check", "Oslo"],
                ["place", "move", "Oslo", "59.92,10.75", "--no-sync"],
            ] {
                let said = try await home.stormy(arguments).output
                #expect(said.contains("  Official warnings: \(expected)\n"), "\(said)")
            }
            #expect(home.server.requests(matching: "/weatherapi/*").isEmpty)
            #expect(try await warnings(home).map { $0["answer"] as? String } == ["noContact", "outside"])
            try StormyTool.configure()
            let finding = try WarningLines(of: StormyStore.open().place(named: "Oslo"), in: .open()).finding
            #expect(
                finding.check == "warnings" && finding.status == .warning
                    && finding.message.hasPrefix("Oslo: \(expected.dropLast()); "))
            let checked = try await home.stormy("config", "--check")
            #expect(checked.status == 0 && checked.errors.contains("Bergen: \(expected)\n"), "\(checked)")
            let template = try await home.stormy("config").output
            #expect(template.contains("official warnings of MET Norway") && template.contains(": contact = "))

            try home.configure("[weather]\nbase_url = \"\(VirtualHome.origin)\"\ncontact = \"me@example.org\"\n")
            home.server.route("GET", "/weatherapi/metalerts/*", .json(#"{"features":[]}"#))
            let said = try await home.stormy("check", "Oslo").output
            #expect(said.contains("\n  Official warnings: MET Norway, no warning, "), "\(said)")
            #expect(try await home.stormy("config", "--check").errors.isEmpty)
        }
    }

    // MARK: Responses of each service

    @Test func `each service and feed is named with its response`() async throws {
        try await play("25.76,-80.19", "[alerts]\ncap_feeds = [\"\(VirtualHome.origin)/feed.xml?key=1\"]\n") { home in
            home.server.route("GET", "/feed.xml*", CAPAnswer(home).document("a", area: "<circle>25.76,-80.19 50</circle>"))
            let said = try await home.stormy("check").output
            #expect(said.contains("\n  Official warnings: US National Weather Service, no warning, "), "\(said)")
            #expect(
                said.contains("\n  Official warnings: service.test/feed.xml, 1 warning, ") && !said.contains("key=1"), "\(said)")
            home.server.route("GET", Self.warningsOfUS, .status(503))
            try await home.driver.advance(by: .seconds(7200))
            let failed = try await home.stormy("check").output
            let expected =
                "US National Weather Service, no usable response: the weather service responded with status 503; last response: no warning, 2 h ago"
            #expect(failed.contains(expected), "\(failed)")
            let rows = try await warnings(home)
            #expect(
                rows.map { $0["answer"] as? String } == ["failed", "answered"] && rows.map { $0["warnings"] as? Int } == [0, 1])
            try StormyTool.configure()
            let finding = try WarningLines(of: StormyStore.open().place(named: "Here"), in: .open()).finding
            #expect(finding.status == .warning && finding.message.hasPrefix("Here: \(expected)"), "\(finding.message)")
        }
    }

    @Test func `a place without a service, and a service that does not cover a place, are named`() async throws {
        try await play("-33.87,151.21") { home in
            let said = try await home.stormy("check").output
            #expect(
                said.contains(
                    "\n  Official warnings: no service that Stormy supports covers this place. To add feeds of warnings, set cap_feeds"
                ),
                "\(said)")
            #expect(try await warnings(home).isEmpty)
            try StormyTool.configure()
            #expect(try WarningLines(of: StormyStore.open().place(named: "Here"), in: .open()).finding.status == .ok)
            // Bright Sky itself determines whether a warning is for the place. The table of regions is not used.
            let added = try await home.stormy("place", "add", "Constance", "47.66,9.1758").output
            #expect(
                added.contains("\n  Official warnings: Deutscher Wetterdienst (Bright Sky) does not cover this place.\n"),
                "\(added)")
            try home.configure("[weather]\nbase_url = \"\(VirtualHome.origin)\"\n[storm]\nalert_severity = \"off\"\n")
            let off = try await home.stormy("check", "Constance").output
            #expect(off.contains("\n  Official warnings: off, because alert_severity is \"off\".\n"), "\(off)")
        }
    }

    // MARK: Data from before an outage

    @Test func `a warning is kept while the service sends data from before its outage`() async throws {
        try await play("25.76,-80.19") { home in
            home.server.route("GET", Self.warningsOfUS, Self.answer(home, ["a"]))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            try await home.driver.advance(by: .seconds(3600))
            home.server.route("GET", Self.warningsOfUS, Self.answer(home, [], hours: -5))
            #expect(try await home.check().outcome == .completed)
            #expect(home.onScreen == ["Severe storm expected in Here"])
            for arguments in [["check"], ["check", "--offline"], ["status"]] {
                let said = try await home.stormy(arguments)
                let text = said.output + said.errors
                #expect(text.contains("1 warning remains valid, although the service no longer lists it"), "\(said)")
            }
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && said.output.contains("; data from 1 h ago."), "\(said)")
            // The service now has new data again.
            home.server.route("GET", Self.warningsOfUS, Self.answer(home, []))
            #expect(try await home.check().outcome == .completed)
            #expect(home.onScreen == ["No longer expected: storm in Here"])
            #expect(try await home.stormy("check", "--exit-code").status == 0)
        }
    }

    @Test func `Bright Sky is requested for the time of its data when a warning disappears`() async throws {
        try await play("52.52,13.4") { home in
            let time = "/current_weather*"
            func record(_ hours: Double) -> ResponseScript {
                let last = home.now.addingTimeInterval(hours * 3600).formatted(.iso8601)
                return .json("{\"sources\":[{\"observation_type\":\"synop\",\"last_record\":\"\(last)\"}]}")
            }
            home.server.route("GET", BrightSkyAnswer.warningsPath, .json(BrightSkyAnswer.warning(now: home.now)))
            home.server.route("GET", time, record(-5))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.server.requests(matching: time).isEmpty)
            home.server.route("GET", BrightSkyAnswer.warningsPath, .json(BrightSkyAnswer.noWarnings))
            #expect(try await home.check().outcome == .completed)
            #expect(home.onScreen == ["Severe storm expected in Here"] && home.server.requests(matching: time).count == 1)
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            try await home.driver.advance(by: .seconds(1800))
            home.server.route("GET", time, record(-0.1))
            #expect(try await home.check().outcome == .completed)
            #expect(home.onScreen == ["No longer expected: storm in Here"])
        }
    }

    // MARK: Unknown hours

    /// Returns test case 12 as a response of Open-Meteo.
    private static func sixUnknown(_ home: VirtualHome) throws -> ResponseScript {
        let text = Weather.forecast(thunder: [], from: home.now)
        var forecast = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        var hourly = try #require(forecast["hourly"] as? [String: Any])
        let codes = try #require(hourly["weather_code"] as? [Any])
        hourly["weather_code"] = codes.enumerated().map { $0 < 6 ? NSNull() : $1 }
        forecast["hourly"] = hourly
        return .json(String(decoding: try JSONSerialization.data(withJSONObject: forecast), as: UTF8.self))
    }

    @Test func `unknown hours just ahead are reported by manual and daily checks`() async throws {
        try await play("1,1") { home in
            home.serve(try Self.sixUnknown(home))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            let said = try await home.stormy("check")
            #expect(said.output.contains("Here: calm in the hours with a forecast.\n"), "\(said)")
            #expect(
                said.output.contains(
                    "  The weather is not known: no service has all values from 10:00 to 16:00 (Europe/Berlin time). A storm in these hours is not detected."
                ))
            let row = try #require(try await home.rows("check").first)
            #expect((row["unknownHours"] as? [Any])?.count == 1 && (row["filledHours"] as? [Any])?.isEmpty == true)
            #expect(
                try await home.stormy("status").output.contains(
                    "  The weather is not known: no service has all values from 10:00"))
            #expect(try await home.stormy("check", "--offline").output.contains("calm in the hours with a forecast"))
        }
    }

    @Test(arguments: [true, false]) func `the next service judges unknown hours`(_ thunder: Bool) async throws {
        try await play("1,1", "contact = \"me@example.org\"\n") { home in
            home.serve(try Self.sixUnknown(home))
            home.server.route("GET", MetNorwayAnswer.path, .json(MetNorwayAnswer.forecast(thunder: thunder, from: home.now)))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == (thunder ? ["Storm expected in Here"] : []))
            for arguments in [["check"], ["check", "--offline"]] {
                let said = try await home.stormy(arguments).output
                let filled =
                    "  Values of MET Norway are used from 10:00 to 16:00 (Europe/Berlin time), because Open-Meteo lacks values for these hours.\n"
                #expect(said.contains(filled) && said.contains("Forecast of Open-Meteo"), "\(said)")
                #expect(said.contains(thunder ? ": Open-Meteo and MET Norway." : "Here: calm.\n"), "\(said)")
                #expect(!said.contains("The weather is not known"))
            }
        }
    }

    @Test func `a next service that fails is named`() async throws {
        try await play("1,1", "contact = \"me@example.org\"\n") { home in
            home.serve(try Self.sixUnknown(home))
            let said = try await home.stormy("check")
            #expect(said.errors.contains("Not used: MET Norway for the values that Open-Meteo does not have: "), "\(said)")
            #expect(said.output.contains("calm in the hours with a forecast"), "\(said)")
        }
    }
}
