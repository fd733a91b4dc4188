import Foundation
import Testing

@testable import TransferMachines

/// Tests buckets that ignore or refuse `If-None-Match`.
@Suite struct S3ConditionTests {
    private let digest = String(repeating: "ab", count: 32)
    private let key = "https://s3.example/storms/noon.jpg"
    private let marked = "https://s3.example/storms/noon-abababab.jpg"
    private let probe = "https://s3.example/storms/.t.part"

    /// - Parameter lacksConditions: Whether an earlier upload found that the bucket ignores or refuses conditions. `nil` if this
    ///   is not known.
    private func plan(_ size: Int64 = 100, lacksConditions: Bool? = nil, url: String = "https://s3.example") -> UploadPlan {
        var plan = UploadPlan(kind: .s3, collectionURL: url, fileName: "noon.jpg", byteCount: size, token: "t", sha256: digest)
        plan.order.s3 = S3Access(bucket: "storms", region: "us-east-1", accessKey: "a", secretKey: "s")
        plan.knowledge.lacksConditions = lacksConditions
        return plan
    }

    @Test func `a bucket that heeds the condition gets the photo under its name`() {
        var talk = Dialogue(plan())
        for status in [404, 200, 412] { talk.hear(status) }
        #expect(
            talk.header("If-None-Match") == "*" && talk.machine.knowledge.lacksConditions == nil, "the probe is not removed yet")
        for status in [204, 200] { talk.hear(status) }
        #expect(talk.header("If-None-Match") == "*")
        talk.hear(200, ["Content-Length": "100"])
        #expect(
            talk.lines == ["HEAD \(key)", "PUT \(probe)", "PUT \(probe)", "DELETE \(probe)", "PUT \(key) 0+100", "HEAD \(key)"])
        #expect(talk.machine.knowledge.lacksConditions == false && talk.machine.remark == nil)
        #expect(talk.requests.allSatisfy { $0.signing != nil })
        // The next upload uses the result of this check.
        var next = plan()
        next.knowledge = talk.machine.knowledge
        talk = Dialogue(next)
        for status in [404, 200] { talk.hear(status) }
        #expect(talk.lines == ["HEAD \(key)", "PUT \(key) 0+100"])
    }

    @Test(arguments: [100, 6 << 20] as [Int64])
    func `a bucket that ignores the condition gets the photo under a name that no other photo has`(_ size: Int64) {
        var talk = Dialogue(plan(size))
        for status in [404, 200, 200, 204] { talk.hear(status) }
        talk.hear(200, [:], "<R><UploadId>u</UploadId></R>")
        #expect(talk.lines.last == (size == 100 ? "PUT \(marked) 0+100" : "POST \(marked)?uploads="))
        #expect(talk.machine.knowledge.lacksConditions == true && talk.memory?.isMarked == true)
        #expect(talk.machine.remark?.contains("If-None-Match") == true)
        // The next upload uses the result of this check. The next upload first checks whether the server already has the photo
        // under the photo's own name.
        var next = plan(size)
        next.knowledge = talk.machine.knowledge
        talk = Dialogue(next)
        talk.hear(200, ["Content-Length": "\(size)", "x-amz-meta-sha256": digest])
        #expect(talk.outcome == .finished(remoteURL: key) && talk.machine.remark == nil)
        talk = Dialogue(next)
        talk.hear(200, ["Content-Length": "7"])
        talk.hear(200, [:], "<R><UploadId>u</UploadId></R>")
        #expect(talk.lines == ["HEAD \(key)", size == 100 ? "PUT \(marked) 0+100" : "POST \(marked)?uploads="])
    }

    @Test func `a bucket that refuses the condition as unknown is recognized by the probe`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(501, [:], "<Error><Code>NotImplemented</Code></Error>")
        for status in [404, 200] { talk.hear(status) }
        #expect(talk.lines == ["HEAD \(key)", "PUT \(probe)", "DELETE \(probe)", "PUT \(marked) 0+100"])
        #expect(talk.machine.knowledge.lacksConditions == true && talk.header("If-None-Match") == nil)
    }

    /// A PUT had no response. The empty object of this PUT still exists in the bucket.
    @Test func `a repeated first PUT that is refused shows that the condition is heeded`() {
        var talk = Dialogue(plan())
        for status in [404, 0, 412, 204] { talk.hear(status) }
        #expect(talk.machine.knowledge.lacksConditions == false)
    }

    @Test(arguments: [403, 405, 400, 404]) func `a key that may not store the probe sends the photo with the condition`(
        _ status: Int
    ) {
        var talk = Dialogue(plan())
        for status in [404, status, status, 200] { talk.hear(status) }
        #expect(talk.lines.last == "PUT \(key) 0+100" && talk.header("If-None-Match") == "*")
        #expect(talk.machine.knowledge.lacksConditions == nil && talk.machine.remark == nil)
        // The upload of the photo shows that the bucket does not support conditions.
        talk = Dialogue(plan())
        for status in [404, status, status] { talk.hear(status) }
        talk.hear(501, [:], "<Error><Code>NotImplemented</Code></Error>")
        for status in [404, 200] { talk.hear(status) }
        #expect(talk.lines.last == "PUT \(marked) 0+100" && talk.machine.knowledge.lacksConditions == true)
    }

    @Test(arguments: [204, 403, 404, 405, 500, 503]) func `the removal of the probe delays no photo`(_ status: Int) {
        var talk = Dialogue(plan())
        for status in [404, 200, 412, status] { talk.hear(status) }
        #expect(talk.outcome == .continue)
        talk.hear(200)
        #expect(talk.lines.last == "PUT \(key) 0+100")
    }

    @Test(arguments: [500, 503, 429]) func `trouble of the server is waited out`(_ status: Int) {
        for answers in [[404], [404, 200]] {
            var talk = Dialogue(plan())
            for answer in answers { talk.hear(answer) }
            talk.hear(status)
            guard case .retry = talk.outcome else {
                Issue.record("\(talk.outcome as Any)")
                return
            }
            talk.hear(412)
            talk.hear(204)
            talk.hear(200)
            #expect(talk.lines.last == "PUT \(key) 0+100" && talk.machine.knowledge.lacksConditions == false)
        }
    }

    @Test func `a captive portal does not decide whether a bucket supports conditions`() {
        var talk = Dialogue(plan(url: "http://s3.example"))
        talk.hear(404)
        for _ in 0..<3 { talk.hear(200, ["Content-Type": "text/html"]) }
        #expect(talk.machine.knowledge.lacksConditions == nil)
        // If a bucket marks its empty responses as HTML, as moto does, the entity tag identifies them.
        talk = Dialogue(plan(url: "http://s3.example"))
        talk.hear(404)
        for _ in 0..<3 { talk.hear(200, ["Content-Type": "text/html", "ETag": "\"1\""]) }
        #expect(talk.machine.knowledge.lacksConditions == true)
    }

    @Test func `wrong credentials end the upload at the probe`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(403, [:], "<Error><Code>SignatureDoesNotMatch</Code></Error>")
        #expect(talk.message?.contains("credentials") == true)
    }

    @Test func `a photo that is already there needs no probe`() {
        var talk = Dialogue(plan())
        talk.hear(200, ["Content-Length": "100", "x-amz-meta-sha256": digest])
        #expect(talk.lines.count == 1 && talk.outcome == .finished(remoteURL: key))
    }

    @Test(arguments: ["ListPartsResult", "ListPartsResponse"]) func `the list of parts of Amazon and of moto is read`(
        _ name: String
    ) {
        var talk = Dialogue(plan(6 << 20), resuming: UploadMemory(step: .append, place: "u", creations: 1))
        talk.hear(200, [:], "<\(name)><Part><PartNumber>1</PartNumber><ETag>a</ETag><Size>\(5 << 20)</Size></Part></\(name)>")
        talk.hear(200, ["ETag": "b"])
        #expect(talk.lines.last == "PUT \(key)?partNumber=2&uploadId=u 5242880+1048576")
    }

    @Test func `an abandoned upload removes its probe`() {
        var talk = Dialogue(plan())
        for status in [404, 200] { talk.hear(status) }
        #expect(talk.machine.removal?.method == "DELETE" && talk.machine.removal?.url == probe)
    }
}
