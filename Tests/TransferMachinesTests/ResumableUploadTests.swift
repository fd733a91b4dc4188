import Foundation
import Testing

@testable import TransferMachines

/// Tests each requirement of draft-ietf-httpbis-resumable-upload.
@Suite struct ResumableUploadTests {
    private func plan(_ size: Int64 = 100, _ knowledge: ServerKnowledge = ServerKnowledge()) -> UploadPlan {
        var plan = UploadPlan(
            kind: .resumable, collectionURL: "https://h/up", fileName: "noon.jpg", byteCount: size, token: "t",
            headers: [HeaderField("Upload-Offset", "9")], contentType: "image/jpeg")
        plan.knowledge = knowledge
        return plan
    }

    private let made = ["Location": "/p/1", "Upload-Complete": "?0", "Upload-Offset": "0"]

    @Test func `an upload is created and then appended`() {
        var talk = Dialogue(plan())
        talk.hear(201, made)
        #expect(talk.header("Upload-Draft-Interop-Version") == "8" && talk.header("Upload-Complete") == "?0")
        #expect(talk.header("Upload-Length") == "100" && talk.header("Content-Type") == "image/jpeg")
        talk.hear(200, ["Upload-Complete": "?1"])
        #expect(talk.header("Content-Type") == "application/partial-upload" && talk.header("Upload-Complete") == "?1")
        #expect(talk.requests.last?.headers.filter { $0.name == "Upload-Offset" }.map(\.value) == ["0"])
        #expect(talk.lines == ["POST https://h/up", "PATCH https://h/p/1 0+100"])
        #expect(talk.outcome == .finished(remoteURL: "https://h/p/1"))
    }

    @Test func `a complete upload with another offset is not believed`() {
        var talk = Dialogue(plan())
        talk.hear(201, made)
        talk.hear(200, ["Upload-Complete": "?1", "Upload-Offset": "40"])
        guard case .retry(_, let trouble) = talk.outcome else { Issue.record("\(String(describing: talk.outcome))"); return }
        #expect(trouble.message.contains("accepted a part as the complete file"))
        var complete = Dialogue(plan())
        complete.hear(201, made)
        complete.hear(200, ["Upload-Complete": "?1", "Upload-Offset": "100"])
        #expect(complete.outcome == .finished(remoteURL: "https://h/p/1") && complete.machine.proof == .length)
    }

    /// Tests the headers of each version of the draft, and the order in which the versions are tried.
    @Test func `older versions of the draft are tried after a refusal`() {
        var talk = Dialogue(plan())
        talk.hear(400)
        talk.hear(200)
        #expect(talk.header("Upload-Draft-Interop-Version") == "6")
        talk.hear(400, ["Upload-Draft-Interop-Version": "3"])
        talk.hear(201, ["Location": "https://h/p/1", "Upload-Incomplete": "?1"])
        #expect(talk.header("Upload-Draft-Interop-Version") == "3" && talk.header("Upload-Incomplete") == "?1")
        #expect(talk.header("Upload-Length") == nil)
        #expect(talk.machine.knowledge.resumableVersion == 3)
        talk.hear(200, ["Upload-Incomplete": "?0"])
        #expect(talk.header("Upload-Incomplete") == "?0" && talk.header("Content-Type") == "application/octet-stream")
        #expect(talk.outcome == .finished(remoteURL: "https://h/p/1"))
    }

    @Test func `a known version is used for the next upload`() {
        var knowledge = ServerKnowledge()
        knowledge.resumableVersion = 5
        var talk = Dialogue(plan(100, knowledge))
        talk.hear(201, made)
        #expect(talk.header("Upload-Draft-Interop-Version") == "5")
    }

    /// Apple's server receives the newer header, and responds with the older header.
    @Test func `the completion header of another version is read`() {
        var talk = Dialogue(plan())
        talk.hear(201, made)
        talk.hear(200, ["Upload-Incomplete": "?0"])
        #expect(talk.outcome == .finished(remoteURL: "https://h/p/1"))
    }

    @Test func `an address in a 104 response is stored at once`() {
        var machine = UploadMachine(plan: plan())
        _ = machine.next()
        func said(_ version: String, _ place: String) -> ResponseHead {
            ResponseHead(
                status: 104,
                headers: [HeaderField("Upload-Draft-Interop-Version", version), HeaderField("Location", place)], url: "")
        }
        #expect(machine.received(said("7", "/p/1")) == nil, "another version's")
        #expect(
            machine.received(said("8", "http://h/p/1"))
                == UploadMemory(step: .ask, place: "https://h/p/1", creations: 1, version: 8)
        )
        #expect(machine.received(said("8", "/p/2")) == nil, "the upload already has an address")
    }

    @Test func `the offset of the server decides where the upload continues`() {
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .append, place: "https://h/p/1", creations: 1, version: 6))
        talk.hear(204, ["Upload-Offset": "40", "Upload-Complete": "?0"])
        talk.hear(0)
        talk.hear(204, ["Upload-Offset": "70", "Upload-Complete": "?0", "Upload-Limit": "max-append-size=20, max-age=5"])
        talk.hear(201, ["Upload-Offset": "90"])
        #expect(talk.header("Upload-Complete") == "?0")
        talk.hear(200, ["Upload-Complete": "?1"])
        #expect(
            talk.lines == [
                "HEAD https://h/p/1", "PATCH https://h/p/1 40+60", "HEAD https://h/p/1", "PATCH https://h/p/1 70+20",
                "PATCH https://h/p/1 90+10",
            ])
        #expect(talk.outcome == .finished(remoteURL: "https://h/p/1"))
    }

    @Test func `an upload whose bytes are all there is completed by an empty append`() {
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .append, place: "https://h/p/1", creations: 1, version: 8))
        talk.hear(204, ["Upload-Offset": "100", "Upload-Complete": "?0"])
        talk.hear(200, ["Upload-Complete": "?1"])
        #expect(talk.lines.last == "PATCH https://h/p/1")
        #expect(talk.outcome == .finished(remoteURL: "https://h/p/1"))
    }

    @Test(arguments: ["", "?1", "-1", "101", "1.5", "999999999999999999999", "\"5\""])
    func `an invalid offset leads to a new upload`(_ text: String) {
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .append, place: "https://h/p/1", creations: 1, version: 8))
        talk.hear(204, ["Upload-Offset": text])
        talk.hear(201, made)
        #expect(talk.lines.last == "POST https://h/up")
    }

    /// The response comes from a proxy or a captive portal between this computer and the server.
    @Test(arguments: [200, 307, 400, 401, 403, 404, 405, 407, 410])
    func `another program's response does not mean that the place is gone`(_ status: Int) {
        let memory = UploadMemory(step: .append, place: "https://h/p/1", creations: 1, version: 8)
        var talk = Dialogue(plan(), resuming: memory)
        for _ in 0..<3 {
            talk.hear(status, ["Content-Type": "text/html", "Location": "/login"])
            if status == 307 { talk.hear(404) }
        }
        talk.hear(204, ["Upload-Offset": "100", "Upload-Complete": "?1"])
        #expect(
            talk.outcome == .finished(remoteURL: "https://h/p/1") && !talk.lines.contains { $0.hasPrefix("POST") },
            "\(talk.lines)")
        talk = Dialogue(plan(), resuming: memory)
        for _ in 0..<4 { talk.hear(404) }
        talk.hear(201, made)
        #expect(talk.lines.filter { $0.hasPrefix("HEAD") }.count == 4 && talk.lines.last == "POST https://h/up", "\(talk.lines)")
    }

    /// The server received the complete file and refused it. The server's refusal is not a fault of the network, and not a
    /// success.
    @Test(arguments: [404, 413, 422, 500, 503]) func `a refusal after the complete file is final`(_ status: Int) {
        var talk = Dialogue(plan())
        talk.hear(201, made)
        talk.hear(status, ["Upload-Complete": "?1"])
        #expect(talk.message == "The server received the complete file and refused it (status \(status)).")
    }

    /// A repeated append request finds that the upload is already complete.
    @Test func `a conflict at a complete upload is checked and counts as success`() {
        var talk = Dialogue(plan())
        talk.hear(201, made)
        talk.hear(409, ["Upload-Complete": "?1", "Upload-Offset": "100"])
        talk.hear(204, ["Upload-Complete": "?1", "Upload-Offset": "100"])
        #expect(talk.outcome == .finished(remoteURL: "https://h/p/1"))
    }

    @Test func `an upload continues at the address of a 104 after a lost response`() {
        var machine = UploadMachine(plan: plan())
        _ = machine.next()
        let said = [HeaderField("Upload-Draft-Interop-Version", "8"), HeaderField("Location", "/p/1")]
        _ = machine.received(ResponseHead(status: 104, headers: said, url: ""))
        let lost = WireEnd(head: nil, failure: .connectionLost, bytesSent: 0, bytesReceived: 0)
        _ = machine.ended(lost, now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 0, jitter: 0)
        guard case .send(let request, _, _) = machine.next() else {
            Issue.record("nothing")
            return
        }
        #expect(request.method == "HEAD" && request.url == "https://h/p/1")
    }

    @Test func `a file that is too large fails before it is sent`() {
        var talk = Dialogue(plan())
        talk.hear(201, made.merging(["Upload-Limit": "max-size=99"]) { $1 })
        #expect(talk.message?.contains("99 bytes") == true)
    }

    @Test func `a 413 makes the requests smaller`() {
        var talk = Dialogue(plan(100 << 20))
        talk.hear(201, made)
        talk.hear(413)
        talk.hear(204, ["Upload-Offset": "0"])
        talk.hear(201, ["Upload-Offset": "\(64 << 20)"])
        #expect(talk.lines.last == "PATCH https://h/p/1 0+\(64 << 20)" && talk.machine.knowledge.requestBytes == 64 << 20)
    }

    /// For the statuses 307 and 308, the method is kept. Credentials are sent only to the server to which they belong.
    @Test(arguments: [307, 308]) func `a redirect keeps the method, and credentials stay with their server`(_ status: Int) {
        var plan = plan()
        plan.headers.append(HeaderField("Authorization", "Bearer s"))
        var talk = Dialogue(plan)
        talk.hear(status, ["Location": "/other"])
        talk.hear(status, ["Location": "https://elsewhere/up"])
        #expect(talk.header("Authorization") == "Bearer s")
        talk.hear(201, ["Location": "p/1", "Upload-Complete": "?0"])
        #expect(talk.header("Authorization") == nil)
        talk.hear(status, ["Location": "https://h/p/2"])
        talk.hear(204, ["Upload-Offset": "40", "Upload-Complete": "?0"])
        #expect(talk.header("Authorization") == "Bearer s")
        talk.hear(200, ["Upload-Complete": "?1"])
        #expect(talk.memory?.place == "https://h/p/2", "a new process continues the upload at this address")
        #expect(
            talk.lines == [
                "POST https://h/up", "POST https://h/other", "POST https://elsewhere/up", "PATCH https://elsewhere/p/1 0+100",
                "HEAD https://h/p/2", "PATCH https://h/p/2 40+60",
            ])
        #expect(talk.outcome == .finished(remoteURL: "https://h/p/2"))
    }

    @Test(arguments: ["ftp://h/up", "http://elsewhere/up", ""])
    func `a redirect to an insecure or invalid address is not followed`(_ location: String) {
        var talk = Dialogue(plan())
        talk.hear(307, ["Location": location])
        guard case .retry(_, let trouble)? = talk.outcome else { Issue.record("\(talk.lines)"); return }
        #expect(trouble.message.hasPrefix("The server redirects to "))
        #expect(talk.lines == ["POST https://h/up"])
    }

    @Test func `a circle of redirects is retried later`() {
        var talk = Dialogue(plan())
        for _ in 0..<100 {
            talk.hear(308, ["Location": "/up"])
            guard case .continue = talk.outcome else { break }
        }
        guard case .retry = talk.outcome else {
            Issue.record("\(String(describing: talk.outcome))")
            return
        }
    }

    @Test func `the digest of the complete file is sent at the start`() {
        var plan = plan()
        plan.sha256 = String(repeating: "00", count: 32)
        plan.headers = [HeaderField("Repr-Digest", "sha-256=:mine:")]
        var talk = Dialogue(plan)
        talk.hear(201, made)
        #expect(
            talk.requests.last?.headers.filter { $0.name == "Repr-Digest" }.map(\.value)
                == ["sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"])
    }

    @Test func `an abandoned upload is removed from the server`() {
        var talk = Dialogue(plan())
        #expect(talk.machine.removal == nil)
        talk.hear(201, made)
        #expect(talk.machine.removal?.method == "DELETE" && talk.machine.removal?.url == "https://h/p/1")
    }
}
