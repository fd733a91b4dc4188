import Testing

@testable import TransferMachines

/// Over http a network with a log-in page answers in the server's place, and says yes to everything.
@Suite struct DoubtedUploadTests {
    private static let page = ["Content-Type": "text/html"]
    private static let elsewhere = ["Location": "http://login.hotel.example/"]

    private func plan(_ kind: UploadKind, _ scheme: String = "http") -> UploadPlan {
        var plan = UploadPlan(
            kind: kind, collectionURL: "\(scheme)://h/up" + (kind == .put ? "?signature=secret" : ""), fileName: "noon.jpg",
            byteCount: 10, token: "t1", headers: [HeaderField("Authorization", "x")], contentType: "image/jpeg")
        plan.knowledge.lacksConditions = false
        plan.knowledge.immichVersion = 2
        plan.order.s3 = S3Access(bucket: "b", region: "us-east-1", accessKey: "a", secretKey: "s")
        return plan
    }

    private func method(_ kind: UploadKind) -> String { kind == .put ? "PUT" : "POST" }

    private static let yeses: [(UploadKind, Int, [String: String])] = [
        (.multipart, 200, page), (.multipart, 303, elsewhere), (.put, 200, page), (.put, 204, page),
    ]

    /// Nothing is sent again before somebody else answers, and then the whole is.
    @Test(arguments: yeses) func aPortalsYesIsNone(_ kind: UploadKind, _ status: Int, _ headers: [String: String]) {
        var talk = Dialogue(plan(kind), suspects: true)
        talk.hear(status, headers)
        #expect(talk.outcome == .continue)
        talk.hear(200, Self.page)
        #expect(talk.suspects && talk.lines.last == "GET http://h/t1")
        #expect(talk.requests.last?.headers.isEmpty == true, "what opens the server's door is not for whoever answers")
        talk.hear(302, Self.elsewhere)
        #expect(talk.suspects && talk.lines.count == 3)
        talk.hear(404)
        #expect(talk.outcome == .continue)
        talk.hear(201)
        // Each success over http is doubted.
        #expect(talk.outcome == .continue && talk.lines.last?.hasPrefix(method(kind)) == true)
        talk.hear(404)
        #expect(talk.outcome == .finished(remoteURL: "http://h/up"))
        #expect(talk.lines.filter { $0.hasPrefix(method(kind)) }.count == 2)
    }

    /// A server that thanks with a page has none for a name that nobody has.
    @Test(arguments: yeses.filter { $0.1 != 303 } + [(.multipart, 303, ["Location": "/thanks"])])
    func aServersPageIsBelieved(_ kind: UploadKind, _ status: Int, _ headers: [String: String]) {
        var talk = Dialogue(plan(kind), suspects: true)
        talk.hear(status, headers)
        talk.hear(404, Self.page)
        #expect(talk.outcome == .finished(remoteURL: "http://h/up") && talk.lines.count == 2)
        #expect(talk.requests.allSatisfy { $0.leastRate > 0 }, "an answer that drips ends")
    }

    /// Who answered before the process ended nobody knows: the question comes first.
    @Test(arguments: [UploadKind.multipart, .put]) func aNewProcessAsksFirst(_ kind: UploadKind) {
        var talk = Dialogue(plan(kind), resuming: UploadMemory(step: .check), suspects: true)
        talk.hear(200, Self.page)
        #expect(talk.suspects)
        talk.hear(0)
        talk.hear(404)
        talk.hear(200)
        #expect(talk.outcome == .continue && talk.lines.last?.hasPrefix(method(kind)) == true)
        talk.hear(404)
        #expect(talk.outcome == .finished(remoteURL: "http://h/up"))
    }

    /// Nobody answers in a server's place over https; and where nobody waits for networks nothing is doubted.
    @Test(arguments: [("https", true), ("http", false)]) func elsewhereItIsBelieved(_ scheme: String, _ suspects: Bool) {
        for (kind, status, headers) in Self.yeses where status != 303 {
            var talk = Dialogue(plan(kind, scheme), suspects: suspects)
            talk.hear(status, headers)
            #expect(talk.outcome == .finished(remoteURL: "\(scheme)://h/up"))
        }
    }

    /// What a protocol makes of a page is no reason to give up.
    @Test(arguments: [UploadKind.tus, .resumable, .s3, .immich, .nextcloud, .webdav])
    func aPageEndsNoUpload(_ kind: UploadKind) {
        var plan = plan(kind)
        if kind == .nextcloud { plan.collectionURL = "http://h/remote.php/dav/files/me/a" }
        var talk = Dialogue(plan, suspects: true)
        for _ in 0..<4 { talk.hear(200, Self.page) }
        #expect(talk.suspects, "\(talk.lines) \(String(describing: talk.outcome))")
    }

    /// A static log-in page refuses what is not GET. It ends no upload, and the request is sent again when the page is gone.
    @Test(arguments: [UploadKind.tus, .resumable, .immich, .multipart, .put], [400, 403, 405, 501])
    func `a page's refusal is waited out`(_ kind: UploadKind, _ status: Int) {
        var talk = Dialogue(plan(kind), suspects: true)
        func isAsking() -> Bool {
            var machine = talk.machine
            guard case .send(let request, .none, _) = machine.next(), request.headers.isEmpty else { return false }
            return request.url == (kind == .immich ? "http://h/up/api/t1" : "http://h/t1")
        }
        for _ in 0..<8 where !isAsking() { talk.hear(status, Self.page) }
        for _ in 0..<2 {
            #expect(isAsking(), "\(talk.lines)")
            talk.hear(200, Self.page)
            #expect(talk.suspects)
        }
        talk.hear(404)
        #expect(talk.outcome == .continue && !isAsking())
    }

    /// A server's own refusal ends the upload as before, with its reason, and one question more.
    @Test(arguments: [UploadKind.multipart, .put], [404, 405]) func `a server's refusal is believed`(
        _ kind: UploadKind, _ nothing: Int
    ) {
        var talk = Dialogue(plan(kind), suspects: true)
        talk.hear(405, Self.page)
        talk.hear(nothing, Self.page)
        var unsuspecting = Dialogue(plan(kind), suspects: false)
        unsuspecting.hear(405, Self.page)
        #expect(talk.message != nil && talk.message == unsuspecting.message)
        #expect(talk.lines.count == 2 && unsuspecting.lines.count == 1)
    }

    /// Another port of the same host is a portal's, and another name; encryption at the same host is the server's own wish.
    @Test(arguments: [
        ("http://h:8080/up/noon.jpg", true), ("https://h/up/noon.jpg", false), ("/elsewhere", true),
        ("//h/moved/noon.jpg", false),
    ])
    func aWayToAnotherPortIsSuspected(_ place: String, _ isSuspected: Bool) {
        var talk = Dialogue(plan(.webdav), suspects: true)
        talk.hear(302, ["Location": place])
        #expect(talk.suspects == isSuspected)
    }

    /// A form that was thanked for by 302, as PHP does, by whomever: that it may be there is said, and not that an address has changed.
    @Test(arguments: ["https", "http"], ["/thanks", "https://h/up"]) func aFormThatIsThankedForMayBeThere(
        _ scheme: String, _ place: String
    ) {
        for everybodys in [404, 302] {
            var talk = Dialogue(plan(.multipart, scheme), suspects: true)
            talk.hear(302, ["Location": place])
            // Whoever asks for anything is asked to log in, or to come encrypted.
            if scheme == "http" { talk.hear(everybodys, ["Location": place == "/thanks" ? "/login" : "https://h/t1"]) }
            #expect(talk.message?.contains("when it had the file: whether it is there is not known") == true, "\(talk.lines)")
        }
    }

    /// "Done, look there" is believed of who does not say it to everybody.
    @Test(arguments: [("/login", "/login", false), ("/login?from=up", "/login?from=t1", false), ("/thanks", "/login", true)])
    func aWayOnIsBelievedOfAServer(_ place: String, _ everybodys: String, _ isStored: Bool) {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(303, ["Location": place])
        #expect(talk.outcome == .continue)
        talk.hear(302, ["Location": everybodys])
        #expect(talk.suspects == !isStored)
        #expect((talk.outcome == .finished(remoteURL: "http://h/up")) == isStored)
    }

    /// Gateways for single sign-on answer so over https, and also at the server's own host.
    @Test(
        arguments: ["https", "http"],
        [
            "https://auth.example.org/?rd=x", "https://h:9443/portal", "/login?next=/up", "/Sign-In.html", "/oauth2/start",
            "/portal?from=%2Fup%3Fa",
        ])
    func `a redirect to a log-in after a form is no proof`(_ scheme: String, _ place: String) {
        for status in [302, 303] {
            var talk = Dialogue(plan(.multipart, scheme), suspects: true)
            talk.hear(status, ["Location": place])
            if scheme == "http" { talk.hear(404) }
            #expect(talk.message?.contains("whether it is there is not known") == true, "\(talk.lines)")
        }
    }

    @Test(arguments: [true, false]) func `a redirect that every address gets is no proof over https`(_ isKilled: Bool) throws {
        var talk = Dialogue(plan(.multipart, "https"), suspects: true)
        talk.hear(303, ["Location": "/welcome"])
        #expect(talk.outcome == .continue)
        if isKilled {
            guard case .send(_, _, let memory) = talk.machine.next() else { return }
            talk = Dialogue(plan(.multipart, "https"), resuming: memory, suspects: true)
        }
        var other = talk
        talk.hear(302, ["Location": "/welcome"])
        #expect(talk.message?.contains("led to /welcome") == true, "\(talk.lines)")
        // A server that leads nobody else there has the form, which is not sent again.
        other.hear(404)
        #expect(other.outcome == .finished(remoteURL: "https://h/up") && other.lines.last == "GET https://h/t1", "\(other.lines)")
    }

    /// Not every captive portal answers with HTML.
    @Test(
        arguments: [UploadKind.multipart, .put, .tus, .resumable, .immich], [nil, "text/plain", "application/json", "image/gif"])
    func `a network that answers everything with success is waited out`(_ kind: UploadKind, _ type: String?) {
        let headers = type.map { ["Content-Type": $0] } ?? [:]
        var talk = Dialogue(plan(kind), suspects: true)
        for _ in 0..<8 where !talk.suspects { talk.hear(200, headers) }
        #expect(talk.suspects, "\(talk.lines) \(String(describing: talk.outcome))")
        let bodies = talk.lines.filter { $0.hasPrefix(method(kind)) }.count
        talk.hear(200, headers)
        #expect(talk.suspects && talk.lines.filter { $0.hasPrefix(method(kind)) }.count == bodies)
        talk.hear(404)
        #expect(talk.outcome == .continue)
    }

    @Test func `a page that asks for a password is no proof over https`() {
        var talk = Dialogue(plan(.multipart, "https"), suspects: true)
        talk.hear(200, Self.page, "<form><input name=p type = \"password\"></form>")
        #expect(talk.message == "The server answered with a page that asks for a password.")
        talk = Dialogue(plan(.multipart, "https"), suspects: true)
        talk.hear(200, Self.page, "<p>Thank you</p>")
        #expect(talk.outcome == .finished(remoteURL: "https://h/up"))
    }

    /// A log-in page that answers in the server's own name leads everybody to it.
    @Test func aLogInAtTheSameHostIsWaitedOut() {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(302, ["Location": "/login"])
        for _ in 0..<2 {
            talk.hear(302, ["Location": "/login"])
            #expect(talk.suspects)
        }
        for status in [404, 201, 404] { talk.hear(status) }
        #expect(talk.outcome == .finished(remoteURL: "http://h/up") && talk.lines.filter { $0.hasPrefix("POST") }.count == 2)
    }

    /// A form may be carried out by a server that leads elsewhere: it is not sent a second time before a log-in page is proven.
    @Test func aFormThatLedElsewhereIsNotSentAgain() {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(302, ["Location": "http://elsewhere/thanks"])
        talk.hear(404)
        #expect(talk.message?.hasPrefix("The server led to http://elsewhere/thanks when it had the file") == true)
        #expect(talk.lines.filter { $0.hasPrefix("POST") }.count == 1)
    }
}
