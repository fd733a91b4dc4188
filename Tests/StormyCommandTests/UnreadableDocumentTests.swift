import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

// Documents and entries of which a part cannot be read.
extension WarningDocumentTests {
    @Test(
        arguments: [
            ("<status>Actual</status>", "", "1 of its documents could not be read"),
            ("<event>Severe Thunderstorm</event>", "<event></event>", ""),
            ("<severity>Severe</severity>", "<severity>Severo</severity>", "have no readable severity"),
            ("<severity>Severe</severity>", "", "have no readable severity"),
        ])
    func `an update of which a part cannot be read calls nothing off`(
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
            let reported = "1 of its entries have no readable warning and no usable link"
            for (items, status) in [([], 0), ([(link: "a.xml", guid: "1")], 10)] as [([(link: String, guid: String)], Int32)] {
                serve(home, "/cap/a.xml", document(home, "a"))
                serve(home, "/feed.xml", feed(items).replacing("</channel>", with: entry))
                let said = try await home.stormy("check", "--exit-code")
                #expect(said.status == status && said.errors.contains(reported), "\(said)")
            }
        }
    }
}
