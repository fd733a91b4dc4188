import FaultyServer
import Foundation
import Testing

@Suite("Ranges and conditions")
struct RangeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let headers: [String: String]
        let status: Int
        let range: Range<Int>?

        init(_ headers: [String: String], _ status: Int, _ range: Range<Int>? = nil) {
            self.headers = headers
            self.status = status
            self.range = range
        }

        var testDescription: String { "\(headers.sorted { $0.key < $1.key }) → \(status)" }
    }

    static let date = "Sat, 21 Nov 2026 05:00:00 GMT"

    static let cases = [
        Case([:], 200),
        Case(["Range": "bytes=0-"], 206, 0..<100),
        Case(["Range": "bytes=0-0"], 206, 0..<1),
        Case(["Range": "bytes=10-19"], 206, 10..<20),
        Case(["Range": "bytes=90-500"], 206, 90..<100),
        Case(["Range": "bytes=99-"], 206, 99..<100),
        Case(["Range": "bytes=-7"], 206, 93..<100),
        Case(["Range": "bytes=-700"], 206, 0..<100),
        Case(["Range": "BYTES=1-2"], 206, 1..<3),
        Case(["Range": "bytes=100-"], 416),
        Case(["Range": "bytes=-0"], 416),
        Case(["Range": "bytes=99999999999999999999-"], 416),
        Case(["Range": "bytes=20-10"], 200),
        Case(["Range": "bytes=-"], 200),
        Case(["Range": "bytes=a-b"], 200),
        Case(["Range": "bytes=+1-2"], 200),
        Case(["Range": "bytes=0-1,5-6"], 200),
        Case(["Range": "lines=0-1"], 200),
        Case(["Range": "bytes=10-", "If-Range": "\"v1\""], 206, 10..<100),
        Case(["Range": "bytes=10-", "If-Range": "\"v2\""], 200),
        Case(["Range": "bytes=10-", "If-Range": "W/\"v1\""], 200),
        Case(["Range": "bytes=10-", "If-Range": date], 206, 10..<100),
        Case(["Range": "bytes=10-", "If-Range": "Sat, 21 Nov 2026 05:00:01 GMT"], 200),
        Case(["Range": "bytes=100-", "If-Range": "\"v2\""], 200),
        Case(["If-None-Match": "W/\"v1\""], 304),
        Case(["If-None-Match": "\"v0\", \"v1\""], 304),
        Case(["If-None-Match": "\"v2\""], 200),
        Case(["If-Modified-Since": date], 304),
        Case(["If-Match": "\"v2\""], 412),
        Case(["If-Match": "\"v1\"", "Range": "bytes=1-1"], 206, 1..<2),
    ]

    @Test(arguments: cases)
    func `ranges and conditions are answered as in RFC 9110`(_ item: Case) async throws {
        let payload = Payload.pattern(100)
        try await withServer { server in
            server.route("GET", "/f", .file(payload, etag: "\"v1\"", lastModified: Self.date))
            let answer = await (try WireClient(port: server.port)).request("GET", "/f", item.headers)
            #expect(answer.status == item.status)
            #expect(answer["ETag"] == "\"v1\"")
            switch item.status {
            case 200:
                #expect(answer.body == payload.data)
                #expect(answer["Accept-Ranges"] == "bytes")
                #expect(answer["Content-Range"] == nil)
            case 206:
                let range = try #require(item.range)
                #expect(answer.body == payload.slice(range).data)
                #expect(answer["Content-Range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/100")
            case 416:
                #expect(answer["Content-Range"] == "bytes */100")
            default:
                #expect(answer.body.isEmpty)
            }
        }
    }

    @Test func `a weak tag of the file never satisfies If-Range`() async throws {
        try await withServer { server in
            server.route(nil, "/f", .file(.pattern(10), etag: "W/\"v1\""))
            let client = try WireClient(port: server.port)
            let headers = ["Range": "bytes=5-", "If-Range": "W/\"v1\""]
            #expect(await client.request("GET", "/f", headers).status == 200)
        }
    }

    @Test func `no range is served for HEAD, for an empty file or without support`() async throws {
        try await withServer { server in
            server.route(nil, "/f", .file(.pattern(10)))
            server.route(nil, "/empty", .file(""))
            server.route(nil, "/plain", .file(.pattern(10), etag: "\"v1\"", supportsRange: false))
            let client = try WireClient(port: server.port)
            let head = await client.request("HEAD", "/f", ["Range": "bytes=5-"])
            #expect(head.status == 200)
            #expect(head["Content-Length"] == "10")
            #expect(await client.request("GET", "/empty", ["Range": "bytes=0-"]).status == 416)
            let plain = await client.request("GET", "/plain", ["Range": "bytes=5-"])
            #expect(plain.status == 200)
            #expect(plain["Accept-Ranges"] == nil)
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `requested faults of ranges are served`() async throws {
        try await withServer { server in
            let client = try WireClient(port: server.port)
            func ask(_ fault: ServedFile.RangeFault) async -> WireAnswer {
                var file = ServedFile(.pattern(100), etag: "\"new\"")
                file.rangeFault = fault
                server.route("GET", "/f", .served(file))
                return await client.request("GET", "/f", ["Range": "bytes=50-", "If-Range": "\"new\""])
            }
            #expect(await ask(.shiftedStart(-1))["Content-Range"] == "bytes 49-99/100")
            #expect(await ask(.wrongTotal(200))["Content-Range"] == "bytes 50-99/200")
            #expect(await ask(.missingContentRange)["Content-Range"] == nil)
            #expect(await ask(.otherETag("\"old\""))["ETag"] == "\"old\"")
            #expect(await ask(.alwaysUnsatisfiable).status == 416)
            var file = ServedFile(.pattern(100), etag: "\"new\"")
            file.rangeFault = .ignoresIfRange
            server.route("GET", "/f", .served(file))
            let spliced = await client.request("GET", "/f", ["Range": "bytes=50-", "If-Range": "\"old\""])
            #expect(spliced.status == 206)
        }
    }

    @Test func `a download that is cut is completed by a range`() async throws {
        let payload = Payload.pattern(300_000)
        try await withServer { server in
            server.route(
                "GET", "/f", .cutAfter(123_456, of: payload, etag: "\"v1\""), .file(payload, etag: "\"v1\""))
            let first = await (try WireClient(port: server.port)).request("GET", "/f")
            #expect(first.status == 200)
            #expect(first["Content-Length"] == "300000")
            #expect(first["ETag"] == "\"v1\"")
            #expect(first.body.count == 123_456)
            #expect(first.end == .closed)
            let cut = try await server.waitForRequest { $0.id == 1 && $0.outcome != .open }
            #expect(cut.outcome == .cutByScript)
            #expect(cut.bodyBytesSent == 123_456)
            let second = await (try WireClient(port: server.port))
                .request("GET", "/f", ["Range": "bytes=123456-", "If-Range": "\"v1\""])
            #expect(second.status == 206)
            #expect(first.body + second.body == payload.data)
        }
    }
}
