import Foundation
import TestSamples
import Testing

@testable import TransferMachines

/// Three machines put photos with equal names and equal lengths into one folder, by plain PUT. The network loses requests and
/// responses. The server supports `If-None-Match`. The server carries out some requests after their connection broke, and shows
/// some files late.
@Suite struct SharedFolderPropertyTests {
    private static let photosOfEach = 15

    private struct Server {
        /// For each URL: the number of the photo that is stored there.
        var files: [String: Int] = [:]
        /// Requests whose connection broke, and which the server carries out later.
        var late: [(request: WireRequest, photo: Int)] = []
        /// For each URL: the number of further requests that do not show the file yet.
        var hidden: [String: Int] = [:]

        mutating func carryOutLate(_ dice: inout Dice) {
            guard let index = late.indices.randomElement(using: &dice) else { return }
            let (request, photo) = late.remove(at: index)
            _ = answer(request, photo)
        }

        mutating func answer(_ request: WireRequest, _ photo: Int) -> WireEnd {
            var head = ResponseHead(status: 404, headers: [], url: request.url)
            var end = WireEnd(head: nil, failure: nil, bytesSent: 10, bytesReceived: 0)
            let there = files[request.url]
            switch request.method {
            case "PUT":
                let isRefused = there != nil && request.headers.contains(HeaderField("If-None-Match", "*"))
                if !isRefused { files[request.url] = photo }
                head.status = isRefused ? 412 : there == nil ? 201 : 204
            case "HEAD" where hidden[request.url, default: 0] > 0: hidden[request.url]? -= 1
            case "HEAD" where there != nil: (head.status, head.headers) = (200, [HeaderField("Content-Length", "10")])
            case "GET" where there != nil:
                head.status = 200
                end.comparison = there == photo ? .same : .differs
            default: break
            }
            end.head = head
            return end
        }
    }

    private struct Sender {
        let number: Int
        var sent = 0
        var machine: UploadMachine

        init(_ number: Int) {
            self.number = number
            machine = Self.machine(number, 0)
        }

        var photo: Int { number * SharedFolderPropertyTests.photosOfEach + sent }
        var isDone: Bool { sent == SharedFolderPropertyTests.photosOfEach }

        mutating func continueWork() {
            sent += 1
            machine = Self.machine(number, sent)
        }

        private static func machine(_ number: Int, _ photo: Int) -> UploadMachine {
            UploadMachine(
                plan: UploadPlan(
                    kind: .put, collectionURL: "http://h/up", fileName: "DSC\(photo).jpg", byteCount: 10,
                    token: "t\(number)x\(photo)"))
        }
    }

    @Test(arguments: TableSample.rows(of: 0..<40, in: "folders")) func `every completed photo is stored`(_ block: Int) {
        for seed in block * 10..<block * 10 + 10 { play(seed) }
    }

    private func play(_ seed: Int) {
        var dice = Dice(seed)
        var server = Server()
        var senders = (0..<3).map(Sender.init)
        var places: [Int: String] = [:]
        for _ in 0..<20_000 {
            guard let index = senders.indices.filter({ !senders[$0].isDone }).randomElement(using: &dice) else { break }
            let request: WireRequest
            switch senders[index].machine.next() {
            case .send(let sent, _, _), .compare(let sent, _, _): request = sent
            case .finished, .fail:
                Issue.record("seed \(seed): the end was not reported")
                return
            }
            var end = WireEnd(head: nil, failure: .connectionLost, bytesSent: 0, bytesReceived: 0)
            // The network loses some requests and some responses.
            if dice.chance(10) {
                if request.method == "PUT", dice.chance(50) { server.late.append((request, senders[index].photo)) }
            } else {
                let wasThere = server.files[request.url] != nil
                let answer = server.answer(request, senders[index].photo)
                if !wasThere, dice.chance(10) { server.hidden[request.url] = Int.random(in: 1...3, using: &dice) }
                if !dice.chance(20) { end = answer }
                // Another program may respond instead of the server. The response of this other program does not depend on what
                // the server did.
                let isCheck = request.method == "HEAD" && senders[index].machine.openName != nil
                let foreign = request.method == "PUT" ? [400, 409] : isCheck ? [405, 501, 421] : [421]
                if dice.chance(5) {
                    end = WireEnd(
                        head: ResponseHead(status: foreign.randomElement(using: &dice)!, headers: [], url: request.url),
                        failure: nil, bytesSent: 10, bytesReceived: 0)
                }
            }
            if dice.chance(30) { server.carryOutLate(&dice) }
            let outcome = senders[index].machine.ended(
                end, now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 0, jitter: 0)
            switch outcome {
            case .continue, .retry: continue
            case .fail(let trouble):
                Issue.record("seed \(seed): \(trouble)")
                return
            case .finished(let place):
                places[senders[index].photo] = place
                senders[index].continueWork()
            }
        }
        while !server.late.isEmpty { server.carryOutLate(&dice) }
        #expect(places.count == 3 * Self.photosOfEach, "seed \(seed): no end")
        for (photo, place) in places {
            #expect(server.files[place] == photo, "seed \(seed): photo \(photo) is not at \(place)")
        }
        #expect(server.files.count == places.count, "seed \(seed): the server has a photo twice")
    }
}
