import FaultyServer
import Foundation
import Synchronization
import Testing

@Suite("Scripts on the wire")
struct ScriptTests {
    private let get = WireClient.head("GET", "/x")

    @Test func `a drip sends chunks without a validator`() async throws {
        try await withServer { server in
            server.route("GET", "/x", .dripping(#"{"hourly":[1,2,3,4]}"#, seconds: 0.05, pieces: 7))
            let client = try WireClient(port: server.port)
            await client.send(get)
            _ = await client.receive { $0.suffix(7) == Data("\r\n0\r\n\r\n".utf8) }
            let answer = WireAnswer(client.take(), nil)
            #expect(answer["Transfer-Encoding"] == "chunked")
            #expect(answer["ETag"] == nil)
            #expect(answer.text.hasPrefix("3\r\n{\"h\r\n3\r\nour\r\n"))
            let request = try await server.waitForRequest { $0.outcome == .answered }
            #expect(request.bodyBytesSent == 20)
            // The chunked body ended correctly, so the connection can be used again.
            await client.send(get)
            #expect(await client.receive { $0.count > 10 } == nil)
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `the pauses of a drip add up to the requested time`() async throws {
        try await withServer { server in
            server.route("GET", "/x", .dripping("abcdef", seconds: 0.2, pieces: 3))
            let start = ContinuousClock.now
            let client = try WireClient(port: server.port)
            await client.send(get)
            try await server.waitForRequest { $0.bodyBytesSent == 6 }
            #expect(start.duration(to: .now) >= .milliseconds(190))
        }
    }

    @Test func `a client that connects during preparation finds the routes`() async throws {
        let early = Mutex<WireClient?>(nil)
        let server = try await FaultyServer.start { [get] server in
            guard let client = try? WireClient(port: server.port) else { return }
            #expect(client.sendNow(get) && client.receivesNothing(milliseconds: 100))
            server.route("GET", "/x", .status(204))
            early.withLock { $0 = client }
        }
        let client = try #require(early.withLock { $0 })
        _ = await client.receive { !$0.isEmpty }
        #expect(client.take().starts(with: Data("HTTP/1.1 204".utf8)))
        #expect(server.unroutedRequests.isEmpty)
        await server.stop()
    }

    @Test func `a stall lasts until the server stops`() async throws {
        let server = try await FaultyServer.start()
        server.route("GET", "/x", [.status(200), .headers(["Content-Length": "10"]), .body("abc"), .stall])
        let client = try WireClient(port: server.port)
        await client.send(get)
        _ = await client.receive { $0.suffix(3) == Data("abc".utf8) }
        #expect(server.requests()[0].outcome == .open)
        await server.stop()
        let (_, end) = await client.receiveToEnd()
        #expect(end == .closed)
        #expect(server.requests()[0].outcome == .serverClosed)
        #expect(throws: WireClient.ConnectFailure.self) { try WireClient(port: server.port) }
        let again = try await FaultyServer.start(port: server.port)
        #expect(again.port == server.port)
        await again.stop()
    }

    @Test func `a gate holds until it is opened and then stays open`() async throws {
        try await withServer { server in
            server.route("GET", "/x", .status(200, body: "go").after(.hold(until: "g")))
            let client = try WireClient(port: server.port)
            await client.send(get)
            try await server.waitForRequest { $0.isComplete }
            #expect(server.requests()[0].status == nil)
            server.openGate("g")
            #expect(await client.answer().text == "go")
            #expect(await client.request("GET", "/x").text == "go")
            server.closeGate("g")
            await client.send(get)
            try await server.waitForRequest { $0.id == 3 && $0.isComplete }
            client.hangUp()
            try await server.waitForRequest { $0.id == 3 && $0.outcome == .clientClosed }
            server.openGate("g")
        }
    }

    @Test func `a reset is a TCP reset, and a hang-up is not`() async throws {
        try await withServer { server in
            server.route(
                "GET", "/x",
                [.status(200), .headers(["Content-Length": "10"]), .body("abc"), .hold(until: "read"), .reset],
                .hangUp, .resetConnection)
            let client = try WireClient(port: server.port)
            await client.send(get)
            _ = await client.receive { $0.suffix(3) == Data("abc".utf8) }
            server.openGate("read")
            #expect(await client.receiveToEnd().end == .reset)
            let second = try WireClient(port: server.port)
            await second.send(get)
            let (data, end) = await second.receiveToEnd()
            #expect(data.isEmpty)
            #expect(end == .closed)
            let third = try WireClient(port: server.port)
            await third.send(get)
            #expect(await third.receiveToEnd().end == .reset)
            #expect(server.requests().allSatisfy { $0.outcome == .cutByScript })
        }
    }

    @Test func `wrong framing is sent as written and ends the connection`() async throws {
        try await withServer { server in
            server.route("GET", "/short", [.status(200), .headers(["Content-Length": "10"]), .body("abc")])
            server.route("GET", "/long", [.status(200), .headers(["Content-Length": "1"]), .body("abc")])
            server.route(
                "GET", "/nochunkend",
                [.status(200), .headers(["Transfer-Encoding": "chunked"]), .chunked("abcdef", sizes: [1, 2])])
            server.route("GET", "/raw", [.raw("HTTP/1.1 299 Odd\r\nX: \u{1}\r\n\r\n")])
            server.route("GET", "/nolength", [.status(200, "Fine"), .headers([:]), .body("to the end")])
            let wire = [
                ("/short", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
                ("/long", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc"),
                (
                    "/nochunkend",
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n2\r\nde\r\n1\r\nf\r\n"
                ),
                ("/raw", "HTTP/1.1 299 Odd\r\nX: \u{1}\r\n\r\n"),
                ("/nolength", "HTTP/1.1 200 Fine\r\n\r\nto the end"),
            ]
            for (path, expected) in wire {
                let client = try WireClient(port: server.port)
                await client.send(WireClient.head("GET", path))
                let (data, end) = await client.receiveToEnd()
                #expect(String(decoding: data, as: UTF8.self) == expected)
                #expect(end == .closed)
            }
            #expect(
                server.requests().map(\.outcome) == [.cutByScript, .answered, .cutByScript, .answered, .answered])
        }
    }

    @Test func `interim responses, many headers and responses without a body are sent`() async throws {
        try await withServer { server in
            server.route("GET", "/x", .status(204).after(.interim(103, ["Link": "</a>"])))
            server.route("GET", "/flood", .headerFlood(count: 300))
            let client = try WireClient(port: server.port)
            await client.send(get)
            let hint = await client.answer()
            #expect(hint.head == "HTTP/1.1 103 Early Hints\r\nLink: </a>")
            let last = await client.answer()
            #expect(last.head == "HTTP/1.1 204 No Content")
            #expect(await client.request("GET", "/flood").head.utf8.count > 300_000)
            #expect(await client.request("HEAD", "/flood").body.isEmpty)
        }
    }

    @Test func `a client receives every byte while the server buffers little for an idle client`() async throws {
        try await withServer { server in
            let payload = Payload.pattern(8_000_000)
            server.route("GET", "/x", .file(payload))
            server.route("GET", "/huge", .file(.pattern(2_000_000_000)))
            let idle = try WireClient(port: server.port)
            await idle.send(WireClient.head("GET", "/huge"))
            try await server.waitForRequest { $0.path == "/huge" && $0.bodyBytesSent > 100_000 }
            let answer = await (try WireClient(port: server.port)).request("GET", "/x")
            #expect(answer.body == payload.data)
            idle.hangUp()
            let huge = try await server.waitForRequest { $0.path == "/huge" && $0.outcome != .open }
            #expect(huge.outcome == .clientClosed)
            #expect(huge.bodyBytesSent < 50_000_000)
        }
    }

    @Test func `a script can be encoded as JSON and decoded`() throws {
        let script = ResponseScript.cutAfter(3, of: "abcdef", etag: "\"1\"", by: .reset)
            .after(.delay(1), .interim(103, ["Link": "</a>"]), .hold(until: "g"))
        let data = try JSONEncoder().encode(script)
        #expect(try JSONDecoder().decode(ResponseScript.self, from: data) == script)
    }
}
