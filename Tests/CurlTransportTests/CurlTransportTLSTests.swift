import FaultyServer
import Foundation
import Glibc
import Testing
import TransferMachines

@testable import CurlTransport

/// OpenSSL's own test server over a folder of complete HTTP answers, with a certificate made for it.
private final class TLSServer {
    static let tool = "/usr/bin/openssl"
    let folder: URL
    let url: String
    var certificate: String { folder.appending(path: "cert.pem").path }
    private let process: Process

    init(answers: [String: String]) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, answer) in answers {
            try answer.write(to: folder.appending(path: name), atomically: false, encoding: .utf8)
        }
        let maker = Self.process(
            in: folder,
            [
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
            ])
        try maker.run()
        maker.waitUntilExit()
        process = Self.process(
            in: folder, ["s_server", "-HTTP", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem"])
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        // It names the port it got once it listens.
        var text = ""
        while text.range(of: "ACCEPT 127.0.0.1:[0-9]+\n", options: .regularExpression) == nil {
            let piece = output.fileHandleForReading.availableData
            guard !piece.isEmpty else { break }
            text += String(decoding: piece, as: UTF8.self)
        }
        let port = text.split(whereSeparator: { $0 == ":" || $0 == "\n" }).compactMap { UInt16($0) }.last ?? 0
        url = "https://localhost:\(port)"
    }

    deinit {
        // Not SIGTERM: a child started from a dispatch thread inherits its mask, which blocks that signal.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)
    }

    private static func process(in folder: URL, _ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: tool)
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.standardError = FileHandle.nullDevice
        process.standardInput = Pipe()
        return process
    }
}

@Suite(.timeLimit(.minutes(1)), .enabled(if: FileManager.default.isExecutableFile(atPath: TLSServer.tool)))
struct CurlTransportTLSTests {
    @Test func certificatesAreVerified() async throws {
        let server = try TLSServer(answers: ["f": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"])
        let request = WireRequest(method: "GET", url: server.url + "/f")
        let end = await Bench().run(request)
        guard case .tlsUntrusted(let why) = end.failure else {
            Issue.record("\(String(describing: end.failure))")
            return
        }
        #expect(why.contains("certificate"))
        let trusted = await Bench(certificateAuthorities: server.certificate).run(request)
        #expect(trusted.failure == nil && trusted.bytesReceived == 5)
        // Trusted, but made out to another name.
        let numeric = WireRequest(method: "GET", url: server.url.replacing("localhost", with: "127.0.0.1") + "/f")
        let misnamed = await Bench(certificateAuthorities: server.certificate).run(numeric)
        guard case .tlsUntrusted = misnamed.failure else {
            Issue.record("\(String(describing: misnamed.failure))")
            return
        }
    }

    @Test func anEncryptedRequestIsNotContinuedInTheClear() async throws {
        let plain = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        }
        let redirect = "HTTP/1.1 302 F\r\nLocation: \(plain.url)/\r\nContent-Length: 0\r\n\r\n"
        let server = try TLSServer(answers: ["f": redirect])
        let request = WireRequest(method: "GET", url: server.url + "/f")
        let end = await Bench(certificateAuthorities: server.certificate).run(request)
        #expect(end.failure == .redirectToOtherScheme && plain.connections == 0)
    }

    /// A handshake that does not come about is a fault of the way or of the server, never a certificate that nobody trusts: it is
    /// worth another try.
    @Test(arguments: [Greeting.alert(40), .alert(70), .alert(80), .alert(112), .garbage, .hangUp])
    func aHandshakeThatFails(_ greeting: Greeting) async throws {
        let server = try await FaultyServer.start()
        server.greet(with: greeting)
        let end = await Bench().run(WireRequest(method: "GET", url: "https://127.0.0.1:\(server.port)/f"))
        #expect(end.head == nil && end.bytesReceived == 0)
        if case .tlsUntrusted(let why) = try #require(end.failure) { Issue.record("\(why)") }
        #expect(server.connectionCount == 1 && server.requests().isEmpty)
        await server.stop()
    }

    @Test func aHandshakeThatNobodyAnswers() async throws {
        let server = try await FaultyServer.start()
        server.greet(with: .silence)
        var request = WireRequest(method: "GET", url: "https://127.0.0.1:\(server.port)/f")
        request.connectTimeout = 0.3
        let end = await Bench().run(request)
        #expect(end.failure == .timedOutConnecting)
        await server.stop()
    }
}
