import FaultyServer
import Foundation
import Glibc
import Testing
import TransferMachines

@testable import CurlTransport

/// Tests of requests with a file of certificate authorities. Only these authorities may sign the server's certificate.
@Suite(.timeLimit(.minutes(30)))
struct AuthorityFileTests {
    private static func request(_ server: FaultyServer, _ file: String, method: String = "GET") -> WireRequest {
        var request = WireRequest(method: method, url: server.secureURL + "/f")
        request.authorityFile = file
        return request
    }

    private static func secureServer() async throws -> TLSServer {
        let secure = try await TLSServer()
        secure.server.route(nil, "/f", [.status(200), .headers(["Content-Length": "5"]), .body("hello")])
        return secure
    }

    @Test func `a server with its own authority is trusted`() async throws {
        let secure = try await Self.secureServer()
        let end = await Bench().run(Self.request(secure.server, secure.authority))
        #expect(end.failure == nil && end.bytesReceived == 5)
        await secure.server.stop()
    }

    @Test func `the authorities of the file replace the others`() async throws {
        let (secure, other) = (try await Self.secureServer(), try await TLSServer())
        let end = await Bench(certificateAuthorities: secure.authority).run(Self.request(secure.server, other.authority))
        guard case .tlsUntrusted? = end.failure else {
            Issue.record("\(String(describing: end.failure))")
            return
        }
        #expect(secure.server.requests().isEmpty)
        await secure.server.stop()
        await other.server.stop()
    }

    /// libcurl keeps connections open for later requests. A request with other authorities must not use an open connection of an
    /// earlier request.
    @Test func `a request is not sent over the connection of other authorities`() async throws {
        let (secure, other) = (try await Self.secureServer(), try await TLSServer())
        let bench = Bench()
        #expect(await bench.run(Self.request(secure.server, secure.authority)).failure == nil)
        guard case .tlsUntrusted? = await bench.run(Self.request(secure.server, other.authority)).failure else {
            Issue.record("a connection was used whose server was checked with other authorities")
            return
        }
        guard case .tlsUntrusted? = await bench.run(WireRequest(method: "GET", url: secure.server.secureURL + "/f")).failure
        else {
            Issue.record("a connection was used whose server the system does not trust")
            return
        }
        #expect(secure.server.requests().count == 1)
        await secure.server.stop()
        await other.server.stop()
    }

    @Test func `a file that was corrected is read again`() async throws {
        let (secure, other) = (try await Self.secureServer(), try await TLSServer())
        let bench = Bench()
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString + ".pem")
        defer { try? FileManager.default.removeItem(at: file) }
        try other.server.certificateAuthority.write(to: file, atomically: true, encoding: .utf8)
        guard case .tlsUntrusted? = await bench.run(Self.request(secure.server, file.path)).failure else {
            Issue.record("the server was trusted, although another authority signed its certificate")
            return
        }
        try secure.server.certificateAuthority.write(to: file, atomically: true, encoding: .utf8)
        #expect(await bench.run(Self.request(secure.server, file.path)).failure == nil)
        await secure.server.stop()
        await other.server.stop()
    }

    @Test func `a file that is missing, or is not a PEM file, ends the attempt before a connection`() async throws {
        let secure = try await Self.secureServer()
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (garbage, pipe) = (folder.path + "/garbage", folder.path + "/pipe")
        try Data("no certificate".utf8).write(to: URL(fileURLWithPath: garbage))
        #expect(mkfifo(pipe, 0o600) == 0)
        let bench = Bench()
        for file in [folder.path + "/none", folder.path, pipe, garbage] {
            let end = await bench.run(Self.request(secure.server, file))
            #expect(end.failure == .authoritiesUnreadable(path: file), "\(file): \(String(describing: end.failure))")
        }
        #expect(secure.server.requests().isEmpty)
        // The attempt also fails if a connection to the server is already open.
        #expect(await bench.run(Self.request(secure.server, secure.authority)).failure == nil)
        let aside = secure.authority + ".aside"
        #expect(rename(secure.authority, aside) == 0)
        #expect(
            await bench.run(Self.request(secure.server, secure.authority)).failure
                == .authoritiesUnreadable(path: secure.authority))
        #expect(rename(aside, secure.authority) == 0)
        #expect(secure.server.requests().count == 1)
        await secure.server.stop()
    }
}
