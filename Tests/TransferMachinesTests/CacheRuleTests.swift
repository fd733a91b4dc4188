import Foundation
import Testing

@testable import TransferMachines

/// Tests the rules of RFC 9111 for a private cache.
@Suite struct CacheRuleTests {
    private static let made = Date(timeIntervalSince1970: 1_700_000_000)

    private func head(_ headers: [String: String], status: Int = 200, isDated: Bool = true) -> ResponseHead {
        var fields = headers.map { HeaderField($0.key, $0.value) }
        if isDated { fields.append(HeaderField("Date", HTTPDate.text(Self.made))) }
        return ResponseHead(status: status, headers: fields, url: "https://example.org/")
    }

    @Test(arguments: [
        (["Cache-Control": "max-age=60"], true), (["Expires": "Tue, 14 Nov 2023 23:13:20 GMT"], true), (["ETag": "\"1\""], true),
        (["Last-Modified": "Tue, 14 Nov 2023 22:13:20 GMT"], true), (["Cache-Control": "max-age=60, no-store"], false),
        ([:], false),
        (["Cache-Control": "private, max-age=60"], true), (["Cache-Control": "max-age=60", "Vary": "*"], false),
        (["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"], true),
        (["Cache-Control": "max-age=60", "Vary": "Cookie"], false),
    ])
    func `the response headers decide whether a response is stored`(_ headers: [String: String], _ isKept: Bool) {
        #expect(CacheRule.mayKeep(head(headers), request: []) == isKept)
    }

    @Test func `the request and the status decide whether a response is stored`() {
        let fresh = head(["Cache-Control": "max-age=60"])
        #expect(!CacheRule.mayKeep(fresh, request: [HeaderField("authorization", "Basic x")]))
        #expect(!CacheRule.mayKeep(fresh, request: [HeaderField("Cache-Control", "no-store")]))
        #expect(!CacheRule.mayKeep(fresh, request: [HeaderField("Range", "bytes=0-1")]))
        #expect(!CacheRule.mayKeep(head(["Cache-Control": "max-age=60"], status: 206), request: []))
        #expect(!CacheRule.mayKeep(head(["Cache-Control": "max-age=60"], status: 500), request: []))
    }

    private func isFresh(_ headers: [String: String], after seconds: Double, request: [HeaderField] = [], isDated: Bool = true)
        -> Bool
    {
        let head = head(headers, isDated: isDated)
        return CacheRule.state(of: head, request: request, now: Self.made.addingTimeInterval(seconds)) == .fresh
    }

    @Test func `a response is fresh until its age reaches its lifetime`() {
        #expect(isFresh(["Cache-Control": "max-age=60"], after: 59))
        #expect(!isFresh(["Cache-Control": "max-age=60"], after: 60))
        // The header `Age` contains the number of seconds for which other caches had the response. The number in `Age` is added
        // to the age of the response.
        #expect(!isFresh(["Cache-Control": "max-age=60", "Age": "30"], after: 31))
        // max-age has priority over Expires. If a date is invalid, the response counts as expired.
        #expect(isFresh(["Cache-Control": "max-age=60", "Expires": "0"], after: 1))
        #expect(!isFresh(["Expires": "0", "ETag": "\"1\""], after: 1))
        #expect(isFresh(["Expires": HTTPDate.text(Self.made.addingTimeInterval(10))], after: 9))
        // If the clock is behind, a response must not stay fresh for ever. The age of a response without a date is unknown.
        #expect(!isFresh(["Cache-Control": "max-age=60"], after: -3_600))
        #expect(!isFresh(["Cache-Control": "max-age=60"], after: 1, isDated: false))
        #expect(!isFresh(["Cache-Control": "no-cache, max-age=60"], after: 1))
        #expect(!isFresh(["Cache-Control": "max-age=60"], after: 1, request: [HeaderField("Cache-Control", "no-cache")]))
        #expect(!isFresh(["Cache-Control": "max-age=60"], after: 20, request: [HeaderField("Cache-Control", "max-age=10")]))
    }

    /// The server sends no date, or an invalid date.
    @Test(arguments: [[HeaderField](), [HeaderField("date", "yesterday")]])
    func `a response without a valid date counts from its receipt`(
        _ made: [HeaderField]
    ) {
        let headers = CacheRule.dated([HeaderField("Cache-Control", "max-age=60")] + made, received: Self.made)
        let head = ResponseHead(status: 200, headers: headers, url: "https://example.org/")
        #expect(CacheRule.state(of: head, request: [], now: Self.made.addingTimeInterval(59)) == .fresh)
        #expect(CacheRule.state(of: head, request: [], now: Self.made.addingTimeInterval(60)) == .stale(validators: []))
        // The server's date has priority over the date of receipt.
        #expect(CacheRule.dated(headers, received: .distantFuture) == headers)
    }

    @Test func `a stale response is revalidated with its validators`() {
        let head = head(["ETag": "\"1\"", "Last-Modified": "then"])
        let validators = [HeaderField("If-None-Match", "\"1\""), HeaderField("If-Modified-Since", "then")]
        #expect(CacheRule.state(of: head, request: [], now: Self.made) == .stale(validators: validators))
    }

    @Test func `a 304 updates the stored headers`() {
        let kept = head(["ETag": "\"1\"", "Content-Type": "text/plain", "Content-Length": "5"])
        let answer = ResponseHead(
            status: 304,
            headers: [
                HeaderField("etag", "\"1\""), HeaderField("Cache-Control", "max-age=9"), HeaderField("Content-Length", "0"),
            ],
            url: "https://example.org/")
        let received = Self.made.addingTimeInterval(100)
        let renewed = CacheRule.renewed(kept, by: answer, received: received)
        #expect(renewed["Date"] == HTTPDate.text(received))
        #expect(renewed.status == 200 && renewed["Cache-Control"] == "max-age=9" && renewed["Content-Type"] == "text/plain")
        #expect(renewed["Content-Length"] == "5" && renewed.headers.filter { $0.name.lowercased() == "etag" }.count == 1)
    }

    /// Writes and parses 4,000 dates within 400 years around the current date.
    @Test func `a date that is written can be parsed`() {
        for day in stride(from: -80_000, through: 66_000, by: 37) {
            let date = Date(timeIntervalSince1970: Double(day) * 86_400 + Double(abs(day) % 86_400))
            #expect(HTTPDate.parse(HTTPDate.text(date)) == date)
        }
        #expect(HTTPDate.text(Date(timeIntervalSince1970: 784_111_777)) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.text(Date(timeIntervalSince1970: 1_709_164_800)) == "Thu, 29 Feb 2024 00:00:00 GMT")
    }
}

@Suite struct SuggestedNameTests {
    private func name(_ disposition: String?, at url: String = "https://example.org/a/b%20c.txt?q=1") -> String {
        SuggestedName.of(
            ResponseHead(status: 200, headers: disposition.map { [HeaderField("Content-Disposition", $0)] } ?? [], url: url))
    }

    @Test(arguments: [
        ("attachment; filename=\"report.pdf\"", "report.pdf"), ("attachment; filename=report.pdf", "report.pdf"),
        ("attachment; filename=\"a; b.txt\"; size=3", "a; b.txt"), ("attachment; filename=\"a \\\"b\\\".txt\"", "a \"b\".txt"),
        ("attachment; filename=\"plain\"; filename*=UTF-8''na%C3%AFve.txt", "naïve.txt"),
        ("attachment; FILENAME*=utf-8'de'%e2%82%ac.txt", "€.txt"), ("attachment; filename*=ISO-8859-1''x; filename=y", "y"),
        ("inline", "b c.txt"), ("attachment; filename=\"\"", "b c.txt"),
        // A server must not be able to choose the folder of the downloaded file.
        ("attachment; filename=\"../../.ssh/authorized_keys\"", "authorized_keys"),
        ("attachment; filename=\"C:\\\\Windows\\\\evil.exe\"", "evil.exe"), ("attachment; filename=\"..\"", "b c.txt"),
        ("attachment; filename=\".bashrc\"", "bashrc"), ("attachment; filename*=UTF-8''a%2Fb%00c%0A.txt", "bc.txt"),
        ("attachment; filename*=UTF-8''photo%E2%80%AEgpj.exe", "photogpj.exe"),
    ])
    func `a name from the server is cleaned`(_ disposition: String, _ expected: String) { #expect(name(disposition) == expected) }

    @Test(arguments: [
        ("https://example.org/a/b%20c.txt?q=1", "b c.txt"), ("https://example.org/", "Unknown"),
        ("https://example.org", "Unknown"),
        ("https://example.org/a%2Fb", "b"), ("https://example.org/dir/", "dir"),
    ])
    func `the address names the file if the server does not`(_ url: String, _ expected: String) {
        #expect(name(nil, at: url) == expected)
    }

    @Test func `a long name is cut between characters`() {
        let long = name("attachment; filename=\"\(String(repeating: "ä", count: 300)).txt\"")
        #expect(long.utf8.count <= 255 && long.hasPrefix("ää") && !long.contains("\u{FFFD}"))
    }

    /// For any text of a server, the result is a name in the destination folder.
    @Test func `a name never leads to another folder`() {
        var generator = SystemRandomNumberGenerator()
        let letters = Array("ab./\\\"';=*%0125\u{0}\n\r\t ä\u{202E}")
        for _ in 0..<5_000 {
            let text = String(
                (0..<Int.random(in: 0..<40, using: &generator)).map { _ in letters.randomElement(using: &generator) ?? "x" })
            let name = name("attachment; filename\(["=", "*=UTF-8''"].randomElement(using: &generator) ?? "=")\(text)")
            #expect(
                !name.isEmpty && !name.contains("/") && !name.hasPrefix(".") && !name.contains("\0") && name.utf8.count <= 255,
                "\(text.debugDescription)")
        }
    }
}

/// Tests downloads whose body arrives compressed.
@Suite struct DecodedDownloadTests {
    private let head = ResponseHead(
        status: 200,
        headers: [
            HeaderField("Content-Encoding", "gzip"), HeaderField("Content-Length", "25"), HeaderField("ETag", "\"1\""),
            HeaderField("Repr-Digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
        ], url: "https://example.org/f")

    private func request(_ headers: [HeaderField] = []) -> TransferRequest {
        var request = TransferRequest(method: "GET", url: "https://example.org/f", headers: headers)
        request.decodesContent = true
        return request
    }

    @Test func `length, entity tag and digest of a compressed response do not apply to the decoded bytes`() {
        var machine = DownloadMachine(request: request(), partial: nil)
        #expect(machine.begin().decodesContent)
        #expect(machine.received(head) == .rewrite)
        #expect(machine.partial?.totalBytes == nil && machine.partial?.validator == nil)
        #expect(machine.requiredDigests(of: head).isEmpty)
        let end = WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 5)
        let command = machine.ended(end, durableBytes: 5, now: .distantPast, attemptsWithoutProgress: 0, jitter: 0)
        #expect(command == .finish(head: head, resumedFrom: nil))
    }

    /// The decoded bytes of one response cannot be combined with the bytes of another response.
    @Test func `a decoded download that is cut starts over`() {
        var machine = DownloadMachine(request: request(), partial: nil)
        _ = machine.begin()
        _ = machine.received(head)
        let end = WireEnd(head: head, failure: .connectionLost, bytesSent: 0, bytesReceived: 3)
        guard case .restart = machine.ended(end, durableBytes: 3, now: .distantPast, attemptsWithoutProgress: 0, jitter: 0) else {
            Issue.record("the download continues from decoded bytes")
            return
        }
        #expect(!machine.begin().headers.contains { $0.name == "Range" })
    }

    @Test func `a request that names a coding itself keeps its header and is decoded`() {
        var machine = DownloadMachine(request: request([HeaderField("Accept-Encoding", "gzip")]), partial: nil)
        let wire = machine.begin()
        #expect(wire.decodesContent && wire.headers == [HeaderField("Accept-Encoding", "gzip")])
        _ = machine.received(head)
        #expect(machine.partial?.totalBytes == nil && machine.partial?.validator == nil)
    }

    @Test func `a download that is not decoded has the length that was sent`() {
        var machine = DownloadMachine(request: TransferRequest(method: "GET", url: "https://example.org/f"), partial: nil)
        #expect(!machine.begin().decodesContent)
        _ = machine.received(head)
        #expect(machine.partial?.totalBytes == 25)
    }

    @Test(
        arguments: [
            ([], true), (["br;q=1.0, gzip;q=0.9, deflate;q=0.8"], true), (["gzip;q=1.0, compress;q=0.5"], true), (["GZIP"], true),
            (["x-own", "deflate"], true), (["identity"], true), (["*"], true), ([""], true), (["x-own"], false),
            (["x-own;q=1, compress"], false),
        ] as [([String], Bool)])
    func `a request with unknown codings only is not decoded`(_ values: [String], _ isDecoded: Bool) {
        let headers = values.map { HeaderField("accept-encoding", $0) } + [HeaderField("Accept", "text/plain")]
        #expect(ContentCoding.isDecoded(inResponseTo: headers) == isDecoded)
    }
}
