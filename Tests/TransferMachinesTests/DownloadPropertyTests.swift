import Foundation
import Testing

@testable import TransferMachines

/// A small random number generator with a seed, so that a failing case can be repeated.
struct Dice: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: Int) { state = UInt64(bitPattern: Int64(seed)) &* 0x9E37_79B9_7F4A_7C15 &+ 1 }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// A server that may do anything, with one exception: a strong ETag always means equal bytes.
private struct WildServer {
    var dice: Dice
    var versions: [[UInt8]]
    var current = 0
    var faults: Bool

    mutating func answer(_ request: WireRequest) -> (head: ResponseHead, body: [UInt8])? {
        if faults, dice.chance(15) { current = Int.random(in: 0..<versions.count, using: &dice) }
        if faults, dice.chance(5) { return nil }
        let bytes = versions[current]
        let tag = "\"v\(current)\""
        func value(_ name: String) -> String? { request.headers.first { $0.name == name }?.value }
        if faults, dice.chance(8) {
            return (head([503, 404, 429, 500].randomElement(using: &dice)!, ["Content-Length": "5"]), Array("oops!".utf8))
        }
        var headers = ["ETag": tag, "Content-Length": "\(bytes.count)"]
        if dice.chance(10) { headers["ETag"] = "W/" + tag }
        if dice.chance(10) { headers["Content-Length"] = nil }
        guard let range = value("Range"), !(faults && dice.chance(10)) else { return (head(200, headers), bytes) }
        let start = Int(range.dropFirst(6).dropLast())!
        let ignoresIfRange = faults && dice.chance(30)
        guard value("If-Range") == tag || ignoresIfRange else { return (head(200, headers), bytes) }
        guard start < bytes.count else {
            return (head(416, dice.chance(50) ? ["Content-Range": "bytes */\(bytes.count)"] : [:]), Array("none".utf8))
        }
        // Some partial responses end early, some start at a wrong offset, and some have no total length.
        var first = start
        if faults, dice.chance(10) { first = Int.random(in: 0..<bytes.count, using: &dice) }
        let last = dice.chance(20) ? Int.random(in: first..<bytes.count, using: &dice) : bytes.count - 1
        let total = dice.chance(10) ? "*" : "\(bytes.count)"
        let part = [
            "ETag": tag, "Content-Range": "bytes \(first)-\(last)/\(total)", "Content-Length": "\(last - first + 1)",
        ]
        return (head(206, part), Array(bytes[first...last]))
    }

    private func head(_ status: Int, _ headers: [String: String]) -> ResponseHead {
        ResponseHead(status: status, headers: headers.map { HeaderField($0.key, $0.value) }, url: "http://h/f")
    }
}

@Suite struct DownloadPropertyTests {
    @Test(arguments: 0..<40)
    func `the result is always one version of the file`(_ block: Int) {
        for seed in block * 100..<block * 100 + 100 { run(seed) }
    }

    /// Simulates the agent with a partial file and a committed record. A crash can happen between any two steps.
    private func run(_ seed: Int) {
        var dice = Dice(seed)
        let versions = (0..<3).map { version -> [UInt8] in
            let count = [1, 2, 50, 50, 80].randomElement(using: &dice)!
            return (0..<count).map { UInt8(version * 80 + $0) }
        }
        var server = WildServer(dice: Dice(seed &+ 1_000_003), versions: versions, faults: true)
        var file: [UInt8] = []
        var record: PartialFile?
        var machine = DownloadMachine(request: TransferRequest(url: "http://h/f"), partial: nil)
        for round in 0..<400 {
            // From round 200 on, the network has no faults, so the download must end.
            if round == 200 { server.faults = false }
            if dice.chance(20) { machine = DownloadMachine(request: TransferRequest(url: "http://h/f"), partial: record) }
            let request = machine.begin()
            let answer = server.answer(request)
            var failure: WireFailure? = answer == nil ? .connectionLost : nil
            if let answer {
                let disposition = machine.received(answer.head)
                record = machine.partial
                if dice.chance(server.faults ? 5 : 0) { continue }  // killed after the commit, before the file changed
                var body = answer.body[...]
                if dice.chance(server.faults ? 50 : 0) {
                    body = body.prefix(Int.random(in: 0...body.count, using: &dice))
                    failure = .connectionLost
                }
                switch disposition {
                case .append(let offset):
                    #expect(offset <= file.count, "seed \(seed)")
                    file.replaceSubrange(Int(offset)..<min(file.count, Int(offset) + body.count), with: body)
                case .rewrite: file = Array(body)
                case .discard: break
                }
            }
            let end = WireEnd(head: answer?.head, failure: failure, bytesSent: 0, bytesReceived: 0)
            let command = machine.ended(
                end, durableBytes: Int64(file.count), now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 0,
                jitter: 0)
            record = machine.partial
            switch command {
            case .finish(let head, _):
                if head.status == 404 {
                    #expect(file == Array("oops!".utf8), "seed \(seed)")
                } else {
                    #expect(versions.contains(file), "seed \(seed): spliced \(file)")
                }
                return
            case .retry: continue
            case .restart:
                file = []
                record = nil
            case .fail(let trouble):
                Issue.record("seed \(seed): \(trouble)")
                return
            }
        }
        Issue.record("seed \(seed): no end")
    }
}
