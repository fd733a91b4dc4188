import Foundation
import Testing

@testable import TransferMachines

/// Tests the messages of failed uploads to a configured destination.
@Suite struct UploadAdviceTests {
    private static let settings = "[upload.destinations.home] of config.toml"

    private static func plan(_ kind: UploadKind, authorityFile: String? = nil, headers: [HeaderField] = []) -> UploadPlan {
        let folder = kind == .nextcloud ? "https://host/remote.php/dav/files/me/photos" : "https://host/photos"
        var plan = UploadPlan(
            kind: kind, collectionURL: folder, fileName: "noon.jpg", byteCount: 10, token: "t1", headers: headers,
            sha256: String(repeating: "ab", count: 32))
        plan.order.sha1 = String(repeating: "cd", count: 20)
        if kind == .s3 { plan.order.s3 = S3Access(bucket: "storms", region: "us-east-1", accessKey: "a", secretKey: "s") }
        plan.order.server = UploadServer(name: "home", settings: settings, authorityFile: authorityFile)
        return plan
    }

    private static func trouble(_ outcome: UploadOutcome?) -> TransferTrouble? {
        switch outcome {
        case .retry(_, let trouble)?, .fail(let trouble)?: trouble
        case .continue?, .finished?, nil: nil
        }
    }

    /// Returns the error of an upload whose server has sent this status to every request.
    private static func trouble(_ plan: UploadPlan, status: Int) -> TransferTrouble? {
        var talk = Dialogue(plan, suspects: true)
        for _ in 0..<60 where trouble(talk.outcome) == nil { talk.hear(status) }
        return trouble(talk.outcome)
    }

    /// Returns the error of an upload after an attempt without a response.
    private static func trouble(_ plan: UploadPlan, _ failure: WireFailure) -> TransferTrouble? {
        var policy = RetryPolicy.standard
        policy.suspicionDelay = 900
        var machine = UploadMachine(plan: plan, policy: policy)
        _ = machine.next()
        let end = WireEnd(head: nil, failure: failure, bytesSent: 0, bytesReceived: 0)
        return trouble(machine.ended(end, now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 0, jitter: 0.5))
    }

    @Test(arguments: UploadKind.protocols, [401, 403, 404, 405, 409, 413, 423, 429, 500, 503, 507])
    func `the message of a refused upload names the destination once and states what to do`(
        _ kind: UploadKind, _ status: Int
    ) throws {
        let trouble = try #require(Self.trouble(Self.plan(kind), status: status), "\(kind) \(status)")
        let message = trouble.message
        #expect(message.hasPrefix("home: "), "\(kind) \(status): \(message)")
        #expect(message.components(separatedBy: "home: ").count == 2, "\(message)")
        let help = [Self.settings, "on the server", "tried again"]
        #expect(help.contains { message.contains($0) }, "\(kind) \(status): \(message)")
        #expect(message.hasSuffix("."), "\(message)")
    }

    @Test(arguments: [
        (UploadKind.webdav, [HeaderField("Authorization", "Basic dTpw")], "The server refused user name or password (401)."),
        (.webdav, [HeaderField("authorization", "Bearer t")], "The server refused the token (401)."),
        (.immich, [HeaderField("x-api-key", "k")], "The server refused the API key (401)."),
        (.s3, [], "The server refused the access key or the secret key (401)."),
        (.put, [], "The server requires a user name and password (401)."),
    ])
    func `a refused credential is named, with the setting that holds it`(
        _ kind: UploadKind, _ headers: [HeaderField], _ words: String
    ) throws {
        let setting =
            switch UploadOpener(Self.plan(kind, headers: headers)) {
            case .nothing, .password: "user and password_file"
            case .token, .apiKey: "token_file"
            case .accessKey: "access_key and secret_key_file"
            }
        let message = try #require(Self.trouble(Self.plan(kind, headers: headers), status: 401)?.message)
        #expect(message.hasPrefix("home: \(words) "), "\(message)")
        #expect(message.contains("\(setting) in \(Self.settings), then retry the upload."), "\(message)")
        #expect(!message.contains("dTpw"))
    }

    @Test(arguments: [
        (WireFailure.couldNotResolveHost, "host name of url"), (.couldNotConnect, "server is running"),
        (.timedOutConnecting, "server is running"), (.tlsUntrusted("self-signed certificate"), "ca_file"),
        (.tlsUntrusted("certificate has expired"), "date and time"),
        (.other(code: 35, message: "handshake"), "scheme and the port"),
        (.connectionLost, "tried again"), (.stalled, "tried again"),
        (.authoritiesUnreadable(path: "/etc/ca.pem"), "/etc/ca.pem is missing"),
        (
            .requiredLineMissing(line, reason: nil),
            "/c.toml does not contain the line [a]. If the destination is still configured, retry"
        ),
        (.requiredLineMissing(line, reason: "Too many open files"), "/c.toml cannot be read: Too many open files."),
    ])
    func `a server that cannot be reached is named, with what to check`(_ failure: WireFailure, _ words: String) throws {
        let message = try #require(Self.trouble(Self.plan(.webdav), failure)?.message)
        #expect(message.hasPrefix("home: ") && message.contains(words), "\(message)")
    }

    private static let line = RequiredLine(file: "/c.toml", line: "[a]")

    @Test(arguments: UploadKind.protocols)
    func `every request of an upload depends on the line of its destination, except the removal`(_ kind: UploadKind) {
        var plan = Self.plan(kind)
        plan.order.server?.requiredLines = [Self.line]
        var talk = Dialogue(plan)
        for status in [404, 201, 204, 200, 404, 201, 412, 204, 200] { talk.hear(status, ["Location": "https://host/place"]) }
        #expect(!talk.requests.isEmpty && talk.requests.allSatisfy { $0.requiredLines == [Self.line] }, "\(talk.lines)")
        #expect(talk.machine.removal?.requiredLines ?? [] == [])
    }

    @Test func `a certificate that ca_file does not vouch for names the file`() throws {
        let plan = Self.plan(.webdav, authorityFile: "/home/me/ca.pem")
        let message = try #require(Self.trouble(plan, .tlsUntrusted("self-signed certificate"))?.message)
        #expect(message.contains("Check that /home/me/ca.pem has the certificate authority"), "\(message)")
    }

    @Test func `a missing certificate authority file is waited for`() {
        let plan = Self.plan(.webdav, authorityFile: "/home/me/ca.pem")
        var machine = UploadMachine(plan: plan)
        _ = machine.next()
        let end = WireEnd(head: nil, failure: .authoritiesUnreadable(path: "/home/me/ca.pem"), bytesSent: 0, bytesReceived: 0)
        let outcome = machine.ended(end, now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 40, jitter: 0.9)
        guard case .retry(let pause, let trouble) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(pause <= RetryPolicy.standard.cap && trouble.code == -3001 && trouble.suspicion == nil)
    }

    @Test(arguments: UploadKind.protocols)
    func `every request of an upload has the destination's authorities`(_ kind: UploadKind) {
        var talk = Dialogue(Self.plan(kind, authorityFile: "/home/me/ca.pem"))
        for status in [404, 201, 204, 200, 404, 201, 412, 204, 200] { talk.hear(status, ["Location": "https://host/place"]) }
        #expect(!talk.requests.isEmpty && talk.requests.allSatisfy { $0.authorityFile == "/home/me/ca.pem" }, "\(talk.lines)")
        #expect(talk.machine.removal.map { $0.authorityFile == "/home/me/ca.pem" } ?? true)
    }

    @Test func `an upload without a configured destination keeps the plain message`() throws {
        var plan = Self.plan(.webdav)
        plan.order.server = nil
        #expect(Self.trouble(plan, status: 413)?.message == "The file is too large for the server (413).")
    }
}
