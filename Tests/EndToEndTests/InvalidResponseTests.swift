import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of invalid responses that need a real connection. `CheckCommandTests` contains the tests of all other invalid
    /// responses.
    @Suite struct InvalidResponses {
        let server: FaultyServer
        let home: Home

        init() async throws {
            server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            home = try Home(server: server)
            home.environment["STORMY_NO_AGENT"] = "1"
        }

        private func row() throws -> [String: Any] {
            let result = try home.stormy("check", "--json")
            let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]]
            return try #require(rows?.first, "\(result.output)\(result.errors)")
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
            BadAnswer("a reset connection", "127.0.0.1", .resetConnection),
            BadAnswer("too long a head", "127.0.0.1", .headerFlood(count: 600)),
        ]

        @Test(arguments: badAnswers)
        func `an unusable response is never reported as calm`(_ bad: BadAnswer) throws {
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
            // The stored forecast is kept, and its age is shown.
            Weather.serve(.json(Weather.forecast()), on: server)
            #expect(try row()["stormy"] as? Bool == true)
            Weather.serve(bad.script, on: server)
            let stored = try row()
            #expect(stored["stormy"] as? Bool == true && stored["stale"] as? Bool == true)
            let last = try #require((try home.status()["checks"] as? [[String: Any]])?.first)
            #expect((last["trouble"] as? String)?.contains(bad.words) == true)
        }
    }
}
