import Foundation
import Testing

@testable import TransferMachines

private let url = "https://host/file"
private let now = Date(timeIntervalSince1970: 1_800_000_000)

private func head(_ status: Int, _ headers: [String: String] = [:], url: String = url) -> ResponseHead {
    ResponseHead(status: status, headers: headers.map { HeaderField($0.key, $0.value) }, url: url)
}

private func held(_ bytes: Int64, of total: Int64?, tag: String? = "\"1\"", url: String = url) -> PartialFile {
    var partial = PartialFile(durableBytes: bytes, validator: tag.map { .entityTag($0) }, totalBytes: total, url: url)
    partial.isPage = false
    return partial
}

private let part = ["Content-Range": "bytes 40-99/100", "ETag": "\"1\"", "Content-Length": "60"]

@Suite struct DownloadMachineTests {
    /// Runs one attempt. Returns the decision about the response, and the next command.
    private func attempt(
        _ machine: inout DownloadMachine, _ head: ResponseHead?, failure: WireFailure? = nil, durable: Int64 = 0,
        attempts: Int = 0
    ) -> (BodyDisposition?, DownloadCommand) {
        _ = machine.begin()
        let disposition = head.map { machine.received($0) }
        let end = WireEnd(head: head, failure: failure, bytesSent: 0, bytesReceived: 0)
        return (
            disposition,
            machine.ended(
                end, durableBytes: durable, now: now, attemptsWithoutProgress: attempts, jitter: 0.5)
        )
    }

    private func ofFile() -> TransferRequest {
        var request = TransferRequest(url: url)
        request.fileName = "file"
        return request
    }

    private func isRetry(_ command: DownloadCommand) -> Bool { if case .retry = command { true } else { false } }

    @Test(arguments: [202, 421, 423, 425, 500, 507, 509, 520, 522, 530, 599])
    func `a file is requested again after a response of a gateway or a busy server`(_ status: Int) {
        for partial in [nil, held(40, of: 100)] {
            var machine = DownloadMachine(request: ofFile(), partial: partial)
            for attempts in [0, 50] { #expect(isRetry(attempt(&machine, head(status), attempts: attempts).1)) }
            #expect(machine.partial == partial)
        }
    }

    @Test(arguments: [400, 403, 404, 410]) func `a part is not given up for one refusal`(_ status: Int) {
        var machine = DownloadMachine(request: ofFile(), partial: held(40, of: 100))
        for attempts in 0..<RetryPolicy.maximumRefusals {
            #expect(isRetry(attempt(&machine, head(status), attempts: attempts).1))
        }
        #expect(!isRetry(attempt(&machine, head(status), attempts: RetryPolicy.maximumRefusals).1))
        machine = DownloadMachine(request: ofFile(), partial: nil)
        #expect(!isRetry(attempt(&machine, head(status)).1))
    }

    /// A response with one of these statuses does not contain the file (RFC 9110 §15.3.5 and §15.3.6).
    @Test(arguments: [204, 205, 207]) func `a success without a file replaces no file`(_ status: Int) {
        var machine = DownloadMachine(request: ofFile(), partial: nil)
        for attempts in 0..<RetryPolicy.maximumRefusals {
            #expect(isRetry(attempt(&machine, head(status), attempts: attempts).1))
        }
        guard case .fail = attempt(&machine, head(status), attempts: RetryPolicy.maximumRefusals).1 else {
            Issue.record("stored")
            return
        }
    }

    /// A captive portal redirects in a circle until it receives its own cookie.
    @Test(arguments: ["http", "https"]) func `a circle of redirects over http is waited out`(_ scheme: String) {
        var policy = RetryPolicy.standard
        policy.suspicionDelay = 900
        var machine = DownloadMachine(request: TransferRequest(url: "\(scheme)://host/file"), partial: nil, policy: policy)
        #expect(isRetry(attempt(&machine, nil, failure: .tooManyRedirects).1) == (scheme == "http"))
    }

    @Test func `the rest of a file is requested with Range and If-Range`() {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        let headers = machine.begin().headers
        #expect(
            headers == [
                HeaderField("Accept-Encoding", "identity"), HeaderField("Range", "bytes=40-"), HeaderField("If-Range", "\"1\""),
            ])
        #expect(machine.report.description == "the download continued at byte 40 with If-Range")
    }

    @Test(arguments: [
        (TransferRequest(url: url), held(40, of: 100, tag: nil)),
        (TransferRequest(method: "POST", url: url), held(40, of: 100)),
        (TransferRequest(url: url, headers: [HeaderField("If-None-Match", "\"x\"")]), held(40, of: 100)),
        (TransferRequest(url: url), held(140, of: 100)),
        (TransferRequest(url: url), held(0, of: 100)),
    ])
    func `a download without a usable part requests the complete file`(_ request: TransferRequest, _ partial: PartialFile) {
        var machine = DownloadMachine(request: request, partial: partial)
        let names = machine.begin().headers.map(\.name)
        #expect(!names.contains("Range") && !names.contains("If-Range"))
    }

    @Test func `a matching part is appended`() {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: nil))
        let (disposition, command) = attempt(&machine, head(206, part), durable: 100)
        #expect(disposition == .append(at: 40))
        #expect(command == .finish(head: head(206, part), resumedFrom: 40))
        #expect(machine.partial?.totalBytes == 100)
    }

    @Test(arguments: [
        ["Content-Range": "bytes 39-99/100"], ["Content-Range": "bytes 0-59/60"], ["Content-Range": "bytes 40-99/101"],
        ["Content-Range": "nonsense"], ["ETag": "\"2\""], ["ETag": "W/\"1\""], ["ETag": ""], ["Content-Length": "61"],
        ["Content-Type": "multipart/byteranges; boundary=x"],
    ])
    func `a part that does not match is discarded and the download starts over`(_ change: [String: String]) {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        let answer = head(206, part.merging(change) { $1 })
        let (disposition, command) = attempt(&machine, answer, failure: .stoppedByOwner, durable: 40)
        #expect(disposition == .discard)
        guard case .restart(after: 0, _) = command else { Issue.record("\(command)"); return }
        #expect(machine.partial == nil)
        #expect(!machine.begin().headers.contains { $0.name == "Range" })
    }

    /// If a server ignores `If-Range` and sends no entity tag, the remaining bytes may belong to another version of the file.
    @Test func `a part without an entity tag is discarded`() {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        let answer = head(206, part.filter { $0.key != "ETag" })
        let (disposition, command) = attempt(&machine, answer, failure: .stoppedByOwner, durable: 40)
        #expect(disposition == .discard)
        guard case .restart(after: 0, _) = command else { Issue.record("\(command)"); return }
        #expect(machine.partial == nil)
    }

    @Test func `a part from another address or without a total is discarded`() {
        var elsewhere = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        #expect(attempt(&elsewhere, head(206, part, url: "https://other/file")).0 == .discard)
        #expect(elsewhere.report == .startedOver(.otherAddress))
        var endless = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: nil))
        let open = head(206, ["Content-Range": "bytes 40-99/*", "ETag": "\"1\""])
        #expect(attempt(&endless, open).0 == .discard)
    }

    /// Old servers send the transfer coding `identity`, which does not change the length. With a real transfer coding, the length
    /// is not valid.
    @Test(arguments: [("identity", 60, false), ("identity", 100, true), ("chunked", 60, true), ("gzip, Chunked", 60, true)])
    func `the length counts unless a real transfer coding is used`(_ coding: String, _ durable: Int64, _ isWhole: Bool) {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: nil)
        let answer = head(200, ["Content-Length": "100", "Transfer-Encoding": coding])
        let (_, command) = attempt(&machine, answer, durable: durable)
        if case .finish = command { #expect(isWhole) } else { #expect(!isWhole, "\(command)") }
    }

    @Test func `a complete file in place of a part replaces the part`() {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        let answer = head(200, ["ETag": "\"2\"", "Content-Length": "50"])
        let (disposition, command) = attempt(&machine, answer, durable: 50)
        #expect(disposition == .rewrite)
        #expect(command == .finish(head: answer, resumedFrom: nil))
        #expect(machine.report.description == "the download started over, because the file changed")
        #expect(machine.partial == held(0, of: 50, tag: "\"2\""))
    }

    @Test func `a complete file is verified by its last byte`() {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(100, of: nil))
        let (disposition, command) = attempt(&machine, head(416, ["Content-Range": "bytes */100"]), durable: 100)
        #expect(disposition == .discard)
        guard case .retry(after: 0, _) = command else { Issue.record("\(command)"); return }
        #expect(machine.begin().headers.contains(HeaderField("Range", "bytes=99-")))
        let last = head(206, ["Content-Range": "bytes 99-99/100", "ETag": "\"1\""])
        #expect(machine.received(last) == .append(at: 99))
        let end = WireEnd(head: last, failure: nil, bytesSent: 0, bytesReceived: 1)
        #expect(
            machine.ended(end, durableBytes: 100, now: now, attemptsWithoutProgress: 0, jitter: 0)
                == .finish(head: last, resumedFrom: 99))
    }

    @Test(arguments: [
        (416, ["Content-Range": "bytes */50"]), (416, [:]), (412, [:]), (304, [:]),
        (416, ["Content-Range": "bytes */100"]),
    ])
    func `a download starts over if the server cannot send the part`(_ status: Int, _ headers: [String: String]) {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        let (disposition, command) = attempt(&machine, head(status, headers), durable: 40)
        #expect(disposition == .discard)
        guard case .restart = command else { Issue.record("\(command)"); return }
    }

    @Test(arguments: [408, 429, 500, 502, 503, 504])
    func `a status that can be retried keeps the bytes`(_ status: Int) {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        let (disposition, command) = attempt(&machine, head(status, ["Retry-After": "99"]), durable: 40)
        #expect(disposition == .discard)
        guard case .retry(after: 148.5, let trouble) = command else { Issue.record("\(command)"); return }
        #expect(trouble.status == status && trouble.retryAfter == 99 && !trouble.isWaitingForNetwork)
        #expect(machine.partial == held(40, of: 100))
    }

    @Test(arguments: [204, 301, 304, 400, 401, 403, 404, 410, 412, 416, 418])
    func `other statuses are passed to the app`(_ status: Int) {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: nil)
        let (disposition, command) = attempt(&machine, head(status), durable: 0)
        #expect(disposition == .rewrite)
        #expect(command == .finish(head: head(status), resumedFrom: nil))
        #expect(machine.partial?.validator == nil)
    }

    /// Over http, a captive portal can respond for every server. The portal's page must not replace a partial file, and is not
    /// the requested file.
    @Test(arguments: [
        ("http://host/disk.img", "http://host/disk.img", 40, true), ("http://host/disk.img", "http://login/hotel", 40, true),
        ("http://host/disk.img", "http://login/hotel", 0, true), ("http://host/page", "http://elsewhere/page", 0, false),
        ("http://host/disk.img", "http://host/disk.img", 0, false), ("https://host/disk.img", "https://host/disk.img", 40, false),
    ]) func `a page in place of the file is waited out over http`(
        _ asked: String, _ answering: String, _ here: Int64, _ isSuspected: Bool
    ) {
        var policy = RetryPolicy.standard
        policy.suspicionDelay = 900
        let partial = here > 0 ? held(here, of: 100, url: asked) : nil
        var machine = DownloadMachine(request: TransferRequest(url: asked), partial: partial, policy: policy)
        let page = head(200, ["Content-Type": "text/html; charset=utf-8"], url: answering)
        let (disposition, command) = attempt(&machine, page)
        guard isSuspected else {
            #expect(disposition == .rewrite)
            return
        }
        guard disposition == .discard, case .retry(let after, let trouble) = command else {
            Issue.record("\(command)")
            return
        }
        #expect(after >= 900 && trouble.suspicion == .portal && machine.partial == partial)
        // On a network without the captive portal, the download continues after its stored bytes.
        if here > 0 { #expect(attempt(&machine, head(206, part, url: asked), durable: 100).0 == .append(at: 40)) }
    }

    private static let page = ["Content-Type": "text/html"]
    private static let pages: [([String: String], String, String?, Bool)] = [
        (page, "http://host/disk.iso", "disk.iso", true),
        (["Content-Type": "application/xhtml+xml"], "http://host/disk.iso", "disk.iso", true),
        (page, "http://host/get?id=7", "setup.exe", true),
        (["Content-Type": "text/html", "ETag": "\"1\""], "http://host/disk.iso", "disk.iso", false),
        (page, "http://host/disk.iso", nil, false),
        (page, "http://host/export.csv", "export.csv", false),
        (page, "http://host/a.php", "a.php", false),
        (page, "http://host/notes-1.2", "notes-1.2", false),
        (["Content-Type": "application/octet-stream"], "http://host/disk.iso", "disk.iso", false),
        (page, "https://host/disk.iso", "disk.iso", false),
    ]

    /// A captive portal may respond with the name of the host, and with any kind of page. The page must not replace the user's
    /// file. A page with an entity tag is treated as a file. The output of programs is often sent as a page.
    @Test(arguments: pages)
    func `a page over http is not stored as a disk image or a program`(
        _ headers: [String: String], _ url: String, _ name: String?, _ isSuspected: Bool
    ) {
        var policy = RetryPolicy.standard
        policy.suspicionDelay = 900
        let request = TransferRequest(url: url, fileName: name)
        var machine = DownloadMachine(request: request, partial: nil, policy: policy)
        let (disposition, command) = attempt(&machine, head(200, headers, url: url))
        let isRefused = if case .retry(_, let trouble) = command { trouble.suspicion == .portal } else { false }
        #expect(isRefused == isSuspected && (disposition == .discard) == isSuspected)
    }

    @Test func `a short body is resumed, or starts over without a validator`() {
        let strong = head(200, ["Content-Length": "100", "ETag": "\"1\""])
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: nil)
        guard case .retry(after: 0.5, let trouble) = attempt(&machine, strong, failure: .connectionLost, durable: 40).1
        else { Issue.record("no retry"); return }
        #expect(trouble.code == -1005)
        #expect(machine.partial == held(40, of: 100))
        // If the server closes the connection without an error, the download is also retried.
        guard case .retry = attempt(&machine, head(206, part), durable: 70).1 else { Issue.record("no retry"); return }
        var weak = DownloadMachine(request: TransferRequest(url: url), partial: nil)
        let command = attempt(&weak, head(200, ["ETag": "W/\"1\""]), failure: .connectionLost, durable: 40).1
        guard case .restart = command else { Issue.record("\(command)"); return }
        #expect(
            weak.partial == nil
                && weak.report.description
                    == "the download started over, because the server sent no usable validator (ETag or Last-Modified)"
        )
    }

    @Test(arguments: [
        (WireFailure.couldNotResolveHost, -1003, true), (.couldNotConnect, -1004, true), (.timedOutConnecting, -1001, true),
        (.stalled, -1001, false), (.connectionLost, -1005, false), (.badAnswer("x"), -1011, false),
        (.other(code: 35, message: "x"), -1200, false),
    ])
    func `passing failures are retried and keep the bytes`(_ failure: WireFailure, _ code: Int, _ waits: Bool) {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: held(40, of: 100))
        guard case .retry(let after, let trouble) = attempt(&machine, nil, failure: failure, durable: 40).1 else {
            Issue.record("no retry")
            return
        }
        #expect(trouble.code == code && trouble.isWaitingForNetwork == waits && after > 0)
        // The error code in the ledger must lead to the same result, because the ledger contains only this code.
        #expect(TransferTrouble.isUnreachable(recordedCode: trouble.recordedCode) == waits)
        if waits { #expect(TransferTrouble.recordedNetworkCodes.contains(trouble.recordedCode)) }
        #expect(machine.partial == held(40, of: 100))
    }

    @Test(arguments: [
        WireFailure.tlsUntrusted("x"), .tooManyRedirects, .redirectToOtherScheme, .bodyTooLarge, .unsupportedURL,
        .stoppedByOwner, .cancelled,
    ])
    func `permanent failures end the download`(_ failure: WireFailure) {
        var machine = DownloadMachine(request: TransferRequest(url: url), partial: nil)
        guard case .fail = attempt(&machine, nil, failure: failure).1 else { Issue.record("no failure"); return }
    }

    @Test func `a POST is sent again only if the server cannot have acted on it`() {
        var machine = DownloadMachine(request: TransferRequest(method: "POST", url: url), partial: nil)
        guard case .fail = attempt(&machine, nil, failure: .connectionLost).1 else { Issue.record("sent twice"); return }
        guard case .retry = attempt(&machine, nil, failure: .couldNotConnect).1 else { Issue.record("no retry"); return }
        #expect(attempt(&machine, head(500), durable: 0).1 == .finish(head: head(500), resumedFrom: nil))
        guard case .retry = attempt(&machine, head(503)).1 else { Issue.record("no retry"); return }
    }

    @Test func `a file that is too large fails at its response headers`() {
        let request = TransferRequest(url: url, maximumBodyBytes: 99)
        var machine = DownloadMachine(request: request, partial: held(40, of: 100))
        let (disposition, command) = attempt(&machine, head(206, part), failure: .stoppedByOwner, durable: 40)
        #expect(disposition == .discard)
        #expect(command == .fail(TransferTrouble(.bodyTooLarge)))
    }
}
