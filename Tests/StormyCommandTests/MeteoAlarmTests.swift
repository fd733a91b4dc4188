import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

/// Tests MeteoAlarm's feeds and documents, from the request to the screen.
@Suite(.timeLimit(.minutes(30))) struct MeteoAlarmTests {
    private func play(
        _ places: [(name: String, at: String)], _ configuration: String = "", _ body: @Sendable (VirtualHome) async throws -> Void
    ) async throws {
        try await VirtualHome.play("provider = \"open-meteo\"\n\(configuration)") { home in
            home.server.route(nil, "*", .status(404))
            home.serveCalm()
            for place in places { #expect(try await home.stormy("place", "add", place.name, place.at, "--no-sync").status == 0) }
            try await body(home)
        }
    }

    private func time(_ home: VirtualHome, _ hours: Double) -> String { (home.now + hours * 3600).formatted(.iso8601) }

    private static func code(_ code: String) -> String {
        "<geocode><valueName>EMMA_ID</valueName><value>\(code)</value></geocode>"
    }

    private static func polygon(_ corners: String) -> String { "<polygon>\(corners)</polygon>" }

    private struct Warning {
        var id = "1"
        var country = "france"
        var area = MeteoAlarmTests.code("FR035")
        /// The languages of the document. Each language has a name of the event.
        var events = [("fr-FR", "Vigilance orange vent violent")]
        var awareness = "1; Wind"
        var issuer = "Météo-France"
    }

    private func serve(
        _ warnings: [Warning], ofCountry country: String = "france", writtenAt hours: Double, etag: String? = nil,
        isConditional: Bool = true, padding: Int = 0, _ home: VirtualHome
    ) {
        let entries = warnings.map { warning in
            let link = "https://feeds.meteoalarm.org/api/v1/warnings/feeds-\(country)/\(warning.id)"
            let area = warning.area.replacing("<geocode", with: "<cap:geocode").replacing("</geocode", with: "</cap:geocode")
                .replacing("<polygon", with: "<cap:polygon").replacing("</polygon", with: "</cap:polygon")
            return """
                <entry>\(area)<cap:status>Actual</cap:status><link href="\(link)" type="application/cap+xml"/>
                <id>\(link)?index_info=0</id><title>Orange Warning</title><updated>\(time(home, hours))</updated></entry>
                """
        }
        let feed = """
            <?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xmlns:cap="urn:oasis:names:tc:emergency:cap:1.2">
            <title>MeteoAlarm</title><updated>\(time(home, hours))</updated>\(entries.joined())
            <!-- \(String(repeating: "x", count: padding)) --></feed>
            """
        let body = Payload.bytes(Data(feed.utf8))
        let script: ResponseScript =
            isConditional
            ? .file(body, etag: etag, supportsRange: false) : .status(200, headers: ["ETag": etag ?? ""], body: body)
        home.server.route("GET", "/feeds/meteoalarm-legacy-atom-\(country)", script)
        for warning in warnings {
            let infos = warning.events.map { language, event in
                """
                <info><language>\(language)</language><category>Met</category><event>\(event)</event><urgency>Future</urgency>
                <severity>Severe</severity><certainty>Likely</certainty><onset>\(time(home, 2))</onset>
                <expires>\(time(home, 40))</expires><senderName>\(warning.issuer)</senderName>
                <parameter><valueName>awareness_type</valueName><value>\(warning.awareness)</value></parameter>
                <parameter><valueName>awareness_level</valueName><value>3; orange; Severe</value></parameter>
                <area><areaDesc>x</areaDesc>\(warning.area)</area></info>
                """
            }
            let document = """
                <alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>2.49.0.\(warning.id)</identifier>
                <sender>s@example</sender><sent>\(time(home, -1))</sent><status>Actual</status><msgType>Alert</msgType>
                <scope>Public</scope>\(infos.joined())</alert>
                """
            home.server.route(
                "GET", "/api/v1/warnings/feeds-\(country)/\(warning.id)", .status(200, body: .bytes(Data(document.utf8))))
        }
    }

    /// Annecy is in Haute Savoie, which has the code FR035.
    private static let annecy = (name: "Annecy", at: "45.8992,6.1294")

    @Test func `warnings of three countries are shown at noon and called off`() async throws {
        let places = [Self.annecy, (name: "Zürich", at: "47.3769,8.5417"), (name: "Vienna", at: "48.2082,16.3738")]
        try await play(places) { (home) async throws in
            let swiss = Self.polygon("47.0,8.0 47.0,9.0 48.0,9.0 48.0,8.0 47.0,8.0")
            serve([Warning(), Warning(id: "2", area: Self.code("FR036"))], writtenAt: 0, home)
            serve([Warning(id: "3", area: swiss, issuer: "MeteoSwiss")], ofCountry: "switzerland", writtenAt: 0, home)
            serve(
                [Warning(id: "4", area: Self.code("AT901"), events: [("de-DE", "Sturmwarnung"), ("en-GB", "Wind Warning")])],
                ofCountry: "austria", writtenAt: 0, home)
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            let titles = ["Annecy", "Vienna", "Zürich"].map { "Severe storm expected in \($0)" }
            #expect(home.shown.sorted() == titles)
            #expect(!home.server.requests().contains { $0.path.hasSuffix("/2") }, "another region")
            let said = try await home.stormy("check")
            #expect(said.output.contains("Official warnings: MeteoAlarm, Haute Savoie (FR035), 1 warning"), "\(said)")
            #expect(said.output.contains("Météo-France, EUMETNET – MeteoAlarm"), "\(said)")

            serve([], writtenAt: 0.5, home)
            serve([], ofCountry: "switzerland", writtenAt: 0.5, home)
            serve([], ofCountry: "austria", writtenAt: 0.5, home)
            home.serveCalm()
            let calm = try await home.stormy("check", "--exit-code")
            #expect(calm.status == 0, "\(calm)")
            try await home.driver.settle()
            #expect(home.onScreen.sorted() == ["Annecy", "Vienna", "Zürich"].map { "No longer expected: storm in \($0)" })
        }
    }

    @Test func `messages of one region that differ in language or touch in time are one storm`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning(), Warning(id: "2", events: [("en-GB", "Orange wind warning")])], writtenAt: 0, home)
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Severe storm expected in Annecy"])
            #expect(try await home.rows("check").first.flatMap { ($0["reasons"] as? [Any])?.count } == 1)
        }
    }

    @Test func `Norway has MeteoAlarm until there is a contact`() async throws {
        try await play([(name: "Oslo", at: "60.2,11.1")]) { (home) async throws in
            serve(
                [Warning(country: "norway", area: Self.polygon("59,10 59,12 61,12 61,10 59,10"))], ofCountry: "norway",
                writtenAt: 0, home)
            let said = try await home.stormy("check", "--exit-code")
            #expect(
                said.status == 10 && said.output.contains("MET Norway, not requested, because the service requires a contact"),
                "\(said)")
            #expect(said.output.contains("Official warnings: MeteoAlarm"), "\(said)")
        }
    }

    @Test func `the storm of MeteoAlarm in Norway is called off after MET Norway responded`() async throws {
        try await play([(name: "Oslo", at: "60.2,11.1")]) { (home) async throws in
            let area = Self.polygon("59,10 59,12 61,12 61,10 59,10")
            serve([Warning(country: "norway", area: area)], ofCountry: "norway", writtenAt: 0, home)
            _ = try await home.stormy("check", "--notify")
            try await home.driver.settle()
            #expect(home.onScreen == ["Severe storm expected in Oslo"])
            let weather = "[weather]\nbase_url = \"\(VirtualHome.origin)\"\nprovider = \"open-meteo\"\n"
            try home.configure(weather + "contact = \"me@example.org\"\n")
            // MET Norway does not respond yet.
            let waits = try await home.stormy("check", "--exit-code")
            #expect(waits.status == 10, "\(waits)")
            home.server.route("GET", "/weatherapi/metalerts/2.0/current.json*", .json(#"{"features":[]}"#))
            try await home.driver.advance(by: .seconds(900))
            home.serveCalm()
            let said = try await home.stormy("check", "--notify", "--exit-code")
            try await home.driver.settle()
            #expect(said.status == 0 && !said.output.contains("MeteoAlarm"), "\(said)")
            #expect(home.onScreen == ["No longer expected: storm in Oslo"])
            #expect(try await (home.status()["storms"] as? [Any])?.isEmpty == true)
        }
    }

    private static let berlin = (name: "Berlin", at: "52.52,13.405")
    private static let aroundBerlin = polygon("52,13 52,14 53,14 53,13 52,13")

    @Test func `MeteoAlarm is requested at once if a service fails, until the service responds`() async throws {
        try await play([Self.berlin]) { (home) async throws in
            home.server.route("GET", "/alerts", .status(500))
            serve([Warning(area: Self.aroundBerlin)], ofCountry: "germany", writtenAt: 0, home)
            let substituteCheck = try await home.stormy("check", "--exit-code")
            #expect(
                substituteCheck.status == 10 && substituteCheck.output.contains("Official warnings: MeteoAlarm"),
                "\(substituteCheck)")
            home.server.route("GET", "/alerts", .json(#"{"alerts":[]}"#))
            let alone = try await home.stormy("check", "--exit-code")
            #expect(alone.status == 0 && !alone.output.contains("MeteoAlarm"), "\(alone)")
        }
    }

    @Test func `the daily check queries MeteoAlarm if services fail, and calls off when they respond`() async throws {
        try await play([Self.berlin, (name: "Potsdam", at: "52.4,13.06")]) { (home) async throws in
            home.server.route("GET", "/alerts", .status(500))
            serve([Warning(area: Self.aroundBerlin)], ofCountry: "germany", writtenAt: 0, home)
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown.sorted() == ["Berlin", "Potsdam"].map { "Severe storm expected in \($0)" })
            #expect(home.server.requests(matching: "/feeds/meteoalarm-legacy-atom-germany").count == 1)
            home.server.route("GET", "/alerts", .json(#"{"alerts":[]}"#))
            #expect(try await home.check().outcome == .completed)
            try await home.driver.settle()
            #expect(home.onScreen.sorted() == ["Berlin", "Potsdam"].map { "No longer expected: storm in \($0)" })
            #expect(home.server.requests(matching: "/feeds/meteoalarm-legacy-atom-germany").count == 1)
        }
    }

    @Test func `a new place outside the area of its service has the warnings of MeteoAlarm`() async throws {
        try await play([]) { (home) async throws in
            let area = Self.polygon("47,7 47,8 48,8 48,7 47,7")
            serve([Warning(area: area)], ofCountry: "switzerland", writtenAt: 0, home)
            let added = try await home.stormy("place", "add", "Basel", "47.56,7.59")
            #expect(added.output.contains("Basel: stormy."), "\(added)")
        }
    }

    @Test func `MeteoAlarm is requested if a late response of a service is an error`() async throws {
        try await play([Self.berlin]) { (home) async throws in
            let page = ResponseScript([
                .status(200), .headers(["Content-Length": "6"]), .hold(until: "late"), .body(.text("<html>")),
            ])
            home.server.closeGate("late")
            home.server.route("GET", "/alerts", page)
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == [])
            serve([Warning(area: Self.aroundBerlin)], ofCountry: "germany", writtenAt: 0.1, home)
            home.server.openGate("late")
            try await home.driver.advance(by: .seconds(60))
            #expect(home.shown == ["Severe storm expected in Berlin"])
        }
    }

    @Test func `each place shows the problems of its countries once`() async throws {
        try await play([Self.annecy, (name: "Vienna", at: "48.2082,16.3738")]) { (home) async throws in
            home.server.route("GET", Self.feed, .status(503))
            serve([], ofCountry: "austria", writtenAt: 0, home)
            let rows = try await home.rows("check").map { $0["notAnswered"] as? [String] ?? [] }
            #expect(rows.map(\.count) == [1, 0] && rows.first?.first?.contains("France: ") == true, "\(rows)")
            let said = try await home.stormy("check").errors
            #expect(said.components(separatedBy: "France: ").count == 2, "\(said)")
        }
    }

    @Test func `old data of MeteoAlarm is named with its age`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([], writtenAt: -120, home)
            let old = try await home.stormy("check").output
            #expect(old.contains("Haute Savoie (FR035), no warning, ") && old.contains("; data from "), "\(old)")
            serve([Warning()], writtenAt: 0, home)
            let new = try await home.stormy("check").output
            #expect(new.contains("1 warning, ") && !new.contains("; data from "), "\(new)")
            serve([], writtenAt: -5, home)
            let kept = try await home.stormy("check", "--exit-code")
            #expect(
                kept.status == 10
                    && kept.output.contains("1 warning remains valid, although the service no longer lists it"), "\(kept)")
            #expect(kept.output.contains("; some data is not used: ") && !kept.output.contains("no usable response"), "\(kept)")
        }
    }

    // MARK: Places in two countries

    /// Valga is in two regions: a region of Estonia and a region of Latvia.
    private static let valga = (name: "Valga", at: "57.775,26.032")
    private static let estonian = Warning(area: code("EE013"))

    @Test func `old data of one country end no warning although the other country's data is newer`() async throws {
        try await play([Self.valga]) { (home) async throws in
            serve([Self.estonian], ofCountry: "estonia", writtenAt: -0.5, home)
            serve([], ofCountry: "latvia", writtenAt: -2, home)
            let first = try await home.stormy("check", "--exit-code")
            #expect(first.status == 10, "\(first)")
            serve([], ofCountry: "estonia", writtenAt: -1.5, home)
            serve([], ofCountry: "latvia", writtenAt: -0.1, home)
            let kept = try await home.stormy("check", "--exit-code")
            #expect(
                kept.status == 10
                    && kept.output.contains("1 warning remains valid, although the service no longer lists it"), "\(kept)")
            #expect(kept.output.contains("(EE013), 1 warning, ") && kept.output.contains("(LV048), no warning, "), "\(kept)")
        }
    }

    @Test(arguments: [304, 503])
    func `a warning ends when its own country no longer lists it`(_ status: Int) async throws {
        try await play([Self.valga]) { (home) async throws in
            serve([Self.estonian], ofCountry: "estonia", writtenAt: -0.5, home)
            serve([], ofCountry: "latvia", writtenAt: -5, etag: "\"1\"", home)
            if status != 304 { home.server.route("GET", "/feeds/meteoalarm-legacy-atom-latvia", .status(status)) }
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            serve([], ofCountry: "estonia", writtenAt: -0.1, home)
            let ended = try await home.stormy("check", "--exit-code")
            #expect(ended.status == 0 && !ended.errors.contains("remains valid"), "\(ended)")
            #expect(ended.errors.contains("warnings of MeteoAlarm, Latvia: ") == (status == 503), "\(ended)")
            let latvian = home.server.requests(matching: "/feeds/meteoalarm-legacy-atom-latvia").last
            #expect((latvian?.headers["If-None-Match"] != nil) == (status == 304))
        }
    }

    @Test func `an unusable link elsewhere in the country does not keep a warning`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            func unusable(_ area: String, writtenAt hours: Double) {
                let feed = """
                    <feed xmlns="http://www.w3.org/2005/Atom" xmlns:cap="urn:oasis:names:tc:emergency:cap:1.2">
                    <updated>\(time(home, hours))</updated><entry><cap:geocode><valueName>EMMA_ID</valueName>
                    <value>\(area)</value></cap:geocode><cap:status>Actual</cap:status>
                    <link href="https://example.com/x" type="application/cap+xml"/></entry></feed>
                    """
                home.server.route("GET", Self.feed, .status(200, body: .bytes(Data(feed.utf8))))
            }
            serve([Warning()], writtenAt: -1, home)
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            unusable("FR035", writtenAt: -0.5)
            let kept = try await home.stormy("check", "--exit-code")
            #expect(kept.status == 10 && kept.errors.contains("1 of the feed's documents were not used"), "\(kept)")
            unusable("FR039", writtenAt: -0.4)
            let ended = try await home.stormy("check", "--exit-code")
            #expect(ended.status == 0 && !ended.errors.contains("MeteoAlarm"), "\(ended)")
        }
    }

    @Test func `an unknown code is reported and a missing feed does not end a warning`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning(), Warning(id: "2", area: Self.code("FR977"))], writtenAt: 0, home)
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && said.errors.contains("warnings for unknown areas: EMMA_ID FR977"), "\(said)")
            #expect(said.errors.contains("1 of 2 warnings name their areas only by codes that Stormy does not know"), "\(said)")
            let again = try await home.stormy("check", "--exit-code")
            #expect(again.status == 10 && !again.errors.contains("warnings for unknown areas: "), "\(again)")
            #expect(again.errors.contains("1 of 2 warnings name their areas only by codes that Stormy does not know"), "\(again)")
            home.server.route("GET", Self.feed, .status(503))
            let failed = try await home.stormy("check", "--exit-code")
            #expect(failed.status == 10 && failed.output.contains("no usable response"), "\(failed)")
        }
    }

    @Test func `codes that the daily check finds are reported by the next command`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning(area: Self.code("FR977"))], writtenAt: 0, home)
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            serve([Warning(area: Self.code("FR977")), Warning(id: "2", area: Self.code("FR978"))], writtenAt: 1, home)
            let both = try await home.stormy("check")
            #expect(both.errors.contains("warnings for unknown areas: EMMA_ID FR977, EMMA_ID FR978"), "\(both)")
            serve([Warning(area: Self.code("FR979"))], writtenAt: 2, home)
            let new = try await home.stormy("check")
            #expect(new.errors.contains("warnings for unknown areas: EMMA_ID FR979\n"), "\(new)")
        }
    }

    @Test(arguments: ["ISO3166-2", "EMMA_ID"])
    func `a document is read if its entry cannot be placed`(_ type: String) async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning()], writtenAt: 0, home)
            let code = "<cap:geocode><valueName>\(type)</valueName><value>FR-7</value></cap:geocode>"
            let link = "https://feeds.meteoalarm.org/api/v1/warnings/feeds-france/1"
            let feed = """
                <feed xmlns="http://www.w3.org/2005/Atom" xmlns:cap="urn:oasis:names:tc:emergency:cap:1.2">
                <updated>\(time(home, 0))</updated><entry>\(code)<cap:status>Actual</cap:status>
                <link href="\(link)" type="application/cap+xml"/><title>Orange Warning</title><updated>\(time(home, 0))</updated>
                </entry></feed>
                """
            home.server.route("GET", Self.feed, .status(200, body: .bytes(Data(feed.utf8))))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && !said.errors.contains("name their areas only by codes"), "\(said)")
        }
    }

    // MARK: Conditional requests

    private static let feed = "/feeds/meteoalarm-legacy-atom-france"

    /// Returns the condition header of each request for the French feed.
    private func conditions(_ home: VirtualHome) -> [String?] {
        home.server.requests(matching: Self.feed).map { $0.headers["If-None-Match"] }
    }

    @Test func `a feed that has not changed keeps its warnings and counts as a response`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning()], writtenAt: 0, etag: "\"1\"", home)
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            // If the service fails once between two responses, the failure is not reported after the second response.
            home.server.route("GET", Self.feed, .status(503))
            #expect(try await home.stormy("check").output.contains("no usable response"))
            try await home.driver.advance(by: .seconds(7_200))
            home.serveCalm()
            home.server.route("GET", Self.feed, .status(304))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && said.output.contains("Haute Savoie (FR035), 1 warning"), "\(said)")
            #expect(!said.output.contains("no usable response") && !said.errors.contains("MeteoAlarm"), "\(said)")
            #expect(conditions(home) == [nil, "\"1\"", "\"1\""])
            #expect(home.server.requests(matching: "/api/*").count == 1)
            let services = try await home.rows("check", "--offline").first?["officialWarnings"] as? [[String: Any]]
            let answered = services?.first?["answeredAt"] as? String
            #expect(answered?.contains("T12:0") == true, "two hours after the start: \(answered ?? "never")")
        }
    }

    @Test func `a document that could not be fetched is fetched although the feed has not changed`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning()], writtenAt: 0, etag: "\"1\"", home)
            home.server.route("GET", "/api/v1/warnings/feeds-france/1", .status(503))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 0 && said.errors.contains("1 of the feed's documents could not be read"), "\(said)")
            serve([Warning()], writtenAt: 0, etag: "\"1\"", home)
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            #expect(conditions(home) == [nil, "\"1\""])
        }
    }

    @Test func `a warning that a newer feed does not list is called off after responses without news`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning()], writtenAt: 0, etag: "\"1\"", home)
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            serve([], writtenAt: 0.01, etag: "\"2\"", home)
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 0) }
            #expect(conditions(home) == [nil, "\"1\"", "\"1\"", "\"2\""])
        }
    }

    @Test func `a place that is added later needs the complete feed`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning(), Warning(id: "2", area: Self.code("FR039"))], writtenAt: 0, etag: "\"1\"", home)
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            #expect(try await home.stormy("place", "add", "Bourg", "46.2056,5.2258", "--no-sync").status == 0)
            for _ in 0..<2 {
                let said = try await home.stormy("check", "Bourg", "--exit-code")
                #expect(said.status == 10, "\(said)")
            }
            #expect(conditions(home) == [nil, nil, "\"1\""])
            #expect(home.server.requests(matching: "/api/*").count == 2)
        }
    }

    @Test func `a 304 without a condition is not a valid response`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            home.server.route("GET", Self.feed, .status(304))
            let said = try await home.stormy("check")
            #expect(said.output.contains("no usable response"), "\(said)")
            serve([Warning()], writtenAt: 0, etag: "1", home)
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            home.server.route("GET", Self.feed, .status(304))
            let kept = try await home.stormy("check", "--exit-code")
            #expect(kept.status == 10 && kept.output.contains("no usable response"), "\(kept)")
            #expect(conditions(home) == [nil, nil, nil], "an entity tag without quotes is not used")
        }
    }

    @Test func `other content under the same entity tag is used and the tag is not used again`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([], writtenAt: 0, etag: "\"1\"", home)
            #expect(try await home.stormy("check", "--exit-code").status == 0)
            // The server sends an entity tag, but ignores conditions in requests.
            serve([Warning()], writtenAt: 0.01, etag: "\"1\"", isConditional: false, home)
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            #expect(conditions(home) == [nil, "\"1\"", nil])
        }
    }

    @Test func `after three days the complete feed is received`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([], writtenAt: 0, etag: "\"1\"", home)
            for _ in 0..<3 {
                home.serveCalm()
                #expect(try await home.stormy("check").status == 0)
                try await home.driver.advance(by: .seconds(40 * 3600))
            }
            #expect(conditions(home) == [nil, "\"1\"", nil])
        }
    }

    @Test func `a feed of 9 MB is read`() async throws {
        try await play([Self.annecy]) { (home) async throws in
            serve([Warning()], writtenAt: 0, padding: 9_000_000, home)
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10, "\(said)")
        }
    }
}
