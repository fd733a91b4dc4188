import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

/// Tests daily checks and manual checks with responses in the format of each weather service.
@Suite(.timeLimit(.minutes(30))) struct WeatherServiceTests {
    private func play(
        _ provider: String, at place: String, _ configuration: String = "",
        _ body: @Sendable (VirtualHome) async throws -> Void
    ) async throws {
        try await VirtualHome.play("provider = \"\(provider)\"\ncontact = \"me@example.org\"\n\(configuration)") { home in
            home.server.route(nil, "*", .status(404))
            #expect(try await home.stormy("place", "add", "Here", place, "--no-sync").status == 0)
            try await body(home)
        }
    }

    // MARK: The daily check with each service

    @Test(arguments: [
        ("met-norway", "59.91,10.75", "MET Norway"), ("nws", "30,-85", "US National Weather Service"),
        ("bright-sky", "52.52,13.4", "Deutscher Wetterdienst (Bright Sky)"),
    ])
    func `the daily check alerts with the forecast of each service`(_ provider: String, _ place: String, _ name: String)
        async throws
    {
        try await play(provider, at: place) { home in
            home.server.route("GET", MetNorwayAnswer.path, .json(MetNorwayAnswer.forecast(thunder: true, from: home.now)))
            home.server.route("GET", NationalWeatherServiceAnswer.pointsPath, .json(NationalWeatherServiceAnswer.points))
            home.server.route(
                "GET", NationalWeatherServiceAnswer.forecastPath,
                .json(NationalWeatherServiceAnswer.forecast(thunder: true, from: home.now)))
            home.server.route("GET", BrightSkyAnswer.forecastPath, .json(BrightSkyAnswer.forecast(from: home.now)))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Storm expected in Here"])
            let check = try #require((try await home.status()["checks"] as? [[String: Any]])?.first)
            #expect(check["source"] as? String == name && check["stormy"] as? Bool == true, "\(check)")
            for request in home.server.requests() {
                #expect(request.headers["User-Agent"]?.contains("(me@example.org)") == true)
            }
            let said = try await home.stormy("check").output
            #expect(said.contains("Because: thunderstorm (WMO 95) with ") && said.contains(name), "\(said)")
        }
    }

    /// MET Norway requires clients to keep a response until it expires.
    @Test func `a service is not requested before its response expires`() async throws {
        let date = "Mon, 20 Jul 2020 11:44:31 GMT"
        let style = Date.VerbatimFormatStyle(
            format:
                "\(weekday: .abbreviated), \(day: .twoDigits) \(month: .abbreviated) \(year: .defaultDigits) \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits) GMT",
            locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, calendar: Calendar(identifier: .gregorian))
        try await play("met-norway", at: "59.91,10.75") { home in
            home.server.route("GET", "/weatherapi/metalerts/*", .json(#"{"features":[]}"#))
            home.server.route(
                "GET", MetNorwayAnswer.path,
                ResponseScript([
                    .status(203),
                    .headers(["Expires": home.now.addingTimeInterval(1_800).formatted(style), "Last-Modified": date]),
                    .body(.text(MetNorwayAnswer.forecast(thunder: true, from: home.now))),
                ]))
            for _ in 0..<2 { #expect(try await home.stormy("check", "--fresh", "--exit-code").status == 10) }
            #expect(home.server.requests(matching: MetNorwayAnswer.path).count == 1)
            #expect(home.server.requests(matching: "/weatherapi/metalerts/*").count == 1)
            try await home.driver.advance(by: .seconds(1_801))
            home.server.route("GET", MetNorwayAnswer.path, .status(304))
            try await home.stormy("schedule")
            #expect(try await home.stormy("check", "--fresh", "--exit-code").status == 10)
            try await home.driver.advance(by: .seconds(60))
            #expect(try await home.check().outcome == .completed)
            let asked = home.server.requests(matching: MetNorwayAnswer.path).map { $0.headers["If-Modified-Since"] }
            #expect(asked == [nil, date, date])
        }
    }

    // MARK: One service after the other

    @Test(arguments: ["page", "refusal", "silence"])
    func `the next service is requested at once if one fails`(_ fault: String) async throws {
        try await play("open-meteo", at: "59.91,10.75") { home in
            let script: ResponseScript =
                switch fault {
                case "page": .status(200, headers: ["Content-Type": "text/html"], body: "<html>log in</html>")
                case "refusal": .status(403, body: "Forbidden")
                default: ResponseScript([.stall])
                }
            home.serve(script)
            home.server.route("GET", MetNorwayAnswer.path, .json(MetNorwayAnswer.forecast(thunder: true, from: home.now)))
            try await home.stormy("schedule")
            let check = try await home.check()
            #expect(check.outcome == .completed)
            #expect(try #require(check.endedAt).timeIntervalSince(check.startedAt) < 20)
            #expect(home.shown == ["Storm expected in Here"])
            let seen = try #require((try await home.status()["checks"] as? [[String: Any]])?.first)
            #expect(seen["source"] as? String == "MET Norway" && seen["trouble"] is NSNull, "\(seen)")
            guard fault != "silence" else { return }
            let said = try await home.stormy("check")
            #expect(said.errors.contains("Not used: Open-Meteo: ") && said.output.contains("Forecast of MET Norway"), "\(said)")
        }
    }

    @Test func `each service that fails is named if no service responds`() async throws {
        try await play("open-meteo", at: "59.91,10.75") { home in
            home.serve(.status(403, body: "Forbidden"))
            let said = try await home.stormy("check")
            #expect(said.status == 69 && said.errors.contains("Open-Meteo: ") && said.errors.contains("MET Norway: "), "\(said)")
        }
    }

    /// Thunder in one forecast is not a storm. A second service must also forecast thunder.
    @Test(arguments: [true, false]) func `a second service confirms thunder or refutes it`(_ agrees: Bool) async throws {
        try await play("open-meteo", at: "59.91,10.75") { home in
            home.serve(.json(Weather.forecast(from: home.now).replacing("2.4", with: "0.1")))
            home.server.route("GET", MetNorwayAnswer.path, .json(MetNorwayAnswer.forecast(thunder: agrees, from: home.now)))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            for arguments in [["check"], ["check", "--offline"]] {
                let said = try await home.stormy(arguments).output
                if agrees {
                    #expect(said.contains("Because: thunderstorm (WMO 95) as MET Norway also forecasts: Open-Meteo."), "\(said)")
                } else {
                    #expect(said.contains("Here: calm.") && said.contains("and MET Norway forecasts no thunder."), "\(said)")
                }
            }
            #expect(home.shown == (agrees ? ["Storm expected in Here"] : []))
        }
    }

    /// The time of the check ends while the first response arrives. The first response contains the URL of the forecast.
    @Test func `a response with the address of the forecast is followed after the hand-over`() async throws {
        try await play("nws", at: "30,-85", "[background]\nrefresh_budget_seconds = 2\ngrace_seconds = 2\n") { home in
            let points = NationalWeatherServiceAnswer.points
            home.server.closeGate("rest")
            home.server.route(
                "GET", NationalWeatherServiceAnswer.pointsPath,
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(points.utf8.count)"]), .hold(until: "rest"),
                    .body(.text(points)),
                ]))
            home.server.route(
                "GET", NationalWeatherServiceAnswer.forecastPath,
                .json(NationalWeatherServiceAnswer.forecast(thunder: true, from: home.now)))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .expired)
            home.server.openGate("rest")
            try await home.driver.advance(by: .seconds(60))
            #expect(home.shown == ["Storm expected in Here"])
            #expect(home.server.requests(matching: NationalWeatherServiceAnswer.pointsPath).count == 1, "a byte is fetched twice")
        }
    }

    // MARK: Official warnings

    private static let none = ResponseScript.json(BrightSkyAnswer.noWarnings)

    private static func warning(_ home: VirtualHome, _ severity: String = "severe", id: String = "2.49.0.0.276.1")
        -> ResponseScript
    {
        .json(BrightSkyAnswer.warning(severity, id: id, now: home.now))
    }

    /// The forecast is calm. Only the official warning reports the storm.
    @Test func `a warning alerts once and is called off when the service cancels it`() async throws {
        try await play("open-meteo", at: "52.52,13.4") { home in
            home.serveCalm()
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home))
            try await home.stormy("schedule")
            for _ in 0..<2 { #expect(try await home.check().outcome == .completed) }
            #expect(home.shown == ["Severe storm expected in Here"])
            let said = try await home.stormy("check").output
            #expect(said.contains("Because: warning: severe thunderstorm, severe: Deutscher Wetterdienst."), "\(said)")
            #expect(try await home.stormy("check", "--offline", "--exit-code").status == 10)
            // An update of this service has another identifier, but belongs to the same storm.
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home, id: "2.49.0.0.276.2"))
            #expect(try await home.check().outcome == .completed)
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.none)
            #expect(try await home.check().outcome == .completed)
            #expect(!home.onScreen.contains("Severe storm expected in Here"))
            #expect(try await home.stormy("check", "--exit-code").output.contains("Here: calm."))
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home, id: "2.49.0.0.276.3"))
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Severe storm expected in Here", "No longer expected: storm in Here"])
            #expect(home.onScreen == ["Severe storm expected in Here"], "the storm replaces the notification on the screen")
        }
    }

    @Test func `a storm found by a manual check is not shown if the forecast is calm at noon`() async throws {
        try await play(
            "open-meteo", at: "52.52,13.4", "[alerts]\ncap_feeds = [\"\(VirtualHome.origin)/feed.xml\"]\n"
        ) { home in
            home.serveForecast()
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.none)
            home.server.route("GET", "/feed.xml", .status(200, body: .text("<feed/>")))
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            home.serveCalm()
            #expect(try await home.stormy("check", "--notify", "--exit-code").status == 0)
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == [])
        }
    }

    /// An earlier check found a storm. The newest forecast has no values for these hours.
    @Test(arguments: [true, false])
    func `only the storm of the newest forecast is shown`(_ byHand: Bool) async throws {
        try await play("open-meteo", at: "1,1") { home in
            home.serveForecast(thunder: [20, 21])
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            home.serveForecast(thunder: [4, 5])
            if byHand {
                #expect(try await home.stormy("check", "--notify", "--exit-code").status == 10)
            } else {
                try await home.stormy("schedule")
                #expect(try await home.check().outcome == .completed)
            }
            try await home.driver.settle()
            #expect(home.shown == ["Storm expected in Here"])
        }
    }

    @Test func `a storm is shown although the warning service is silent`() async throws {
        try await play("open-meteo", at: "52.52,13.4") { home in
            home.serve(.json(Weather.forecast(from: home.now).replacing("2.4", with: "0.1")))
            home.server.route("GET", MetNorwayAnswer.path, .json(MetNorwayAnswer.forecast(thunder: true, from: home.now)))
            home.server.route("GET", BrightSkyAnswer.warningsPath, ResponseScript([.stall]))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Storm expected in Here"])
            let status = try await home.stormy("status").output
            #expect(status.contains("Not used: warnings of bright-sky: no"), "\(status)")
        }
    }

    @Test func `a command calls off a cancelled warning at once`() async throws {
        try await play("open-meteo", at: "52.52,13.4", "[storm]\nthunderstorm = false\n") { home in
            home.serve(.json(Weather.forecast(from: home.now).replacing("2.4", with: "0.1")))
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home))
            #expect(try await home.stormy("check", "--notify", "--exit-code").status == 10)
            try await home.driver.settle()
            #expect(home.onScreen == ["Severe storm expected in Here"])
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.none)
            #expect(try await home.stormy("check", "--exit-code").status == 0)
            try await home.driver.settle()
            #expect(home.onScreen == ["No longer expected: storm in Here"])
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home))
            #expect(try await home.stormy("check", "--notify", "--exit-code").status == 10)
            try await home.driver.settle()
            #expect(home.onScreen == ["Severe storm expected in Here"])
        }
    }

    @Test func `a warning that came and went in quiet hours is not called off`() async throws {
        try await play(
            "open-meteo", at: "52.52,13.4",
            "[storm]\nthunderstorm = false\n[notifications]\nquiet_hours = \"00:00-23:59\"\nquiet_passes = \"none\"\n"
        ) { home in
            home.serve(.json(Weather.forecast(from: home.now).replacing("2.4", with: "0.1")))
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home))
            #expect(try await home.stormy("check", "--notify", "--exit-code").status == 10)
            try await home.driver.settle()
            #expect(home.notification("storm-1")?.state == .pending)
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.none)
            #expect(try await home.stormy("check", "--exit-code").status == 0)
            try await home.driver.advance(by: .seconds(86_400))
            #expect(home.shown == [])
        }
    }

    @Test func `a warning alerts although no forecast is known`() async throws {
        try await play(
            "bright-sky", at: "52.52,13.4", "[background]\nrefresh_budget_seconds = 2\ngrace_seconds = 2\n"
        ) { home in
            home.serve(.status(403, body: "Forbidden"))
            home.server.route("GET", BrightSkyAnswer.forecastPath, .status(500))
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home))
            try await home.stormy("schedule")
            try await home.check()
            #expect(home.shown.contains("Severe storm expected in Here"), "\(home.shown)")
        }
    }

    @Test func `a warning below the chosen severity is printed and is not a storm`() async throws {
        try await play("open-meteo", at: "52.52,13.4") { home in
            home.serveCalm()
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.warning(home, "moderate", id: "2"))
            let said = try await home.stormy("check").output
            #expect(
                said.contains("Here: calm.") && said.contains("Not counted: warning: severe thunderstorm from ")
                    && said.contains(", moderate, but the configured minimum is severe: Deutscher Wetterdienst.\n"), "\(said)")
        }
    }

    @Test func `a silent feed does not delay the check`() async throws {
        let feeds = ["feed1", "feed2", "feed3", "good.xml"].map { "\"\(VirtualHome.origin)/\($0)\"" }.joined(separator: ", ")
        try await play("open-meteo", at: "1,1", "[alerts]\ncap_feeds = [\(feeds)]\n") { home in
            home.serveCalm()
            home.server.route("GET", "/feed*", ResponseScript([.stall]))
            home.server.route("GET", "/good.xml", CAPAnswer(home).document("a", area: "<circle>1,1 50</circle>"))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Extreme storm expected in Here"])
            let status = try await home.stormy("status").output
            for feed in ["feed1", "feed2", "feed3"] {
                #expect(status.contains("Not used: warnings of service.test/\(feed): "), "\(status)")
            }
            #expect(try await home.stormy("check", "--json").output.contains("warnings of service.test/feed3: "))
        }
    }

    @Test func `a warning service that cannot be used is named`() async throws {
        try await play("open-meteo", at: "52.52,13.4") { home in
            home.serveCalm()
            home.server.route(
                "GET", BrightSkyAnswer.warningsPath,
                .status(200, headers: ["Content-Type": "text/html"], body: "<html>log in</html>"))
            let said = try await home.stormy("check")
            #expect(said.status == 0 && said.errors.contains("warnings of bright-sky: the response is not"), "\(said)")
            try home.configure("[weather]\nbase_url = \"\(VirtualHome.origin)\"\n[storm]\nalert_severity = \"off\"\n")
            #expect(try await home.stormy("check").errors.isEmpty)
        }
    }

    /// A warning in a feed of documents causes an alert if its area contains the place. The document of the warning is requested
    /// only once. If the service cancels the warning, the notification is removed.
    @Test func `a feed warns of what is drawn around the place`() async throws {
        try await play("open-meteo", at: "1,1", "[alerts]\ncap_feeds = [\"\(VirtualHome.origin)/feed.xml\"]\n") { home in
            let (server, cap) = (home.server, CAPAnswer(home))
            home.serveCalm()
            let (here, there) = ("<circle>1,1 50</circle>", "<polygon>5,5 6,5 6,6</polygon>")
            server.route("GET", "/cap/here", cap.document("here", area: here))
            server.route("GET", "/cap/there", cap.document("there", area: there))
            server.route(
                "GET", "/cap/coded", cap.document("coded", area: "<geocode><valueName>X</valueName><value>1</value></geocode>"))
            server.route("GET", "/cap/test", cap.document("test", area: here, status: "Test"))
            server.route("GET", "/cap/end", cap.document("end", "Cancel", of: "here", area: here))
            server.route("GET", "/feed.xml", cap.feed("here", "there", "coded", "test"))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Extreme storm expected in Here"])
            let said = try await home.stormy("check")
            #expect(said.output.contains("Because: warning: Gale here, extreme: Met."), "\(said)")
            #expect(!said.output.contains("there") && !said.output.contains("Gale test"))
            #expect(
                said.errors.contains("/feed.xml: 1 of 3 warnings name their areas only by codes that Stormy does not know"),
                "\(said)")
            #expect(server.requests(matching: "/cap/*").count == 4, "each once")
            // The feed reports that one document was changed.
            let again =
                "<entry><updated>2026-07-01T12:00:00Z</updated><link type=\"application/cap+xml\" href=\"/cap/there\"/></entry>"
            server.route("GET", "/feed.xml", .status(200, body: .text("<feed>\(again)</feed>")))
            for _ in 0..<2 { try await home.stormy("check") }
            #expect(server.requests(matching: "/cap/there").count == 2)
            server.route("GET", "/feed.xml", cap.feed("here", "there", "end"))
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown.last == "No longer expected: storm in Here")
            // If a feed cannot be read, Stormy does not remove any warning.
            server.route("GET", "/feed.xml", .status(500))
            let unread = try await home.stormy("check")
            #expect(unread.errors.contains("/feed.xml: the weather service responded with status 500"), "\(unread)")
        }
    }

    @Test func `a feed of very detailed polygons is read up to a limit and the rest is reported`() async throws {
        try await play("open-meteo", at: "1,1", "[alerts]\ncap_feeds = [\"\(VirtualHome.origin)/feed.xml\"]\n") { home in
            let (server, cap) = (home.server, CAPAnswer(home))
            home.serveCalm()
            func polygon(_ corners: Int) -> String {
                "<polygon>-5,0 5,0 \(String(repeating: "5,5 ", count: corners - 2))</polygon>"
            }
            for name in ["1", "2", "3", "4", "5"] {
                server.route("GET", "/cap/\(name)", cap.document(name, area: polygon(50_000)))
            }
            server.route("GET", "/cap/oldest", cap.document("oldest", area: polygon(3)))
            server.route("GET", "/cap/finest", cap.document("finest", area: polygon(50_001)))
            server.route("GET", "/feed.xml", cap.feed("finest", "1", "2", "3", "4", "5", "oldest"))
            // The second check reads the stored documents.
            for _ in 0..<2 {
                let said = try await home.stormy("check")
                #expect(said.output.contains("warning: Gale ") && !said.output.contains("Gale oldest"), "\(said)")
                #expect(
                    said.errors.contains(
                        "1 of 6 warnings have more than 50000 corners in their areas, so Stormy does not use these warnings"),
                    "\(said)")
                #expect(
                    said.errors.contains(
                        "1 of the feed's documents were not used, because they exceed a limit or their links are not valid"),
                    "\(said)")
            }
            #expect(server.requests(matching: "/cap/*").count == 7, "each once")
        }
    }

    /// The time of the check ends before the warnings arrive.
    @Test func `warnings are handed over and alert later`() async throws {
        try await play(
            "open-meteo", at: "52.52,13.4", "[background]\nrefresh_budget_seconds = 2\ngrace_seconds = 2\n"
        ) { home in
            home.serveCalm()
            let warning = BrightSkyAnswer.warning(now: home.now)
            home.server.closeGate("warnings")
            home.server.route(
                "GET", BrightSkyAnswer.warningsPath,
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(warning.utf8.count)"]), .hold(until: "warnings"),
                    .body(.text(warning)),
                ]))
            try await home.stormy("schedule")
            try await home.check()
            #expect(home.shown == [])
            home.server.openGate("warnings")
            try await home.driver.advance(by: .seconds(60))
            #expect(home.shown == ["Severe storm expected in Here"])
            #expect(home.server.requests(matching: BrightSkyAnswer.warningsPath).count == 1, "a byte is fetched twice")
        }
    }

    // MARK: Places

    @Test func `a place that is renamed or moved keeps its storms`() async throws {
        try await play("open-meteo", at: "1,1") { home in
            home.serveForecast()
            try await home.stormy("schedule")
            try await home.check()
            #expect(home.shown == ["Storm expected in Here"])
            #expect(try await home.stormy("place", "rename", "here", "There").output == "Renamed here to There.\n")
            let moved = try await home.stormy("place", "move", "There", "-1.01,1.01")
            #expect(moved.output.contains("Moved There to -1.01,1.01.") && moved.output.contains("There: stormy."), "\(moved)")
            try await home.check()
            // The text of the notification is updated with the new name, without a second alert.
            #expect(
                home.onScreen == ["Storm expected in There"]
                    && home.driver.notifications.history.filter { $0.showings == 1 }.count == 1)
            #expect(try await home.stormy("place", "add", "Home", "2,2", "--no-sync").status == 0)
            #expect(try await home.stormy("place", "rename", "Home", "there").status == 65, "taken")
            #expect(try await home.stormy("place", "rename", "Nowhere", "X").status == 66)
            #expect(try await home.stormy("place", "move", "There").status == 64)
            #expect(try await home.stormy("place", "move", "There", "91,0").status == 65)
            #expect(try await (home.status()["storms"] as? [[String: Any]])?.map { $0["place"] as? String } == ["There"])
        }
    }

    @Test func `a place can use another service`() async throws {
        try await play("open-meteo", at: "1,1") { home in
            home.server.route("GET", MetNorwayAnswer.path, .json(MetNorwayAnswer.forecast(thunder: false, from: home.now)))
            let added = try await home.stormy("place", "add", "Oslo", "59.91,10.75", "--provider", "met-norway")
            #expect(added.output.contains("MET Norway"), "\(added)")
            #expect(try await home.rows("place", "list").map { $0["provider"] as? String } == [nil, "met-norway"])
            let wrong = try await home.stormy("place", "add", "Rome", "41.9,12.5", "--provider", "nws")
            #expect(wrong.status == 65 && wrong.errors.contains("nws has no forecasts for 41.9,12.5"), "\(wrong)")
            let unknown = try await home.stormy("place", "add", "Rome", "41.9,12.5", "--provider=yr")
            #expect(unknown.status == 64 && unknown.errors.contains("met-norway"), "\(unknown)")
            try home.configure("[weather]\nbase_url = \"\(VirtualHome.origin)\"\n")
            let anonymous = try await home.stormy("place", "add", "Rome", "41.9,12.5", "--provider", "met-norway")
            #expect(anonymous.status == 78 && anonymous.errors.contains("contact ="), "\(anonymous)")
        }
    }
}
