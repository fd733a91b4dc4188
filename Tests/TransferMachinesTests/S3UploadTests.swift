import Foundation
import Testing

@testable import TransferMachines

/// Passes responses to an upload machine, and records the machine's requests. The tests of each protocol check these requests.
struct Dialogue {
    var machine: UploadMachine
    private(set) var lines: [String] = []
    private(set) var requests: [WireRequest] = []
    private(set) var words: [String] = []
    /// The parts of the agent's copy of the file that were compared with responses.
    private(set) var compared: [SnapshotPart] = []
    private(set) var outcome: UploadOutcome?
    private(set) var memory: UploadMemory?

    /// - Parameter suspects: `true` if the upload waits until a captive portal no longer responds.
    init(_ plan: UploadPlan, resuming memory: UploadMemory? = nil, suspects: Bool = false) {
        var policy = RetryPolicy.standard
        if suspects { policy.suspicionDelay = 900 }
        machine = UploadMachine(plan: plan, resuming: memory, policy: policy)
    }

    /// Passes one response to the machine. If `status` is 0, the attempt ends with `failure`.
    ///
    /// - Parameter bytesSent: The number of sent bytes; `nil` for all bytes of the request.
    mutating func hear(
        _ status: Int, _ headers: [String: String] = [:], _ body: String = "", isCut: Bool = false,
        comparison: BodyComparison? = nil, bytesSent: Int64? = nil, failure: WireFailure = .connectionLost
    ) {
        let (request, content, memory): (WireRequest, UploadContent, UploadMemory)
        switch machine.next() {
        case .send(let sent, let carried, let saved): (request, content, memory) = (sent, carried, saved)
        case .compare(let sent, let part, let saved):
            (request, content, memory) = (sent, .none, saved)
            compared.append(part)
        case .finished, .fail: return
        }
        self.memory = memory
        requests.append(request)
        var line = "\(request.method) \(request.url)"
        var sent: Int64 = 0
        switch content {
        case .none, .empty: break
        case .snapshot(let start, let count):
            line += " \(start)+\(count)"
            sent = count
        case .wrapped(let before, let after):
            words.append(String(decoding: before, as: UTF8.self))
            sent = Int64(before.count + after.count) + 1000
        case .data(let text): words.append(String(decoding: text, as: UTF8.self))
        }
        lines.append(line)
        let head = ResponseHead(status: status, headers: headers.map { HeaderField($0.key, $0.value) }, url: request.url)
        var end = WireEnd(
            head: status == 0 ? nil : head, failure: status == 0 || isCut ? failure : nil,
            bytesSent: bytesSent ?? sent, bytesReceived: 0)
        end.body = Data(body.utf8)
        end.comparison = comparison
        outcome = machine.ended(end, now: Date(timeIntervalSince1970: 1_800_000_000), attemptsWithoutProgress: 0, jitter: 0.5)
    }

    func header(_ name: String) -> String? { requests.last?.headers.first { $0.name == name }?.value }

    /// `true` if the upload waits for another network.
    var suspects: Bool { if case .retry(_, let trouble) = outcome { trouble.suspicion == .portal } else { false } }

    var message: String? { if case .fail(let trouble) = outcome { trouble.message } else { nil } }
}

@Suite struct S3UploadTests {
    private let digest = String(repeating: "ab", count: 32)

    private func plan(_ size: Int64 = 100, url: String = "https://s3.example/album", bucket: String? = "storms") -> UploadPlan {
        var plan = UploadPlan(
            kind: .s3, collectionURL: url, fileName: "noon 12:00.jpg", byteCount: size, token: "t", contentType: "image/jpeg",
            sha256: digest)
        plan.order.s3 = S3Access(bucket: bucket, region: "us-east-1", accessKey: "a", secretKey: "s")
        plan.knowledge.lacksConditions = false
        return plan
    }

    private let key = "https://s3.example/storms/album/noon%2012%3A00.jpg"
    private let notFound = 404

    @Test func `a small file is sent in one request`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(200)
        #expect(talk.header("If-None-Match") == "*")
        #expect(talk.header("x-amz-meta-sha256") == digest)
        #expect(talk.requests.last?.signing?.payloadSHA256 == digest)
        talk.hear(200, ["Content-Length": "100"])
        #expect(talk.lines == ["HEAD \(key)", "PUT \(key) 0+100", "HEAD \(key)"])
        #expect(talk.outcome == .finished(remoteURL: key) && talk.machine.proof == .length)
        #expect(talk.requests.allSatisfy { $0.signing != nil && $0.maximumRedirects == 0 })
    }

    @Test(arguments: [
        ("https://storms.s3.example/album", "https://storms.s3.example/album/noon%2012%3A00.jpg"),
        ("https://s3.example", "https://s3.example/storms/noon%2012%3A00.jpg"),
    ]) func `the bucket is added to the path unless the host has it`(_ url: String, _ key: String) {
        var talk = Dialogue(plan(url: url))
        talk.hear(404)
        #expect(talk.lines == ["HEAD \(key)"])
    }

    @Test func `an object that is already ours is not sent`() {
        var talk = Dialogue(plan())
        talk.hear(200, ["Content-Length": "100", "X-Amz-Meta-Sha256": digest])
        #expect(talk.outcome == .finished(remoteURL: key))
        talk = Dialogue(plan())
        talk.hear(200, ["Content-Length": "101"])
        talk.hear(404)
        #expect(talk.lines.last == "HEAD https://s3.example/storms/album/noon%2012%3A00-1.jpg")
    }

    @Test func `a large file is sent in parts and completed`() {
        var talk = Dialogue(plan(11 << 20))
        talk.hear(404)
        talk.hear(
            200, [:], "<InitiateMultipartUploadResult xmlns=\"x\"><UploadId>a/b+</UploadId></InitiateMultipartUploadResult>")
        talk.hear(200, ["ETag": "\"1\""])
        #expect(talk.requests.last?.signing?.payloadSHA256 == nil)
        talk.hear(200, ["ETag": "\"2&\""])
        talk.hear(200, ["ETag": "\"3\""])
        talk.hear(200, [:], "<CompleteMultipartUploadResult/>")
        #expect(
            talk.words.last
                == "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"1\"</ETag></Part><Part><PartNumber>2"
                + "</PartNumber><ETag>\"2&amp;\"</ETag></Part><Part><PartNumber>3</PartNumber><ETag>\"3\"</ETag></Part>"
                + "</CompleteMultipartUpload>")
        #expect(talk.header("If-None-Match") == "*")
        talk.hear(200, ["Content-Length": "\(11 << 20)"])
        let place = "\(key)?partNumber="
        #expect(
            talk.lines == [
                "HEAD \(key)", "POST \(key)?uploads=", "PUT \(place)1&uploadId=a%2Fb%2B 0+5242880",
                "PUT \(place)2&uploadId=a%2Fb%2B 5242880+5242880", "PUT \(place)3&uploadId=a%2Fb%2B 10485760+1048576",
                "POST \(key)?uploadId=a%2Fb%2B", "HEAD \(key)",
            ])
        #expect(talk.outcome == .finished(remoteURL: key))
    }

    private func part(_ number: Int, _ size: Int64) -> String {
        "<Part><PartNumber>\(number)</PartNumber><ETag>&quot;\(number)&quot;</ETag><Size>\(size)</Size></Part>"
    }

    /// A new process requests the list of parts page by page. A part with another size is ignored.
    @Test func `a new process sends only the missing parts`() {
        var talk = Dialogue(plan(11 << 20), resuming: UploadMemory(step: .append, place: "u", creations: 1))
        talk.hear(
            200, [:],
            "<ListPartsResult><NextPartNumberMarker>1</NextPartNumberMarker><IsTruncated>true</IsTruncated>\(part(1, 5 << 20))</ListPartsResult>"
        )
        talk.hear(
            200, [:], "<ListPartsResult><IsTruncated>false</IsTruncated>\(part(2, 77))\(part(3, 1 << 20))</ListPartsResult>")
        #expect(talk.machine.storedBytes == 6 << 20)
        talk.hear(200, ["ETag": "\"2\""])
        #expect(
            talk.lines == [
                "GET \(key)?uploadId=u", "GET \(key)?uploadId=u&part-number-marker=1",
                "PUT \(key)?partNumber=2&uploadId=u 5242880+5242880",
            ])
        talk.hear(200)
        #expect(talk.lines.last == "POST \(key)?uploadId=u")
    }

    @Test func `a part without a response is looked up in the list of parts`() {
        var talk = Dialogue(plan(11 << 20), resuming: UploadMemory(step: .append, place: "u", creations: 1))
        talk.hear(200, [:], "<ListPartsResult>\(part(1, 5 << 20))</ListPartsResult>")
        talk.hear(0)
        talk.hear(200, [:], "<ListPartsResult>\(part(1, 5 << 20))\(part(2, 5 << 20))</ListPartsResult>")
        talk.hear(200, ["ETag": "\"3\""])
        #expect(talk.lines.last == "PUT \(key)?partNumber=3&uploadId=u 10485760+1048576")
    }

    @Test func `the region and the time of the server are used for signatures`() {
        var talk = Dialogue(plan())
        talk.hear(301, ["x-amz-bucket-region": "eu-central-1"])
        #expect(talk.outcome == .continue && talk.machine.knowledge.region == nil, "nothing is proven yet")
        talk.hear(404)
        #expect(talk.requests.last?.signing?.access.region == "eu-central-1")
        talk.hear(
            403, ["Date": "Fri, 15 Jan 2027 09:00:00 GMT"],
            "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>")
        talk.hear(200)
        #expect(talk.requests.last?.signing?.clockSkew == 3600)
        #expect(talk.machine.knowledge.region == "eu-central-1")
        // The region is used only for the configuration for which it was found.
        var next = plan()
        next.knowledge = talk.machine.knowledge
        var other = Dialogue(next)
        other.hear(404)
        #expect(other.requests[0].signing?.access.region == "eu-central-1")
        next.order.s3?.region = "us-west-2"
        other = Dialogue(next)
        other.hear(404)
        #expect(other.requests[0].signing?.access.region == "us-west-2")
    }

    @Test(arguments: [5, 11 << 20] as [Int64])
    func `a clock that is set during the upload is not final`(_ size: Int64) {
        func refuse(_ talk: inout Dialogue, _ time: String) {
            let body = "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"
            let isCheck = if case .send(let request, _, _) = talk.machine.next() { request.method == "HEAD" } else { false }
            talk.hear(403, ["Date": "Fri, 15 Jan 2027 \(time) GMT"], isCheck ? "" : body)
        }
        var talk = Dialogue(plan(size))
        talk.hear(404)
        refuse(&talk, "09:00:00")
        #expect(talk.outcome == .continue)
        // This computer's clock has been corrected, but the signature still uses the earlier difference. The signature is
        // therefore an hour ahead.
        var troubles: [String] = []
        for _ in 0..<3 {
            refuse(&talk, "08:00:00")
            #expect(talk.message == nil, "\(talk.lines)")
            if case .retry(_, let trouble)? = talk.outcome { troubles.append(trouble.message) }
        }
        // If a server refuses a request that contains the server's own time, the upload waits.
        #expect(!troubles.isEmpty && !troubles.contains { $0.contains("permit") })
    }

    /// The region is part of a header in every request.
    @Test func `an invalid region from the server is ignored`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(400, [:], "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu\nX-Evil: 1</Region></Error>")
        #expect(talk.message?.contains("credentials") == true && talk.machine.knowledge == plan().knowledge)
    }

    @Test func `the bucket is not added to a path that begins with it`() {
        for (url, key) in [
            ("https://s3.example/storms/album", key),
            ("https://storms.example/album", "https://storms.example/storms/album/noon%2012%3A00.jpg"),
        ] {
            var talk = Dialogue(plan(url: url))
            talk.hear(404)
            #expect(talk.lines == ["HEAD \(key)"])
        }
    }

    /// The server ignores the conditions of requests. Another client may have stored an object between the check and the PUT.
    @Test func `an object with another digest is not ours`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(200)
        talk.hear(200, ["Content-Length": "100", "x-amz-meta-sha256": "another"])
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(key.replacing(".jpg", with: "-1.jpg"))")
    }

    /// If an access key permits only writing, the upload cannot read objects, and the server may ignore a condition. The
    /// upload then uses a name that no other file has.
    @Test(arguments: [100, 6 << 20] as [Int64]) func `a name with a mark is used if objects cannot be seen`(_ size: Int64) {
        let own = key.replacing(".jpg", with: "-\(digest.prefix(8)).jpg")
        for status in [400, 403, 405, 501] {
            var talk = Dialogue(plan(size))
            talk.hear(status)
            #expect(talk.memory?.isMarked == nil)
            talk.hear(200)
            #expect(talk.lines.last == (size == 100 ? "PUT \(own) 0+100" : "POST \(own)?uploads="))
            #expect(talk.memory?.isMarked == true)
        }
        // After a lost response, the upload replaces the object that it stored itself.
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .put, isMarked: true))
        talk.hear(403)
        talk.hear(200)
        #expect(talk.header("If-None-Match") == nil)
        talk.hear(403)
        #expect(talk.lines == ["HEAD \(own)", "PUT \(own) 0+100", "HEAD \(own)"])
        #expect(talk.outcome == .finished(remoteURL: own))
    }

    /// If the access key does not permit the upload to list its parts, all parts are sent again.
    @Test func `an upload starts over if the list of parts is forbidden`() {
        var talk = Dialogue(plan(6 << 20), resuming: UploadMemory(step: .append, place: "u", creations: 1))
        talk.hear(403)
        talk.hear(404)
        talk.hear(200, [:], "<R><UploadId>v</UploadId></R>")
        #expect(talk.lines.last == "POST \(key)?uploads=" && talk.memory?.creations == 1)
        talk.hear(200, ["ETag": "a"])
        #expect(talk.memory?.place == "v" && talk.memory?.creations == 2)
    }

    @Test func `parts keep the name under which they were begun`() {
        let own = key.replacing(".jpg", with: "-\(digest.prefix(8)).jpg")
        var talk = Dialogue(plan(6 << 20))
        talk.hear(403)
        talk.hear(200, [:], "<R><UploadId>u</UploadId></R>")
        talk.hear(200, ["ETag": "a"])
        talk.hear(200, ["ETag": "b"])
        talk.hear(200)
        #expect(talk.lines.allSatisfy { $0.contains(own) || $0 == "HEAD \(key)" }, "\(talk.lines)")
        #expect(talk.lines.last == "POST \(own)?uploadId=u" && talk.header("If-None-Match") == nil)
        talk = Dialogue(plan(6 << 20), resuming: talk.memory)
        talk.hear(200, [:], "<ListPartsResult>\(part(1, 5 << 20))</ListPartsResult>")
        #expect(talk.lines == ["GET \(own)?uploadId=u"])
    }

    /// The request is repeated with the time of the server.
    @Test func `a look that fails because of a wrong clock is repeated`() {
        var talk = Dialogue(plan())
        talk.hear(403, ["Date": "Fri, 15 Jan 2027 09:00:00 GMT"])
        talk.hear(404)
        talk.hear(200)
        #expect(talk.lines == ["HEAD \(key)", "HEAD \(key)", "PUT \(key) 0+100"])
    }

    /// Two uploads use one name at the same time. The second upload detects on the server that the first upload has begun.
    @Test func `a name that another upload has begun is taken`() {
        let next = key.replacing(".jpg", with: "-1.jpg")
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.machine.setOtherNames(taken: [key])
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(next)")
        #expect(UploadMachine(plan: plan(), resuming: UploadMemory(step: .put)).openName == key)
        #expect(UploadMachine(plan: plan(), resuming: UploadMemory(step: .chooseName)).openName == nil)
    }

    /// The first request of an upload in parts has no condition.
    @Test func `NotImplemented counts against conditions only if a condition was sent`() {
        var talk = Dialogue(plan(6 << 20))
        let error = "<Error><Code>NotImplemented</Code></Error>"
        talk.hear(404)
        talk.hear(501, [:], error)
        #expect(talk.machine.knowledge.lacksConditions == false && talk.message?.contains("NotImplemented") == true)
        talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(501, [:], error)
        talk.hear(404)
        talk.hear(200)
        #expect(talk.header("If-None-Match") == nil && talk.machine.knowledge.lacksConditions == true)
        #expect(talk.lines.last == "PUT \(key.replacing(".jpg", with: "-\(digest.prefix(8)).jpg")) 0+100")
    }

    /// If a bucket does not support conditions, the upload checks the object under its key again directly before the
    /// completion.
    @Test func `a bucket without conditions is checked before an upload is completed`() {
        var plan = plan(6 << 20)
        plan.knowledge.lacksConditions = true
        var talk = Dialogue(plan, resuming: UploadMemory(step: .append, place: "u", creations: 1))
        talk.hear(200, [:], "<ListPartsResult>\(part(1, 5 << 20))\(part(2, 1 << 20))</ListPartsResult>")
        talk.hear(200, ["Content-Length": "7"])
        talk.hear(204)
        talk.hear(404)
        #expect(
            talk.lines.dropFirst() == [
                "HEAD \(key)", "DELETE \(key)?uploadId=u", "HEAD \(key.replacing(".jpg", with: "-1.jpg"))",
            ])
    }

    @Test func `a response that is cut off is not believed`() {
        var talk = Dialogue(plan(6 << 20))
        talk.hear(404)
        talk.hear(200, [:], "<Initiate", isCut: true)
        guard case .retry = talk.outcome else {
            Issue.record("\(talk.outcome as Any)")
            return
        }
        talk = Dialogue(plan(6 << 20), resuming: UploadMemory(step: .move, place: "u", creations: 1))
        talk.hear(200, [:], "<ListPartsResult>\(part(1, 5 << 20))\(part(2, 1 << 20))</ListPartsResult>")
        talk.hear(200, [:], "   ", isCut: true)
        talk.hear(404)
        #expect(talk.lines.last == "GET \(key)?uploadId=u")
    }

    @Test(arguments: [
        (403, "SignatureDoesNotMatch", "other credentials"), (403, "InvalidAccessKeyId", "other credentials"),
        (404, "NoSuchBucket", "bucket does not exist"), (400, "EntityTooLarge", "too large"),
        (400, "ExpiredToken", "credentials"),
        (418, "Teapot", "Teapot (short and stout)"),
    ]) func `error codes of S3 are explained in the message`(_ status: Int, _ code: String, _ words: String) {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(status, [:], "<Error><Code>\(code)</Code><Message>short and stout</Message></Error>")
        #expect(talk.message?.contains(words) == true)
    }

    /// The response to the completion has the status 200, but its body contains an error.
    @Test func `an error in the body of a completion is not a success`() {
        var talk = Dialogue(plan(6 << 20), resuming: UploadMemory(step: .move, place: "u", creations: 1))
        let list = "<ListPartsResult>\(part(1, 5 << 20))\(part(2, 1 << 20))</ListPartsResult>"
        talk.hear(200, [:], list)
        talk.hear(200, [:], " \n<Error><Code>InternalError</Code></Error>")
        guard case .retry = talk.outcome else {
            Issue.record("believed")
            return
        }
        talk.hear(200, [:], list)
        #expect(talk.lines.last == "GET \(key)?uploadId=u")
    }

    /// Another client has stored an object under the key. The object of the other client is not changed, and the parts of this
    /// upload are removed.
    @Test func `a key that was taken during the upload is left, and the parts are removed`() {
        var talk = Dialogue(plan(6 << 20), resuming: UploadMemory(step: .move, place: "u", creations: 1))
        talk.hear(200, [:], "<ListPartsResult>\(part(1, 5 << 20))\(part(2, 1 << 20))</ListPartsResult>")
        talk.hear(412)
        talk.hear(204)
        // An earlier process may have completed the upload. The upload therefore checks the object under the key.
        talk.hear(200, ["Content-Length": "7", "x-amz-meta-sha256": "another"])
        talk.hear(404)
        #expect(
            talk.lines.suffix(3) == ["DELETE \(key)?uploadId=u", "HEAD \(key)", "HEAD \(key.replacing(".jpg", with: "-1.jpg"))"])
    }

    @Test func `an abandoned upload removes its parts`() {
        let talk = Dialogue(plan(6 << 20), resuming: UploadMemory(step: .append, place: "u", creations: 1))
        #expect(talk.machine.removal?.method == "DELETE" && talk.machine.removal?.url == "\(key)?uploadId=u")
        #expect(talk.machine.removal?.signing != nil)
        #expect(Dialogue(plan()).machine.removal == nil)
    }

    @Test func `parts cover the complete file and are at most 10000`() {
        #expect(UploadParts(byteCount: 0, smallest: 5).count == 1)
        let most = UploadParts(byteCount: 5 << 40, smallest: 5 << 20)
        #expect(most.count <= 10_000 && most.range(of: most.count).start + most.range(of: most.count).count == 5 << 40)
    }
}
