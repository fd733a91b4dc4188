import Foundation
import Testing

@testable import ServerScripts
@testable import TransferMachines

/// Runs the machine of each protocol against a server of this protocol. The network loses requests and responses, and cuts
/// bodies. The uploading processes crash at random times. At the end the photo must be stored once, with the bytes that were
/// sent.
@Suite struct StoreUploadPropertyTests {
    private enum Way: String, CaseIterable {
        case resumable, oldResumable, s3, s3Parts, nextcloud, immich

        var kind: UploadKind {
            switch self {
            case .resumable, .oldResumable: .resumable
            case .s3, .s3Parts: .s3
            case .nextcloud: .nextcloud
            case .immich: .immich
            }
        }

        var size: Int { self == .s3Parts || self == .nextcloud ? 11 << 20 : 40_000 }

        func makeStore(_ dice: inout Dice) -> any MountedStore {
            switch self {
            case .resumable: ResumableStore(prefix: "/x")
            case .oldResumable: ResumableStore(prefix: "/x", version: [3, 5, 6].randomElement(using: &dice)!)
            case .s3, .s3Parts:
                bucket(&dice)
            case .nextcloud:
                cloud(&dice)
            case .immich: ImmichStore(prefix: "/x", version: [1, 2, 3, nil].randomElement(using: &dice)!)
            }
        }

        private func bucket(_ dice: inout Dice) -> S3Store {
            let store = S3Store(prefix: "/x")
            if dice.chance(30) { store.ignoreConditions() } else if dice.chance(30) { store.forgetConditions() }
            return store
        }

        private func cloud(_ dice: inout Dice) -> NextcloudStore {
            let store = NextcloudStore(prefix: "/x")
            if dice.chance(50) { store.forbid(":?*\"<>|", language: ["en", "de", "fr"].randomElement(using: &dice)!) }
            return store
        }

        var fileName: String { self == .nextcloud ? "noon 12:00?.jpg" : "p.jpg" }

        var address: String {
            switch self {
            case .nextcloud: "http://h/x/remote.php/dav/files/me/a/b/"
            case .immich: "http://h/x/api/"
            case .resumable, .oldResumable, .s3, .s3Parts: "http://h/x/"
            }
        }

        func files(of store: any MountedStore) -> [Data] {
            switch store {
            case let store as ResumableStore: store.files
            // An upload tests the bucket with an empty object. If the upload could not remove this empty object, the object is
            // still in the bucket.
            case let store as S3Store: store.files.filter { !$0.isEmpty }
            case let store as NextcloudStore: store.files
            case let store as ImmichStore: store.files
            default: []
            }
        }
    }

    @Test(arguments: Way.allCases)
    private func `every protocol stores the photo once and completely`(_ way: Way) {
        let photo = Data((0..<way.size).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 9) })
        for seed in 0..<(way.size > 1 << 20 ? 60 : 400) { Run(way, seed, photo).play() }
    }

    private final class Run {
        let way: Way
        let seed: Int
        let photo: Data
        var dice: Dice
        let store: any MountedStore
        let plan: UploadPlan
        var machine: UploadMachine
        var knowledge = ServerKnowledge()

        init(_ way: Way, _ seed: Int, _ photo: Data) {
            (self.way, self.seed, self.photo) = (way, seed, photo)
            dice = Dice(seed)
            store = way.makeStore(&dice)
            var plan = UploadPlan(
                kind: way.kind, collectionURL: way.address, fileName: way.fileName, byteCount: Int64(photo.count), token: "t",
                headers: [HeaderField("x-api-key", ImmichStore.key)], sha256: String(repeating: "ab", count: 32))
            plan.order.sha1 = "cafe"
            plan.order.s3 = S3Access(bucket: nil, region: "r", accessKey: "a", secretKey: "s")
            self.plan = plan
            machine = UploadMachine(plan: plan)
        }

        func play() {
            for round in 0..<800 {
                let isQuiet = round >= 400
                let (request, content, memory): (WireRequest, UploadContent, UploadMemory)
                switch machine.next() {
                case .send(let sent, let carried, let saved): (request, content, memory) = (sent, carried, saved)
                case .compare(let sent, _, let saved): (request, content, memory) = (sent, .none, saved)
                case .finished, .fail:
                    Issue.record("\(way) \(seed): an end that was not reported")
                    return
                }
                let dies = !isQuiet && dice.chance(8)
                // The process dies before or after the request.
                if dies, dice.chance(50) {
                    restart(memory)
                    continue
                }
                let end = carry(request, content, isQuiet: isQuiet)
                if dies {
                    restart(memory)
                    continue
                }
                switch machine.ended(end, now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 0, jitter: 0) {
                case .continue, .retry: continue
                case .fail(let trouble):
                    Issue.record("\(way) \(seed): \(trouble)")
                    return
                case .finished:
                    let there = way.files(of: store)
                    #expect(there == [photo], "\(way) \(seed): \(there.map(\.count))")
                    return
                }
            }
            Issue.record("\(way) \(seed): no end")
        }

        private func restart(_ memory: UploadMemory) {
            var plan = plan
            plan.knowledge = machine.knowledge
            // The state of the upload is stored as JSON.
            let kept = try? JSONDecoder().decode(UploadMemory.self, from: JSONEncoder().encode(memory))
            #expect(kept == memory)
            machine = UploadMachine(plan: plan, resuming: kept)
        }

        private func carry(_ request: WireRequest, _ content: UploadContent, isQuiet: Bool) -> WireEnd {
            let body = bytes(of: content)
            let lost = WireEnd(head: nil, failure: .connectionLost, bytesSent: 0, bytesReceived: 0)
            guard !isQuiet, dice.chance(25) else { return answer(request, body) }
            switch Int.random(in: 0..<4, using: &dice) {
            case 0: return lost
            case 1:
                return refusal(of: request, carrying: content, body)
            case 2 where !body.isEmpty:
                // The connection is cut while the body is sent. The store decides whether to keep the received bytes.
                let exchange = store.exchange(for: recorded(request))
                exchange.receive(Data(body.prefix(Int.random(in: 0..<body.count, using: &dice))))
                exchange.abandon()
                return lost
            default:
                _ = answer(request, body)
                return lost
            }
        }

        /// Returns a refusal that the server sends once. For some statuses the server may still have performed the request.
        private func refusal(of request: WireRequest, carrying content: UploadContent, _ body: Data) -> WireEnd {
            var statuses = [500, 502, 503, 429, 421]
            var words = ""
            if case .snapshot = content {
                statuses.append(400)
                if way.kind == .s3 { words = "<Error><Code>BadDigest</Code></Error>" }
            }
            if way.kind == .s3, request.method == "HEAD" { statuses += [400, 403, 405, 501] }
            let head = ResponseHead(status: statuses.randomElement(using: &dice)!, headers: [], url: "")
            if ![421, 429].contains(head.status), dice.chance(50) { _ = answer(request, body) }
            var end = WireEnd(head: head, failure: nil, bytesSent: Int64(body.count), bytesReceived: 0)
            if head.status == 400 { end.body = Data(words.utf8) }
            return end
        }

        private func answer(_ request: WireRequest, _ body: Data) -> WireEnd {
            let exchange = store.exchange(for: recorded(request, length: body.count))
            exchange.receive(Data(body))
            var head = ResponseHead(status: 0, headers: [], url: request.url)
            var words = Data()
            for step in exchange.finish().steps {
                switch step {
                case .status(let status, _): head.status = status
                case .headers(let list): head.headers = list.lines.map { HeaderField($0.name, $0.value) }
                case .body(let payload, _): words = payload.data
                default: Issue.record("\(step)")
                }
            }
            var end = WireEnd(head: head, failure: nil, bytesSent: Int64(body.count), bytesReceived: Int64(words.count))
            end.body = words
            if request.method == "GET", head.status == 200 { end.comparison = words == photo ? .same : .differs }
            return end
        }

        private func recorded(_ request: WireRequest, length: Int = 0) -> RecordedRequest {
            let target = request.url.dropFirst("http://h".count).split(separator: "?", maxSplits: 1)
            var headers = HeaderList(request.headers.map { HeaderLine($0.name, $0.value) })
            headers.append("Content-Length", "\(length)")
            return RecordedRequest(
                id: 1, connection: 1, method: request.method, path: String(target[0]),
                query: target.count > 1 ? String(target[1]) : nil, headers: headers, receivedAt: Date(timeIntervalSince1970: 0))
        }

        private func bytes(of content: UploadContent) -> Data {
            switch content {
            case .none, .empty: Data()
            case .snapshot(let start, let count): photo.subdata(in: Int(start)..<Int(start + count))
            case .wrapped(let before, let after): before + photo + after
            case .data(let words): words
            }
        }
    }
}
