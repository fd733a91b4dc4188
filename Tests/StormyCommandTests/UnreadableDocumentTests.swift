import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

// Tests documents and entries that contain a part that cannot be read.
extension WarningDocumentTests {
    @Test(
        arguments: [
            ("<status>Actual</status>", "", "1 of the feed's documents could not be read"),
            ("<event>Severe Thunderstorm</event>", "<event></event>", ""),
            ("<severity>Severe</severity>", "<severity>Severo</severity>", "have no severity that Stormy can read"),
            ("<severity>Severe</severity>", "", "have no severity that Stormy can read"),
        ])
    func `an update with a part that cannot be read does not call a storm off`(
        _ part: String, _ replacement: String, _ reported: String
    ) async throws {
        try await play { (home) async throws in
            try await home.stormy("schedule")
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", document(home, "a"))
            #expect(try await home.check().outcome == .completed)
            serve(home, "/feed.xml", feed([("b.xml", "2"), ("a.xml", "1")]))
            let update = document(home, "b", "Update", of: "warn@met.example,a,x", sent: -0.5)
            serve(home, "/cap/b.xml", update.replacing(part, with: replacement))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && (reported.isEmpty || said.errors.contains(reported)), "\(said)")
            try await home.driver.settle()
            #expect(home.onScreen == ["Severe storm expected in Lake"])
        }
    }

    @Test func `entries of a feed that lead to nothing are reported`() async throws {
        try await play { (home) async throws in
            let entry = "<item><title>Extreme tornado</title></item></channel>"
            let reported = "1 of the entries of the feed have no readable warning and no usable link"
            for (items, status) in [([], 0), ([(link: "a.xml", guid: "1")], 10)] as [([(link: String, guid: String)], Int32)] {
                serve(home, "/cap/a.xml", document(home, "a"))
                serve(home, "/feed.xml", feed(items).replacing("</channel>", with: entry))
                let said = try await home.stormy("check", "--exit-code")
                #expect(said.status == status && said.errors.contains(reported), "\(said)")
            }
        }
    }

    // MARK: Areas

    @Test func `a warning with an area by code alone is reported where it is not shown`() async throws {
        try await play { (home) async throws in
            #expect(try await home.stormy("place", "add", "Sea", "10.5,10.5", "--no-sync").status == 0)
            let code = "<geocode><valueName>EMMA_ID</valueName><value>FR977</value></geocode>"
            let text = document(home, "a", polygon: "10,10 10,11 11,11 11,10").replacing(
                "</area>", with: "</area><area><areaDesc>Lake</areaDesc>\(code)</area>")
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", text)
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10 && said.errors.contains("warnings for unknown areas: EMMA_ID FR977"), "\(said)")
            let remark = "1 of 1 warnings have some area codes that Stormy does not know, and may also be valid here"
            let places = try await home.rows("check")
            for place in places {
                let answers = place["officialWarnings"] as? [[String: Any]] ?? []
                let feed = answers.first { ($0["service"] as? String)?.contains("feed.xml") ?? false }
                #expect(feed?["trouble"] as? String == (place["stormy"] as? Bool == true ? nil : remark), "\(place)")
            }
            #expect(places.count == 2)
        }
    }

    @Test func `an area with a shape of no size is reported`() async throws {
        try await play { (home) async throws in
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", document(home, "a", polygon: "0,0 0,0 0,0 0,0"))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.errors.contains("1 of 1 warnings have polygons or circles that cannot be read"), "\(said)")
        }
    }

    // MARK: Ends

    @Test func `a warning without an end is shown while its feed lists it`() async throws {
        try await play { (home) async throws in
            try await home.stormy("schedule")
            let text = document(home, "a", sent: -13).replacing(/<onset>.*<\/expires>/, with: "")
            serve(home, "/feed.xml", feed([("a.xml", "1")]))
            serve(home, "/cap/a.xml", text)
            #expect(try await home.check().outcome == .completed)
            #expect(home.onScreen == ["Severe storm expected in Lake"])
            serve(home, "/feed.xml", feed([]))
            #expect(try await home.stormy("check", "--exit-code").status == 0)
        }
    }

    // MARK: Addresses

    @Test func `relative links of a feed behind a redirect are links of its new address`() async throws {
        try await play { (home) async throws in
            home.server.route("GET", "/feed.xml", .redirect(301, to: "/new/alerts/feed.xml"))
            let items = feed([("a.xml", "1")]).replacing("\(VirtualHome.origin)/cap/", with: "cap/")
            serve(home, "/new/alerts/feed.xml", items)
            serve(home, "/new/alerts/cap/a.xml", document(home, "a"))
            let said = try await home.stormy("check", "--exit-code")
            #expect(said.status == 10, "\(said)")
        }
    }
}
