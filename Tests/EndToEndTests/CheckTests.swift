import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// A person asks; the service, the store or the file is not as it should be.
    @Suite struct Check {
        let server: FaultyServer

        init() async throws {
            server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
        }

        private func home() throws -> Home {
            let home = try Home(server: server)
            home.environment["STORMY_NO_AGENT"] = "1"
            return home
        }

        @Test func keepsTheLastAnswer() async throws {
            let home = try home()
            #expect(try home.stormy("check").status == 66)
            #expect(try home.stormy("place", "add", "Sydney", "-33.87,151.21").status == 0)
            #expect(try home.stormy("place", "add", "sydney", "1,1").status == 65)
            #expect(try home.stormy("check", "--exit-code").status == 10)
            let fresh = try #require(try home.rows("check").first)
            #expect(fresh["stormy"] as? Bool == true && fresh["stale"] as? Bool == false)
            #expect((fresh["reasons"] as? [[String: Any]])?.first?["kind"] as? String == "thunderstorm")

            await server.stop()
            #expect(try home.stormy("check", "--fresh").status == 69)
            let fallback = try home.stormy("check")
            #expect(fallback.status == 0)
            #expect(fallback.errors.contains("Not refreshed"))
            #expect(try home.rows("check").first?["stale"] as? Bool == true)
            #expect(try home.stormy("check", "--offline", "--exit-code").status == 10)
            #expect(try home.stormy("check", "--fresh", "--offline").status == 64)
        }

        static let badAnswers: [(String, ResponseScript)] = [
            ("truncated", .json(String(Weather.forecast().prefix(900)))),
            (
                "login page",
                ResponseScript([.status(200), .headers(["Content-Type": "text/html"]), .body("<html>Welcome</html>")])
            ),
            ("error", .status(500)), ("unavailable", .status(503, headers: ["Retry-After": "3600"])),
            ("limited", .status(429, headers: ["Retry-After": "60"], body: "{\"error\":true,\"reason\":\"Hourly limit\"}")),
            ("refused", .status(400, body: "{\"error\":true,\"reason\":\"Latitude must be in range\"}")),
            ("nothing known", .json("{\"hourly\":{\"time\":[1,2],\"weather_code\":[null,null]}}")),
            ("huge", ResponseScript([.status(200), .headers(["Content-Length": "20000000"]), .body(.pattern(20_000_000))])),
            ("cut", .cutAfter(500, of: .text(Weather.forecast()), etag: "\"x\"")), ("reset", .resetConnection),
            ("empty", .json("")), ("flood of headers", .headerFlood(count: 2_000)),
            ("to a file", .redirect(302, to: "file:///etc/passwd")),
        ]

        @Test(arguments: badAnswers.map(\.0))
        func neverCalmByAccident(_ name: String) throws {
            let script = try #require(Self.badAnswers.first { $0.0 == name }?.1)
            server.route("GET", Weather.path, script)
            let home = try home()
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let result = try home.stormy("check", "--fresh")
            // One clear line, and no verdict.
            #expect(result.status == 69, "\(result)")
            #expect(result.errors.hasPrefix("stormy: ") && result.errors.split(separator: "\n").count == 1, "\(result.errors)")
            let row = try #require(try home.rows("check").first)
            #expect(row["stormy"] is NSNull)
            #expect(try home.stormy("check").output.contains("unknown"))
        }

        @Test func aMistakeInTheConfigurationIsNamed() throws {
            let home = try home()
            try home.configure("[storm]\n\ngust_kmh = 5\n")
            let result = try home.stormy("status")
            #expect(result.status == 78)
            #expect(result.errors.contains("config.toml:3:1: unknown key \"storm.gust_kmh\"; did you mean \"storm.gusts_kmh\"?"))
            try home.configure(
                "[upload.destinations.x]\nkind = \"webdav\"\nurl = \"http://a/\"\nuser = \"u\"\npassword = \"p\"\n")
            chmod(home.directories.configuration.path + "/config.toml", 0o644)
            #expect(try home.stormy("status").errors.contains("chmod 600"))
        }

        @Test func aDamagedOrNewerLedgerIsLeftAlone() throws {
            let home = try home()
            try home.directories.createStateFolders()
            let garbage = Data("this is not a database, whatever its name says ........................................".utf8)
            try garbage.write(to: home.directories.ledger)
            let result = try home.stormy("schedule")
            #expect(result.status == 74)
            #expect(result.errors.contains("agent.sqlite") && result.errors.contains("left untouched"))
            #expect(try Data(contentsOf: home.directories.ledger) == garbage)
            #expect(try home.run("background-agent", ["--app", "stormy"]).status == 74)

            let newer = try self.home()
            #expect(try newer.stormy("schedule").status == 0)
            let store = newer.directories.ledger.path
            let sql = "INSERT INTO grdb_migrations VALUES ('999: of the future')"
            #expect(try Child.run("sqlite3", [store, sql], environment: newer.environment).status == 0)
            let refused = try newer.stormy("status")
            #expect(refused.status == 78)
            #expect(refused.errors.contains("newer version"))
            #expect(try newer.run("background-agent", ["--app", "stormy"]).status == 78)
        }

        @Test func filesAreTheirOwnersAlone() throws {
            let home = try home()
            try home.stormy("place", "add", "Here", "1,1")
            try home.stormy("schedule")
            let folders = [home.directories.state, home.directories.data, home.directories.spool, home.directories.launches]
            for folder in folders { #expect(try Self.mode(folder.path) == 0o700, "\(folder.path)") }
            for file in ["state/stormy/agent.sqlite", "state/stormy/agent.sqlite-wal", "data/stormy/stormy.sqlite"]
            where FileManager.default.fileExists(atPath: home.folder.path + "/" + file) {
                #expect(try Self.mode(home.folder.path + "/" + file) == 0o600, "\(file)")
            }
        }

        private static func mode(_ path: String) throws -> Int {
            (try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber)?.intValue ?? 0
        }

        /// Every verb says how it is used, with an example.
        @Test(arguments: [
            "place", "schedule", "unschedule", "check", "status", "why", "history", "upload", "transfers", "agent", "quit",
            "simulate", "demo",
        ])
        func helpShowsAnExample(_ verb: String) throws {
            let result = try home().stormy(verb, "--help")
            #expect(result.status == 0)
            #expect(result.output.contains("Example:\n  stormy \(verb)"))
        }
    }
}
