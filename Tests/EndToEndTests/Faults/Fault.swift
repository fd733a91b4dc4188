import Spool
import BackgroundLedger
import FaultyServer
import Foundation

/// A fault of a server or a network during a download, and the promised result.
struct Fault: Sendable {
    enum Promise: Sendable {
        /// The downloaded file is complete, byte for byte.
        case whole(Payload)
        /// The download fails with this code and without a file.
        case failed(Int)
        /// The download is retried until the resource timeout. The last error of the download has this code.
        case waiting(Int)
    }

    let name: String
    let scripts: @Sendable (FaultyServer) -> [ResponseScript]
    let promise: Promise
    var url: (@Sendable (FaultyServer) -> String)?
    var change: @Sendable (inout TransferRecord) -> Void = { _ in }

    init(
        _ name: String, _ promise: Promise, change: @escaping @Sendable (inout TransferRecord) -> Void = { _ in },
        _ scripts: ResponseScript...
    ) {
        self.name = name
        self.promise = promise
        self.change = change
        self.scripts = { _ in scripts }
    }

    init(_ name: String, _ promise: Promise, redirecting scripts: @escaping @Sendable (FaultyServer) -> [ResponseScript]) {
        self.name = name
        self.promise = promise
        self.scripts = scripts
    }

    init(_ name: String, _ promise: Promise, at url: @escaping @Sendable (FaultyServer) -> String) {
        self.name = name
        self.promise = promise
        self.scripts = { _ in [.hangUp] }
        self.url = url
    }
}

extension Fault {
    static let file = Payload.pattern(300_000)
    /// Another version of the file with the same length. Only a validator can distinguish the versions.
    static let later = Payload.bytes(Data(Payload.pattern(300_001).data.dropFirst()))
    private static let page = Payload.text("<html><title>Log in to the hotel's network</title></html>")
    private static let fileDigest = FileDigest.sha256(of: file.data)

    private static let honest = ResponseScript.file(file, etag: "\"v1\"")
    private static let cut = ResponseScript.cutAfter(100_000, of: file, etag: "\"v1\"")

    private static func lying(_ fault: ServedFile.RangeFault, _ payload: Payload = file, etag: String = "\"v1\"")
        -> ResponseScript
    {
        var served = ServedFile(payload, etag: etag)
        served.rangeFault = fault
        return .served(served)
    }

    private static func base64(_ hex: String) -> String {
        var bytes = Data()
        var rest = hex[...]
        while let byte = UInt8(rest.prefix(2), radix: 16) {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes.base64EncodedString()
    }

    private static func whole(_ payload: Payload, _ headers: HeaderList) -> ResponseScript {
        .status(200, headers: headers, body: payload)
    }

    /// 64 MiB of zeros, compressed to 65 kB.
    private static let bomb: Payload = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "head -c 67108864 /dev/zero | gzip -9n"]
        let output = Pipe()
        process.standardOutput = output
        try? process.run()
        defer { process.waitUntilExit() }
        return .bytes(output.fileHandleForReading.readDataToEndOfFile())
    }()

    /// Sends a chunked response, so that the length is not known.
    private static func chunked(_ count: Int, etag: String) -> ResponseScript {
        ResponseScript([
            .status(200), .headers(["ETag": etag, "Transfer-Encoding": "chunked"]), .chunked(file.slice(0..<count)), .cut,
        ])
    }

    static let all: [Fault] = connection + ranges + versions + bodies + statuses + redirects + floods

    private static let connection: [Fault] = [
        Fault("no fault", .whole(file), honest),
        Fault("the connection is cut once, in the body", .whole(file), cut, honest),
        Fault("every connection is cut after 50 kB", .whole(file), .cutAfter(50_000, of: file, etag: "\"v1\"")),
        Fault("the connection is reset before the response", .whole(file), .resetConnection, honest),
        Fault(
            "the connection is reset between the headers and the body", .whole(file),
            ResponseScript([.status(200), .headers(["Content-Length": "300000", "ETag": "\"v1\""]), .reset]), honest),
        Fault(
            "the connection is reset in the body", .whole(file), .cutAfter(100_000, of: file, etag: "\"v1\"", by: .reset), honest),
        Fault("the connection is closed without a response", .whole(file), .hangUp, honest),
        Fault("the server sends no response", .whole(file), change: { $0.idleTimeout = 2 }, .silence, honest),
        Fault(
            "the server stops sending in the body", .whole(file), change: { $0.idleTimeout = 2 },
            .cutAfter(100_000, of: file, etag: "\"v1\"", by: .stall), honest),
        Fault(
            "the server sends the response slowly", .whole(file.slice(0..<2_000)), change: { $0.idleTimeout = 0.5 },
            ResponseScript([
                .status(200), .headers(["Content-Length": "2000"]),
                .drip(file.slice(0..<2_000), chunkSize: 200, interval: 0.1),
            ])),
        Fault("no server listens on the port", .waiting(-1004), at: { _ in "http://127.0.0.1:1/" }),
        Fault("the host does not exist", .waiting(-1003), at: { _ in "http://nowhere.invalid/" }),
        Fault(
            "the server sends a response that is not HTTP", .waiting(-1011),
            ResponseScript([.raw("SSH-2.0-OpenSSH_9.2\r\n"), .cut])),
    ]

    private static let ranges: [Fault] = [
        Fault("206 with another offset than the agent requested", .whole(file), cut, lying(.shiftedStart(-10))),
        Fault("206 with the ETag of another version", .whole(file), cut, lying(.otherETag("\"v2\""))),
        Fault("206 with another total length", .whole(file), cut, lying(.wrongTotal(400_000))),
        Fault("206 without Content-Range", .whole(file), cut, lying(.missingContentRange)),
        Fault(
            "206 with several parts (multipart)", .whole(file), cut,
            ResponseScript([
                .status(206),
                .headers(["ETag": "\"v1\"", "Content-Type": "multipart/byteranges; boundary=x", "Content-Length": "3"]),
                .body("--x"),
            ]), honest),
        Fault("206 to a request without a range", .whole(file), lyingPart, honest),
        Fault("200 to a request with a range", .whole(file), cut, .file(file, etag: "\"v1\"", supportsRange: false)),
        Fault("416 with the complete length, although bytes are missing", .whole(file), cut, lying(.alwaysUnsatisfiable)),
        Fault("416 without Content-Range", .whole(file), cut, lying(.status(416))),
        Fault("412 to a request with a range", .whole(file), cut, lying(.status(412))),
        Fault("304 to a request with a range", .whole(file), cut, lying(.status(304))),
        Fault(
            "the length is unknown, and the connection is cut after the last byte", .whole(file),
            chunked(300_000, etag: "\"v1\""), honest),
        Fault(
            "the length is unknown, and the connection is cut in the body", .whole(file), chunked(100_000, etag: "\"v1\""), honest
        ),
    ]

    private static let lyingPart = ResponseScript([
        .status(206), .headers(["ETag": "\"v1\"", "Content-Range": "bytes 5-9/300000", "Content-Length": "5"]), .body("wrong"),
    ])

    private static let versions: [Fault] = [
        Fault("the file changes while the connection is interrupted", .whole(later), cut, .file(later, etag: "\"v2\"")),
        Fault(
            "the file changes, and the server ignores If-Range", .whole(later), cut, lying(.ignoresIfRange, later, etag: "\"v2\"")
        ),
        Fault(
            "the server sends only a weak ETag", .whole(file), .cutAfter(100_000, of: file, etag: "W/\"v1\""),
            .file(file, etag: "W/\"v1\"")),
        Fault("the server sends no validator (ETag or Last-Modified)", .whole(file), .cutAfter(100_000, of: file), .file(file)),
        Fault(
            "the rest of the file arrives with gzip and the unchanged ETag", .whole(file), cut,
            ResponseScript([
                .status(206),
                .headers([
                    "ETag": "\"v1\"", "Content-Encoding": "gzip", "Content-Range": "bytes 100000-299999/300000",
                    "Content-Length": "200000",
                ]), .body(later.slice(100_000..<300_000)),
            ]), honest),
    ]

    private static let bodies: [Fault] = [
        Fault(
            "the server sends fewer bytes than it announced", .whole(file),
            ResponseScript([
                .status(200), .headers(["Content-Length": "300000", "ETag": "\"v1\""]), .body(file.slice(0..<200_000)), .cut,
            ]), honest),
        Fault(
            "the announced length is too small, and the app set a digest", .failed(-1016),
            change: { $0.expectedSHA256 = fileDigest },
            ResponseScript([.status(200), .headers(["Content-Length": "1000"]), .body(file)], ending: .close)),
        Fault(
            "a captive portal responds with 200, and the app set a digest", .waiting(-1010),
            change: { $0.expectedSHA256 = fileDigest },
            whole(page, ["Content-Type": "text/html"])),
        Fault(
            "a captive portal responds with 200, and the app set no digest", .waiting(-1010),
            whole(page, ["Content-Type": "text/html"])),
        Fault(
            "a captive portal responds with 200 and an ETag", .whole(page),
            whole(page, ["Content-Type": "text/html", "ETag": "\"1\""])),
        Fault(
            "the server announces the right digest", .whole(file), whole(file, ["Repr-Digest": "sha-256=:\(base64(fileDigest)):"])
        ),
        Fault(
            "the server announces another digest", .failed(-1016),
            whole(later, ["Content-Digest": "sha-256=:\(base64(fileDigest)):"])),
        Fault(
            "the file arrives in two parts, and the server announces another digest", .whole(file), cut,
            ResponseScript([
                .status(206),
                .headers([
                    "ETag": "\"v1\"", "Content-Range": "bytes 100000-299999/300000", "Content-Length": "200000",
                    "Repr-Digest": "sha-256=:\(base64(fileDigest)):",
                ]), .body(later.slice(100_000..<300_000)),
            ]), honest),
        Fault(
            "the response is compressed, although the agent did not request compression", .whole(later),
            whole(later, ["Content-Encoding": "gzip", "ETag": "\"v1\""])),
        Fault("a small compressed response that decodes to 64 MiB", .whole(bomb), whole(bomb, ["Content-Encoding": "gzip"])),
        Fault("the response is larger than the app accepts", .failed(-1103), change: { $0.maximumBodyBytes = 1_000 }, honest),
        Fault(
            "the response has an unknown length and is larger than the app accepts", .failed(-1103),
            change: { $0.maximumBodyBytes = 1_000 },
            ResponseScript([.status(200), .headers(["Transfer-Encoding": "chunked"]), .chunked(file), .chunkEnd()])),
        Fault(
            "the Content-Length has too many digits", .waiting(-1011),
            ResponseScript([.status(200), .headers(["Content-Length": "99999999999999999999999"]), .body("hello"), .cut])),
        Fault(
            "the response has two different lengths", .waiting(-1011),
            ResponseScript([
                .status(200), .headers(["Content-Length": "5"]), .headers(["Content-Length": "9"]), .body("hello you"), .cut,
            ])),
        Fault("the file is empty", .whole(""), whole("", ["ETag": "\"v1\""])),
    ]

    private static let statuses: [Fault] = [
        Fault(
            "401 (the server requires credentials)", .failed(-1011),
            .status(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])),
        Fault("403 (the server refuses the request)", .failed(-1011), .status(403)),
        Fault("404 with an HTML page", .failed(-1011), .status(404, body: page)),
        Fault("407 (a server requires credentials for a proxy)", .failed(-1011), .status(407)),
        // The server cuts two connections. The second cut is needed if the agent is killed before it has stored the first partial
        // file.
        Fault(
            "404 to a request with a range, then the rest of the file", .whole(file), cut, cut, .status(404, body: page), honest),
        Fault("522 from a gateway, then the file", .whole(file), .status(522, body: page), honest),
        Fault("429 (too many requests), then the file", .whole(file), .status(429, headers: ["Retry-After": "1"]), honest),
        Fault(
            "429 with a Retry-After of 20 digits", .waiting(-1011), .status(429, headers: ["Retry-After": "99999999999999999999"])
        ),
        Fault(
            "503 with a date in the past in Retry-After, then the file", .whole(file),
            .status(503, headers: ["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT"]), honest),
        Fault("503 to a request with a range, then the rest of the file", .whole(file), cut, .status(503, body: page), honest),
        Fault("500 to every request", .waiting(-1011), .status(500, body: page)),
    ]

    private static let redirects: [Fault] = [
        Fault("a redirect to another address of the host", .whole(file)) { server in
            server.route("GET", "/moved", honest)
            return [.redirect(307, to: "/moved")]
        },
        Fault("every request is redirected to its own address", .waiting(-1007)) { _ in [.redirect(302, to: "?again")] },
        Fault("a redirect to a file of this machine", .failed(-1010), .redirect(302, to: "file:///etc/passwd")),
        Fault("the connection is cut, and the request for the rest is redirected to another address", .whole(later)) { server in
            server.route("GET", "/elsewhere", .file(later, etag: "\"v1\""))
            return [cut, .redirect(302, to: "/elsewhere")]
        },
    ]

    private static let floods: [Fault] = [
        Fault("the response has 300 kB of headers", .waiting(-1011), .headerFlood(count: 300)),
        Fault(
            "the server sends ten interim responses (103)", .whole(file),
            ResponseScript((0..<10).map { .interim(103, ["Link": "</\($0)>"]) } + [.resource(ServedFile(file, etag: "\"v1\""))])),
        Fault(
            "the server sends interim responses (103) without end", .waiting(-1011),
            ResponseScript((0..<5_000).map { _ in .interim(103, ["Link": .init(repeating: "x", count: 100)]) } + [.stall])),
    ]
}
