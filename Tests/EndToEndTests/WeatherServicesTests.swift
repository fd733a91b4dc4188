import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Services in the shape of their recorded answers, at noon and by hand.
    @Suite struct WeatherServices {
        let desktop: Desktop
        let server: FaultyServer

        init() async throws {
            desktop = try Desktop()
            server = try await FaultyServer.start()
            server.route(nil, "*", .status(404))
        }

        private func home(_ provider: String, at place: String, extra: String = "", budget: Double? = nil) throws -> Home {
            let background = budget.map { "[background]\nrefresh_budget_seconds = \($0)\ngrace_seconds = 2\n" } ?? ""
            let home = try Home(
                server: server, desktop: desktop,
                extra: "provider = \"\(provider)\"\ncontact = \"me@example.org\"\n\(background)\(extra)")
            #expect(try home.stormy("place", "add", "Here", place, "--no-sync").status == 0)
            return home
        }

        private static let start = (Date().timeIntervalSince1970 / 3600).rounded(.down) * 3600

        private static func hours(_ count: Int) -> [String] {
            (0..<count).map { Date(timeIntervalSince1970: start + Double($0) * 3600).formatted(.iso8601) }
        }

        private func text(_ object: [String: Any]) throws -> String {
            String(decoding: try JSONSerialization.data(withJSONObject: object, options: .sortedKeys), as: UTF8.self)
        }

        // MARK: Their answers

        private func metNorway(thunder: Bool) throws -> String {
            let series = Self.hours(48).enumerated().map { index, time in
                let isThunder = thunder && (4...6).contains(index)
                return [
                    "time": time,
                    "data": [
                        "instant": ["details": ["air_temperature": 20.5]],
                        "next_1_hours": [
                            "summary": ["symbol_code": isThunder ? "rainshowersandthunder_day" : "fair_day"],
                            "details": ["precipitation_amount": isThunder ? 3.1 : 0.0],
                        ],
                    ],
                ] as [String: Any]
            }
            let meta: [String: Any] = ["updated_at": Self.hours(1)[0], "units": ["precipitation_amount": "mm"]]
            return try text(["type": "Feature", "properties": ["meta": meta, "timeseries": series]])
        }

        private static let metNorway = "/weatherapi/locationforecast/2.0/complete*"

        private func usService(thunder: Bool) throws {
            let periods = Self.hours(48).enumerated().map { index, time in
                let isThunder = thunder && (4...6).contains(index)
                return [
                    "startTime": time, "shortForecast": isThunder ? "Thunderstorms Likely" : "Mostly Sunny", "temperature": 70,
                    "temperatureUnit": "F", "windGust": isThunder ? "40 mph" : "10 mph",
                ] as [String: Any]
            }
            let points = try text([
                "properties": ["forecastHourly": "https://api.weather.gov/gridpoints/TAE/58,65/forecast/hourly"]
            ])
            let hourly = try text(["properties": ["updateTime": Self.hours(1)[0], "periods": periods]])
            server.route("GET", "/points/30,-85", .json(points))
            server.route("GET", "/gridpoints/TAE/58,65/forecast/hourly", .json(hourly))
        }

        private func brightSky() throws -> String {
            let rows = Self.hours(48).enumerated().map { index, time in
                [
                    "timestamp": time, "condition": index == 5 ? "thunderstorm" : "dry", "precipitation": index == 5 ? 4.2 : 0.0,
                    "wind_gust_speed": 20.0,
                ] as [String: Any]
            }
            return try text(["weather": rows])
        }

        // MARK: A noon on each

        @Test(arguments: ["met-norway", "nws", "bright-sky"]) func aNoonOnEachTellsOfItsStorm(_ provider: String) throws {
            let places = ["met-norway": "59.91,10.75", "nws": "30,-85", "bright-sky": "52.52,13.4"]
            let names = [
                "met-norway": "MET Norway", "nws": "US National Weather Service",
                "bright-sky": "Deutscher Wetterdienst (Bright Sky)",
            ]
            server.route("GET", Self.metNorway, .json(try metNorway(thunder: true)))
            try usService(thunder: true)
            server.route("GET", "/weather*", .json(try brightSky()))
            let home = try home(provider, at: places[provider]!)
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            let check = try #require((try home.status()["checks"] as? [[String: Any]])?.first)
            #expect(check["source"] as? String == names[provider] && check["stormy"] as? Bool == true, "\(check)")
            for request in server.activity.requests {
                #expect(request.headers["User-Agent"]?.contains("(me@example.org)") == true)
            }
            let said = try home.stormy("check").output
            #expect(said.contains("Because: thunderstorm (WMO 95) with ") && said.contains(names[provider]!), "\(said)")
        }

        /// MET Norway: nothing is asked before it expires, and then for a newer one alone, with the words of the last answer.
        @Test func nothingIsAskedBeforeItExpires() throws {
            let date = "Mon, 20 Jul 2020 11:44:31 GMT"
            func answer(_ expires: Double) throws -> ResponseScript {
                let style = Date.VerbatimFormatStyle(
                    format:
                        "\(weekday: .abbreviated), \(day: .twoDigits) \(month: .abbreviated) \(year: .defaultDigits) \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits) GMT",
                    locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, calendar: Calendar(identifier: .gregorian))
                let until = Date(timeIntervalSinceNow: expires).formatted(style)
                return ResponseScript([
                    .status(203), .headers(["Expires": until, "Last-Modified": date]), .body(.text(try metNorway(thunder: true))),
                ])
            }
            server.route("GET", "/weatherapi/metalerts/*", .json(#"{"features":[]}"#))
            server.route("GET", Self.metNorway, try answer(1800))
            let home = try home("met-norway", at: "59.91,10.75")
            for _ in 0..<2 { #expect(try home.stormy("check", "--fresh", "--exit-code").status == 10) }
            #expect(server.requests(matching: Self.metNorway).count == 1)
            #expect(server.requests(matching: "/weatherapi/metalerts/*").count == 1)
            // It has expired, by the word of another answer.
            server.route("GET", Self.metNorway, try answer(-1))
            let other = try self.home("met-norway", at: "59.91,10.75")
            #expect(try other.stormy("check", "--fresh", "--exit-code").status == 10)
            server.route("GET", Self.metNorway, .status(304))
            try other.stormy("schedule")
            #expect(try other.stormy("check", "--fresh", "--exit-code").status == 10)
            #expect(try other.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            let asked = server.requests(matching: Self.metNorway).map { $0.headers["If-Modified-Since"] }
            #expect(asked == [nil, nil, date, date])
        }

        // MARK: One after the other

        /// A log-in page, a refusal, or silence in the place of the first: the next is asked the same minute, and the answer says so.
        @Test(arguments: ["page", "refusal", "silence"]) func theNextIsAskedWhereOneFails(_ fault: String) throws {
            let script: ResponseScript =
                switch fault {
                case "page": .status(200, headers: ["Content-Type": "text/html"], body: "<html>log in</html>")
                case "refusal": .status(403, body: "Forbidden")
                default: ResponseScript([.stall])
                }
            Weather.serve(script, on: server)
            server.route("GET", Self.metNorway, .json(try metNorway(thunder: true)))
            let home = try home("open-meteo", at: "59.91,10.75")
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            let check = try #require((try home.status()["checks"] as? [[String: Any]])?.first)
            #expect(check["source"] as? String == "MET Norway" && check["trouble"] is NSNull, "\(check)")
            guard fault != "silence" else { return }
            let said = try home.stormy("check")
            #expect(said.errors.contains("Not used: Open-Meteo: ") && said.output.contains("Forecast of MET Norway"), "\(said)")
        }

        @Test func whereNoneAnswersEachIsNamed() throws {
            Weather.serve(.status(403, body: "Forbidden"), on: server)
            let home = try home("open-meteo", at: "59.91,10.75")
            let said = try home.stormy("check")
            #expect(said.status == 69 && said.errors.contains("Open-Meteo: ") && said.errors.contains("MET Norway: "), "\(said)")
        }

        /// Thunder that nothing confirms: another service is asked, and both words are said.
        @Test(arguments: [true, false]) func asSecondWordCounts(_ agrees: Bool) throws {
            let drizzle = Weather.forecast().replacing("2.4", with: "0.1")
            Weather.serve(.json(drizzle), on: server)
            server.route("GET", Self.metNorway, .json(try metNorway(thunder: agrees)))
            let home = try home("open-meteo", at: "59.91,10.75")
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            for arguments in [["check"], ["check", "--offline"]] {
                let said = try home.stormy(arguments).output
                if agrees {
                    #expect(said.contains("Because: thunderstorm (WMO 95) as MET Norway forecasts, too: Open-Meteo."), "\(said)")
                } else {
                    #expect(said.contains("Here: calm.") && said.contains("and MET Norway has none."), "\(said)")
                }
            }
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == (agrees ? ["Storm expected in Here"] : []))
        }

        /// The time is up while it says where the forecast is: what goes on in the agent is asked to its end.
        @Test func anAnswerThatLedOnIsFollowedAfterTheHandOver() async throws {
            try usService(thunder: true)
            let points = try text([
                "properties": ["forecastHourly": "https://api.weather.gov/gridpoints/TAE/58,65/forecast/hourly"]
            ])
            server.closeGate("rest")
            server.route(
                "GET", "/points/30,-85",
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(points.utf8.count)"]), .hold(until: "rest"),
                    .body(.text(points)),
                ]))
            let home = try home("nws", at: "30,-85", budget: 2)
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("expired"))
            server.openGate("rest")
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            #expect(server.activity.requests.filter { $0.path == "/points/30,-85" }.count == 1, "not a byte is fetched twice")
        }

        // MARK: Warnings

        private func germanWarning(_ severity: String = "severe", id: String = "2.49.0.0.276.1") throws -> String {
            func time(_ hours: Double) -> String { Date(timeIntervalSinceNow: hours * 3600).formatted(.iso8601) }
            return try text([
                "alerts": [
                    [
                        "alert_id": id, "status": "actual", "effective": time(-0.1), "onset": time(2), "expires": time(5),
                        "severity": severity, "event_en": "severe thunderstorm", "event_de": "SCHWERES GEWITTER",
                    ]
                ]
            ])
        }

        private let none = ResponseScript.json(#"{"alerts":[]}"#)

        /// A storm that no forecast shows is told by its warning alone, once; and taken back when the service takes it back.
        @Test func aWarningIsAStormUntilItIsCancelled() throws {
            Weather.serve(.json(Weather.calm), on: server)
            server.route("GET", "/alerts*", .json(try germanWarning()))
            let home = try home("open-meteo", at: "52.52,13.4")
            try home.stormy("schedule")
            for _ in 0..<2 { #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed")) }
            #expect(desktop.listen(for: 1) == ["Severe storm expected in Here"])
            let said = try home.stormy("check").output
            #expect(
                said.contains("Because: warning: severe thunderstorm, severe: Deutscher Wetterdienst."), "\(said)")
            #expect(try home.stormy("check", "--offline", "--exit-code").status == 10)
            // An update has another identifier at this service: the same storm.
            server.route("GET", "/alerts*", .json(try germanWarning(id: "2.49.0.0.276.2")))
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            server.route("GET", "/alerts*", none)
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            try home.wait("that it is taken back") { transaction in
                try transaction.notifications().first { $0.identifier.hasPrefix("storm-") && $0.life.isTakenBack }
            }
            #expect(try home.stormy("check", "--exit-code").output.contains("Here: calm."))
            // It comes back, and is told again.
            server.route("GET", "/alerts*", .json(try germanWarning(id: "2.49.0.0.276.3")))
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(
                desktop.listen(for: 3) == [
                    "Severe storm expected in Here", "Storm in Here called off", "Severe storm expected in Here",
                ])
        }

        /// Seen by hand and told to nobody, it is not told at noon when the forecast is calm by then.
        @Test func whatIsCalmByNoonIsNotTold() throws {
            Weather.serve(.json(Weather.forecast()), on: server)
            server.route("GET", "/alerts*", none)
            let home = try home("open-meteo", at: "52.52,13.4", extra: "[alerts]\ncap_feeds = [\"\(server.url)/feed.xml\"]\n")
            server.route("GET", "/feed.xml", .status(200, body: .text("<feed/>")))
            #expect(try home.stormy("check", "--exit-code").status == 10)
            Weather.serve(.json(Weather.calm), on: server)
            #expect(try home.stormy("check", "--notify", "--exit-code").status == 0)
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(try desktop.heardSoFar() == [])
        }

        /// Seen by a check at hours of which the newest forecast knows nothing: that one is told of alone.
        @Test(arguments: [true, false]) func whatTheNewestForecastShowsIsTold(_ byHand: Bool) throws {
            Weather.serve(.json(Weather.forecast(thunder: [20, 21])), on: server)
            let home = try home("open-meteo", at: "1,1")
            #expect(try home.stormy("check", "--exit-code").status == 10)
            Weather.serve(.json(Weather.forecast(thunder: [4, 5])), on: server)
            if byHand {
                #expect(try home.stormy("check", "--notify", "--exit-code").status == 10)
            } else {
                try home.stormy("schedule")
                #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            }
            try home.waitForQuiet()
            #expect(try desktop.heardSoFar() == ["Storm expected in Here"])
        }

        /// Who warns says nothing: the storm that two services forecast is told all the same, and the silence is said.
        @Test func silentWarningsHoldUpNoStorm() throws {
            Weather.serve(.json(Weather.forecast().replacing("2.4", with: "0.1")), on: server)
            server.route("GET", Self.metNorway, .json(try metNorway(thunder: true)))
            server.route("GET", "/alerts*", ResponseScript([.stall]))
            let home = try home("open-meteo", at: "52.52,13.4")
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            #expect(try home.stormy("status").output.contains("Not used: warnings of bright-sky: no answer so far"))
            // A person who looks later sees the cancellation at once, and nothing stays on the screen.
            server.route("GET", "/alerts*", .json(try germanWarning()))
            let other = try self.home("open-meteo", at: "52.52,13.4", extra: "[storm]\nthunderstorm = false\n")
            #expect(try other.stormy("check", "--notify", "--exit-code").status == 10)
            #expect(desktop.listen(for: 2).count == 2)
            server.route("GET", "/alerts*", none)
            #expect(try other.stormy("check", "--exit-code").status == 0)
            try other.wait("that it is taken back") { transaction in
                try transaction.notifications().first { $0.identifier.hasPrefix("storm-") && $0.life.isTakenBack }
            }
            #expect(desktop.listen(for: 3).last == "Storm in Here called off")
            // Listed again it stands again.
            server.route("GET", "/alerts*", .json(try germanWarning()))
            #expect(try other.stormy("check", "--notify", "--exit-code").status == 10)
            #expect(desktop.listen(for: 4).last?.contains("torm expected in Here") == true)
            try other.wait("that it is not called off any more") { try $0.notification("storm-1-called-off")?.life.isTakenBack }
        }

        /// Of a warning that came and went in quiet hours nobody hears.
        @Test func whatNobodyHeardOfIsNotCalledOff() throws {
            Weather.serve(.json(Weather.forecast().replacing("2.4", with: "0.1")), on: server)
            server.route("GET", "/alerts*", .json(try germanWarning()))
            let home = try self.home(
                "open-meteo", at: "52.52,13.4",
                extra: "[storm]\nthunderstorm = false\n[notifications]\nquiet_hours = \"00:00-23:59\"\nquiet_passes = \"none\"\n")
            #expect(try home.stormy("check", "--notify", "--exit-code").status == 10)
            try home.wait("that it waits") { try $0.notification("storm-1").flatMap { $0.life.isUntold ? $0 : nil } }
            server.route("GET", "/alerts*", none)
            #expect(try home.stormy("check", "--exit-code").status == 0)
            let left = try Ledger(home.directories).read { try $0.notifications().filter { !$0.life.isTakenBack } }
            #expect(left.isEmpty, "nothing waits for the morning: \(left)")
        }

        /// Nobody has a forecast: what is warned of is told all the same. And a mild warning is said, and no storm.
        @Test func aWarningNeedsNoForecast() throws {
            Weather.serve(.status(403, body: "Forbidden"), on: server)
            server.route("GET", "/weather*", .status(500))
            server.route("GET", "/alerts*", .json(try germanWarning()))
            let home = try home("bright-sky", at: "52.52,13.4", budget: 2)
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(desktop.listen(for: 2).contains("Severe storm expected in Here"))
            server.route("GET", "/alerts*", .json(try germanWarning("moderate", id: "2")))
            Weather.serve(.json(Weather.calm), on: server)
            let other = try self.home("open-meteo", at: "52.52,13.4")
            let said = try other.stormy("check").output
            #expect(
                said.contains("Here: calm.")
                    && said.contains("Not counted: warning: severe thunderstorm from ")
                    && said.contains(", moderate, where severe counts: Deutscher Wetterdienst.\n"),
                "\(said)")
        }

        /// A feed that says nothing keeps no noon from its end, and is said.
        @Test func aSilentFeedHoldsUpNoNoon() throws {
            Weather.serve(.json(Weather.calm), on: server)
            server.route("GET", "/feed*", ResponseScript([.stall]))
            func time(_ hours: Double) -> String { Date(timeIntervalSinceNow: hours * 3600).formatted(.iso8601) }
            server.route(
                "GET", "/good.xml",
                .status(
                    200,
                    body: .text(
                        """
                        <alert><identifier>a</identifier><sender>m</sender><sent>\(time(-1))</sent><status>Actual</status><msgType>Alert</msgType>
                        <info><event>Gale</event><severity>Extreme</severity><onset>\(time(2))</onset><expires>\(time(5))</expires>
                        <area><areaDesc>A</areaDesc><circle>1,1 50</circle></area></info></alert>
                        """)))
            let feeds = ["feed1", "feed2", "feed3", "good.xml"].map { "\"\(server.url)/\($0)\"" }.joined(separator: ", ")
            let home = try home("open-meteo", at: "1,1", extra: "[alerts]\ncap_feeds = [\(feeds)]\n")
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(desktop.listen(for: 1) == ["Extreme storm expected in Here"])
            for feed in ["feed1", "feed2", "feed3"] {
                #expect(try home.stormy("status").output.contains("Not used: warnings of 127.0.0.1/\(feed): "))
            }
            // What went wrong is in the JSON, too.
            #expect(try home.stormy("check", "--json").output.contains("warnings of 127.0.0.1/feed3: "))
        }

        @Test func whoCannotBeAskedForWarningsIsSaid() throws {
            Weather.serve(.json(Weather.calm), on: server)
            server.route("GET", "/alerts*", .status(200, headers: ["Content-Type": "text/html"], body: "<html>log in</html>"))
            let home = try home("open-meteo", at: "52.52,13.4")
            let said = try home.stormy("check")
            #expect(said.status == 0 && said.errors.contains("warnings of bright-sky: the answer is not"), "\(said)")
            try home.configure("[weather]\nbase_url = \"\(server.url)\"\n[storm]\nalert_severity = \"off\"\n")
            #expect(try home.stormy("check").errors.isEmpty)
        }

        /// A feed of documents: what is drawn round the place counts, is fetched once, and goes with its cancellation. What is known by a
        /// code alone is said.
        @Test func aFeedWarnsOfWhatIsDrawn() throws {
            Weather.serve(.json(Weather.calm), on: server)
            func time(_ hours: Double) -> String { Date(timeIntervalSinceNow: hours * 3600).formatted(.iso8601) }
            func document(
                _ id: String, _ kind: String = "Alert", of reference: String = "", area: String, status: String = "Actual"
            )
                -> ResponseScript
            {
                let info = """
                    <info><language>en-GB</language><event>Gale \(id)</event><severity>Extreme</severity><onset>\(time(2))</onset>
                    <expires>\(time(5))</expires><senderName>Met</senderName><area><areaDesc>A</areaDesc>\(area)</area></info>
                    """
                return .status(
                    200, headers: ["Content-Type": "application/cap+xml"],
                    body: .text(
                        """
                        <alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>\(id)</identifier><sender>m</sender>
                        <sent>\(time(kind == "Alert" ? -1 : -0.1))</sent><status>\(status)</status><msgType>\(kind)</msgType>
                        <references>\(reference.isEmpty ? "" : "m,\(reference),x")</references>\(info)</alert>
                        """))
            }
            func feed(_ names: String...) -> ResponseScript {
                let entries = names.map { "<entry><link type=\"application/cap+xml\" href=\"/cap/\($0)\"/></entry>" }
                return .status(200, body: .text("<feed xmlns=\"http://www.w3.org/2005/Atom\">\(entries.joined())</feed>"))
            }
            let (here, there) = ("<circle>1,1 50</circle>", "<polygon>5,5 6,5 6,6</polygon>")
            server.route("GET", "/cap/here", document("here", area: here))
            server.route("GET", "/cap/there", document("there", area: there))
            server.route(
                "GET", "/cap/coded", document("coded", area: "<geocode><valueName>X</valueName><value>1</value></geocode>"))
            server.route("GET", "/cap/test", document("test", area: here, status: "Test"))
            server.route("GET", "/cap/end", document("end", "Cancel", of: "here", area: here))
            server.route("GET", "/feed.xml", feed("here", "there", "coded", "test"))
            let home = try home("open-meteo", at: "1,1", extra: "[alerts]\ncap_feeds = [\"\(server.url)/feed.xml\"]\n")
            try home.stormy("schedule")
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            #expect(desktop.listen(for: 1) == ["Extreme storm expected in Here"])
            let said = try home.stormy("check")
            #expect(said.output.contains("Because: warning: Gale here, extreme: Met."), "\(said)")
            #expect(!said.output.contains("there") && !said.output.contains("Gale test"))
            #expect(said.errors.contains("/feed.xml: 1 of its 3 warnings name their areas by code alone"), "\(said)")
            #expect(server.requests(matching: "/cap/*").count == 4, "each once")
            // The feed says that one was written anew.
            let anew =
                "<entry><updated>2026-07-01T12:00:00Z</updated><link type=\"application/cap+xml\" href=\"/cap/there\"/></entry>"
            server.route("GET", "/feed.xml", .status(200, body: .text("<feed>\(anew)</feed>")))
            for _ in 0..<2 { try home.stormy("check") }
            #expect(server.requests(matching: "/cap/there").count == 2)
            server.route("GET", "/feed.xml", feed("here", "there", "end"))
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            let told = desktop.listen(for: 2)
            #expect(told.last == "Storm in Here called off")
            // A feed that cannot be read takes nothing back, and is said.
            server.route("GET", "/feed.xml", .status(500))
            #expect(try home.stormy("check").errors.contains("/feed.xml: the weather service answered with status 500"))
        }

        /// The time is up before the warnings are there: they come by themselves.
        @Test func warningsAreHandedOver() throws {
            Weather.serve(.json(Weather.calm), on: server)
            let warning = try germanWarning()
            server.closeGate("warnings")
            server.route(
                "GET", "/alerts*",
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(warning.utf8.count)"]), .hold(until: "warnings"),
                    .body(.text(warning)),
                ]))
            let home = try home("open-meteo", at: "52.52,13.4", budget: 2)
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(try desktop.heardSoFar() == [])
            server.openGate("warnings")
            #expect(desktop.listen(for: 1) == ["Severe storm expected in Here"])
            #expect(server.activity.requests.filter { $0.path.hasPrefix("/alerts") }.count == 1, "not a byte is fetched twice")
        }

        /// What was told of a place is not told again under another name, nor a few streets away.
        @Test func aPlaceThatMovesKeepsItsStorms() throws {
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try home("open-meteo", at: "1,1")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            #expect(try home.stormy("place", "rename", "here", "There").output == "here is called There now.\n")
            let moved = try home.stormy("place", "move", "There", "-1.01,1.01")
            #expect(moved.output.contains("There is at -1.01,1.01 now.") && moved.output.contains("There: stormy."), "\(moved)")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            try home.waitForNoticesRemembered()
            let heard = try desktop.heardSoFar()
            #expect(heard == ["Storm expected in Here"])
            #expect(try home.stormy("place", "add", "Home", "2,2", "--no-sync").status == 0)
            #expect(try home.stormy("place", "rename", "Home", "there").status == 65, "taken")
            #expect(try home.stormy("place", "rename", "Nowhere", "X").status == 66)
            #expect(try home.stormy("place", "move", "There").status == 64)
            #expect(try home.stormy("place", "move", "There", "91,0").status == 65)
            #expect(try (home.status()["storms"] as? [[String: Any]])?.map { $0["place"] as? String } == ["There"])
        }

        @Test func aPlaceMayHaveItsOwn() throws {
            server.route("GET", Self.metNorway, .json(try metNorway(thunder: false)))
            let home = try home("open-meteo", at: "1,1")
            #expect(
                try home.stormy("place", "add", "Oslo", "59.91,10.75", "--provider", "met-norway").output.contains("MET Norway"))
            #expect(try home.rows("place", "list").map { $0["provider"] as? String } == [nil, "met-norway"])
            let wrong = try home.stormy("place", "add", "Rome", "41.9,12.5", "--provider", "nws")
            #expect(wrong.status == 65 && wrong.errors.contains("nws has no forecasts for 41.9,12.5"), "\(wrong)")
            let unknown = try home.stormy("place", "add", "Rome", "41.9,12.5", "--provider=yr")
            #expect(unknown.status == 64 && unknown.errors.contains("met-norway"), "\(unknown)")
            try home.configure("[weather]\nbase_url = \"\(server.url)\"\n")
            let anonymous = try home.stormy("place", "add", "Rome", "41.9,12.5", "--provider", "met-norway")
            #expect(anonymous.status == 78 && anonymous.errors.contains("contact ="), "\(anonymous)")
        }
    }
}
