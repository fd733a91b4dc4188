import Foundation
import Testing

@testable import TransferMachines

private let now = Date(timeIntervalSince1970: 1_800_000_000)

/// Tests each requirement of tus 1.0.0.
@Suite struct TusUploadTests {
    private func plan(_ byteCount: Int64 = 100, url: String = "https://h/files/", sha256: String? = nil) -> UploadPlan {
        UploadPlan(
            kind: .tus, collectionURL: url, fileName: "noon 12:00.jpg", byteCount: byteCount, token: "t",
            headers: [HeaderField("Authorization", "x"), HeaderField("Upload-Offset", "77")], contentType: "image/jpeg",
            sha256: sha256)
    }

    /// Passes responses to an upload. Returns the requests as lines and the outcome of the last response.
    private func play(
        _ machine: inout UploadMachine, _ answers: [(Int, [String: String])]
    ) -> (lines: [String], requests: [WireRequest], outcome: UploadOutcome?) {
        var lines: [String] = []
        var requests: [WireRequest] = []
        var outcome: UploadOutcome?
        for (status, headers) in answers {
            guard case .send(let request, let content, _) = machine.next() else { break }
            requests.append(request)
            var line = "\(request.method) \(request.url)"
            var sent: Int64 = 0
            if case .snapshot(let from, let count) = content {
                line += " \(from)+\(count)"
                sent = count
            }
            lines.append(line)
            let head = ResponseHead(status: status, headers: headers.map { HeaderField($0.key, $0.value) }, url: "")
            let end = WireEnd(
                head: status == 0 ? nil : head, failure: status == 0 ? .connectionLost : nil, bytesSent: sent, bytesReceived: 0)
            outcome = machine.ended(end, now: now, attemptsWithoutProgress: 0, jitter: 0.5)
        }
        return (lines, requests, outcome)
    }

    private let options = (204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,checksum,termination"])
    private func made(_ place: String = "https://h/files/1") -> (Int, [String: String]) { (201, ["Location": place]) }
    private func at(_ offset: Int, _ status: Int = 204) -> (Int, [String: String]) { (status, ["Upload-Offset": "\(offset)"]) }

    @Test func `an upload is created, sent and checked`() {
        var machine = UploadMachine(plan: plan())
        let (lines, requests, outcome) = play(&machine, [options, made(), at(100), at(100, 200)])
        #expect(
            lines == [
                "OPTIONS https://h/files/", "POST https://h/files/", "PATCH https://h/files/1 0+100", "HEAD https://h/files/1",
            ])
        #expect(outcome == .finished(remoteURL: "https://h/files/1") && machine.proof == .length)
        #expect(!requests[0].headers.contains { $0.name == "Tus-Resumable" })
        #expect(requests[1].headers.contains(HeaderField("Tus-Resumable", "1.0.0")))
        #expect(requests[1].headers.contains(HeaderField("Upload-Length", "100")))
        let metadata = requests[1].headers.first { $0.name == "Upload-Metadata" }?.value
        #expect(metadata == "filename bm9vbiAxMjowMC5qcGc=,filetype aW1hZ2UvanBlZw==")
        #expect(requests[2].headers.contains(HeaderField("Content-Type", "application/offset+octet-stream")))
        // A configured header must not replace a header of the protocol.
        #expect(requests[2].headers.filter { $0.name == "Upload-Offset" } == [HeaderField("Upload-Offset", "0")])
        #expect(requests.allSatisfy { $0.maximumRedirects == 0 && $0.headers.contains(HeaderField("Authorization", "x")) })
    }

    @Test(arguments: [
        ("1", "https://h/files/1"), ("/up/1?k=v", "https://h/up/1?k=v"), ("//h/up/1", "https://h/up/1"),
        // The server is behind a proxy that terminates TLS.
        ("http://h/files/1", "https://h/files/1"), ("http://h:8080/files/1", "https://h/files/1"),
    ]) func `every form of an upload address is read`(_ location: String, _ place: String) {
        var machine = UploadMachine(plan: plan())
        #expect(play(&machine, [options, made(location), at(50)]).lines.last == "PATCH \(place) 0+100")
    }

    @Test(arguments: ["", "http://other/1", "file:///etc/passwd", "ftp://h/1"])
    func `an invalid upload address is refused`(_ location: String) {
        var machine = UploadMachine(plan: plan())
        guard case .fail = play(&machine, [options, made(location)]).outcome else {
            Issue.record("taken")
            return
        }
    }

    /// The password must be sent only to the configured server.
    @Test func `another server does not receive the password`() {
        var machine = UploadMachine(plan: plan())
        let requests = play(&machine, [options, made("https://store/1"), at(100)]).requests
        #expect(requests[2].url == "https://store/1")
        #expect(!requests[2].headers.contains { $0.name == "Authorization" })
    }

    /// A server may store a file under the path of the request that created the upload.
    @Test func `the address of an upload can contain the file name`() {
        let digest = String(repeating: "ab", count: 32)
        var machine = UploadMachine(plan: plan(url: "https://h/.tus/p/%7Bname%7D", sha256: digest))
        let (lines, requests, outcome) = play(&machine, [options, made("/.tus/u/1"), at(100), at(100, 200)])
        #expect(
            lines == [
                "OPTIONS https://h/.tus/p/", "POST https://h/.tus/p/noon%2012%3A00-abababab.jpg",
                "PATCH https://h/.tus/u/1 0+100", "HEAD https://h/.tus/u/1",
            ])
        #expect(requests.allSatisfy { $0.headers.contains(HeaderField("Authorization", "x")) })
        #expect(outcome == .finished(remoteURL: "https://h/.tus/u/1"))
    }

    @Test func `the offset is requested after a lost connection`() {
        var machine = UploadMachine(plan: plan())
        let (lines, _, outcome) = play(&machine, [options, made(), (0, [:]), at(40, 200), at(100), at(100, 200)])
        #expect(lines.suffix(3) == ["HEAD https://h/files/1", "PATCH https://h/files/1 40+60", "HEAD https://h/files/1"])
        #expect(outcome == .finished(remoteURL: "https://h/files/1"))
    }

    @Test func `a new process requests the offset first`() {
        let memory = UploadMemory(step: .append, place: "https://h/files/1", creations: 1)
        var machine = UploadMachine(plan: plan(), resuming: memory)
        #expect(play(&machine, [at(99, 200), at(100)]).lines == ["HEAD https://h/files/1", "PATCH https://h/files/1 99+1"])
        // The last response was lost. The server already has all bytes of the file.
        machine = UploadMachine(plan: plan(), resuming: memory)
        #expect(play(&machine, [at(100, 200)]).outcome == .finished(remoteURL: "https://h/files/1"))
    }

    @Test(arguments: [409, 423, 460]) func `a conflict about the offset is resolved by the offset of the server`(_ status: Int) {
        var machine = UploadMachine(plan: plan())
        let (lines, _, outcome) = play(&machine, [options, made(), (status, [:]), at(10, 200), at(100), at(100, 200)])
        #expect(lines.suffix(3) == ["HEAD https://h/files/1", "PATCH https://h/files/1 10+90", "HEAD https://h/files/1"])
        #expect(outcome == .finished(remoteURL: "https://h/files/1"))
    }

    @Test func `the offset of the server counts, also if it is less than was sent`() {
        var machine = UploadMachine(plan: plan())
        #expect(play(&machine, [options, made(), at(30), at(100)]).lines.last == "PATCH https://h/files/1 30+70")
    }

    @Test(arguments: [404, 410, 403]) func `an upload address that is gone is replaced a limited number of times`(_ status: Int) {
        var machine = UploadMachine(plan: plan())
        var answers = [options]
        for _ in 0..<UploadPlace.maximumCreations { answers += [made(), (status, ["Tus-Resumable": "1.0.0"])] }
        let (lines, _, outcome) = play(&machine, answers)
        #expect(lines.filter { $0.hasPrefix("POST") }.count == UploadPlace.maximumCreations)
        guard case .fail(let trouble) = outcome else {
            Issue.record("\(outcome as Any)")
            return
        }
        #expect(trouble.message.contains("discarded"))
    }

    @Test func `a response without a valid offset or of another file leads to a new upload`() {
        for headers in [
            ["Tus-Resumable": "1.0.0"], ["Upload-Offset": "-1"], ["Upload-Offset": "101"],
            ["Upload-Offset": "5", "Upload-Length": "99"],
        ] {
            var machine = UploadMachine(
                plan: plan(), resuming: UploadMemory(step: .append, place: "https://h/files/1", creations: 1))
            #expect(play(&machine, [(200, headers), made()]).lines.last == "POST https://h/files/")
        }
    }

    /// The response comes from a proxy or a captive portal between this computer and the server.
    @Test(arguments: [200, 400, 401, 403, 404, 405, 407, 410])
    func `another program's response does not mean that the place is gone`(
        _ status: Int
    ) {
        let memory = UploadMemory(step: .append, place: "https://h/files/1", creations: 1)
        var machine = UploadMachine(plan: plan(), resuming: memory)
        let foreign = (status, ["Content-Type": "text/html"])
        let (lines, _, outcome) = play(&machine, [foreign, foreign, foreign, at(100, 200)])
        #expect(lines == Array(repeating: "HEAD https://h/files/1", count: 4))
        #expect(outcome == .finished(remoteURL: "https://h/files/1"))
        machine = UploadMachine(plan: plan(), resuming: memory)
        let looks = play(&machine, Array(repeating: foreign, count: 9)).lines.filter { $0.hasPrefix("HEAD") }.count
        // The protocol does not define the meaning of the status 400.
        #expect(looks == (status == 400 ? 9 : 4))
    }

    @Test(arguments: [403, 404, 410]) func `a refused part is checked before a second upload is created`(_ status: Int) {
        var machine = UploadMachine(plan: plan())
        let (lines, _, outcome) = play(&machine, [options, made(), (status, [:]), at(100, 200)])
        #expect(lines.suffix(2) == ["PATCH https://h/files/1 0+100", "HEAD https://h/files/1"])
        #expect(outcome == .finished(remoteURL: "https://h/files/1"))
    }

    @Test func `a file that is too large fails before it is sent`() {
        var machine = UploadMachine(plan: plan())
        guard case .fail(let trouble) = play(&machine, [(204, ["Tus-Version": "1.0.0", "Tus-Max-Size": "99"])]).outcome
        else {
            Issue.record("sent")
            return
        }
        #expect(trouble.message.contains("99 bytes"))
    }

    @Test func `another version of the protocol is an error`() {
        var machine = UploadMachine(plan: plan())
        guard case .fail(let trouble) = play(&machine, [(204, ["Tus-Version": "0.2.2"])]).outcome else {
            Issue.record("")
            return
        }
        #expect(trouble.message.contains("0.2.2"))
        machine = UploadMachine(plan: plan())
        guard case .fail(let late) = play(&machine, [(405, [:]), (412, ["Tus-Version": "2.0.0"])]).outcome else {
            Issue.record("")
            return
        }
        #expect(late.message.contains("2.0.0"))
    }

    /// A proxy limits the size of requests.
    @Test func `a 413 makes the requests smaller`() {
        var machine = UploadMachine(plan: plan(100 << 20))
        let (lines, _, _) = play(
            &machine, [options, made(), (413, [:]), at(0, 200), (413, [:]), at(0, 200), at(16 << 20), at(32 << 20)])
        let pieces = lines.filter { $0.hasPrefix("PATCH") }
        #expect(pieces[1] == "PATCH https://h/files/1 0+\(64 << 20)")
        #expect(pieces[2] == "PATCH https://h/files/1 0+\(16 << 20)")
        #expect(pieces[3] == "PATCH https://h/files/1 \(16 << 20)+\(16 << 20)")
    }

    /// If a server stores a part of a request that was cut off, the upload continues to send large requests to this server.
    @Test(arguments: [(0, 1 << 20), (5 << 20, 95 << 20)])
    func `requests become small if the server keeps nothing of a cut request`(_ kept: Int, _ next: Int) {
        var machine = UploadMachine(plan: plan(100 << 20))
        _ = play(&machine, [options, made()])
        _ = machine.next()
        let cut = WireEnd(head: nil, failure: .connectionLost, bytesSent: 9 << 20, bytesReceived: 0)
        _ = machine.ended(cut, now: now, attemptsWithoutProgress: 0, jitter: 0)
        #expect(play(&machine, [at(kept, 200), at(kept + 1)]).lines.last == "PATCH https://h/files/1 \(kept)+\(next)")
    }

    @Test func `a checksum is sent only for small files and only if the server verifies it`() {
        let digest = String(repeating: "ab", count: 32)
        let checked = (
            204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation,checksum", "Tus-Checksum-Algorithm": "md5,sha256"]
        )
        func sum(_ byteCount: Int64, _ options: (Int, [String: String])) -> HeaderField? {
            var machine = UploadMachine(plan: plan(byteCount, sha256: digest))
            return play(&machine, [options, made(), at(1)]).requests.last?.headers.first { $0.name == "Upload-Checksum" }
        }
        let value = Data(repeating: 0xAB, count: 32).base64EncodedString()
        #expect(sum(100, checked) == HeaderField("Upload-Checksum", "sha256 \(value)"))
        #expect(sum(100, options) == nil)
        // If a large request were cut off, the server would discard all bytes of this request.
        #expect(sum(100 << 20, checked) == nil)
    }

    @Test func `an empty file is complete after its creation`() {
        var machine = UploadMachine(plan: plan(0))
        #expect(play(&machine, [options, made(), at(0, 200)]).outcome == .finished(remoteURL: "https://h/files/1"))
    }

    // MARK: The end

    /// In the protocol, 403, 404 and 410 mean that the server no longer has the upload. SeaweedFS sends 404 for every complete
    /// upload.
    @Test(arguments: [403, 404, 405, 410, 501])
    func `a server that does not show a complete upload is believed, with the response as proof`(_ status: Int) {
        var machine = UploadMachine(plan: plan())
        let (lines, _, outcome) = play(&machine, [options, made(), at(100), (status, [:])])
        #expect(outcome == .finished(remoteURL: "https://h/files/1") && machine.proof == .answer)
        #expect(lines.filter { $0.hasPrefix("PATCH") }.count == 1)
    }

    /// A request for the URL of a complete upload may return the file itself.
    @Test func `a complete upload without an offset is believed, with the response as proof`() {
        var machine = UploadMachine(plan: plan())
        let outcome = play(&machine, [options, made(), at(100), (200, ["Content-Length": "100"])]).outcome
        #expect(outcome == .finished(remoteURL: "https://h/files/1") && machine.proof == .answer)
    }

    @Test func `an offset that is a moment late is requested again`() {
        var machine = UploadMachine(plan: plan())
        guard case .retry? = play(&machine, [options, made(), at(100), at(60, 200)]).outcome else {
            Issue.record("not asked again")
            return
        }
        guard case .retry? = play(&machine, [(503, [:])]).outcome else { Issue.record("given up"); return }
        let (lines, _, outcome) = play(&machine, [at(100, 200)])
        #expect(lines == ["HEAD https://h/files/1"] && outcome == .finished(remoteURL: "https://h/files/1"))
    }

    @Test func `the rest is sent again if the server has less than it reported`() {
        var machine = UploadMachine(plan: plan())
        _ = play(&machine, [options, made(), at(100), at(60, 200), at(60, 200), at(60, 200), at(60, 200)])
        #expect(machine.storedBytes == 60)
        let (lines, _, outcome) = play(&machine, [at(100), at(100, 200)])
        #expect(lines == ["PATCH https://h/files/1 60+40", "HEAD https://h/files/1"])
        #expect(outcome == .finished(remoteURL: "https://h/files/1"))
    }

    @Test func `an upload whose place has another file at the end is sent again`() {
        var machine = UploadMachine(plan: plan())
        let another = (200, ["Upload-Offset": "7", "Upload-Length": "7"])
        let (lines, _, _) = play(&machine, [options, made(), at(100), another, made("/files/2")])
        #expect(lines.last == "POST https://h/files/")
    }

    /// The upload may be missing on the server because it is complete. The file is therefore not sent a second time.
    @Test func `a process that ends after the last response only looks at the upload`() {
        let memory = UploadMemory(step: .check, place: "https://h/files/1", creations: 1)
        var machine = UploadMachine(plan: plan(), resuming: memory)
        #expect(machine.storedBytes == 100)
        let (lines, _, outcome) = play(&machine, [(404, [:])])
        #expect(lines == ["HEAD https://h/files/1"] && outcome == .finished(remoteURL: "https://h/files/1"))
    }

    @Test func `a captive portal page does not count as a response about a complete upload`() {
        var talk = Dialogue(plan(url: "http://h/files/"), suspects: true)
        talk.hear(204, options.1)
        talk.hear(201, ["Location": "http://h/files/1"])
        talk.hear(204, ["Upload-Offset": "100"])
        #expect(talk.memory?.step == .append)
        talk.hear(200, ["Content-Type": "text/html"])
        #expect(talk.suspects && talk.memory?.step == .check)
        talk.hear(200, ["Upload-Offset": "100", "Upload-Length": "100"])
        #expect(talk.outcome == .finished(remoteURL: "http://h/files/1") && talk.machine.proof == .length)
    }

    @Test func `a cancelled upload is removed if the server supports it`() {
        var machine = UploadMachine(plan: plan())
        #expect(machine.removal == nil)
        _ = play(&machine, [options, made()])
        #expect(machine.removal?.method == "DELETE" && machine.removal?.url == "https://h/files/1")
        machine = UploadMachine(plan: plan())
        _ = play(&machine, [(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation"]), made()])
        #expect(machine.removal == nil)
    }

    @Test(arguments: [401, 413, 415]) func `a final status at the creation ends the upload`(_ status: Int) {
        var machine = UploadMachine(plan: plan())
        guard case .fail = play(&machine, [options, (status, [:])]).outcome else {
            Issue.record("\(status)")
            return
        }
        #expect(machine.next() == machine.next())
    }
}
