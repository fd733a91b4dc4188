import Foundation
import Testing

@testable import TransferMachines

private let now = Date(timeIntervalSince1970: 1_800_000_000)

private func plan(_ kind: UploadKind = .webdav, name: String = "noon 12:00.jpg") -> UploadPlan {
    UploadPlan(
        kind: kind, collectionURL: "https://me:pw@host/dav/a/b", fileName: name, byteCount: 10, token: "t1",
        headers: [HeaderField("Authorization", "x"), HeaderField("Content-Type", "image/jpeg"), HeaderField("Expect", "y")])
}

@Suite struct FolderUploadTests {
    private func ask(_ machine: inout UploadMachine) -> (line: String, request: WireRequest, saved: UploadMemory)? {
        let (request, saved): (WireRequest, UploadMemory)
        var hasBody = false
        switch machine.next() {
        case .send(let sent, let content, let memory): (request, saved, hasBody) = (sent, memory, content != .none)
        case .compare(let sent, _, let memory): (request, saved) = (sent, memory)
        case .finished, .fail: return nil
        }
        let place = request.url.replacingOccurrences(of: "https://me:pw@host/dav/", with: "")
        return ("\(request.method) \(place)\(hasBody ? " body" : "")", request, saved)
    }

    /// Expects a series of requests, and responds to each request with a status. The result of each GET is `comparison`.
    private func play(
        _ machine: inout UploadMachine, _ dialogue: [(String, Int)], lengths: [Int: Int] = [:],
        comparison: BodyComparison = .same
    ) -> UploadOutcome? {
        var outcome: UploadOutcome?
        for (index, (line, status)) in dialogue.enumerated() {
            #expect(ask(&machine)?.line == line)
            let fields = lengths[index].map { [HeaderField("Content-Length", "\($0)")] } ?? []
            let head = ResponseHead(status: status, headers: fields, url: "")
            var end = WireEnd(
                head: status == 0 ? nil : head, failure: status == 0 ? .connectionLost : nil,
                bytesSent: line.hasSuffix(" body") ? 10 : 0, bytesReceived: 0)
            if line.hasPrefix("GET ") { end.comparison = comparison }
            outcome = machine.ended(end, now: now, attemptsWithoutProgress: 0, jitter: 0.5)
        }
        return outcome
    }

    private let name = "a/b/noon%2012%3A00.jpg"
    private let next = "a/b/noon%2012%3A00-1.jpg"
    private let part = "a/b/.t1.part"
    private let done = UploadOutcome.finished(remoteURL: "https://host/dav/a/b/noon%2012%3A00.jpg")

    @Test func `a WebDAV upload sends a temporary file, checks it and renames it`() {
        var machine = UploadMachine(plan: plan())
        let outcome = play(
            &machine,
            [
                ("HEAD \(name)", 404), ("PUT \(part) body", 201), ("HEAD \(part)", 200), ("MOVE \(part)", 201),
                ("HEAD \(name)", 200),
            ], lengths: [2: 10, 4: 10])
        #expect(outcome == done && machine.proof == .length)
        #expect(machine.next() == .finished(remoteURL: "https://host/dav/a/b/noon%2012%3A00.jpg"))
    }

    @Test func `PUT and MOVE have the expected headers`() {
        var machine = UploadMachine(plan: plan(), resuming: .init(step: .put, nameIndex: 0, isStored: false))
        _ = play(&machine, [("HEAD \(part)", 404)])
        let put = ask(&machine)?.request
        #expect(put?.headers.map(\.name) == ["Authorization", "Content-Type"])
        #expect(put?.maximumRedirects == 0)
        machine = UploadMachine(plan: plan(), resuming: .init(step: .move, nameIndex: 3, isStored: true))
        _ = play(&machine, [("HEAD \(part)", 200)])
        #expect(
            ask(&machine)?.request.headers == [
                HeaderField("Authorization", "x"), HeaderField("Destination", "https://host/dav/a/b/noon%2012%3A00-3.jpg"),
                HeaderField("Overwrite", "F"),
            ])
    }

    @Test func `a taken name is replaced by the next number`() {
        var machine = UploadMachine(plan: plan())
        _ = play(
            &machine,
            [
                ("HEAD \(name)", 200), ("HEAD \(next)", 404), ("PUT \(part) body", 201), ("HEAD \(part)", 200),
                ("MOVE \(part)", 412), ("HEAD \(part)", 200), ("HEAD a/b/noon%2012%3A00-2.jpg", 404),
            ])
        #expect(ask(&machine)?.line == "MOVE \(part)")
    }

    /// The folder accepts files, but no user may read them.
    @Test func `a folder that forbids HEAD gets the file by PUT`() {
        var machine = UploadMachine(plan: plan(.put))
        _ = play(&machine, [("HEAD \(name)", 403)])
        let put = ask(&machine)
        #expect(put?.line == "PUT \(name) body")
        #expect(put?.request.headers.contains(HeaderField("If-None-Match", "*")) == true)
        #expect(
            play(&machine, [("PUT \(name) body", 201), ("HEAD \(name)", 403)]) == .finished(remoteURL: "https://host/dav/\(name)")
        )
        machine = UploadMachine(plan: plan(.put))
        guard case .fail(let trouble)? = play(&machine, [("HEAD \(name)", 403), ("PUT \(name) body", 403)]) else {
            Issue.record("not refused")
            return
        }
        #expect(trouble.status == 403)
    }

    @Test(arguments: [404, 405, 501]) func `a name of another upload is not used`(_ status: Int) {
        var machine = UploadMachine(plan: plan(.put))
        _ = play(&machine, [("HEAD \(name)", status)])
        #expect(machine.needsNames == (status != 404))
        machine.setOtherNames(taken: ["https://host/dav/\(name)"])
        #expect(ask(&machine)?.line == (status == 404 ? "HEAD \(next)" : "PUT \(next) body"))
    }

    /// All responses are lost, and the server does not support HEAD. The server stores at most two copies of the file, and the
    /// upload does not end with an error.
    @Test(arguments: [405, 501]) func `a server without HEAD stores at most two copies`(_ status: Int) {
        let own = "a/b/noon%2012%3A00-t1.jpg"
        var machine = UploadMachine(plan: plan(.put))
        _ = play(
            &machine,
            [
                ("HEAD \(name)", status), ("PUT \(name) body", 0), ("HEAD \(name)", status), ("PUT \(name) body", 412),
                ("PUT \(own) body", 0), ("HEAD \(own)", status),
            ])
        // The server may have stored a part of the file. The file is sent again and replaces this part.
        let again = ask(&machine)
        #expect(again?.saved == UploadMemory(step: .put, isMarked: true))
        #expect(again?.request.headers.contains { $0.name == "If-None-Match" } == false)
        machine = UploadMachine(plan: plan(.put), resuming: again?.saved)
        let outcome = play(&machine, [("HEAD \(own)", status), ("PUT \(own) body", 200), ("HEAD \(own)", status)])
        #expect(outcome == .finished(remoteURL: "https://host/dav/\(own)"))
    }

    /// If the folder is missing, nginx sends 500.
    @Test func `a 500 may mean that the folder is missing`() {
        var machine = UploadMachine(plan: plan())
        _ = play(
            &machine,
            [
                ("HEAD \(name)", 404), ("PUT \(part) body", 500), ("MKCOL a/b/", 409), ("MKCOL a/", 201), ("MKCOL a/b/", 201),
                ("PUT \(part) body", 201),
            ])
        #expect(ask(&machine)?.line == "HEAD \(part)")
        // The server has another fault, and does not create the folder.
        for status in [403, 405, 500, 501] {
            machine = UploadMachine(plan: plan())
            let outcome = play(&machine, [("HEAD \(name)", 404), ("PUT \(part) body", 500), ("MKCOL a/b/", status)])
            #expect(outcome == .continue)
            #expect(ask(&machine)?.line == "PUT \(part) body")
        }
    }

    @Test func `missing folders are made`() {
        var machine = UploadMachine(plan: plan())
        _ = play(
            &machine,
            [
                ("HEAD \(name)", 404), ("PUT \(part) body", 409), ("MKCOL a/b/", 409), ("MKCOL a/", 201), ("MKCOL a/b/", 201),
                ("PUT \(part) body", 201),
            ])
        #expect(ask(&machine)?.line == "HEAD \(part)")
        var hopeless = UploadMachine(plan: plan())
        let outcome = play(
            &hopeless,
            [
                ("HEAD \(name)", 404), ("PUT \(part) body", 404), ("MKCOL a/b/", 409), ("MKCOL a/", 405), ("MKCOL a/b/", 409),
            ])
        guard case .fail = outcome else { Issue.record("\(String(describing: outcome))"); return }
    }

    /// Three uploads create the folder at the same time. Apache sends 403 to the later uploads, for any folder of the path.
    @Test func `a folder that another upload makes at the same time is used`() {
        for refused in 0..<2 {
            var machine = UploadMachine(plan: plan())
            _ = play(
                &machine,
                [
                    ("HEAD \(name)", 404), ("PUT \(part) body", 409), ("MKCOL a/b/", 409), ("MKCOL a/", refused == 0 ? 403 : 201),
                    ("MKCOL a/b/", refused == 1 ? 403 : 201), ("PUT \(part) body", 201),
                ])
            #expect(ask(&machine)?.line == "HEAD \(part)")
        }
        // If no upload creates the folder, one more attempt follows.
        var machine = UploadMachine(plan: plan())
        let outcome = play(
            &machine, [("HEAD \(name)", 404), ("PUT \(part) body", 409), ("MKCOL a/b/", 403), ("PUT \(part) body", 409)])
        guard case .fail(let trouble) = outcome else { Issue.record("\(String(describing: outcome))"); return }
        #expect(trouble.message == "The folder does not exist on the server and cannot be created.")
    }

    @Test func `a MOVE without a response is checked`() {
        var machine = UploadMachine(plan: plan(), resuming: .init(step: .check, nameIndex: 0, isStored: true))
        let outcome = play(
            &machine,
            [
                ("HEAD \(part)", 200), ("MOVE \(part)", 0), ("HEAD \(part)", 404), ("HEAD \(name)", 200), ("GET \(name)", 200),
            ], lengths: [3: 10])
        #expect(outcome == done)
        // The server did not perform the MOVE. The MOVE is sent again with the same name.
        machine = UploadMachine(plan: plan(), resuming: .init(step: .move, nameIndex: 0, isStored: true))
        _ = play(&machine, [("HEAD \(part)", 200)], lengths: [0: 10])
        #expect(ask(&machine)?.line == "MOVE \(part)")
    }

    @Test(arguments: [(401, -1013), (403, -1102), (413, -1103), (301, -1010)])
    func `a final status ends the upload`(_ status: Int, _ code: Int) {
        var machine = UploadMachine(plan: plan())
        guard case .fail(let trouble)? = play(&machine, [("HEAD \(name)", 404), ("PUT \(part) body", status)]) else {
            Issue.record("no failure")
            return
        }
        #expect(trouble.code == code && trouble.status == status)
    }

    @Test(arguments: [408, 423, 429, 502, 503, 504, 507])
    func `a passing status is retried`(_ status: Int) {
        var machine = UploadMachine(plan: plan())
        guard case .retry(let after, let trouble)? = play(&machine, [("HEAD \(name)", 404), ("PUT \(part) body", status)])
        else { Issue.record("no retry"); return }
        #expect(trouble.status == status && (status != 507 || after >= 1800))
        // The response of a proxy does not show what the server did.
        let isDoubtful = ![423, 429].contains(status)
        #expect(ask(&machine)?.line == (isDoubtful ? "HEAD \(part)" : "PUT \(part) body"))
    }

    /// If another agent continues the upload, this agent also checks the file before it sends the body again.
    @Test func `a body without a response is checked before it is sent again`() {
        var machine = UploadMachine(plan: plan())
        _ = play(&machine, [("HEAD \(name)", 404), ("PUT \(part) body", 0)])
        let saved = ask(&machine)?.saved
        for resumed in [machine, UploadMachine(plan: plan(), resuming: saved)] {
            machine = resumed
            let outcome = play(
                &machine,
                [("HEAD \(part)", 200), ("GET \(part)", 200), ("MOVE \(part)", 201), ("HEAD \(name)", 200)],
                lengths: [0: 10, 3: 10])
            #expect(outcome == done && machine.proof == .digest)
            // The body is sent again if the server has only a part of it, has nothing, or reports nothing.
            for (status, length) in [(200, 4), (200, nil), (404, nil), (405, nil)] {
                machine = resumed
                _ = play(&machine, [("HEAD \(part)", status)], lengths: length.map { [0: $0] } ?? [:])
                #expect(ask(&machine)?.line == "PUT \(part) body", "\(status)")
            }
        }
    }

    // MARK: The end of a MOVE

    /// Returns an upload that has received the response to its MOVE.
    private func moved() -> UploadMachine {
        var machine = UploadMachine(plan: plan())
        let outcome = play(
            &machine,
            [("HEAD \(name)", 404), ("PUT \(part) body", 201), ("HEAD \(part)", 200), ("MOVE \(part)", 201)], lengths: [2: 10])
        #expect(outcome == .continue)
        return machine
    }

    @Test(arguments: [403, 405, 501])
    func `a server that does not show the file after a MOVE is believed, with the response as proof`(_ status: Int) {
        var machine = moved()
        #expect(play(&machine, [("HEAD \(name)", status)]) == done)
        #expect(machine.proof == .answer)
    }

    /// After the MOVE, the server reports no length of the file. Before the MOVE, the temporary file had the correct length.
    @Test func `a file without a length after a MOVE is there`() {
        var machine = moved()
        #expect(play(&machine, [("HEAD \(name)", 200)]) == done)
        #expect(machine.proof == .length)
    }

    @Test func `a file that is shown a moment after its MOVE is there`() {
        var machine = moved()
        for status in [404, 503, 404] {
            guard case .retry? = play(&machine, [("HEAD \(name)", status)]) else { Issue.record("\(status)"); return }
        }
        #expect(play(&machine, [("HEAD \(name)", 200)], lengths: [0: 10]) == done)
    }

    @Test func `a MOVE that is confirmed and renames nothing is sent again`() {
        var machine = moved()
        _ = play(&machine, [(String, Int)](repeating: ("HEAD \(name)", 404), count: 4))
        let outcome = play(
            &machine, [("HEAD \(part)", 200), ("MOVE \(part)", 201), ("HEAD \(name)", 200)], lengths: [0: 10, 2: 10])
        #expect(outcome == done)
    }

    @Test func `a file that is lost after its MOVE is sent again`() {
        var machine = moved()
        _ = play(&machine, [(String, Int)](repeating: ("HEAD \(name)", 410), count: 4))
        _ = play(&machine, [("HEAD \(part)", 404), ("HEAD \(name)", 404), ("HEAD \(name)", 404)])
        #expect(ask(&machine)?.line == "PUT \(part) body")
    }

    /// The file on the server is not replaced, because it may belong to another user in the meantime.
    @Test func `a file whose length stays wrong after a MOVE is sent again, under the next name`() {
        var machine = moved()
        let asked = [(String, Int)](repeating: ("HEAD \(name)", 200), count: 3)
        guard case .retry? = play(&machine, asked, lengths: [0: 4, 1: 4, 2: 4]) else { Issue.record("not asked again"); return }
        guard case .retry(_, let trouble)? = play(&machine, [("HEAD \(name)", 200)], lengths: [0: 4]) else {
            Issue.record("not sent again")
            return
        }
        #expect(trouble.message == "The server stored 4 of 10 bytes." && machine.removal == nil)
        #expect(ask(&machine)?.line == "HEAD \(next)")
    }

    /// On a server without HEAD, a second MOVE would always fail with 404.
    @Test func `a process that ends after the response to a MOVE only looks at the file`() {
        var machine = moved()
        let saved = ask(&machine)?.saved
        #expect(saved == UploadMemory(step: .move, isStored: false))
        machine = UploadMachine(plan: plan(), resuming: saved)
        #expect(machine.storedBytes == 10)
        #expect(play(&machine, [("HEAD \(name)", 405)]) == done)
    }

    @Test(arguments: [UploadKind.put, .webdav])
    func `a server that refuses to show a file that it accepted is believed`(_ kind: UploadKind) {
        var machine = UploadMachine(plan: plan(kind))
        let file = kind == .put ? name : part
        let outcome = play(&machine, [("HEAD \(name)", 404), ("PUT \(file) body", 201), ("HEAD \(file)", 403)])
        #expect(outcome == (kind == .put ? done : .continue))
        #expect(machine.proof == .answer)
    }

    @Test func `the message names MOVE if the server does not support it`() {
        var machine = UploadMachine(plan: plan())
        let outcome = play(
            &machine,
            [
                ("HEAD \(name)", 404), ("PUT \(part) body", 201), ("HEAD \(part)", 405), ("MOVE \(part)", 501),
            ])
        guard case .fail(let trouble)? = outcome else { Issue.record("no failure"); return }
        #expect(trouble.message.contains("MOVE"))
    }

    @Test func `a plain PUT is conditional and is checked after a lost response`() {
        var machine = UploadMachine(plan: plan(.put))
        _ = play(&machine, [("HEAD \(name)", 404)])
        #expect(ask(&machine)?.request.headers.contains(HeaderField("If-None-Match", "*")) == true)
        let outcome = play(&machine, [("PUT \(name) body", 0), ("HEAD \(name)", 200), ("GET \(name)", 200)], lengths: [1: 10])
        #expect(outcome == done && machine.proof == .digest)
        // A file of another user with a different length is not changed.
        machine = UploadMachine(plan: plan(.put), resuming: .init(step: .put, nameIndex: 0, isStored: false))
        let looks = [(String, Int)](repeating: ("HEAD \(name)", 200), count: 4)
        _ = play(
            &machine, looks + [("HEAD \(next)", 404), ("PUT \(next) body", 201)], lengths: [0: 4, 1: 4, 2: 4, 3: 4])
        #expect(ask(&machine)?.line == "HEAD \(next)")
    }

    @Test(arguments: [UploadKind.put, .webdav])
    func `a length that is a moment late is requested again`(_ kind: UploadKind) {
        var machine = UploadMachine(plan: plan(kind))
        let file = kind == .put ? name : part
        let sent = play(&machine, [("HEAD \(name)", 404), ("PUT \(file) body", 201)])
        #expect(sent == .continue)
        let late = play(&machine, [("HEAD \(file)", 200)], lengths: [0: 0])
        guard case .retry? = late else { Issue.record("\(String(describing: late))"); return }
        let shown = play(&machine, [("HEAD \(file)", 200)], lengths: [0: 10])
        #expect(shown == (kind == .put ? done : .continue))
    }

    /// In WebDAV, the temporary file is replaced. In a plain PUT, the file is not replaced.
    @Test func `a file whose length stays wrong is sent again`() {
        var machine = UploadMachine(plan: plan(.put))
        _ = play(&machine, [("HEAD \(name)", 404), ("PUT \(name) body", 201)])
        let asked = [(String, Int)](repeating: ("HEAD \(name)", 200), count: 4)
        guard case .retry? = play(&machine, asked, lengths: [0: 4, 1: 4, 2: 4, 3: 4]) else {
            Issue.record("not sent again")
            return
        }
        #expect(ask(&machine)?.line == "HEAD \(next)")
        machine = UploadMachine(plan: plan())
        _ = play(&machine, [("HEAD \(name)", 404), ("PUT \(part) body", 201)])
        let parts = [(String, Int)](repeating: ("HEAD \(part)", 200), count: 4)
        _ = play(&machine, parts, lengths: [0: 4, 1: 4, 2: 4, 3: 4])
        #expect(ask(&machine)?.line == "PUT \(part) body")
    }

    @Test func `the number of names is limited and invalid addresses are refused`() {
        var machine = UploadMachine(plan: plan(), resuming: .init(step: .chooseName, nameIndex: 1000, isStored: false))
        _ = machine.next()
        let head = ResponseHead(status: 200, headers: [], url: "")
        let there = WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 0)
        guard case .fail = machine.ended(there, now: now, attemptsWithoutProgress: 0, jitter: 0) else {
            Issue.record("unbounded")
            return
        }
        var nowhere = UploadMachine(
            plan: UploadPlan(
                kind: .put, collectionURL: "photos", fileName: "a", byteCount: 1, token: "t"))
        #expect(nowhere.next() == .fail(TransferTrouble(.unsupportedURL)))
    }

    @Test func `a saved state can be encoded and decoded`() throws {
        let saved = UploadMemory(step: .move, nameIndex: 7, isStored: true)
        #expect(try JSONDecoder().decode(UploadMemory.self, from: JSONEncoder().encode(saved)) == saved)
    }

    /// The network changed before the response arrived. A captive portal's page of any length is not a response about the file.
    @Test(arguments: [UploadKind.put, .webdav], ["99", nil])
    func `a captive portal page does not count as a response about the sent file`(
        _ kind: UploadKind, _ length: String?
    ) {
        let page = ["Content-Type": "text/html", "Content-Length": length].compactMapValues { $0 }
        let plan = UploadPlan(kind: kind, collectionURL: "http://h/up", fileName: "noon.jpg", byteCount: 10, token: "t1")
        var talk = Dialogue(plan, suspects: true)
        talk.hear(404)
        talk.hear(kind == .put ? 0 : 201)
        for _ in 0..<3 {
            talk.hear(200, page)
            #expect(talk.suspects, "\(talk.lines) \(String(describing: talk.outcome))")
        }
        talk.hear(200, ["Content-Length": "10"])
        if kind == .put {
            talk.hear(200, ["Content-Type": "text/html"], comparison: .differs)
            #expect(talk.suspects, "the page does not prove that the content differs")
            talk.hear(200, comparison: .same)
        } else {
            talk.hear(200, page)
            #expect(talk.suspects, "the response does not confirm the rename")
            talk.hear(404)
            talk.hear(200, ["Content-Length": "10"])
            talk.hear(200, comparison: .same)
        }
        #expect(talk.outcome == .finished(remoteURL: "http://h/up/noon.jpg"), "\(talk.lines)")
        #expect(talk.lines.filter { $0.hasPrefix("PUT") }.count == 1)
    }

    /// A proxy terminates TLS. Behind a proxy that terminates TLS, Apache refuses the scheme of its public URL (502), and nginx
    /// refuses another host (400).
    @Test(arguments: [400, 502], ["http://h/up/noon.jpg", "/up/noon.jpg"])
    func `a server that refuses the Destination of a MOVE gets it in another form`(_ status: Int, _ accepted: String) {
        var plan = UploadPlan(kind: .webdav, collectionURL: "https://h/up", fileName: "noon.jpg", byteCount: 10, token: "t1")
        for isKnown in [false, true] {
            var talk = Dialogue(plan)
            var moves: [String] = []
            for _ in 0..<12 {
                guard case .send(let request, _, _) = talk.machine.next() else { break }
                switch (request.method, request.url.hasSuffix("noon.jpg")) {
                case ("HEAD", true):
                    talk.hear(moves.last == accepted ? 200 : 404, moves.last == accepted ? ["Content-Length": "10"] : [:])
                case ("HEAD", false): talk.hear(moves.isEmpty && talk.lines.count < 2 ? 404 : 200, ["Content-Length": "10"])
                case ("MOVE", _):
                    moves.append(request.headers.first { $0.name == "Destination" }?.value ?? "")
                    talk.hear(moves.last == accepted ? 201 : status)
                default: talk.hear(201)
                }
            }
            #expect(talk.outcome == .finished(remoteURL: "https://h/up/noon.jpg"), "\(talk.lines)")
            #expect(moves.count == (isKnown ? 1 : accepted.hasPrefix("/") ? 3 : 2), "\(moves)")
            plan.knowledge = talk.machine.knowledge
        }
    }
}
