import Foundation
import Testing

@testable import TransferMachines

private let now = Date(timeIntervalSince1970: 1_800_000_000)

@Suite struct FormUploadTests {
    private func plan(name: String = "noon.jpg", field: String = "file") -> UploadPlan {
        UploadPlan(
            kind: .multipart, collectionURL: "https://me:pw@h/up?album=1", fileName: name, byteCount: 10, token: "a-b_c1",
            headers: [HeaderField("Authorization", "x")], contentType: "image/jpeg", field: field)
    }

    private func form(_ plan: UploadPlan) -> (request: WireRequest, text: String, length: Int64) {
        guard case .send(let request, .wrapped(let before, let after), _) = FormUpload(plan: plan).next()
        else {
            Issue.record("no form")
            return (WireRequest(method: "", url: ""), "", 0)
        }
        let text = String(decoding: before, as: UTF8.self) + "<photo>" + String(decoding: after, as: UTF8.self)
        return (request, text, Int64(before.count + after.count) + plan.order.byteCount)
    }

    @Test func `a form is written as a browser writes it`() {
        let (request, text, _) = form(plan())
        #expect(request.method == "POST" && request.url == "https://me:pw@h/up?album=1")
        #expect(request.headers.contains(HeaderField("Content-Type", "multipart/form-data; boundary=----stormy-abc1")))
        #expect(request.headers.contains(HeaderField("Idempotency-Key", "\"abc1\"")))
        #expect(
            text
                == "------stormy-abc1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"noon.jpg\"\r\n"
                + "Content-Type: image/jpeg\r\n\r\n<photo>\r\n------stormy-abc1--\r\n")
    }

    @Test(arguments: [
        ("a\"b.jpg", "a%22b.jpg"), ("a\r\nX-Evil: 1.jpg", "a__X-Evil: 1.jpg"), ("../etc/passwd", ".._etc_passwd"), ("..", "__"),
        ("Ä🌩.jpg", "Ä🌩.jpg"),
    ]) func `names with special characters are escaped in a form`(_ name: String, _ written: String) {
        #expect(form(plan(name: name)).text.contains("filename=\"\(written)\"\r\n"))
        #expect(form(plan(field: name)).text.components(separatedBy: "\r\n").count == 7)
    }

    private func end(_ status: Int, sent: Int64, _ headers: [String: String] = [:]) -> WireEnd {
        let head = ResponseHead(status: status, headers: headers.map { HeaderField($0.key, $0.value) }, url: "")
        return WireEnd(
            head: status == 0 ? nil : head, failure: status == 0 ? .connectionLost : nil, bytesSent: sent, bytesReceived: 0)
    }

    private func outcome(_ end: WireEnd) -> UploadOutcome {
        var machine = UploadMachine(plan: plan())
        return machine.ended(end, now: now, attemptsWithoutProgress: 0, jitter: 0.5)
    }

    /// A script can respond with status 200 to a file that it did not store.
    @Test(arguments: [
        (#"{"success":false,"error":"quota exceeded"}"#, "quota exceeded"), (#"{"ok":false}"#, nil),
        (#"{"status":"error","message":"file type not allowed"}"#, "file type not allowed"), (#"{"error":"denied"}"#, "denied"),
        (#"{"errors":["too large"]}"#, "too large"), (#"{"error":{"code":5}}"#, nil), (#"{"success":"false"}"#, nil),
        (#"{"success":0,"message":"file too big"}"#, "file too big"), (#"{"ok":0}"#, nil),
        (#"{"error":1,"message":"file too big"}"#, "file too big"), (#"{"status":false,"message":"no","data":{}}"#, "no"),
        (#"{"status":400,"message":"no"}"#, "no"), (#"{"errors":"denied"}"#, "denied"),
        (#"[{"success":false,"error":"no"}]"#, "no"),
        (#"{"files":[{"name":"a.jpg","size":9,"error":"File type not allowed"}]}"#, "File type not allowed"),
        (#"{"Success":false,"Message":"disk full"}"#, "disk full"), (#"{"result":"error"}"#, nil),
        ("<Error><Code>A</Code><Message>denied</Message></Error>", "denied"),
        (#"<rsp stat="fail"><err code="5" msg="Filetype was not recognised"/></rsp>"#, "Filetype was not recognised"),
    ]) func `a successful response that contains a refusal is a failure`(_ body: String, _ reason: String?) {
        var end = end(200, sent: 1_000)
        end.body = Data(body.utf8)
        guard case .fail(let trouble) = outcome(end) else { return #expect(Bool(false), "\(outcome(end))") }
        #expect(trouble.message.hasSuffix(reason.map { "did not store the file: \($0)" } ?? "did not store the file."))
    }

    @Test(arguments: [
        "", "ok", #"{"success":true,"errors":[]}"#, #"{"status":"ok","error":null}"#, #"{"error":""}"#, #"{"id":7}"#, "[1]",
        #"{"success":true,"error":"none"}"#, #"{"success":1,"errors":{"count":1}}"#, #"{"status":0,"msg":"ok"}"#,
        #"{"errors":{"a.jpg":null},"status":"ok"}"#, #"{"files":[{"name":"a.jpg","url":"/a.jpg"}]}"#,
        #"{"error":0,"url":"/a.jpg"}"#,
        #"<rsp stat="ok"><photoid>7</photoid></rsp>"#, "<html><h1>Thank you</h1></html>",
    ]) func `a response without a refusal completes the upload`(_ body: String) {
        var end = end(200, sent: 1_000)
        end.body = Data(body.utf8)
        guard case .finished = outcome(end) else { return #expect(Bool(false), "\(outcome(end))") }
    }

    /// The server may need minutes to process a photo before it responds. The server may store each copy that is sent again.
    @Test(arguments: [false, true]) func `a form without a response is sent three times at most`(_ isRestarted: Bool) throws {
        var talk = Dialogue(plan())
        for count in 1...3 {
            talk.hear(0, failure: .stalled)
            #expect(talk.message == nil && talk.lines.count == (isRestarted ? 1 : count))
            if isRestarted, count < 3 {
                guard case .send(_, _, let memory) = talk.machine.next() else { Issue.record("\(count)"); return }
                let data = try JSONEncoder().encode(memory)
                talk = Dialogue(plan(), resuming: try JSONDecoder().decode(UploadMemory.self, from: data))
            }
        }
        guard case .fail(let trouble) = talk.machine.next() else { Issue.record("sent again"); return }
        #expect(trouble.message.contains("did not respond. Check whether the file is on the server"))
        #expect((talk.requests.first?.idleTimeout ?? 0) >= 300)
    }

    /// The server may have stored each form before it closed the connection.
    @Test func `a complete form after which the connection breaks is sent twelve times at most`() {
        var talk = Dialogue(plan())
        for _ in 0..<12 { talk.hear(0) }
        guard case .fail(let trouble) = talk.machine.next() else { Issue.record("sent again"); return }
        #expect(trouble.message.contains("Check whether the file is on the server"))
    }

    /// If a server received only a part of a form, it cannot store the form.
    @Test func `a form that was cut is sent again without a limit`() {
        var talk = Dialogue(plan())
        for _ in 0..<9 {
            talk.hear(0, bytesSent: 100, failure: .stalled)
            talk.hear(0)
        }
        guard case .send = talk.machine.next() else { Issue.record("given up"); return }
    }

    @Test func `the status of a form decides between success, failure and another attempt`() {
        let whole = form(plan()).length
        #expect(outcome(end(200, sent: whole)) == .finished(remoteURL: "https://h/up"))
        #expect(outcome(end(201, sent: whole, ["Location": "/p/1"])) == .finished(remoteURL: "https://h/p/1"))
        // Another URL is requested first, because the server may redirect every URL.
        #expect(outcome(end(303, sent: whole)) == .continue)
        // Log-in pages send such redirects, and the other statuses are errors. A redirect to a log-in page or an error does not
        // confirm that the photo is stored.
        for status in [301, 302, 307, 308, 400, 401, 403, 404, 413, 415] {
            guard case .fail = outcome(end(status, sent: whole)) else {
                Issue.record("\(status)")
                return
            }
        }
        for status in [0, 408, 429, 500, 502, 503, 507] {
            guard case .retry = outcome(end(status, sent: whole)) else {
                Issue.record("\(status)")
                return
            }
        }
        // The server did not read the complete photo, so the response cannot be a confirmation of the photo.
        guard case .retry = outcome(end(200, sent: whole - 1)) else {
            Issue.record("believed")
            return
        }
    }
}

@Suite struct AddressUploadTests {
    private func machine(_ url: String = "https://s3/b/p.jpg?X-Amz-Signature=1") -> UploadMachine {
        UploadMachine(plan: UploadPlan(kind: .put, collectionURL: url, fileName: "p.jpg", byteCount: 10, token: "t"))
    }

    @Test func `a presigned address is requested as it is`() {
        var machine = machine()
        guard case .send(let request, .snapshot(0, 10), _) = machine.next() else {
            Issue.record("")
            return
        }
        #expect(request.method == "PUT" && request.url == "https://s3/b/p.jpg?X-Amz-Signature=1" && request.headers.isEmpty)
        let end = WireEnd(head: ResponseHead(status: 200, headers: [], url: ""), failure: nil, bytesSent: 10, bytesReceived: 0)
        // The stored URL does not contain the signature.
        #expect(machine.ended(end, now: now, attemptsWithoutProgress: 0, jitter: 0) == .finished(remoteURL: "https://s3/b/p.jpg"))
    }

    @Test func `a refused presigned address is reported as expired`() {
        var machine = machine()
        let end = WireEnd(head: ResponseHead(status: 403, headers: [], url: ""), failure: nil, bytesSent: 10, bytesReceived: 0)
        guard case .fail(let trouble) = machine.ended(end, now: now, attemptsWithoutProgress: 0, jitter: 0) else {
            Issue.record("")
            return
        }
        #expect(trouble.message.contains("expired"))
    }

    @Test(arguments: [0, 9] as [Int64])
    func `a response that came before the complete file is not about the file`(_ sent: Int64) {
        var machine = machine()
        let head = ResponseHead(status: 200, headers: [], url: "")
        let early = WireEnd(head: head, failure: nil, bytesSent: sent, bytesReceived: 0)
        guard case .retry(_, let trouble) = machine.ended(early, now: now, attemptsWithoutProgress: 0, jitter: 0) else {
            Issue.record("believed")
            return
        }
        #expect(trouble.message == "The server responded before it had the complete file.")
        guard case .send(_, .snapshot(0, 10), _) = machine.next() else { Issue.record("not sent again"); return }
    }

    @Test func `an address without a query is a folder`() {
        var machine = machine("https://h/photos/")
        guard case .send(let request, .none, _) = machine.next() else {
            Issue.record("")
            return
        }
        #expect(request.method == "HEAD" && request.url == "https://h/photos/p.jpg")
    }
}
