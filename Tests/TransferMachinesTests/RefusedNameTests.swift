import Foundation
import Testing

@testable import TransferMachines

/// Tests servers that respond with 412 although HEAD reports that the name is free.
@Suite struct RefusedNameTests {
    private func plan(_ kind: UploadKind) -> UploadPlan {
        var plan = UploadPlan(kind: kind, collectionURL: "https://host/photos", fileName: "noon.jpg", byteCount: 10, token: "t1")
        plan.knowledge.lacksConditions = false
        if kind == .s3 { plan.order.s3 = S3Access(bucket: "storms", region: "us-east-1", accessKey: "a", secretKey: "s") }
        return plan
    }

    /// Runs an upload to its end, with at most 300 requests.
    private func play(_ kind: UploadKind, answering: (WireRequest) -> (status: Int, length: Int?)) -> Dialogue {
        var talk = Dialogue(plan(kind))
        for _ in 0..<300 {
            guard case .send(let request, _, _) = talk.machine.next() else { break }
            let answer = answering(request)
            talk.hear(answer.status, answer.length.map { ["Content-Length": "\($0)"] } ?? [:])
        }
        return talk
    }

    private func count(_ method: String, _ talk: Dialogue) -> Int { talk.requests.count { $0.method == method } }

    @Test(arguments: [UploadKind.put, .webdav, .s3])
    func `a server that refuses every name is asked a few times`(_ kind: UploadKind) {
        let talk = play(kind) { request in
            switch request.method {
            case "HEAD": request.url.hasSuffix(".part") ? (200, 10) : (404, nil)
            case "PUT" where kind == .webdav: (201, nil)
            case "DELETE": (204, nil)
            default: (412, nil)
            }
        }
        #expect(talk.message?.contains("412") == true, "\(talk.lines)")
        #expect(count(kind == .webdav ? "MOVE" : "PUT", talk) == 4)
        #expect(count("PUT", talk) <= 4)
    }

    @Test func `names that another computer takes first are counted up`() {
        var (lengths, rivals) = ([String: Int](), 10)
        let talk = play(.put) { request in
            let length = lengths[request.url]
            guard request.method == "PUT" else { return (length == nil ? 404 : 200, length) }
            rivals -= 1
            lengths[request.url] = rivals < 0 ? 10 : 99
            return (rivals < 0 ? 201 : 412, nil)
        }
        #expect(talk.outcome == .finished(remoteURL: "https://host/photos/noon-10.jpg"), "\(talk.lines)")
        #expect(count("PUT", talk) == 11)
    }

    @Test func `a server without HEAD gets the file under a name with a mark`() {
        let talk = play(.put) { request in
            guard request.method == "PUT" else { return (405, nil) }
            return (request.headers.contains(HeaderField("If-None-Match", "*")) ? 412 : 201, nil)
        }
        #expect(talk.outcome == .finished(remoteURL: "https://host/photos/noon-t1.jpg"), "\(talk.lines)")
        #expect(count("PUT", talk) == 21)
    }
}
