import FaultyServer
import Foundation
import FoundationNetworking
import Testing

@Suite("Routes, requests and the log")
struct LogTests {
    @Test func `a client that leaves early is recorded`() async throws {
        try await withServer { server in
            server.route("GET", "/x", [.status(200), .headers(["Content-Length": "9"]), .body("abc"), .stall])
            let client = try WireClient(port: server.port)
            await client.send(WireClient.head("GET", "/x"))
            _ = await client.receive { $0.suffix(3) == Data("abc".utf8) }
            client.hangUp()
            let request = try await server.waitForRequest { $0.outcome != .open }
            #expect(request.outcome == .clientClosed)
            #expect(request.bodyBytesSent == 3)
            #expect(request.status == 200)
            try await server.waitUntil { $0.connectionsOpen == 0 }
        }
    }

    @Test func `a client that leaves while sending is recorded`() async throws {
        try await withServer { server in
            server.route("POST", "/x", .status(200))
            let client = try WireClient(port: server.port)
            await client.send(WireClient.head("POST", "/x", length: 100) + "0123456789")
            try await server.waitForRequest { $0.bodyByteCount == 10 }
            client.hangUp()
            let request = try await server.waitForRequest { $0.outcome == .clientClosed }
            #expect(!request.isComplete)
        }
    }

    @Test func `request headers are recorded as received`() async throws {
        try await withServer { server in
            server.route(nil, "/a*", .status(200))
            let client = try WireClient(port: server.port)
            await client.send(
                "POST /a%20b?q=1&r=?2 HTTP/1.1\r\nHost: h\r\nX-B: 1\r\nx-a: 2\r\nX-B: 3\r\n"
                    + "Content-Length: 3\r\n\r\nabc")
            _ = await client.answer()
            let request = try await server.waitForRequest { $0.outcome == .answered }
            #expect(request.method == "POST")
            #expect(request.path == "/a%20b")
            #expect(request.query == "q=1&r=?2")
            #expect(request.headers.lines.map(\.name) == ["Host", "X-B", "x-a", "X-B", "Content-Length"])
            #expect(request.headers.values("x-b") == ["1", "3"])
            #expect(request.bodyByteCount == 3)
            #expect(request.isComplete)
        }
    }

    @Test func `exact routes come before prefixes, and routes can change while the server runs`() async throws {
        try await withServer { server in
            server.route(nil, "/*", .status(200, body: "prefix"))
            server.route(nil, "/deep/*", .status(200, body: "deep"))
            server.route("GET", "/one", .status(503), .status(200, body: "second"))
            server.handle("GET", "/echo") { .status(200, body: .text($0.query ?? "none")) }
            let client = try WireClient(port: server.port)
            #expect(await client.request("GET", "/one").status == 503)
            #expect(await client.request("GET", "/one").text == "second")
            #expect(await client.request("GET", "/one").text == "second")
            #expect(await client.request("PUT", "/one").text == "prefix")
            #expect(await client.request("GET", "/deep/x").text == "deep")
            #expect(await client.request("GET", "/echo?a=b").text == "a=b")
            server.route("GET", "/one", .status(410))
            #expect(await client.request("GET", "/one").status == 410)
            #expect(server.requests(matching: "/one").count == 5)
            #expect(server.requests(matching: "/deep/*").map(\.connection) == [1])
        }
    }

    @Test func `pipelined requests are answered in order, and unknown routes and noise are refused`() async throws {
        try await withServer { server in
            server.handle("GET", "/n*") { .status(200, body: .text($0.path)) }
            let client = try WireClient(port: server.port)
            await client.send((1...100).map { WireClient.head("GET", "/n\($0)") }.joined())
            for number in 1...100 { #expect(await client.answer().text == "/n\(number)") }
            #expect(await client.request("GET", "/other").status == 404)
            let noise = try WireClient(port: server.port)
            await noise.send("\u{16}\u{3}\u{1} hello\r\n\r\n")
            #expect(await noise.answer().status == 400)
            let old = try WireClient(port: server.port)
            await old.send("GET /n1 HTTP/1.0\r\n\r\n")
            #expect(await old.receiveToEnd().end == .closed)
        }
    }

    @Test func `an early response drains the body, and 100-continue is granted`() async throws {
        try await withServer { server in
            server.route("POST", "/early", .status(413).begins(.atHead))
            server.route("POST", "/x", .status(200))
            server.route("POST", "/half", ResponseScript([.cut], beginning: .afterBodyBytes(5)))
            let client = try WireClient(port: server.port)
            await client.send(WireClient.head("POST", "/early", length: 10))
            #expect(await client.answer().status == 413)
            await client.send("0123456789" + WireClient.head("POST", "/x", ["Expect": "100-continue"], length: 3))
            #expect(await client.answer().status == 100)
            await client.send("abc")
            #expect(await client.answer().status == 200)
            #expect(server.connectionCount == 1)
            #expect(server.requests()[0].bodyByteCount == 10)
            await client.send(WireClient.head("POST", "/half", length: 100) + "012345")
            let (data, _) = await client.receiveToEnd()
            #expect(data.isEmpty)
            let half = try await server.waitForRequest { $0.path == "/half" && $0.outcome == .cutByScript }
            #expect(!half.isComplete)
        }
    }

    @Test func `many requests are open at the same time`() async throws {
        try await withServer { server in
            server.handle("GET", "/p*") { .status(200, body: .text($0.path)).after(.hold(until: "all")) }
            let texts = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        await (try WireClient(port: server.port)).request("GET", "/p\(number)").text == "/p\(number)"
                    }
                }
                try await server.waitUntil { $0.requests.count == 100 && $0.connectionsOpen == 100 }
                server.openGate("all")
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts.count == 100 && texts.allSatisfy { $0 })
            #expect(Set(server.requests().map(\.connection)).count == 100)
        }
    }

    @Test func `the client of Foundation reads a response`() async throws {
        try await withServer { server in
            server.route("GET", "/w", .json(#"{"ok":true}"#))
            let url = try #require(URL(string: server.url + "/w"))
            let (data, response) = try await URLSession.shared.data(from: url)
            #expect(String(decoding: data, as: UTF8.self) == #"{"ok":true}"#)
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
        }
    }

    /// The code is equal to the code in the tutorial.
    @Test func `the example of the tutorial works`() async throws {
        let server = try await FaultyServer.start()
        server.route("GET", "/file", [.status(200), .headers(["Content-Length": "11"]), .body("hello"), .cut], .status(503))
        let url = URL(string: server.url + "/file")!
        await #expect(throws: URLError.self) { try await URLSession.shared.data(from: url) }
        let first = try await server.waitForRequest { $0.outcome == .cutByScript }
        #expect(first.bodyBytesSent == 5)
        #expect(server.unroutedRequests.isEmpty)
        await server.stop()
    }

    @Test func `a wait ends by time, by stop or by cancellation`() async throws {
        let server = try await FaultyServer.start()
        await #expect(throws: WaitFailure.self) {
            try await server.waitForRequest(timeout: .milliseconds(5)) { _ in true }
        }
        let cancelled = Task { try await server.waitUntil { _ in false } }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let stopped = Task { try await server.waitUntil { _ in false } }
        await server.stop()
        await #expect(throws: WaitFailure.serverStopped(summary: "0 connections, 0 open; ")) { try await stopped.value }
        await server.stop()
    }

    @Test func `dropped connections leave the port open`() async throws {
        try await withServer { server in
            server.route("GET", "/x", .silence, .status(200))
            let client = try WireClient(port: server.port)
            await client.send(WireClient.head("GET", "/x"))
            try await server.waitForRequest { $0.isComplete }
            await server.dropConnections()
            #expect(await client.receiveToEnd().end == .closed)
            #expect(server.requests()[0].outcome == .serverClosed)
            let second = try WireClient(port: server.port)
            #expect(await second.request("GET", "/x").status == 200)
        }
    }

    @Test func `the log file records each request`() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("log-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try await withServer(logFile: file.path) { server in
            server.route("GET", "/x", .status(200, body: "abc"))
            _ = await (try WireClient(port: server.port)).request("GET", "/x")
            try await server.waitForRequest { $0.outcome == .answered }
        }
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            .map { try decoder.decode(RecordedRequest.self, from: Data($0.utf8)) }
        #expect(lines.map(\.outcome) == [.open, .answered])
        #expect(lines.last?.bodyBytesSent == 3)
    }
}
