import BackgroundTasksTesting
import Foundation
import ProcessSupport
import ServerScripts
import StormyFixtures
import Testing

/// Tests `stormy check` and `stormy forecast`: their output, the use of the stored forecast, and invalid responses.
@Suite(.timeLimit(.minutes(30))) struct CheckCommandTests {
    /// Runs a test without an agent. The server has a stormy forecast.
    private func play(_ configuration: String = "", _ body: @Sendable (VirtualHome) async throws -> Void) async throws {
        try await VirtualHome.play(configuration) { home in
            await home.setStartsAgents(false)
            home.serveForecast()
            try await body(home)
        }
    }

    @Test func `a check reports a storm or calm weather and the reason`() async throws {
        try await play { home in
            #expect(try await home.stormy("check").status == 66, "no place is configured")
            #expect(try await home.stormy("place", "add", "Here", "1,1").output.contains("stormy"))
            let stormy = try await home.row()
            #expect(stormy["stormy"] as? Bool == true)
            #expect(stormy["stale"] as? Bool == false)
            let reason = try #require((stormy["reasons"] as? [[String: Any]])?.first)
            #expect(Set(reason.keys) == ["kind", "detail", "from", "until", "source", "key"])
            // The time is in ISO 8601 with the offset of the user's time zone.
            #expect(
                (stormy["fetchedAt"] as? String)?.range(of: #"T\d\d:\d\d:\d\d\+0[12]:00$"#, options: .regularExpression) != nil)
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            #expect(try await home.stormy("check").status == 0)
            home.serveCalm()
            #expect(try await home.row()["stormy"] as? Bool == false)
            #expect(try await home.stormy("check", "--exit-code").status == 0)
            let text = try await home.stormy("check", "Here").output
            #expect(text.contains("Here: calm.") && !text.contains("\u{1B}"))
        }
    }

    @Test func `gusts in an unknown unit are reported as unreadable and not as missing`() async throws {
        try await play { home in
            let answer = Weather.forecast(thunder: [], from: home.now)
            // In JSON, the slash of "km/h" may be written with a backslash.
            home.serve(.json(answer.replacing("km\\/h", with: "furlong").replacing("km/h", with: "furlong")))
            try await home.stormy("place", "add", "Here", "1,1")
            #expect(try await home.row()["unreadable"] as? [String] == ["gusts"])
            let forecast = try #require(try await home.rows("forecast", "--offline").first)
            #expect(forecast["unreadable"] as? [String] == ["gusts"])
            let text = try await home.stormy("check").output
            #expect(text.contains("wind gusts that cannot be read") && !text.contains("has no wind gusts"), "\(text)")
        }
    }

    @Test func `a picture does not replace a link, a pipe or a folder`() async throws {
        try await play { home in
            try await home.stormy("place", "add", "Here", "1,1")
            let (pipe, link) = (home.folder.path + "/pipe", home.folder.path + "/link")
            #expect(mkfifo(pipe, 0o600) == 0 && symlink("target", link) == 0)
            for (path, kind) in [(pipe, S_IFIFO), (link, S_IFLNK), (home.folder.path, S_IFDIR)] {
                let result = try await home.stormy("forecast", "Here", "--svg", path)
                #expect(result.status == 73 && result.errors.contains(path), "\(result)")
                var found = stat()
                #expect(lstat(path, &found) == 0 && found.st_mode & S_IFMT == kind)
            }
        }
    }

    @Test func `the forecast is drawn as text and as a picture`() async throws {
        try await play { home in
            #expect(try await home.stormy("forecast").status == 66, "no place is configured")
            try await home.stormy("place", "add", "Here", "1,1", "--no-sync")
            #expect(try await home.stormy("forecast", "--offline").status == 66, "no forecast is stored")
            let drawn = try await home.stormy("forecast", "--hours", "9")
            #expect(
                drawn.status == 0 && drawn.output.contains("The next 9 hours:") && drawn.output.contains("!! !! !!"), "\(drawn)")
            let hours = try #require(try await home.rows("forecast", "--offline").first?["hours"] as? [[String: Any]])
            #expect(hours.count == 24 && hours.filter { $0["stormy"] as? Bool == true }.count == 3)
            let file = home.folder.path + "/here.svg"
            #expect(try await home.stormy("forecast", "Here", "--svg", file).output == file + "\n")
            #expect(try String(contentsOfFile: file, encoding: .utf8).contains("<title id=\"t\">Here</title>"))
            #expect(try await home.stormy("forecast", "Here", "--svg", home.folder.path + "/none/here.svg").status == 73)
            let drawing = home.folder.path + "/here.png"
            #expect(try await home.stormy("forecast", "Here", "--png", drawing).output == drawing + "\n")
            // The picture contains the colours of rain and of a storm, and shades at the edges of letters.
            let picture = try Self.sizeAndColours(of: drawing)
            let parts = picture.output.split(separator: " ")
            #expect(parts.first == "1520x680" && Int(parts.last ?? "") ?? 0 > 20, "\(picture)")
            #expect(try await home.stormy("forecast", "Here", "--png", home.folder.path + "/none/here.png").status == 73)
            #expect(try await home.stormy("forecast", "--hours", "0").status == 64)
        }
    }

    /// Runs ImageMagick. The output is for example "1520x680 123" for a picture with 123 different colours.
    private static func sizeAndColours(of picture: String) throws -> ChildProcess.End {
        // A newer ImageMagick prints on standard error that `convert` is deprecated.
        let script = "exec convert \"$0\" -format '%wx%h %k ' info: 2> /dev/null"
        return try ChildProcess(
            path: "/bin/sh", arguments: ["-c", script, picture], environment: ProcessInfo.processInfo.environment
        ).run(within: 60, outputLimit: 1_000)
    }

    @Test func `a fresh check requires the service and other checks use the stored forecast`() async throws {
        try await play { home in
            try await home.stormy("place", "add", "Here", "1,1", "--no-sync")
            // Without a stored forecast, the weather is unknown. Unknown weather is neither stormy nor calm.
            let nothing = try await home.stormy("check", "--offline", "--json")
            #expect(nothing.status == 66)
            #expect(nothing.output.contains(#""stormy" : null"#))
            #expect(home.server.activity.connectionsAccepted == 0)
            #expect(try await home.stormy("check", "--fresh").status == 0)
            let connections = home.server.activity.connectionsAccepted
            #expect(try await home.row("--offline")["stormy"] as? Bool == true)
            #expect(home.server.activity.connectionsAccepted == connections, "--offline sent a request to the service")
            #expect(try await home.stormy("check", "--fresh", "--offline").status == 64)

            home.driver.network.takeAway(VirtualHome.origin)
            let fresh = try await home.stormy("check", "--fresh")
            #expect(fresh.status == 69)
            #expect(fresh.errors.hasPrefix("stormy: ") && !fresh.output.contains("calm"))
            let stored = try await home.row()
            #expect(stored["stormy"] as? Bool == true)
            #expect(stored["stale"] as? Bool == true)
            #expect(stored["ageSeconds"] is Int)
            #expect((stored["trouble"] as? String)?.contains("service.test") == true)
            let text = try await home.stormy("check")
            #expect(text.status == 0 && text.errors.contains("Not refreshed"))
            #expect(try await home.stormy("check", "--offline", "--exit-code").status == 10)
        }
    }

    // MARK: Unusable responses

    struct BadAnswer: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let script: ResponseScript
        let words: String

        init(_ name: String, _ words: String, _ script: ResponseScript) {
            (testDescription, self.words, self.script) = (name, words, script)
        }
    }

    /// The virtual network does not limit response headers. If a script resets the connection, the virtual network only closes
    /// it. `EndToEnd.InvalidResponses` therefore uses real connections for two tests: too many headers, and a reset.
    static let badAnswers = [
        BadAnswer("truncated JSON", "is incomplete", .json(String(Weather.forecast().prefix(1_500)))),
        BadAnswer("empty", "is incomplete", .json("")),
        BadAnswer(
            "a captive portal", "login page", .status(200, headers: ["Content-Type": "text/html"], body: "<html>Log in</html>")),
        BadAnswer("a server error", "status 503", .status(503, body: "later")),
        BadAnswer(
            "a refusal with its reason", "Latitude must be", .json(#"{"error":true,"reason":"Latitude must be"}"#, status: 400)),
        BadAnswer("too many requests", "17 s", .status(429, headers: ["Retry-After": "17"])),
        BadAnswer("five megabytes", "large", .status(200, body: .pattern(5_000_000))),
        BadAnswer(
            "only nulls", "no usable values",
            .json(#"{"utc_offset_seconds":0,"hourly":{"time":[null,null],"weather_code":[null,null]}}"#)),
        BadAnswer(
            "hours without values", "no usable values",
            .json(#"{"utc_offset_seconds":0,"hourly":{"time":[1,2],"weather_code":[null,null]}}"#)),
        BadAnswer("JSON of another kind", "no usable values", .json(#"{"hello":"world"}"#)),
        BadAnswer("a closed connection", "service.test", .hangUp),
        BadAnswer("a broken length", "service.test", .cutAfter(500, of: .text(Weather.forecast()))),
        BadAnswer("a redirect in a circle", "service.test", .redirect(to: "/v1/forecast")),
        BadAnswer("a redirect to a file", "service.test", .redirect(302, to: "file:///etc/passwd")),
        BadAnswer("a reset connection", "service.test", .resetConnection),
    ]

    @Test(arguments: badAnswers) func `an unusable response is never reported as calm`(_ bad: BadAnswer) async throws {
        try await play { home in
            home.serve(bad.script)
            let added = try await home.stormy("place", "add", "Here", "1,1")
            #expect(added.status == 0)
            #expect(added.errors.contains("The first forecast could not be fetched"))
            let fresh = try await home.stormy("check", "--fresh")
            #expect(fresh.status == 69)
            #expect(fresh.errors.contains(bad.words), "\(fresh.errors)")
            #expect(fresh.errors.split(separator: "\n").count == 1, "\(fresh.errors)")
            let check = try await home.stormy("check")
            #expect(check.status == 69)
            #expect(check.output.contains("unknown") && !check.output.contains("calm"))
            let unknown = try await home.row()
            #expect(unknown["stormy"] is NSNull)
            #expect((unknown["trouble"] as? String)?.contains(bad.words) == true)
            // The earlier forecast is kept, and the output marks it as stale.
            home.serveForecast()
            #expect(try await home.row()["stormy"] as? Bool == true)
            home.serve(bad.script)
            let stored = try await home.row()
            #expect(stored["stormy"] as? Bool == true && stored["stale"] as? Bool == true)
            let last = try #require((try await home.status()["checks"] as? [[String: Any]])?.first)
            #expect((last["trouble"] as? String)?.contains(bad.words) == true)
        }
    }

    /// The server's text contains escape sequences, a line break, and a character that reverses the direction of writing.
    @Test func `control characters of a server do not reach the terminal`() async throws {
        try await play("geocoding_url = \"\(VirtualHome.origin)\"\n") { home in
            let evil = #"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202egnp.exe"#
            try await home.stormy("place", "add", "Here", "1,1", "--no-sync")
            home.serve(.json(#"{"error":true,"reason":"Bad \#(evil)"}"#, status: 400))
            home.server.route(
                "GET", "/v1/search",
                .json(#"{"results":[{"name":"Lima \#(evil)","latitude":1,"longitude":1,"country":"\#(evil)"}]}"#))
            let shown = [
                try await home.stormy("check", "--fresh"), try await home.stormy("check"), try await home.stormy("status"),
                try await home.stormy("place", "add", "Lima", "--no-sync"), try await home.stormy("place", "list"),
                try await home.stormy("check", "no\u{1B}[31msuch\u{202E}place"),
            ]
            #expect(shown[0].errors.contains("Bad "))
            #expect(shown[3].output.contains("Found Lima "), "\(shown[3])")
            for result in shown {
                for scalar in (result.output + result.errors).unicodeScalars {
                    #expect(scalar == "\n" || scalar.properties.generalCategory != .control, "\(result)")
                    #expect(scalar != "\u{202E}")
                }
            }
        }
    }

    // MARK: The daily check

    private func playCheck(_ body: @Sendable (VirtualHome) async throws -> Void) async throws {
        try await VirtualHome.play("[background]\nrefresh_budget_seconds = 20\ngrace_seconds = 2\n") { home in
            try await home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try await home.stormy("schedule")
            try await body(home)
        }
    }

    @Test(arguments: [
        ResponseScript.status(503, body: "later"), .status(429, headers: ["Retry-After": "1"]), .hangUp, .resetConnection,
        .cutAfter(700, of: .text(Weather.forecast())),
    ])
    func `the daily check tries again after a temporary failure`(_ script: ResponseScript) async throws {
        try await playCheck { home in
            home.server.route("GET", Weather.path, script, .json(Weather.forecast(from: home.now)))
            try await home.check()
            try await home.driver.settle()
            let requests = home.server.requests(matching: Weather.path)
            #expect(requests.count == 2)
            if requests.first?.status == 429, requests.count == 2 {
                #expect(requests[1].receivedAt.timeIntervalSince(requests[0].receivedAt) >= 0.95)
            }
            #expect(home.shown == ["Storm expected in Here"])
            #expect(try await home.history() == ["appRefresh completed"])
        }
    }

    @Test(arguments: badAnswers.prefix(3))
    func `the daily check records an unusable response and shows it`(_ bad: BadAnswer) async throws {
        try await playCheck { home in
            home.serve(bad.script)
            try await home.check()
            try await home.driver.settle()
            // No forecast was ever received for this place.
            #expect(home.notification("trouble-weather-1")?.state == .delivered)
            #expect(home.shown == ["The weather is unknown"])
            let check = try #require((try await home.status()["checks"] as? [[String: Any]])?.first)
            #expect(check["stormy"] is NSNull)
            #expect((check["trouble"] as? String)?.contains(bad.words) == true)
            #expect(try await home.status("schedule", "enabled") as? Bool == true)
        }
    }
}

extension VirtualHome {
    /// Returns the first row of `stormy check --json`.
    fileprivate func row(_ arguments: String...) async throws -> [String: Any] {
        let result = try await stormy(["check"] + arguments + ["--json"])
        let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]]
        return try #require(rows?.first, "\(result.output)\(result.errors)")
    }
}
