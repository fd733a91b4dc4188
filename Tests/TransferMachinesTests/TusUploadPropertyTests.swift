import Foundation
import Testing

@testable import TransferMachines

/// A tus server that stores its uploads in a dictionary. The test server has the behaviour of several real servers.
private struct PlaceServer {
    /// The stored length of each upload. The server accepts bytes only at the end of an upload, so the length determines the
    /// content.
    var places: [String: Int] = [:]
    var made = 0
    /// `true` if the response to PATCH has no offset.
    var isSilent = false
    /// `true` if the server sends a relative URL for an upload.
    var isRelative = false
    /// The maximum number of bytes that a proxy accepts in one request.
    var limit = Int.max
    let length: Int

    mutating func answer(_ request: WireRequest, body: Range<Int>) -> ResponseHead {
        let path = String(request.url.dropFirst("http://h".count))
        func field(_ name: String) -> String? { request.headers.first { $0.name == name }?.value }
        if request.method != "OPTIONS", field("Tus-Resumable") != "1.0.0" { return head(412) }
        switch request.method {
        case "OPTIONS":
            return head(204, ["Tus-Version": "1.0.0,0.2.2", "Tus-Extension": "creation,termination"])
        case "POST":
            guard path == "/files/", field("Upload-Length") == "\(length)" else { return head(400) }
            made += 1
            places["/files/\(made)"] = 0
            return head(201, ["Location": isRelative ? "\(made)" : "http://h/files/\(made)"])
        case "HEAD":
            guard let place = places[path] else { return head(404) }
            return head(200, ["Upload-Offset": "\(place)", "Upload-Length": "\(length)"])
        case "PATCH":
            guard let place = places[path] else { return head(404) }
            guard body.count <= limit else { return head(413) }
            guard field("Upload-Offset") == "\(place)" else { return head(409) }
            #expect(body.lowerBound == place)
            places[path] = body.upperBound
            return head(204, isSilent ? [:] : ["Upload-Offset": "\(body.upperBound)"])
        default:
            return head(405)
        }
    }

    func head(_ status: Int, _ headers: [String: String] = [:]) -> ResponseHead {
        ResponseHead(status: status, headers: headers.map { HeaderField($0.key, $0.value) }, url: "")
    }
}

@Suite struct TusUploadPropertyTests {
    private static let length = 3 << 20

    /// Simulates a bad network, crashes, a server that loses uploads, and a proxy.
    @Test(arguments: 0..<40)
    func `every byte is stored in order, and stored bytes are not sent again`(_ block: Int) {
        for seed in block * 10..<block * 10 + 10 { run(seed) }
    }

    private func run(_ seed: Int) {
        var dice = Dice(seed)
        let length = Self.length
        var server = PlaceServer(length: length)
        server.isSilent = dice.chance(20)
        server.isRelative = dice.chance(50)
        if dice.chance(30) { server.limit = [300 << 10, 1 << 20, 2 << 20].randomElement(using: &dice)! }
        let plan = UploadPlan(
            kind: .tus, collectionURL: "http://h/files/", fileName: "p.jpg", byteCount: Int64(length), token: "t")
        var machine = UploadMachine(plan: plan)
        var memory: UploadMemory?
        var forgotten = 0
        var known = (place: "", offset: 0)
        for round in 0..<600 {
            let quiet = round >= 300
            if !quiet, forgotten < 3, known.offset < length, dice.chance(2) {
                forgotten += 1
                // Servers remove incomplete uploads after some time (tus, "Expiration").
                server.places = server.places.filter { $0.value == length }
            }
            guard case .send(let request, let content, let state) = machine.next() else { break }
            memory = state
            var body = 0..<0
            if case .snapshot(let from, let count) = content {
                // Bytes that the server has confirmed must not be sent again.
                if state.place == known.place { #expect(from >= known.offset, "seed \(seed)") }
                body = Int(from)..<Int(from + count)
            }
            let crash = !quiet && dice.chance(10)
            if crash, dice.chance(40) {
                machine = UploadMachine(plan: plan, resuming: memory)
                continue
            }
            let end = send(request, body, &server, &dice, quiet: quiet)
            if let offset = end.head?["Upload-Offset"].flatMap({ Int($0) }), let place = state.place { known = (place, offset) }
            if crash {
                machine = UploadMachine(plan: plan, resuming: memory)
                continue
            }
            switch machine.ended(end, now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 0, jitter: 0) {
            case .continue, .retry: continue
            case .fail(let trouble):
                Issue.record("seed \(seed): \(trouble)")
                return
            case .finished(let url):
                let stored = server.places[String(url.dropFirst("http://h".count))]
                #expect(stored == length, "seed \(seed)")
                return
            }
        }
        Issue.record("seed \(seed): no end")
    }

    private func send(
        _ request: WireRequest, _ body: Range<Int>, _ server: inout PlaceServer, _ dice: inout Dice, quiet: Bool
    ) -> WireEnd {
        let lost = WireEnd(head: nil, failure: .connectionLost, bytesSent: 0, bytesReceived: 0)
        if quiet || dice.chance(70) {
            return WireEnd(
                head: server.answer(request, body: body), failure: nil, bytesSent: Int64(body.count), bytesReceived: 0)
        }
        let path = String(request.url.dropFirst("http://h".count))
        switch Int.random(in: 0..<4, using: &dice) {
        case 0: return lost
        case 3 where body.upperBound == server.length && server.places[path] == body.lowerBound:
            // The server confirms all bytes, but stores nothing.
            let head = server.head(204, ["Upload-Offset": "\(body.upperBound)"])
            return WireEnd(head: head, failure: nil, bytesSent: Int64(body.count), bytesReceived: 0)
        case 1:
            let status = (request.method == "PATCH" ? [503, 423, 409, 429, 400, 421] : [503, 423, 429, 421]).randomElement(
                using: &dice)!
            return WireEnd(head: server.head(status), failure: nil, bytesSent: 0, bytesReceived: 0)
        case 2 where !body.isEmpty:
            // The connection is cut while the request is sent. The server stores the bytes that it received.
            if body.count <= server.limit {
                _ = server.answer(request, body: body.lowerBound..<Int.random(in: body, using: &dice))
            }
            return lost
        default:
            _ = server.answer(request, body: body)
            return lost
        }
    }
}
