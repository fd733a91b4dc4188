import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

/// Tests documents and responses in the forms of real warning services, from the request to the screen.
@Suite(.timeLimit(.minutes(30))) struct WarningDocumentTests {
    /// Runs a test with a calm forecast. No agent is running unless the test needs one.
    func play(
        at place: String = "47.37,8.54", _ body: @Sendable (VirtualHome) async throws -> Void
    ) async throws {
        let configuration = """
            provider = "open-meteo"
            contact = "me@example.org"
            [alerts]
            cap_feeds = ["\(VirtualHome.origin)/feed.xml"]
            """
        try await VirtualHome.play(configuration) { home in
            home.server.route(nil, "*", .status(404))
            home.serveCalm()
            home.server.route("GET", "/feed.xml", .status(200, body: "<feed/>"))
            #expect(try await home.stormy("place", "add", "Lake", place, "--no-sync").status == 0)
            try await body(home)
        }
    }

    private func time(_ home: VirtualHome, _ hours: Double) -> String { (home.now + hours * 3600).formatted(.iso8601) }

    func document(
        _ home: VirtualHome, _ id: String, _ kind: String = "Alert", of references: String = "",
        sender: String = "warn@met.example",
        sent: Double = -1, until: Double = 8, polygon: String = "47.0,8.0 47.0,9.0 48.0,9.0 48.0,8.0 47.0,8.0"
    ) -> String {
        """
        <alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>\(id)</identifier><sender>\(sender)</sender>
        <sent>\(time(home, sent))</sent><status>Actual</status><msgType>\(kind)</msgType><scope>Public</scope>
        <references>\(references)</references><info><language>en</language><category>Met</category>
        <event>Severe Thunderstorm</event><urgency>Expected</urgency><severity>Severe</severity><certainty>Likely</certainty>
        <onset>\(time(home, 1))</onset><expires>\(time(home, until))</expires><senderName>Met Service of Example</senderName>
        <area><areaDesc>Lakeside</areaDesc><polygon>\(polygon)</polygon></area></info></alert>
        """
    }

    func feed(_ items: [(link: String, guid: String)]) -> String {
        let elements = items.map { item in
            """
            <item><title>warning</title><link>\(VirtualHome.origin)/cap/\(item.link)</link>
            <guid isPermaLink="false">\(item.guid)</guid><pubDate>\(item.guid)</pubDate></item>
            """
        }
        return "<rss version=\"2.0\"><channel><title>Latest alerts</title>\(elements.joined())</channel></rss>"
    }

    func serve(_ home: VirtualHome, _ path: String, _ text: String, _ encoding: String.Encoding = .utf8) {
        home.server.route("GET", path, .status(200, body: .bytes(text.data(using: encoding) ?? Data())))
    }

    @Test(arguments: ["<?xml-stylesheet type=\"text/xsl\" href=\"/style.xsl\"?>", "<!-- a comment -->", "<!DOCTYPE rss>"])
    func `feeds and documents with more than elements are read`(_ line: String) async throws {
        try await play { (home) async throws in
            let start = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\(line.hasPrefix("<!D") ? "" : line)\n"
            serve(home, "/feed.xml", start + feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", start + document(home, "1"))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && said.output.contains("warning: Severe Thunderstorm"), "\(said)")
            #expect(!said.errors.contains("Not used"), "\(said)")
        }
    }

    @Test func `documents in UTF-16 and ISO-8859-1 are read`() async throws {
        try await play { (home) async throws in
            for (name, encoding) in [("UTF-16", String.Encoding.utf16), ("ISO-8859-1", .isoLatin1)] {
                let start = "<?xml version=\"1.0\" encoding=\"\(name)\"?>"
                serve(home, "/feed.xml", start + feed([(name, name)]), encoding)
                let text = document(home, name).replacing("Severe Thunderstorm", with: "Gewitter für \(name)")
                serve(home, "/cap/\(name)", start + text, encoding)
                let said = try await home.stormy("check")
                #expect(said.output.contains("warning: Gewitter für \(name)"), "\(said)")
            }
        }
    }

    @Test func `a document that declares entities is refused and reported`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", "<!DOCTYPE alert [<!ENTITY a \"b\">]>" + document(home, "1"))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 0 && said.errors.contains("1 of the feed's documents could not be read"), "\(said)")
        }
    }

    @Test func `a place in the middle of an area that crosses itself is warned`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("star.xml", "1")]))
            let star = "48.170,8.540 46.723,7.952 47.617,9.491 47.617,7.589 46.723,9.128 48.170,8.540"
            serve(home, "/cap/star.xml", document(home, "star", polygon: star))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10, "\(said)")
        }
    }

    @Test func `a US warning without an end is shown until it is not listed`() async throws {
        try await play(at: "25.76,-80.19") { (home) async throws in
            let (sent, onset, expires) = (time(home, 0), time(home, 20), time(home, 5))
            let warning = """
                {"features":[{"geometry":null,"properties":{"id":"a","areaDesc":"Test County","references":[],"sent":"\(sent)",
                "effective":"\(sent)","onset":"\(onset)","expires":"\(expires)","ends":null,"status":"Actual",
                "messageType":"Alert","severity":"Extreme","certainty":"Likely","urgency":"Expected","event":"Hurricane Warning",
                "senderName":"NWS Test"}}]}
                """
            home.server.route("GET", "/alerts/active", .json(warning))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Extreme storm expected in Lake"])
            let said = try await home.stormy("check").output
            #expect(said.contains("Hurricane Warning from ") && said.contains(", no end given."), "\(said)")
            let row = try await home.rows("check").first
            let reason = try #require((row?["reasons"] as? [[String: Any]])?.first)
            #expect(reason["openEnd"] as? Bool == true)
            // The warning began days ago, and its message has expired long ago.
            for _ in 0..<3 {
                home.serveCalm()
                #expect(try await home.nextCheck().outcome == .completed)
                #expect(home.onScreen == ["Extreme storm expected in Lake"])
                home.serveCalm()
                #expect(try await home.stormy("check", "--exit-code").status == 10)
            }
            #expect(home.shown == ["Extreme storm expected in Lake"], "shown once")
            home.server.route("GET", "/alerts/active", .json(#"{"features":[]}"#))
            home.serveCalm()
            #expect(try await home.stormy("check", "--exit-code").status == 0)
            try await home.driver.settle()
            #expect(home.onScreen == ["No longer expected: storm in Lake"])
        }
    }

    @Test(arguments: [true, false])
    func `a cancellation of what a link contains now ends what it contained before`(_ isUpdateSeen: Bool) async throws {
        try await play { (home) async throws in
            try await home.stormy("schedule")
            serve(home, "/feed.xml", feed([("same.xml", "g.0")]))
            serve(home, "/cap/same.xml", document(home, "g.0", sent: -1))
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Severe storm expected in Lake"])
            let update = document(home, "g.1", sent: -0.5)
            serve(home, "/cap/same.xml", update)
            if isUpdateSeen {
                serve(home, "/feed.xml", feed([("same.xml", "g.1")]))
                #expect(try await home.stormy("check", "--exit-code").status == 10)
            }
            serve(home, "/feed.xml", feed([("cancel.xml", "g.30"), ("same.xml", "g.1")]))
            serve(home, "/cap/cancel.xml", document(home, "g.30", "Cancel", of: "warn@met.example,g.1,x", sent: -0.1))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 0 && said.output.contains("Lake: calm."), "\(said)")
            try await home.driver.settle()
            #expect(home.onScreen == ["No longer expected: storm in Lake"])
        }
    }

    @Test func `references that are not used are reported`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1"), ("b.xml", "2")]))
            serve(home, "/cap/a.xml", document(home, "a", "Update", of: "warn@met.example,a,x"))
            serve(
                home, "/cap/b.xml", document(home, "b", "Cancel", of: "warn@met.example,a,x", sender: "x@y.example", sent: -0.1))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10, "\(said)")
            #expect(said.errors.contains("/feed.xml: the update warn@met.example,a refers to itself"), "\(said)")
            #expect(said.errors.contains("does not count: the cancellation is from another sender (x@y.example,b)"), "\(said)")
            #expect(try await home.stormy("status").output.contains("the cancellation is from another sender"))
        }
    }

    @Test func `a circle of updates leaves its newest on the screen`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1"), ("b.xml", "2")]))
            serve(home, "/cap/a.xml", document(home, "a", "Update", of: "warn@met.example,b,x", sent: -0.5))
            serve(home, "/cap/b.xml", document(home, "b", "Update", of: "warn@met.example,a,x", sent: -0.5))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && said.errors.contains("2 updates replace each other"), "\(said)")
        }
    }

    // MARK: Conditional requests

    private func conditions(_ home: VirtualHome, _ path: String) -> [String?] {
        home.server.requests(matching: path).map { $0.headers["If-None-Match"] }
    }

    private func serve(_ home: VirtualHome, _ path: String, _ text: String, etag: String) {
        home.server.route("GET", path, .file(.bytes(Data(text.utf8)), etag: etag, supportsRange: false))
    }

    /// Lets a day pass.
    private func wait(_ home: VirtualHome) async throws {
        try await home.driver.advance(by: .seconds(25 * 3600))
        home.serveCalm()
    }

    @Test func `a feed that has not changed keeps what it warned of`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]), etag: "W/\"1\"")
            serve(home, "/cap/a.xml", document(home, "1"))
            for _ in 0..<2 {
                let said = try await home.stormy("check", "--exit-code")
                #expect(said.status == 10 && !said.errors.contains("Not used"), "\(said)")
            }
            #expect(conditions(home, "/feed.xml") == [nil, "W/\"1\""])
            #expect(home.server.requests(matching: "/cap/*").count == 1)
            serve(home, "/feed.xml", feed([("a.xml", "1"), ("b.xml", "2")]), etag: "W/\"2\"")
            serve(home, "/cap/b.xml", document(home, "2", "Cancel", of: "warn@met.example,1,x", sent: -0.1))
            #expect(try await home.stormy("check", "--exit-code").status == 0)
        }
    }

    @Test func `a feed with a date is requested on condition of the date`() async throws {
        try await play { (home) async throws in
            let date = "Fri, 06 Jun 2025 08:49:37 GMT"
            serve(home, "/cap/a.xml", document(home, "1"))
            home.server.route(
                "GET", "/feed.xml", .file(.text(feed([("a.xml", "1")])), lastModified: date, supportsRange: false))
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            let asked = home.server.requests(matching: "/feed.xml").map { $0.headers["If-Modified-Since"] }
            #expect(asked == [nil, date])
        }
    }

    @Test func `a feed that contains its warnings is requested on condition`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", document(home, "1"), etag: "\"1\"")
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            #expect(conditions(home, "/feed.xml") == [nil, "\"1\""])
        }
    }

    @Test func `a document that changes without a new time in its feed is requested again after a day`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]), etag: "\"1\"")
            serve(home, "/cap/a.xml", document(home, "1", until: 100), etag: "\"a\"")
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            #expect(conditions(home, "/cap/a.xml") == [nil])
            try await wait(home)
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            #expect(conditions(home, "/cap/a.xml") == [nil, "\"a\""])
            try await wait(home)
            home.server.route("GET", "/cap/a.xml", .status(500))
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10, "it is kept") }
            #expect(conditions(home, "/cap/a.xml").count == 3, "once a day")
            try await wait(home)
            serve(home, "/cap/a.xml", document(home, "2", "Cancel", of: "warn@met.example,1,x"), etag: "\"b\"")
            #expect(try await home.stormy("check", "--exit-code").status == 0)
        }
    }

    @Test func `an older version from a cache does not replace a document`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", document(home, "2", "Update", of: "warn@met.example,1,x", until: 100))
            #expect(try await home.stormy("check", "--exit-code").status == 10)
            for (count, id) in ["1", "2"].enumerated() {
                try await wait(home)
                serve(home, "/cap/a.xml", document(home, id, sent: -60, polygon: "1,1 1,2 2,2"))
                #expect(try await home.stormy("check", "--exit-code").status == 10)
                #expect(home.server.requests(matching: "/cap/a.xml").count == count + 2)
            }
        }
    }

    @Test(arguments: [9.0, -1]) func `another message at the same link counts whatever the time of the earlier one`(
        _ earlier: Double
    ) async throws {
        try await play { (home) async throws in
            func atom(_ names: String...) -> String {
                let links = names.map { "<entry><link type=\"application/cap+xml\" href=\"/cap/\($0).xml\"/></entry>" }
                return "<feed>\(links.joined())</feed>"
            }
            serve(home, "/feed.xml", atom("a"))
            serve(home, "/cap/a.xml", document(home, "1", sent: earlier, polygon: "1,1 1,2 2,2"))
            #expect(try await home.stormy("check", "--exit-code").status == 0)
            serve(home, "/feed.xml", atom("b", "a"))
            serve(home, "/cap/b.xml", document(home, "other", polygon: "1,1 1,2 2,2"))
            serve(home, "/cap/a.xml", document(home, "2", sent: -2))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10, "\(said)")
        }
    }

    @Test func `a feed of 450 documents is read in one check`() async throws {
        try await play { (home) async throws in
            let names = (0..<450).map { "\($0).xml" }
            for name in names { serve(home, "/cap/\(name)", document(home, name, polygon: "1,1 1,2 2,2")) }
            serve(home, "/cap/300.xml", document(home, "300.xml"))
            serve(home, "/feed.xml", feed(names.map { ($0, $0) }))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && !said.errors.contains("of the feed's documents"), "\(said)")
            #expect(home.server.requests(matching: "/cap/*").count == 450)
        }
    }

    @Test func `documents that are too large for one check are not requested and the daily check is repeated`() async throws {
        try await play { (home) async throws in
            let padding = "<!-- \(String(repeating: "x", count: 3 << 20)) -->"
            let names = (0..<16).map { "\($0).xml" }
            for name in names { serve(home, "/cap/\(name)", padding + document(home, name, polygon: "1,1 1,2 2,2")) }
            serve(home, "/cap/15.xml", document(home, "last"))
            serve(home, "/feed.xml", feed(names.map { ($0, $0) }))
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .crashed, "it is repeated")
            #expect(try await home.stormy("status").output.contains("of the feed's documents were not requested yet"))
            // The next launch requests the other documents.
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && !said.errors.contains("not requested"), "\(said)")
            #expect(home.server.requests(matching: "/cap/*").count == names.count, "each once")
        }
    }

    @Test func `an update from another sender is reported and ends nothing`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1"), ("b.xml", "2")]))
            serve(home, "/cap/a.xml", document(home, "a"))
            let update = document(home, "b", "Update", of: "warn@met.example,a,x", sender: "x@y.example", sent: -0.1)
            serve(home, "/cap/b.xml", update.replacing("<severity>Severe", with: "<severity>Minor"))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10, "\(said)")
            #expect(
                said.errors.contains("does not replace the warning: the update is from another sender (x@y.example,b)"), "\(said)"
            )
        }
    }

    @Test func `two documents of a feed with one identifier both count`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("b.xml", "2"), ("a.xml", "1")]))
            serve(home, "/cap/a.xml", document(home, "1"))
            serve(home, "/cap/b.xml", document(home, "1", sent: -0.5, polygon: "1,1 1,2 2,2"))
            for _ in 0..<2 {
                let said = try await home.stormy("check", "--exit-code")
                #expect(said.status == 10, "\(said)")
            }
        }
    }

    @Test func `a document without a time is requested again when its feed has changed`() async throws {
        try await play { (home) async throws in
            func atom(_ names: String...) -> String {
                let links = names.map { "<entry><link type=\"application/cap+xml\" href=\"/cap/\($0).xml\"/></entry>" }
                return "<feed>\(links.joined())</feed>"
            }
            serve(home, "/feed.xml", atom("a"))
            serve(home, "/cap/a.xml", document(home, "1"), etag: "\"a\"")
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            #expect(conditions(home, "/cap/a.xml") == [nil])
            serve(home, "/feed.xml", atom("b", "a"))
            serve(home, "/cap/b.xml", document(home, "other", polygon: "1,1 1,2 2,2"))
            for _ in 0..<2 { #expect(try await home.stormy("check", "--exit-code").status == 10) }
            #expect(conditions(home, "/cap/a.xml") == [nil, "\"a\""])
            serve(home, "/feed.xml", atom("a"))
            serve(home, "/cap/a.xml", document(home, "2", "Cancel", of: "warn@met.example,1,x", sent: -0.1), etag: "\"b\"")
            #expect(try await home.stormy("check", "--exit-code").status == 0)
        }
    }

    @Test func `a response with a part that is not used counts as a response`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1"), ("b.xml", "2")]))
            serve(home, "/cap/a.xml", document(home, "1"))
            let reference = "warn@met.example,1,\(time(home, -1))"
            serve(home, "/cap/b.xml", document(home, "2", "Cancel", of: reference, sent: -1.01))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10, "\(said)")
            #expect(said.output.contains("Official warnings: service.test/feed.xml, 1 warning, "), "\(said)")
            #expect(said.output.contains("; some data is not used: "), "\(said)")
            let services = try await home.rows("check", "--offline").first?["officialWarnings"] as? [[String: Any]]
            let row = services?.first { $0["service"] as? String == "service.test/feed.xml" }
            #expect(row?["answer"] as? String == "answered" && row?["trouble"] is String, "\(services ?? [])")
        }
    }

    // MARK: Sources that are removed

    @Test(arguments: [true, false])
    func `a storm is called off when its feed is removed from the configuration`(_ hasForecast: Bool) async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", document(home, "1"))
            _ = try await home.stormy("check", "--notify")
            try await home.driver.settle()
            #expect(home.onScreen == ["Severe storm expected in Lake"])
            try home.configure("[weather]\nbase_url = \"\(VirtualHome.origin)\"\ncontact = \"me@example.org\"\n")
            if hasForecast { home.serveCalm() } else { home.serve(.status(503)) }
            _ = try await home.stormy("check", "--notify")
            try await home.driver.settle()
            #expect(home.onScreen == ["No longer expected: storm in Lake"])
            #expect(try await (home.status()["storms"] as? [Any])?.isEmpty == true)
            let photos = try await home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }
            #expect(photos.isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `the storm of a warning is called off when its place is moved out of the area`(_ syncs: Bool) async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", document(home, "1"))
            _ = try await home.stormy("check", "--notify")
            try await home.stormy(["place", "move", "Lake", "1,1"] + (syncs ? [] : ["--no-sync"]))
            home.serveCalm()
            _ = try await home.stormy("check", "--notify")
            try await home.driver.settle()
            #expect(home.onScreen == ["No longer expected: storm in Lake"])
        }
    }

    @Test func `the storm of a warning stays when its place is moved within the area`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", document(home, "1"))
            _ = try await home.stormy("check", "--notify")
            try await home.stormy("place", "move", "Lake", "47.4,8.5")
            _ = try await home.stormy("check", "--notify")
            try await home.driver.settle()
            #expect(home.onScreen == ["Severe storm expected in Lake"])
            #expect(home.driver.notifications.history.filter { $0.showings == 1 }.count == 1)
        }
    }
}
