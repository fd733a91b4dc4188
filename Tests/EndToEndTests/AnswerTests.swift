import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// A check by hand: what it says, when it may use the stored copy, and what it makes of bad answers.
    @Suite struct Answer {
        let server: FaultyServer
        let home: Home

        init() async throws {
            server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            home = try Home(server: server)
            home.environment["STORMY_NO_AGENT"] = "1"
        }

        private func row(_ arguments: String...) throws -> [String: Any] {
            let result = try home.run("stormy", ["check"] + arguments + ["--json"])
            let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]]
            return try #require(rows?.first, "\(result.output)\(result.errors)")
        }

        @Test func saysStormyOrCalmAndWhy() throws {
            #expect(try home.stormy("check").status == 66, "no place yet")
            #expect(try home.stormy("place", "add", "Here", "1,1").output.contains("stormy"))
            let stormy = try row()
            #expect(stormy["stormy"] as? Bool == true)
            #expect(stormy["stale"] as? Bool == false)
            let reason = try #require((stormy["reasons"] as? [[String: Any]])?.first)
            #expect(Set(reason.keys) == ["kind", "detail", "from", "until", "source", "key"])
            // ISO 8601 with the offset of the person's zone.
            #expect(
                (stormy["fetchedAt"] as? String)?.range(of: #"T\d\d:\d\d:\d\d\+0[12]:00$"#, options: .regularExpression) != nil)
            #expect(try home.stormy("check", "--exit-code").status == 10)
            #expect(try home.stormy("check").status == 0)
            Weather.serve(.json(Weather.calm), on: server)
            #expect(try row()["stormy"] as? Bool == false)
            #expect(try home.stormy("check", "--exit-code").status == 0)
            let text = try home.stormy("check", "Here").output
            #expect(text.contains("Here: calm.") && !text.contains("\u{1B}"))
        }

        @Test func theForecastIsDrawn() throws {
            #expect(try home.stormy("forecast").status == 66, "no place yet")
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            #expect(try home.stormy("forecast", "--offline").status == 66, "none is stored")
            let drawn = try home.stormy("forecast", "--hours", "9")
            #expect(
                drawn.status == 0 && drawn.output.contains("The next 9 hours:") && drawn.output.contains("!! !! !!"), "\(drawn)")
            let hours = try #require(try home.rows("forecast", "--offline").first?["hours"] as? [[String: Any]])
            #expect(hours.count == 24 && hours.filter { $0["stormy"] as? Bool == true }.count == 3)
            let file = home.folder.path + "/here.svg"
            #expect(try home.stormy("forecast", "Here", "--svg", file).output == file + "\n")
            #expect(try String(contentsOfFile: file, encoding: .utf8).contains("<title id=\"t\">Here</title>"))
            #expect(try home.stormy("forecast", "Here", "--svg", home.folder.path + "/none/here.svg").status == 73)
            // The same, drawn: of its size, and with the colours of rain and of a storm.
            let drawing = home.folder.path + "/here.png"
            #expect(try home.stormy("forecast", "Here", "--png", drawing).output == drawing + "\n")
            let colours = try Child.run(
                "convert", [drawing, "-format", "%wx%h %k ", "info:"], environment: home.environment)
            let parts = colours.output.split(separator: " ")
            #expect(parts.first == "1520x680" && Int(parts.last ?? "") ?? 0 > 20, "\(colours)")
            #expect(try home.stormy("forecast", "Here", "--png", home.folder.path + "/none/here.png").status == 73)
            #expect(try home.stormy("forecast", "--hours", "0").status == 64)
        }

        @Test func freshFailsOfflineReadsAndTheDefaultFallsBack() async throws {
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            // Nothing stored yet: unknown, which is neither stormy nor calm.
            let nothing = try home.stormy("check", "--offline", "--json")
            #expect(nothing.status == 66)
            #expect(nothing.output.contains(#""stormy" : null"#))
            #expect(server.connectionCount == 0)
            #expect(try home.stormy("check", "--fresh").status == 0)
            let asked = server.connectionCount
            #expect(try row("--offline")["stormy"] as? Bool == true)
            #expect(server.connectionCount == asked, "--offline asked the service")
            #expect(try home.stormy("check", "--fresh", "--offline").status == 64)

            await server.stop()
            let fresh = try home.stormy("check", "--fresh")
            #expect(fresh.status == 69)
            #expect(fresh.errors.hasPrefix("stormy: ") && !fresh.output.contains("calm"))
            let stored = try row()
            #expect(stored["stormy"] as? Bool == true)
            #expect(stored["stale"] as? Bool == true)
            #expect(stored["ageSeconds"] is Int)
            #expect((stored["trouble"] as? String)?.contains("127.0.0.1") == true)
            let text = try home.stormy("check")
            #expect(text.status == 0 && text.errors.contains("Not refreshed"))
            #expect(try home.stormy("check", "--offline", "--exit-code").status == 10)
        }

        struct BadAnswer: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let script: ResponseScript
            let words: String

            init(_ name: String, _ words: String, _ script: ResponseScript) {
                (testDescription, self.words, self.script) = (name, words, script)
            }
        }

        static let badAnswers = [
            BadAnswer("truncated JSON", "cut off", .json(String(Weather.forecast().prefix(1_500)))),
            BadAnswer("empty", "cut off", .json("")),
            BadAnswer(
                "a login page", "login page", .status(200, headers: ["Content-Type": "text/html"], body: "<html>Log in</html>")),
            BadAnswer("a server error", "status 503", .status(503, body: "later")),
            BadAnswer(
                "a refusal with its reason", "Latitude must be",
                .json(#"{"error":true,"reason":"Latitude must be"}"#, status: 400)),
            BadAnswer("too many requests", "17 s", .status(429, headers: ["Retry-After": "17"])),
            BadAnswer("five megabytes", "large", .status(200, body: .pattern(5_000_000))),
            BadAnswer(
                "only nulls", "no usable hour",
                .json(#"{"utc_offset_seconds":0,"hourly":{"time":[null,null],"weather_code":[null,null]}}"#)),
            BadAnswer(
                "hours without values", "no usable hour",
                .json(#"{"utc_offset_seconds":0,"hourly":{"time":[1,2],"weather_code":[null,null]}}"#)),
            BadAnswer("JSON of another kind", "no usable hour", .json(#"{"hello":"world"}"#)),
            BadAnswer("a closed connection", "127.0.0.1", .hangUp),
            BadAnswer("a broken length", "127.0.0.1", .cutAfter(500, of: .text(Weather.forecast()))),
            BadAnswer("a redirect in a circle", "127.0.0.1", .redirect(to: "/v1/forecast")),
            BadAnswer("a redirect to a file", "127.0.0.1", .redirect(302, to: "file:///etc/passwd")),
            BadAnswer("a reset connection", "127.0.0.1", .resetConnection),
            BadAnswer("too long a head", "127.0.0.1", .headerFlood(count: 600)),
        ]

        @Test(arguments: badAnswers)
        func aBadAnswerIsNeverCalm(_ bad: BadAnswer) throws {
            Weather.serve(bad.script, on: server)
            let added = try home.stormy("place", "add", "Here", "1,1")
            #expect(added.status == 0)
            #expect(added.errors.contains("The first forecast could not be fetched"))
            let fresh = try home.stormy("check", "--fresh")
            #expect(fresh.status == 69)
            #expect(fresh.errors.contains(bad.words), "\(fresh.errors)")
            #expect(fresh.errors.split(separator: "\n").count == 1, "\(fresh.errors)")
            let check = try home.stormy("check")
            #expect(check.status == 69)
            #expect(check.output.contains("unknown") && !check.output.contains("calm"))
            let unknown = try row()
            #expect(unknown["stormy"] is NSNull)
            #expect((unknown["trouble"] as? String)?.contains(bad.words) == true)
            // What was known before stays, and its age is said.
            Weather.serve(.json(Weather.forecast()), on: server)
            #expect(try row()["stormy"] as? Bool == true)
            Weather.serve(bad.script, on: server)
            let stored = try row()
            #expect(stored["stormy"] as? Bool == true && stored["stale"] as? Bool == true)
            let last = try #require((try home.status()["checks"] as? [[String: Any]])?.first)
            #expect((last["trouble"] as? String)?.contains(bad.words) == true)
        }

        /// Escape sequences, a new line and a mark that turns the writing round.
        @Test func theTerminalObeysNoServer() throws {
            let evil = #"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202egnp.exe"#
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            Weather.serve(.json(#"{"error":true,"reason":"Bad \#(evil)"}"#, status: 400), on: server)
            server.route(
                "GET", "/v1/search",
                .json(#"{"results":[{"name":"Lima \#(evil)","latitude":1,"longitude":1,"country":"\#(evil)"}]}"#))
            let shown = [
                try home.stormy("check", "--fresh"), try home.stormy("check"), try home.stormy("status"),
                try home.stormy("place", "add", "Lima", "--no-sync"), try home.stormy("place", "list"),
                try home.stormy("check", "no\u{1B}[31msuch\u{202E}place"),
            ]
            #expect(shown[0].errors.contains("Bad "))
            for result in shown {
                for scalar in (result.output + result.errors).unicodeScalars {
                    #expect(scalar == "\n" || scalar.properties.generalCategory != .control, "\(result)")
                    #expect(scalar != "\u{202E}")
                }
            }
        }

        @Test func placesAndTheirMistakes() throws {
            for arguments in [["check"], ["check", "--fresh"], ["check", "--offline"]] {
                let result = try home.run("stormy", arguments)
                #expect(result.status == 66)
                #expect(result.errors.contains("stormy place add"))
            }
            #expect(try home.stormy("place", "add", "Sydney", "-33.87,151.21", "--no-sync").status == 0)
            for again in ["Sydney", "sydney"] {
                let twice = try home.stormy("place", "add", again, "-33.87,151.21", "--no-sync")
                #expect(twice.status == 65)
                #expect(twice.errors.lowercased().contains("sydney"), "\(twice.errors)")
            }
            for bad in ["91,0", "north", "1", "1,2,3", "nan,0"] {
                #expect(try home.stormy("place", "add", "Nowhere", bad, "--no-sync").status == 65, "\(bad)")
            }
            #expect(try home.stormy("place", "add", "", "1,1", "--no-sync").status == 65)
            #expect(try home.stormy("check", "Atlantis").status == 66)
            #expect(try home.stormy("place", "remove", "Atlantis").status == 66)
            #expect(try home.rows("place", "list").map { $0["name"] as? String } == ["Sydney"])
            #expect(try home.stormy("place", "remove", "Sydney").status == 0)
            #expect(try home.rows("place", "list").isEmpty)
            #expect(try home.stormy("nonsense").status == 64)
            #expect(try home.stormy("schedule", "--at", "25:00").status == 65)
        }

        @Test func aNameIsLookedUp() throws {
            try home.configure("[weather]\nbase_url = \"\(server.url)\"\ngeocoding_url = \"\(server.url)\"\n")
            server.route(
                "GET", "/v1/search*",
                .json(
                    #"{"results":[{"name":"Goiânia","latitude":-16.68,"longitude":-49.25,"country":"Brasil","admin1":"Goiás"}]}"#),
                .json(#"{"generationtime_ms":1}"#), .status(502))
            let found = try home.stormy("place", "add", "Goiânia", "--no-sync")
            #expect(found.status == 0)
            #expect(found.output.contains("Goiânia, Goiás, Brasil"))
            #expect(server.requests(matching: "/v1/search").first?.query?.contains("name=Goi%C3%A2nia") == true)
            let nothing = try home.stormy("place", "add", "Xyzzy")
            #expect(nothing.status == 66)
            #expect(nothing.errors.contains("LAT,LON"))
            let failing = try home.stormy("place", "add", "Plugh")
            #expect(failing.status == 69)
            #expect(failing.errors.contains("502") && failing.errors.contains("LAT,LON"))
            #expect(try home.rows("place", "list").count == 1)
        }

        @Test(arguments: [
            ("[weather]\nprovidre = \"open-meteo\"\n", ":2:1:", "provider"),
            ("[storm]\n\ngust_kmh = 5\n", ":3:1:", "did you mean \"storm.gusts_kmh\"?"),
            ("[storm]\ngusts_kmh = \"much\"\n", ":2:", "gusts_kmh"),
            ("[wether]\n", ":1:", "weather"),
            ("[background\n", ":1:", "TOML"),
            ("[notifications]\nquiet_hours = \"late\"\n", ":2:", "quiet_hours"),
        ])
        func aMistakeInTheConfigurationIsLocated(_ text: String, _ place: String, _ word: String) throws {
            try home.configure(text)
            for verb in ["status", "check", "history", "schedule"] {
                let result = try home.stormy(verb)
                #expect(result.status == 78)
                #expect(result.errors.contains("config.toml\(place)"), "\(result.errors)")
                #expect(result.errors.contains(word), "\(result.errors)")
                #expect(result.output.isEmpty)
            }
        }

        @Test func aPasswordThatOthersCanReadIsRefused() throws {
            try home.configure(
                "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"http://127.0.0.1:1/\"\nuser = \"me\"\npassword = \"secret\"\n"
            )
            #expect(try home.stormy("status").status == 0)
            chmod(home.directories.configuration.path + "/config.toml", 0o644)
            let result = try home.stormy("status")
            #expect(result.status == 78)
            #expect(result.errors.contains("chmod 600") && !result.errors.contains("secret"))
        }

        // MARK: The same at noon

        @Test(arguments: [
            ResponseScript.status(503, body: "later"), .status(429, headers: ["Retry-After": "1"]), .hangUp, .resetConnection,
            .cutAfter(700, of: .text(Weather.forecast())),
        ])
        func aPassingFailureAtNoonIsTriedAgain(_ script: ResponseScript) async throws {
            let desktop = try Desktop()
            let home = try Home(server: server, desktop: desktop, budget: 20)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            server.route("GET", Weather.path, script, .json(Weather.forecast()))
            try home.stormy("simulate", "launch", "StormyNoon")
            try home.waitForEnded("appRefresh")
            try home.waitForQuiet()
            let requests = server.requests(matching: Weather.path)
            #expect(requests.count == 2)
            if requests.first?.status == 429, requests.count == 2 {
                #expect(requests[1].receivedAt.timeIntervalSince(requests[0].receivedAt) >= 0.95)
            }
            #expect(try desktop.heardSoFar() == ["Storm expected in Here"])
            #expect(try home.history() == ["appRefresh completed"])
        }

        @Test(arguments: badAnswers.prefix(3))
        func aBadAnswerAtNoonIsWrittenDown(_ bad: BadAnswer) throws {
            let desktop = try Desktop()
            let home = try Home(server: server, desktop: desktop, budget: 20)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            Weather.serve(bad.script, on: server)
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            // Nothing was ever known of that place.
            try home.wait("word of it") { try $0.notification("trouble-weather-1")?.state == .delivered ? true : nil }
            #expect(try desktop.heardSoFar() == ["The weather is not known"])
            let check = try #require((try home.status()["checks"] as? [[String: Any]])?.first)
            #expect(check["stormy"] is NSNull)
            #expect((check["trouble"] as? String)?.contains(bad.words) == true)
            #expect(try home.status("schedule", "enabled") as? Bool == true)
        }
    }
}
