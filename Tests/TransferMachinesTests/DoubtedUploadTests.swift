import Testing

@testable import TransferMachines

/// Tests uploads over http. A captive portal can respond instead of the server, and can report success for every request.
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

    /// The file is not sent again until another server responds. After that, the complete file is sent again.
    @Test(arguments: yeses)
    func `a success from a captive portal is not believed`(_ kind: UploadKind, _ status: Int, _ headers: [String: String]) {
        var talk = Dialogue(plan(kind), suspects: true)
        talk.hear(status, headers)
        #expect(talk.outcome == .continue)
        talk.hear(200, Self.page)
        #expect(talk.suspects && talk.lines.last == "GET http://h/t1")
        #expect(talk.requests.last?.headers.isEmpty == true, "no credentials are sent to an unknown server")
        talk.hear(302, Self.elsewhere)
        #expect(talk.suspects && talk.lines.count == 3)
        talk.hear(404)
        #expect(talk.outcome == .continue)
        talk.hear(201)
        // Every success over http is verified.
        #expect(talk.outcome == .continue && talk.lines.last?.hasPrefix(method(kind)) == true)
        talk.hear(404)
        #expect(talk.outcome == .finished(remoteURL: "http://h/up"))
        #expect(talk.lines.filter { $0.hasPrefix(method(kind)) }.count == 2)
    }

    /// After each upload the server responds with a page. For an unknown name the server has no page, so the success of the
    /// upload is trusted.
    @Test(arguments: yeses.filter { $0.1 != 303 } + [(.multipart, 303, ["Location": "/thanks"])])
    func `a page from the server itself is believed`(_ kind: UploadKind, _ status: Int, _ headers: [String: String]) {
        var talk = Dialogue(plan(kind), suspects: true)
        talk.hear(status, headers)
        talk.hear(404, Self.page)
        #expect(talk.outcome == .finished(remoteURL: "http://h/up") && talk.lines.count == 2)
        #expect(talk.requests.allSatisfy { $0.leastRate > 0 }, "a response that arrives too slowly is ended")
    }

    /// A new process cannot determine who sent the earlier response. The new process therefore first checks for a captive portal.
    @Test(arguments: [UploadKind.multipart, .put]) func `a new process checks for a captive portal first`(_ kind: UploadKind) {
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

    /// The first process ended while it waited for the response for the unused name.
    @Test(arguments: [UploadKind.multipart, .put]) func `a new process does not send a confirmed file again`(_ kind: UploadKind) {
        var talk = Dialogue(plan(kind), suspects: true)
        talk.hear(200, ["Content-Type": "application/json"])
        guard case .send(_, _, let memory) = talk.machine.next() else { return }
        var next = Dialogue(plan(kind), resuming: memory, suspects: true)
        next.hear(404)
        #expect(next.outcome == .finished(remoteURL: "http://h/up") && next.lines == ["GET http://h/t1"], "\(next.lines)")
    }

    /// The server of a web app responds to every unknown name with the page of the app.
    @Test func `a success with data is believed although every name has a page`() {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(200, ["Content-Type": "application/json; charset=utf-8"])
        talk.hear(200, Self.page)
        #expect(talk.outcome == .finished(remoteURL: "http://h/up"))
    }

    @Test(arguments: [500, 502, 503]) func `an error of the server does not end the wait for a captive portal`(_ status: Int) {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(200, Self.page)
        talk.hear(200, Self.page)
        talk.hear(status)
        #expect(talk.lines.last == "GET http://h/t1" && talk.lines.count == 3)
        talk.hear(200, Self.page)
        #expect(talk.suspects && talk.lines.filter { $0.hasPrefix("POST") }.count == 1, "\(talk.lines)")
    }

    /// Over https, no captive portal can respond. If the upload does not wait for captive portals, no response is doubted.
    @Test(arguments: [("https", true), ("http", false)])
    func `success is believed over https, or if captive portals are not waited for`(_ scheme: String, _ suspects: Bool) {
        for (kind, status, headers) in Self.yeses where status != 303 {
            var talk = Dialogue(plan(kind, scheme), suspects: suspects)
            talk.hear(status, headers)
            #expect(talk.outcome == .finished(remoteURL: "\(scheme)://h/up"))
        }
    }

    /// If the response is a page that the protocol cannot interpret, the page does not end the upload.
    @Test(arguments: [UploadKind.tus, .resumable, .s3, .immich, .nextcloud, .webdav])
    func `a page does not end an upload`(_ kind: UploadKind) {
        var plan = plan(kind)
        if kind == .nextcloud { plan.collectionURL = "http://h/remote.php/dav/files/me/a" }
        var talk = Dialogue(plan, suspects: true)
        for _ in 0..<4 { talk.hear(200, Self.page) }
        #expect(talk.suspects, "\(talk.lines) \(String(describing: talk.outcome))")
    }

    /// A captive portal with a static page refuses requests other than GET. A refusal by a captive portal ends no upload. When
    /// the portal no longer responds, the request is sent again.
    @Test(arguments: [UploadKind.tus, .resumable, .immich, .multipart, .put], [400, 403, 405, 501])
    func `a refusal by a captive portal is waited out`(_ kind: UploadKind, _ status: Int) {
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

    /// If the server itself refuses the file, the upload ends with the server's reason, after one more request.
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

    /// A captive portal can use another port or another name of the same host. A redirect to https at the same host is a decision
    /// of the server.
    @Test(arguments: [
        ("http://h:8080/up/noon.jpg", true), ("https://h/up/noon.jpg", false), ("/elsewhere", true),
        ("//h/moved/noon.jpg", false),
    ])
    func `a redirect to another port or file name is suspected`(_ place: String, _ isSuspected: Bool) {
        var talk = Dialogue(plan(.webdav), suspects: true)
        talk.hear(302, ["Location": place])
        #expect(talk.suspects == isSuspected)
    }

    /// The response to the form was 302, as PHP sends it. The server or a captive portal sent this response. The message states
    /// that the file may be stored, and does not state that the URL has changed.
    @Test(arguments: ["https", "http"], ["/thanks", "https://h/up"])
    func `a 302 after a form reports that the file may be stored`(
        _ scheme: String, _ place: String
    ) {
        for everybodys in [404, 302] {
            var talk = Dialogue(plan(.multipart, scheme), suspects: true)
            talk.hear(302, ["Location": place])
            // Every URL is redirected to a log-in page or to https.
            if scheme == "http" { talk.hear(everybodys, ["Location": place == "/thanks" ? "/login" : "https://h/t1"]) }
            #expect(talk.message?.contains("after it received the file") == true, "\(talk.lines)")
        }
    }

    /// A redirect after a success is trusted if other URLs are not redirected in the same way.
    @Test(arguments: [("/login", "/login", false), ("/login?from=up", "/login?from=t1", false), ("/thanks", "/login", true)])
    func `a 303 after a form is believed unless every address is redirected there`(
        _ place: String, _ everybodys: String, _ isStored: Bool
    ) {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(303, ["Location": place])
        #expect(talk.outcome == .continue)
        talk.hear(302, ["Location": everybodys])
        #expect(talk.suspects == !isStored)
        #expect((talk.outcome == .finished(remoteURL: "http://h/up")) == isStored)
    }

    /// Gateways for single sign-on redirect requests to a log-in page over https, also at the host of the server.
    @Test(
        arguments: ["https", "http"],
        [
            "https://auth.example.org/?rd=x", "https://h:9443/portal", "/login?next=/up", "/Sign-In.html", "/oauth2/start",
            "/portal?from=%2Fup%3Fa",
        ])
    func `a redirect to a log-in page after a form does not prove success`(_ scheme: String, _ place: String) {
        for status in [302, 303] {
            var talk = Dialogue(plan(.multipart, scheme), suspects: true)
            talk.hear(status, ["Location": place])
            if scheme == "http" { talk.hear(404) }
            #expect(talk.message?.contains("Check whether the file is on the server") == true, "\(talk.lines)")
        }
    }

    @Test(arguments: [true, false])
    func `a redirect that every address gets does not prove success over https`(_ isKilled: Bool) throws {
        var talk = Dialogue(plan(.multipart, "https"), suspects: true)
        talk.hear(303, ["Location": "/welcome"])
        #expect(talk.outcome == .continue)
        if isKilled {
            guard case .send(_, _, let memory) = talk.machine.next() else { return }
            talk = Dialogue(plan(.multipart, "https"), resuming: memory, suspects: true)
        }
        var other = talk
        talk.hear(302, ["Location": "/welcome"])
        #expect(talk.message?.contains("redirected to /welcome") == true, "\(talk.lines)")
        // If the server redirects no other URL, it has stored the form. A stored form is not sent again.
        other.hear(404)
        #expect(other.outcome == .finished(remoteURL: "https://h/up") && other.lines.last == "GET https://h/t1", "\(other.lines)")
    }

    /// Some captive portals respond with a format other than HTML.
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

    @Test func `a page that asks for a password does not prove success over https`() {
        var talk = Dialogue(plan(.multipart, "https"), suspects: true)
        talk.hear(200, Self.page, "<form><input name=p type = \"password\"></form>")
        #expect(talk.message == "The server sent a page that asks for a password.")
        talk = Dialogue(plan(.multipart, "https"), suspects: true)
        talk.hear(200, Self.page, "<p>Thank you</p>")
        #expect(talk.outcome == .finished(remoteURL: "https://h/up"))
    }

    /// A captive portal with the server's name redirects every URL to its page.
    @Test func `a log-in page at the same host is waited out`() {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(302, ["Location": "/login"])
        for _ in 0..<2 {
            talk.hear(302, ["Location": "/login"])
            #expect(talk.suspects)
        }
        for status in [404, 201, 404] { talk.hear(status) }
        #expect(talk.outcome == .finished(remoteURL: "http://h/up") && talk.lines.filter { $0.hasPrefix("POST") }.count == 2)
    }

    /// If a server redirects to another host, it may have processed the form. The form is not sent again until it is proven that
    /// a captive portal responded.
    @Test func `a form that was redirected to another host is not sent again`() {
        var talk = Dialogue(plan(.multipart), suspects: true)
        talk.hear(302, ["Location": "http://elsewhere/thanks"])
        talk.hear(404)
        #expect(talk.message?.hasPrefix("The server redirected to http://elsewhere/thanks after it received the file") == true)
        #expect(talk.lines.filter { $0.hasPrefix("POST") }.count == 1)
    }
}
