import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of the background work of two well-known apps, with code that was written for iOS.
    @Suite struct Recipes {
        let server: FaultyServer

        init() async throws { server = try await FaultyServer.start() }

        // MARK: Zashi

        private func zashi(_ system: SystemServices? = nil) throws -> Home {
            let home = try Home(app: "zashi-example")
            home.environment["ZASHI_SERVER"] = server.url
            home.environment.merge(system?.environment ?? [:]) { $1 }
            server.route("GET", "/height", .status(200, body: "5"))
            for block in 0..<5 { server.route("GET", "/block/\(block)", .status(200, body: .text("block \(block)"))) }
            return home
        }

        private let sync = "co.example.zashi.background_sync"

        private func simulate(_ what: String, _ home: Home) throws {
            let result = try home.run("zashi-example", ["background", "simulate", what, sync])
            #expect(result.status == 0, "\(result.errors)")
        }

        private func outcome(_ home: Home, count: Int = 1) throws -> LaunchRecord {
            try home.wait("the end of \(count)") { transaction in
                let ended = try transaction.history(limit: 10).filter { $0.outcome != nil }
                return ended.count == count ? ended.last : nil
            }
        }

        private func height(_ home: Home) throws -> String {
            try home.run("zashi-example", []).output.split(separator: " ").first.map(String.init) ?? ""
        }

        @Test func `the Zashi sync is scheduled and completes`() throws {
            let home = try zashi()
            #expect(try home.run("zashi-example", []).output.hasPrefix("0 blocks"))
            let request = try home.wait("tonight") { try $0.request(sync) }
            #expect(request.requiresNetwork && request.requiresExternalPower)
            #expect(try #require(request.earliestBegin) > Date())
            try simulate("launch", home)
            #expect(try outcome(home).outcome == .completed)
            #expect(try height(home) == "5")
            #expect(try home.wait("the next") { try $0.request(sync) } != request, "scheduled first thing in the handler")
        }

        @Test func `the Zashi sync stops when its time is up and continues in the next launch`() async throws {
            let home = try zashi()
            server.closeGate("block")
            server.route(
                "GET", "/block/3", ResponseScript([.hold(until: "block"), .status(200), .headers([:]), .body("block 3")]))
            #expect(try home.run("zashi-example", []).status == 0)
            try simulate("launch", home)
            _ = try await server.waitForRequest { $0.path == "/block/3" }
            try simulate("expire", home)
            #expect(try outcome(home).outcome == .expired)
            #expect(try height(home) == "3", "the received bytes are kept")
            server.openGate("block")
            server.route("GET", "/block/3", .status(200, body: "block 3"))
            try simulate("launch", home)
            #expect(try outcome(home, count: 2).outcome == .completed)
            #expect(try height(home) == "5")
            #expect(server.requests(matching: "/block/0").count == 1, "the bytes are not fetched twice")
        }

        @Test func `the Zashi sync does not run on a metered network`() throws {
            let system = try SystemServices([.network])
            try system.set(.network, "Metered", "uint32 1")
            let home = try zashi(system)
            #expect(try home.run("zashi-example", []).status == 0)
            try home.wait("metered") { try $0.fact(.conditions)?.conditions.isNetworkMetered == true ? true : nil }
            try simulate("launch", home)
            #expect(try outcome(home).outcome == .failed)
            #expect(server.connectionCount == 0)
        }

        // MARK: Realm

        private func realm() throws -> Home {
            let home = try Home(app: "realm-example")
            home.environment["REALM_SERVER"] = server.url
            return home
        }

        /// The app is refreshed in the background. After that, the user opens the app in a namespace without a network.
        @Test(.enabled(if: Namespaces.areAllowed))
        func `Realm data that was refreshed in the background is available offline`() throws {
            let home = try realm()
            server.route("GET", "/items", .json("[\"milk\"]"))
            let before = Date()
            #expect(try home.run("realm-example", []).output == "1 items, just updated from the server:\n- milk\n")
            // The requested launch begins ten seconds after the app has left the foreground.
            let begin = try #require(try home.wait("the request") { try $0.request("refreshTodoRealm") }.earliestBegin)
            #expect((9...30).contains(begin.timeIntervalSince(before)))
            server.route("GET", "/items", .json("[\"milk\",\"bread\"]"))
            let launch = try home.wait("the refresh") { try $0.history(limit: 1).first { $0.outcome != nil } }
            #expect(launch.outcome == .completed)
            #expect(launch.startedAt >= begin)
            let requests = server.requests(matching: "/items").count
            let airplane = try Child.run(
                "unshare", Namespaces.withoutNetwork(Home.product("realm-example")), environment: home.environment)
            #expect(airplane.output == "2 items, from the last update:\n- milk\n- bread\n", "\(airplane.errors)")
            #expect(server.requests(matching: "/items").count == requests)
        }

        @Test func `Realm shows no items before its first download`() throws {
            let home = try realm()
            server.route("GET", "/items", .status(503))
            #expect(try home.run("realm-example", []).output.hasPrefix("no items yet: "))
        }

        @Test func `a Realm refresh that fails keeps the stored items`() throws {
            let home = try realm()
            server.route("GET", "/items", .json("[\"milk\"]"))
            #expect(try home.run("realm-example", []).status == 0)
            server.route("GET", "/items", .json("{}"))
            let result = try home.run("realm-example", ["background", "simulate", "launch", "refreshTodoRealm", "--wait"])
            #expect(result.status == 0, "\(result.errors)")
            #expect(try home.run("realm-example", []).output == "1 items, from the last update:\n- milk\n")
        }
    }
}
