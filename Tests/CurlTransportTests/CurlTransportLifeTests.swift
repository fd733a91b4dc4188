import Foundation
import Synchronization
import Testing
import TransferMachines

@testable import CurlTransport

@Suite(.timeLimit(.minutes(30))) struct CurlTransportLifeTests {
    private func endless() -> ScriptedServer {
        ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\n\r\n")
            while client.send([UInt8](repeating: 7, count: 4096)) {}
        }
    }

    @Test func `a body above the limit ends the attempt`() async {
        let sink = Memory()
        let unannounced = await Bench().run(
            WireRequest(method: "GET", url: endless().url, maximumBodyBytes: 10_000), sink: sink)
        #expect(unannounced.failure == .bodyTooLarge && unannounced.head?.status == 200)
        #expect(sink.bytes.count <= 10_000 && unannounced.bytesReceived == sink.bytes.count)
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 10001\r\n\r\n")
            client.waitUntilGone()
        }
        // Each piece of the body is small enough, but all pieces together are larger than the limit.
        let pieces = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\n\r\n")
            for _ in 0..<1_000 { client.send(String(repeating: "x", count: 1_000)) }
        }
        let inPieces = await Bench().run(WireRequest(method: "GET", url: pieces.url, maximumBodyBytes: 100_000))
        #expect(inPieces.failure == .bodyTooLarge && inPieces.bytesReceived <= 100_000)
        let announced = await Bench().run(WireRequest(method: "GET", url: server.url, maximumBodyBytes: 10_000))
        #expect(announced.failure == .bodyTooLarge && announced.bytesReceived == 0)
    }

    @Test func `a sink can stop the attempt`() async {
        let request = WireRequest(method: "GET", url: endless().url)
        let full = await Bench().run(request, sink: Memory(limit: 10_000))
        #expect(full.failure == .stoppedByOwner && full.head != nil)
        let refused = await Bench().run(request, sink: Memory(acceptsHead: false))
        #expect(refused.failure == .stoppedByOwner && refused.bytesReceived == 0)
    }

    @Test func `a cancelled attempt ends once`() async {
        let bench = Bench()
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.waitUntilGone()
        }
        let id = AttemptID(transfer: 1, number: 1)
        bench.transport.start(id, WireRequest(method: "GET", url: server.url), source: nil, sink: Memory())
        bench.transport.start(id, WireRequest(method: "GET", url: server.url), source: nil, sink: Memory())
        bench.transport.cancel(id)
        bench.transport.cancel(id)
        bench.transport.cancel(AttemptID(transfer: 9, number: 9))
        let other = AttemptID(transfer: 2, number: 1)
        bench.transport.start(other, WireRequest(method: "GET", url: "file:///"), source: nil, sink: Memory())
        let ends = await bench.ends(2).ends
        #expect(ends[id]?.map(\.failure) == [.cancelled] && ends[other]?.count == 1)
    }

    @Test func `stop cancels running attempts and attempts that start later`() async {
        let bench = Bench()
        let server = endless()
        let id = AttemptID(transfer: 1, number: 1)
        let late = AttemptID(transfer: 1, number: 2)
        bench.transport.start(id, WireRequest(method: "GET", url: server.url), source: nil, sink: Memory())
        bench.transport.stop()
        bench.transport.stop()
        bench.transport.cancel(id)
        bench.transport.start(late, WireRequest(method: "GET", url: server.url), source: nil, sink: Memory())
        let ends = await bench.ends(2).ends
        #expect(ends[id]?.map(\.failure) == [.cancelled] && ends[late]?.map(\.failure) == [.cancelled])
    }

    @Test func `two hundred requests at the same time end without a failure`() async {
        let body = [UInt8](repeating: 42, count: 20_000)
        let server = ScriptedServer { client in
            while client.readHead() != nil {
                client.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
                client.send(body)
            }
        }
        let bench = Bench()
        let sinks = (0..<200).map { _ in Memory() }
        for (index, sink) in sinks.enumerated() {
            let id = AttemptID(transfer: Int64(index), number: 1)
            bench.transport.start(id, WireRequest(method: "GET", url: server.url), source: nil, sink: sink)
        }
        let ends = await bench.ends(200).ends
        #expect(ends.count == 200 && ends.values.allSatisfy { $0.count == 1 && $0[0].failure == nil })
        #expect(sinks.allSatisfy { $0.bytes == body })
    }

    @Test func `connections are reused, except for PUT`() async {
        let server = ScriptedServer { client in
            while let head = client.readHead() {
                if head.hasPrefix("PUT") { _ = client.readBody(1) }
                client.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        }
        let bench = Bench()
        for _ in 0..<3 { _ = await bench.run(WireRequest(method: "GET", url: server.url)) }
        #expect(server.connections == 1)
        _ = await bench.run(WireRequest(method: "PUT", url: server.url), source: Bytes([1]))
        #expect(server.connections == 2)
    }

    @Test func `progress is reported at most four times a second and never decreases`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n")
            for _ in 0..<2000 { client.send([UInt8](repeating: 1, count: 4000)) }
        }
        let bench = Bench()
        let id = AttemptID(transfer: 1, number: 1)
        let begin = monotonicSeconds()
        bench.transport.start(id, WireRequest(method: "GET", url: server.url), source: nil, sink: Memory())
        let (ends, progress) = await bench.ends(1)
        let seconds = monotonicSeconds() - begin
        #expect(ends[id]?.first?.bytesReceived == 8_000_000)
        #expect(Double(progress.count) <= seconds * 4 + 1)
        #expect(zip(progress, progress.dropFirst()).allSatisfy { $0.2 <= $1.2 })
    }

    @Test func `an idle transport does not wake`() async throws {
        let server = ScriptedServer { client in
            while client.readHead() != nil { client.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }
        }
        let thread = Mutex("")
        let (ends, continuation) = AsyncStream<Void>.makeStream()
        let transport = CurlTransport(
            handler: { _ in
                let name = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
                thread.withLock { $0 = name ?? "" }
                continuation.yield()
            }, userAgent: "Bench/1")
        let request = WireRequest(method: "GET", url: server.url)
        transport.start(AttemptID(transfer: 1, number: 1), request, source: nil, sink: Memory())
        for await _ in ends { break }
        // Another transport waits 1.5 s for a silent server. During these 1.5 s, the thread of the idle transport must not wake
        // up. The idle thread may only begin to wait once.
        func switches() throws -> Int {
            let status = try String(contentsOfFile: "/proc/\(thread.withLock { $0 })/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary") }
            return Int(line?.split(whereSeparator: \.isWhitespace).last ?? "") ?? -1
        }
        let before = try switches()
        let silent = ScriptedServer { $0.waitUntilGone() }
        let end = await Bench().run(WireRequest(method: "GET", url: silent.url, idleTimeout: 1.5))
        #expect(end.failure == .stalled)
        #expect(try switches() - before <= 1)
        transport.stop()
    }

    @Test func `a rate limit is not a stall`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n")
            client.send([UInt8](repeating: 1, count: 30_000))
            client.waitUntilGone()
        }
        let end = await Bench().run(WireRequest(method: "GET", url: server.url, idleTimeout: 0.2, rateLimit: 20_000))
        #expect(end.failure == nil && end.bytesReceived == 30_000)
    }

    /// With the limit, the uploads take at least 1.75 s, because only 25,000 of 200,000 bytes are sent immediately.
    @Test(arguments: [(4, 50_000), (40, 5_000)]) func `uploads of one group share a limit`(_ count: Int, _ size: Int) async {
        let server = ScriptedServer { client in
            while client.readHead() != nil {
                let isComplete = client.readBody(size) == [UInt8](repeating: 7, count: size)
                client.send("HTTP/1.1 \(isComplete ? 201 : 400) X\r\nContent-Length: 0\r\n\r\n")
            }
        }
        let bench = Bench()
        let begin = monotonicSeconds()
        for number in 1...count {
            var request = WireRequest(method: "PUT", url: server.url, idleTimeout: 60, rateLimit: 100_000)
            request.rateGroup = "home"
            let source = Bytes([UInt8](repeating: 7, count: size))
            bench.transport.start(AttemptID(transfer: Int64(number), number: 1), request, source: source, sink: Memory())
        }
        let (ends, _) = await bench.ends(count)
        #expect(monotonicSeconds() - begin >= 1.7)
        #expect(ends.values.allSatisfy { $0.count == 1 && $0[0].failure == nil && $0[0].head?.status == 201 }, "\(ends)")
        #expect(ends.values.allSatisfy { $0[0].bytesSent == Int64(size) })
    }

    /// A response that arrives byte by byte counts as a stall only if the request has a minimum rate.
    @Test(arguments: [Int64(0), 30]) func `a trickle below the least rate is a stall`(_ leastRate: Int64) async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n")
            for _ in 0..<12 where !client.isGone(within: 0.1) { client.send("x") }
        }
        var request = WireRequest(method: "GET", url: server.url, idleTimeout: 0.5)
        request.leastRate = leastRate
        let end = await Bench().run(request)
        #expect(end.failure == (leastRate == 0 ? nil : .stalled), "\(end)")
    }

    /// The server sends interim responses until the client closes the connection.
    @Test func `header lines without end are a stall`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            while !client.isGone(within: 0.02) { client.send("HTTP/1.1 102 Processing\r\n\r\n") }
        }
        var request = WireRequest(method: "GET", url: server.url, idleTimeout: 0.1)
        request.leastRate = 30
        let end = await Bench().run(request)
        #expect(end.failure == .stalled, "\(end)")
    }
}
