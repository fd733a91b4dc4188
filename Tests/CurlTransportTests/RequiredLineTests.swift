import FaultyServer
import Foundation
import Glibc
import Testing
import TransferMachines

@testable import CurlTransport

/// Tests of requests that are sent only while a file contains a line.
@Suite(.timeLimit(.minutes(30)))
struct RequiredLineTests {
    private let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString + ".toml")

    private func write(_ text: String) throws { try Data(text.utf8).write(to: file) }

    @Test func `a request is sent only while the file contains the line`() async throws {
        let server = try await FaultyServer.start()
        server.route(nil, "/f", .status(200, body: "hello"))
        defer { unlink(file.path) }
        let required = RequiredLine(file: file.path, line: " [upload.destinations.home] # mine\r")
        #expect(required.line == "[upload.destinations.home]")
        var request = WireRequest(method: "GET", url: server.url + "/f")
        request.requiredLines = [required]
        let bench = Bench()
        let missing = WireFailure.requiredLineMissing(required, reason: nil)
        #expect(await bench.run(request).failure == missing)
        let texts: [(String, Bool)] = [
            ("[upload.destinations.home]\n", true), ("# [upload.destinations.home]\n", false), ("", false),
            ("[\"a#b\"]\n[\"a#c\"]\n", false), ("a = 1\r\n  [upload.destinations.home]  # nas\r\nb = 2", true),
            ("[upload.destinations.home2]\n", false), ("\u{FEFF}[upload.destinations.home]\r\n", true),
        ]
        for (text, isThere) in texts {
            try write(text)
            #expect(await bench.run(request).failure == (isThere ? nil : missing), "\(text)")
        }
        #expect(server.requests().count == 3)
        let odd = RequiredLine(file: file.path, line: "[\"a#b\\\"#\"] # c")
        #expect(odd.line == "[\"a#b\\\"#\"]")
        await server.stop()
    }

    @Test func `a file that cannot be read is reported with its reason`() async throws {
        let server = try await FaultyServer.start()
        #expect(mkfifo(file.path, 0o600) == 0)
        defer { unlink(file.path) }
        var request = WireRequest(method: "GET", url: server.url + "/f")
        let required = RequiredLine(file: file.path, line: "[a]")
        request.requiredLines = [required]
        let failure = await Bench().run(request).failure
        #expect(failure == .requiredLineMissing(required, reason: "this is not a regular file"))
        #expect(server.requests().isEmpty)
        await server.stop()
    }
}
