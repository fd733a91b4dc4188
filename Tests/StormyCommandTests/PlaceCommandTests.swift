import Foundation
import ServerScripts
import Testing

/// Tests `stormy place` with valid and invalid places. Also tests the search for a place by its name.
@Suite(.timeLimit(.minutes(30))) struct PlaceCommandTests {
    /// Runs a test without an agent.
    private func play(_ configuration: String = "", _ body: @Sendable (VirtualHome) async throws -> Void) async throws {
        try await VirtualHome.play(configuration) { home in
            await home.setStartsAgents(false)
            try await body(home)
        }
    }

    @Test(arguments: [["check"], ["check", "--fresh"], ["check", "--offline"]])
    func `a place is required`(_ arguments: [String]) async throws {
        try await play { home in
            let result = try await home.stormy(arguments)
            #expect(result.status == 66)
            #expect(result.errors.contains("stormy place add"))
        }
    }

    @Test func `an invalid or unknown place is refused`() async throws {
        try await play { home in
            #expect(try await home.stormy("place", "add", "Sydney", "-33.87,151.21", "--no-sync").status == 0)
            for again in ["Sydney", "sydney"] {
                let twice = try await home.stormy("place", "add", again, "-33.87,151.21", "--no-sync")
                #expect(twice.status == 65)
                #expect(twice.errors.lowercased().contains("sydney"), "\(twice.errors)")
            }
            for bad in ["91,0", "north", "1", "1,2,3", "nan,0"] {
                #expect(try await home.stormy("place", "add", "Nowhere", bad, "--no-sync").status == 65, "\(bad)")
            }
            for bad in ["", "\u{202E}abc", "a\nb", "a\u{1B}[31m", String(repeating: "a", count: 101)] {
                #expect(try await home.stormy("place", "add", bad, "1,1", "--no-sync").status == 65, "\(bad.debugDescription)")
            }
            #expect(try await home.stormy("check", "Atlantis").status == 66)
            #expect(try await home.stormy("place", "remove", "Atlantis").status == 66)
            #expect(try await home.rows("place", "list").map { $0["name"] as? String } == ["Sydney"])
            #expect(try await home.stormy("place", "remove", "Sydney").status == 0)
            #expect(try await home.rows("place", "list").isEmpty)
        }
    }

    @Test func `an unknown command and an invalid time are refused`() async throws {
        try await play { (home: VirtualHome) async throws in
            #expect(try await home.stormy("nonsense").status == 64)
            #expect(try await home.stormy("schedule", "--at", "25:00").status == 65)
        }
    }

    @Test func `a place without coordinates is looked up by its name`() async throws {
        try await play("geocoding_url = \"\(VirtualHome.origin)\"\n") { home in
            home.server.route(
                "GET", "/v1/search*",
                .json(
                    #"{"results":[{"name":"Goiânia","latitude":-16.68,"longitude":-49.25,"country":"Brasil","admin1":"Goiás"}]}"#),
                .json(#"{"generationtime_ms":1}"#), .status(502))
            let found = try await home.stormy("place", "add", "Goiânia", "--no-sync")
            #expect(found.status == 0)
            #expect(found.output.contains("Goiânia, Goiás, Brasil"))
            #expect(home.server.requests(matching: "/v1/search").first?.query?.contains("name=Goi%C3%A2nia") == true)
            let nothing = try await home.stormy("place", "add", "Xyzzy")
            #expect(nothing.status == 66)
            #expect(nothing.errors.contains("LAT,LON"))
            let failing = try await home.stormy("place", "add", "Plugh")
            #expect(failing.status == 69)
            #expect(failing.errors.contains("502") && failing.errors.contains("LAT,LON"))
            #expect(try await home.rows("place", "list").count == 1)
        }
    }
}
