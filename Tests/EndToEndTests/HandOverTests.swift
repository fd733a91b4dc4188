import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of launches whose time ends before the response is complete. The received bytes are kept, and the user is notified
    /// once.
    @Suite struct HandOver {
        let desktop: Desktop
        let server: FaultyServer

        init() async throws {
            desktop = try Desktop()
            server = try await FaultyServer.start()
        }

        private func stormyHome() throws -> Home {
            let home = try Home(server: server, desktop: desktop)
            #expect(try home.stormy("place", "add", "Here", "1,1", "--no-sync").status == 0)
            #expect(try home.stormy("schedule").status == 0)
            return home
        }

        /// Runs another check after both requests have ended. No second notification is shown.
        private func expectReportedOnce(_ home: Home, history: [String]) async throws {
            try home.waitForQuiet()
            Weather.serve(.json(Weather.forecast()), on: server)
            #expect(try home.stormy("simulate", "launch", "StormyNoon", "--wait").output.contains("completed"))
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles() == ["Storm expected in Here"])
            #expect(try home.history() == history + ["appRefresh completed"])
            let jobs = try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }
            #expect(jobs.count == 1)
            #expect((try home.status()["storms"] as? [[String: Any]])?.count == 1)
            #expect(try home.status("schedule", "enabled") as? Bool == true)
        }

        @Test func `a slow response keeps its connection through the hand-over`() async throws {
            // The server sends half of the body immediately, and the other half only after the app has ended. Like
            // Open-Meteo's responses, the response is chunked and has no validator.
            let forecast = Data(Weather.forecast().utf8)
            let half = forecast.prefix(forecast.count / 2)
            Weather.serve(
                ResponseScript([
                    .status(200), .headers(["Content-Type": "application/json", "Transfer-Encoding": "chunked"]),
                    .chunked(.bytes(half)), .hold(until: "rest"), .chunked(.bytes(forecast.dropFirst(half.count))), .chunkEnd(),
                ]), on: server)
            let home = try stormyHome()
            try home.stormy("simulate", "launch", "StormyNoon")
            try home.endNoonWhileItAsks()
            server.openGate("rest")
            try home.waitForEnded("urlSession")
            let requests = server.requests(matching: Weather.path)
            #expect(requests.count == 1)
            #expect(requests.first?.outcome == .answered)
            #expect(requests.first?["Range"] == nil)
            let detail = try home.rows("history").last?["detail"] as? String
            #expect(detail?.contains("first connection") == true, "\(detail ?? "none")")
            try await expectReportedOnce(home, history: ["appRefresh expired", "urlSession completed"])
        }

        /// After the invalid response, no launch can be retried. The weather request is sent again half an hour later.
        @Test func `an unusable response after a hand-over is requested again after half an hour`() async throws {
            server.closeGate("rest")
            Weather.serve(
                ResponseScript([
                    .status(200), .headers(["Content-Length": "17", "Content-Type": "text/html"]), .hold(until: "rest"),
                    .body(.text("<html>Log in</html>".prefix(17).description)),
                ]), on: server)
            let home = try stormyHome()
            // Both places have the same coordinates, and share one request.
            #expect(try home.stormy("place", "add", "There", "1,1", "--no-sync").status == 0)
            try home.stormy("simulate", "launch", "StormyNoon")
            try home.endNoonWhileItAsks()
            server.openGate("rest")
            try home.waitForEnded("urlSession")
            let next = try home.wait("the next try") { try $0.unfinishedTransfers().first?.earliestBegin }
            #expect((1_700...1_801).contains(next.timeIntervalSinceNow))
            #expect(try Ledger(home.directories).read { try $0.unfinishedTransfers().count } == 1)
            #expect(try home.status("schedule", "enabled") as? Bool == true)
        }

        /// The user cancels all transfers, and therefore also the weather request of the check. This request does not continue in
        /// the agent. The check fails and runs again.
        @Test func `a check whose request is cancelled fails and runs again`() async throws {
            Weather.serveHeld(on: server)
            let home = try Home(server: server, desktop: desktop)
            #expect(try home.stormy("place", "add", "Here", "1,1", "--no-sync").status == 0)
            #expect(try home.stormy("schedule").status == 0)
            let waiting = try Child(
                Home.product("stormy"), ["simulate", "launch", "StormyNoon", "--wait"], environment: home.environment)
            try home.wait("the question") { try $0.unfinishedTransfers().first?.state == .running ? true : nil }
            #expect(try home.stormy("transfers", "cancel", "all").status == 0)
            Weather.serve(.json(Weather.forecast()), on: server)
            let failed = try home.wait("its end") { try $0.history(limit: 9).first { $0.outcome == .crashed } }
            #expect(failed.detail?.hasPrefix("Here: ") == true, "\(failed)")
            #expect(waiting.waitForEnd() == 75)
            try home.wait("the next check") {
                try $0.history(limit: 9).contains { $0.kind == .appRefresh && $0.outcome == .completed } ? true : nil
            }
            try home.waitForQuiet()
            // No forecast was stored before.
            #expect(try desktop.receivedTitles() == ["The weather is unknown", "Storm expected in Here"])
        }

        @Test func `two places at one point are both notified`() async throws {
            Weather.serveHeld(on: server)
            let home = try stormyHome()
            #expect(try home.stormy("place", "add", "There", "1,1", "--no-sync").status == 0)
            try home.stormy("simulate", "launch", "StormyNoon")
            try home.endNoonWhileItAsks()
            server.openGate("rest")
            try home.waitForEnded("urlSession")
            try home.waitForQuiet()
            #expect(try desktop.receivedTitles().sorted() == ["Storm expected in Here", "Storm expected in There"])
            let checks = try home.status()["checks"] as? [[String: Any]] ?? []
            #expect(checks.map { $0["stormy"] as? Bool } == [true, true])
        }

        @Test func `a cut response is resumed after its durable bytes`() async throws {
            let forecast = Payload.text(Weather.forecast(padding: 400_000))
            let cut = 250_000
            // The server stops in the middle of the first response, and cuts the connection after the app's time is up.
            server.route(
                "GET", Weather.path,
                ResponseScript([
                    .status(200),
                    .headers(["Content-Length": "\(forecast.count)", "ETag": "\"v1\"", "Accept-Ranges": "bytes"]),
                    .body(.bytes(forecast.slice(0..<cut).data)), .hold(until: "cut"), .cut,
                ]), .file(forecast, etag: "\"v1\"", lastModified: nil))
            let home = try stormyHome()
            try home.stormy("simulate", "launch", "StormyNoon")
            try home.endNoonWhileItAsks()
            server.openGate("cut")
            try home.waitForEnded("urlSession")
            let requests = server.requests(matching: Weather.path)
            #expect(requests.count == 2)
            let second = try #require(requests.last)
            #expect(second["If-Range"] == "\"v1\"")
            let range = try #require(second["Range"])
            let offset = try #require(Int(range.dropFirst("bytes=".count).dropLast()))
            #expect(offset <= cut && cut - offset < 65_536, "the request began at byte \(offset), but \(cut) bytes were received")
            let detail = try home.rows("history").last { $0["kind"] as? String == "urlSession" }?["detail"] as? String
            #expect(detail?.contains("continued at byte \(offset)") == true)
            try await expectReportedOnce(home, history: ["appRefresh expired", "urlSession completed"])
        }

        @Test func `a cut response without a validator starts over`() async throws {
            let forecast = Weather.forecast(padding: 100_000)
            server.route(
                "GET", Weather.path,
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(forecast.utf8.count)"]),
                    .body(.text(String(forecast.prefix(50_000)))), .hold(until: "cut"), .cut,
                ]), .json(forecast))
            let home = try stormyHome()
            try home.stormy("simulate", "launch", "StormyNoon")
            try home.endNoonWhileItAsks()
            server.openGate("cut")
            try home.waitForEnded("urlSession")
            #expect(server.requests(matching: Weather.path).map { $0["Range"] } == [nil, nil])
            let detail = try home.rows("history").last { $0["kind"] as? String == "urlSession" }?["detail"] as? String
            #expect(detail?.contains("started over, because the server sent no usable validator") == true)
            try await expectReportedOnce(home, history: ["appRefresh expired", "urlSession completed"])
        }

        /// The first service does not respond, so the user configures another service. If the first service responds late, its
        /// response is used. If its request fails, the other service is requested.
        @Test(arguments: [true, false])
        func `a service that is configured during a hand-over loses no check`(_ answers: Bool) async throws {
            let forecast = Weather.forecast()
            Weather.serve(
                ResponseScript(
                    answers
                        ? [
                            .status(200), .headers(["Content-Length": "\(forecast.utf8.count)"]), .hold(until: "late"),
                            .body(.text(forecast)),
                        ]
                        : [.hold(until: "late"), .status(404)]), on: server)
            let other = try await FaultyServer.start()
            Weather.serve(.json(Weather.calm), on: other)
            let home = try stormyHome()
            try home.stormy("simulate", "launch", "StormyNoon")
            try home.endNoonWhileItAsks()
            try home.configure("[weather]\nbase_url = \"\(other.url)\"\n")
            server.openGate("late")
            try home.waitForEnded("urlSession")
            if answers {
                try home.waitForNoticesRemembered()
                #expect(try desktop.receivedTitles() == ["Storm expected in Here"])
            } else {
                let again = try home.wait("another try") { try $0.unfinishedTransfers().first }
                #expect(again.url.hasPrefix(other.url), "\(again.url)")
            }
        }

        @Test func `a stalled place does not delay another place`() async throws {
            Weather.serve(ResponseScript([.hold(until: "never")]), on: server)
            server.handle("GET", Weather.path) { request in
                (request.query ?? "").contains("latitude=2") ? .json(Weather.forecast()) : [.hold(until: "never")]
            }
            let home = try Home(server: server, desktop: desktop, budget: 20)
            try home.stormy("place", "add", "Stalled", "1,1", "--no-sync")
            try home.stormy("place", "add", "Quick", "2,2", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon")
            #expect(desktop.listen(for: 1) == ["Storm expected in Quick"])
            // The notification is shown while the other request still waits for its response.
            #expect(try home.history() == ["appRefresh running"])
            #expect(try home.stormy("simulate", "expire", "StormyNoon").status == 0)
            try home.waitForEnded("appRefresh")
            #expect(try home.history() == ["appRefresh expired"])
        }
    }
}

extension RecordedRequest {
    subscript(name: String) -> String? { headers[name] }
}
