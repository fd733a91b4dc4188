import Foundation
import Testing

@testable import ServerScripts

@Suite struct ScriptFileTests {
    private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    private func parse(_ text: String) throws -> ScriptFile { try ScriptFile(parsing: text, folder: folder) }

    @Test func `every step is parsed`() throws {
        let script = try parse(
            """
            # a comment
            get /a*
              interim 103 Link: </a.css>; rel=preload
              interim 100
              status 200
              header X-One: a\\tb
              body hello\\r\\n
              body-noise 12
              delay 0.5
              drip 2 abc
              stop-reading
              stall

            then
              after 100
              raw HTTP/1.1 200 OK\\r\\n
              chunk x
              last-chunk
              cut
            PUT /b
              at-head
              reset
            then
              body-file ScriptFileTests.swift
              file ScriptFileTests.swift "v1"
              file ScriptFileTests.swift
            """)
        let own = folder.appendingPathComponent("ScriptFileTests.swift").path
        let size = try #require(try FileManager.default.attributesOfItem(atPath: own)[.size] as? Int)
        let file = Payload.file(path: own, count: size)
        #expect(script.routes.map { "\($0.method) \($0.path)" } == ["GET /a*", "PUT /b"])
        #expect(
            script.routes[0].answers == [
                [
                    .interim(103, ["Link": "</a.css>; rel=preload"]), .interim(100), .status(200), .headers(["X-One": "a\tb"]),
                    .body("hello\r\n"), .body(.pattern(12)), .delay(0.5),
                    .drip("abc", chunkSize: 1, interval: 1), .stopReading, .stall,
                ],
                ResponseScript(
                    [.raw("HTTP/1.1 200 OK\r\n"), .chunked("x"), .chunkEnd(), .cut], beginning: .afterBodyBytes(100)),
            ])
        #expect(
            script.routes[1].answers == [
                ResponseScript([.reset], beginning: .atHead),
                [.body(file), .resource(ServedFile(file, etag: "\"v1\"")), .resource(ServedFile(file))],
            ])
    }

    @Test func `a byte order mark and Windows line ends are accepted`() throws {
        let plain = "GET /a\n  status 200\n  body x\n"
        #expect(try parse("\u{FEFF}" + plain.replacingOccurrences(of: "\n", with: "\r\n")) == (try parse(plain)))
    }

    @Test(arguments: [
        ("silence", Greeting.silence), ("hang-up", .hangUp), ("garbage", .garbage), ("alert 70", .alert(70)),
        ("https", .https(.valid)), ("https valid", .https(.valid)), ("https another-host", .https(.anotherHost)),
    ])
    func `every greeting is parsed`(_ words: String, _ greeting: Greeting) throws {
        #expect(try parse("greet \(words)").greeting == greeting)
        let script = try parse("GET /a\n  cut\ngreet \(words)\n")
        #expect(script.greeting == greeting && script.routes.count == 1)
        #expect(ScriptFile.grammar.contains("greet \(words.prefix { $0 != " " })"))
    }

    /// The help prints the grammar of script files, so the grammar must be complete.
    @Test func `the grammar lists every step and certificate fault`() {
        for step in [
            "status", "header", "interim", "body", "body-file", "body-noise", "drip", "chunk", "last-chunk", "file", "raw",
            "delay", "stop-reading", "stall", "cut", "reset", "at-head", "after",
        ] { #expect(ScriptFile.grammar.contains("\n  \(step) "), "\(step)") }
        for fault in ServerCertificate.allCases where fault != .valid {
            #expect(ScriptFile.grammar.contains(fault.rawValue))
        }
        // A line with 80 or more characters would be wrapped in a terminal.
        #expect(ScriptFile.grammar.split(separator: "\n").allSatisfy { $0.count < 80 })
    }

    @Test(arguments: [
        ("", 1, "the script has no route"), ("  cut", 1, "no route begins before this line"),
        ("then", 1, "no route begins before this line"),
        ("GET file", 1, "a route is a method and a path, such as GET /file; the steps of a route are indented"),
        ("GET /a\n  jump", 2, "jump is not a step"), ("GET /a\n  status 99", 2, "\"99\" is not a status"),
        ("GET /a\n\n  delay -1", 3, "\"-1\" is not a number of seconds"),
        ("GET /a\n  after x", 2, "\"x\" is not a number of bytes"),
        ("GET /a\n  cut\n  at-head", 3, "at-head must come before the steps"),
        ("GET /a\n  header x", 2, "a header is NAME: VALUE"),
        ("GET /a\n  body a\\q", 2, "\\q is not a valid escape sequence"),
        ("GET /a\n  body a\\", 2, "an escape sequence is incomplete: use \\\\ for a backslash"),
        ("GET /a\n  drip 2", 2, "drip expects a number of seconds and a text"),
        ("GET /a\n  file /nothing", 2, "/nothing: no such file"),
        ("GET /a\n  delay nan", 2, "\"nan\" is not a number of seconds"),
        ("GET /a\n  interim 200", 2, "interim expects a status from 100 to 199"),
        ("GET /a\n  interim", 2, "interim expects a status from 100 to 199"),
        ("GET /a\n  interim 103 Link", 2, "a header is NAME: VALUE"),
        ("greet loudly", 1, "a greeting is https, silence, hang-up, garbage or alert NUMBER"),
        ("greet alert", 1, "a greeting is https, silence, hang-up, garbage or alert NUMBER"),
        ("greet https old", 1, "\"old\" is not a certificate fault"),
        ("greet https expired twice", 1, "a greeting is https, silence, hang-up, garbage or alert NUMBER"),
        ("greet alert 256", 1, "a TLS alert is a number up to 255"),
        ("GÉT /a", 1, "a route is a method and a path, such as GET /file; the steps of a route are indented"),
    ])
    func `an error names the line and the reason`(_ text: String, _ line: Int, _ reason: String) {
        #expect(throws: ScriptFile.Failure(line: line, reason: reason)) { try parse(text) }
    }
}
