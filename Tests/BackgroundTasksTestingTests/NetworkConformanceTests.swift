import CurlTransport
import FaultyServer
import Foundation
import Synchronization
import Testing
import TransferMachines

@testable import BackgroundTasksTesting
@testable import BackgroundTransfer

/// The same tests for two networks: libcurl over sockets to a `FaultyServer`, and the virtual network. The outcome of an attempt
/// must not depend on the network.
@Suite(.timeLimit(.minutes(30))) struct NetworkConformanceTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let scripts: [ResponseScript]
        /// The timeout is long, because a response may take seconds on a busy machine.
        var request = WireRequest(method: "GET", url: "/f", idleTimeout: 60)
        var body: Data?
        var testDescription: String { name }

        init(_ name: String, _ scripts: ResponseScript..., body: Data? = nil, _ change: (inout WireRequest) -> Void = { _ in }) {
            (self.name, self.scripts, self.body) = (name, scripts, body)
            change(&request)
        }
    }

    /// The outcome of an attempt, as the caller of the transport and the server observe it.
    struct Outcome: Equatable {
        var status: Int?
        var headers: [String]
        var url: String?
        var body: Data
        var failure: WireFailure?
        var requests: [String]
    }

    private static let bytes = Payload.pattern(300_000)
    private static let file = ResponseScript.file(bytes, etag: "\"one\"")

    static let cases = [
        Case("a whole file", file),
        Case("its head", file) { $0.method = "HEAD" },
        Case("a part", file) { $0.headers = [HeaderField("Range", "bytes=100000-")] },
        Case("a part of what it still is", file) {
            $0.headers = [HeaderField("Range", "bytes=100000-"), HeaderField("If-Range", "\"one\"")]
        },
        Case("a part of what it was", file) {
            $0.headers = [HeaderField("Range", "bytes=100000-"), HeaderField("If-Range", "\"two\"")]
        },
        Case("a part behind the end", file) { $0.headers = [HeaderField("Range", "bytes=300000-")] },
        Case("a condition that fails", file) { $0.headers = [HeaderField("If-Match", "\"two\"")] },
        Case("a server without ranges", .file(bytes, supportsRange: false)) { $0.headers = [HeaderField("Range", "bytes=9-")] },
        Case("cut in the middle", .cutAfter(123_456, of: bytes)),
        Case("chunks", .dripping("{\"storm\":true}", seconds: 0.2)),
        Case("chunks without an end", [.status(200), .headers(["Transfer-Encoding": "chunked"]), .chunked("half"), .cut]),
        Case("until the end", [.status(200), .headers(["Connection": "close"]), .body("all")]),
        Case("no answer", .hangUp),
        Case("silence", .silence) { $0.idleTimeout = 1 },
        Case("silence in the middle", [.status(200), .headers(["Content-Length": "10"]), .body("half"), .stall]) {
            $0.idleTimeout = 2
        },
        Case("slow, but alive", [.status(200), .headers(["Content-Length": "4"]), .drip("slow", chunkSize: 1, interval: 0.4)]),
        Case(
            "an interim answer first",
            [.interim(103, ["Link": "</a>"]), .status(200), .headers(["Content-Length": "2"]), .body("ok")]),
        Case("not found", .status(404, body: "none here")),
        Case("unwell", .status(503, headers: ["Retry-After": "7"])),
        Case("no content", .status(204)),
        Case("not modified", .status(304, headers: ["ETag": "\"one\""])),
        Case("led on", .redirect(302, to: "/f"), file),
        Case("led on for ever", .redirect(302, to: "/f")) { $0.maximumRedirects = 3 },
        Case("a redirect as it is", .redirect(307, to: "/g")) { $0.maximumRedirects = 0 },
        Case("led to another scheme", .redirect(302, to: "ftp://127.0.0.1/f")),
        Case("too large", file) { $0.maximumBodyBytes = 1_000 },
        Case("something sent", .status(201), body: Data(count: 200_000)) { $0.method = "PUT" },
        Case("sent, and no answer", .hangUp, body: Data(count: 200_000)) { $0.method = "PUT" },
        Case("sent where it was led", .redirect(307, to: "/f"), .status(201), body: Data(count: 200_000)) { $0.method = "PUT" },
        Case("a post that is led on", .redirect(303, to: "/f"), .status(200, body: "see"), body: Data("a=b".utf8)) {
            $0.method = "POST"
        },
    ]

    @Test(arguments: cases) func `both networks have the same outcome`(_ example: Case) async throws {
        let real = try await overSockets(example)
        let virtual = overTheVirtualNetwork(example)
        #expect(real == virtual)
        #expect(real.requests.count >= 1)
    }

    // MARK: Both ways

    private func overSockets(_ example: Case) async throws -> Outcome {
        let server = try await FaultyServer.start()
        server.route(nil, "/f", example.scripts)
        let sink = Sink()
        let (events, continuation) = AsyncStream.makeStream(of: WireEnd.self)
        let transport = CurlTransport(
            handler: { if case .ended(_, let end) = $0 { continuation.yield(end) } }, userAgent: "conformance")
        transport.start(
            AttemptID(transfer: 1, number: 1), request(example, server.url), source: example.body.map(DataSource.init), sink: sink
        )
        var iterator = events.makeAsyncIterator()
        let end = try #require(await iterator.next())
        transport.stop()
        let outcome = outcome(end, sink, server.requests(), server.url)
        await server.stop()
        return outcome
    }

    private func overTheVirtualNetwork(_ example: Case) -> Outcome {
        let origin = "http://127.0.0.1:1"
        let clock = VirtualClock(wall: Date(timeIntervalSince1970: 1_750_000_000), zone: .gmt)
        let network = VirtualNetwork(clock: clock)
        network.server(origin).route(nil, "/f", example.scripts)
        let sink = Sink()
        let ended = EndBox()
        network.connect { if case .ended(_, let end) = $0 { ended.end.withLock { $0 = end } } }
        network.start(
            AttemptID(transfer: 1, number: 1), request(example, origin), source: example.body.map(DataSource.init), sink: sink)
        while ended.end.withLock({ $0 }) == nil {
            if clock.fire() { continue }
            guard let next = clock.untilNextTimer else { break }
            clock.pass(max(next, 1e-6))
        }
        let found =
            ended.end.withLock { $0 }
            ?? WireEnd(head: nil, failure: .other(code: 0, message: "no end"), bytesSent: 0, bytesReceived: 0)
        return outcome(found, sink, network.server(origin).requests(), origin)
    }

    private func request(_ example: Case, _ origin: String) -> WireRequest {
        var request = example.request
        request.url = origin + request.url
        return request
    }

    private func outcome(_ end: WireEnd, _ sink: Sink, _ requests: [RecordedRequest], _ origin: String) -> Outcome {
        let head = end.head
        let told = ["ETag", "Content-Length", "Content-Range", "Content-Type", "Retry-After", "Location"]
        var failure = end.failure
        // The error texts of the two networks differ, so they are not compared.
        if case .badAnswer = failure { failure = .badAnswer("") }
        return Outcome(
            status: head?.status, headers: told.compactMap { name in head?[name].map { "\(name): \($0)" } },
            url: head.map { $0.url.replacingOccurrences(of: origin, with: "") }, body: sink.data.withLock { $0 },
            failure: failure,
            requests: requests.map { "\($0.method) \($0.path) \($0.bodyByteCount)" })
    }

    private final class EndBox: Sendable { let end = Mutex<WireEnd?>(nil) }

    private final class Sink: BodySink {
        let data = Mutex(Data())
        func receive(head: ResponseHead) -> Bool { true }
        func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
            data.withLock { $0.append(contentsOf: bytes) }
            return true
        }
    }
}
