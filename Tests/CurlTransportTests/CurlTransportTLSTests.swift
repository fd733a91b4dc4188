import FaultyServer
import Foundation
import Glibc
import Testing
import TransferMachines

@testable import CurlTransport

/// A server with TLS, and the file of the certificate authority that signs the server's certificate.
final class TLSServer {
    let server: FaultyServer
    let authority: String

    init(_ certificate: ServerCertificate = .valid) async throws {
        server = try await FaultyServer.start()
        server.greet(with: .https(certificate))
        authority = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString + ".pem").path
        try server.certificateAuthority.write(toFile: authority, atomically: false, encoding: .utf8)
    }

    deinit { try? FileManager.default.removeItem(atPath: authority) }

    func get(_ path: String, trusting authority: String?) async -> WireEnd {
        await Bench(certificateAuthorities: authority).run(WireRequest(method: "GET", url: server.secureURL + path))
    }
}

@Suite(.timeLimit(.minutes(30)))
struct CurlTransportTLSTests {
    @Test func `a file of a trusted server is received`() async throws {
        let secure = try await TLSServer()
        secure.server.route("GET", "/f", [.status(200), .headers(["Content-Length": "5"]), .body("hello")])
        let end = await secure.get("/f", trusting: secure.authority)
        #expect(end.failure == nil && end.bytesReceived == 5)
        await secure.server.stop()
    }

    @Test(arguments: ServerCertificate.allCases)
    func `an untrusted certificate ends the attempt before a request`(_ certificate: ServerCertificate) async throws {
        let secure = try await TLSServer(certificate)
        secure.server.route("GET", "/f", [.status(200), .body("hello")])
        // The authority that signed the valid certificate is not an authority of the system.
        let end = await secure.get("/f", trusting: certificate == .valid ? nil : secure.authority)
        guard case .tlsUntrusted(let why) = end.failure else {
            Issue.record("\(String(describing: end.failure))")
            return
        }
        let reason =
            switch certificate {
            case .valid, .anotherAuthority: "unable to get local issuer certificate"
            case .expired: "certificate has expired"
            case .notYetValid: "certificate is not yet valid"
            case .anotherHost: "no alternative certificate subject name matches"
            case .selfSigned: "self-signed certificate"
            }
        #expect(why.contains(reason), "\(why)")
        // An untrusted server does not receive the request.
        #expect(end.bytesReceived == 0 && secure.server.requests().isEmpty)
        await secure.server.stop()
    }

    /// If a body has no length, only TLS's close_notify shows whether the body is complete or the connection was cut.
    @Test func `a body without a length is incomplete if TLS is not closed properly`() async throws {
        let secure = try await TLSServer()
        secure.server.route("GET", "/cut", [.status(200), .body("hello"), .cut])
        secure.server.route("GET", "/whole", [.status(200), .body("hello")])
        secure.server.route("GET", "/known", [.status(200), .headers(["Content-Length": "5"]), .body("hello"), .cut])
        secure.server.route("GET", "/first", [.status(200), .headers(["Content-Length": "5"]), .body("hello")])
        secure.server.route("GET", "/old", [.status(200), .headers(["Transfer-Encoding": "identity"]), .body("hello"), .cut])
        let bench = Bench(certificateAuthorities: secure.authority)
        for (path, failure) in [
            ("/cut", WireFailure.connectionLost), ("/whole", nil), ("/known", nil), ("/old", .connectionLost),
            ("/cut", .connectionLost),
        ] {
            // Checks the first and the second request of a connection.
            for isReused in [false, true] {
                let before = secure.server.connectionCount
                for path in isReused ? ["/first", path] : [path] {
                    let end = await bench.run(WireRequest(method: "GET", url: secure.server.secureURL + path))
                    #expect(end.failure == (path == "/first" ? nil : failure) && end.bytesReceived == 5, "\(path) \(isReused)")
                }
                #expect(secure.server.connectionCount == before + 1)
            }
        }
        await secure.server.stop()
    }

    /// Many servers never send close_notify. The status shows whether the photo was stored. A repeated request could store the
    /// photo twice.
    @Test(arguments: ["POST", "PUT"])
    func `the status of an upload counts if a body without a length is cut`(_ method: String) async throws {
        let secure = try await TLSServer()
        secure.server.route(method, "/f", [.status(201), .body("stored"), .cut])
        secure.server.route(method, "/long", [.status(201), .headers(["Content-Length": "9"]), .body("stored"), .cut])
        func send(_ path: String) async -> WireEnd {
            let request = WireRequest(method: method, url: secure.server.secureURL + path)
            return await Bench(certificateAuthorities: secure.authority).run(request, source: Bytes(Array("photo".utf8)))
        }
        let end = await send("/f")
        #expect(end.failure == nil && end.head?.status == 201)
        #expect(await send("/long").failure == .connectionLost)
        await secure.server.stop()
    }

    @Test func `an https request does not follow a redirect to http`() async throws {
        let plain = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        }
        let secure = try await TLSServer()
        secure.server.route("GET", "/f", [.status(302), .headers(["Location": plain.url + "/", "Content-Length": "0"])])
        let end = await secure.get("/f", trusting: secure.authority)
        #expect(end.failure == .redirectToOtherScheme && plain.connections == 0)
        await secure.server.stop()
    }

    /// A failed handshake is a fault of the network or of the server. A failed handshake does not mean that the certificate is
    /// not trusted, so the attempt can be repeated.
    @Test(arguments: [Greeting.alert(40), .alert(70), .alert(80), .alert(112), .garbage, .hangUp])
    func `a failed TLS handshake is not an untrusted certificate`(_ greeting: Greeting) async throws {
        let server = try await FaultyServer.start()
        server.greet(with: greeting)
        let end = await Bench().run(WireRequest(method: "GET", url: "https://127.0.0.1:\(server.port)/f"))
        #expect(end.head == nil && end.bytesReceived == 0)
        if case .tlsUntrusted(let why) = try #require(end.failure) { Issue.record("\(why)") }
        #expect(server.connectionCount == 1 && server.requests().isEmpty)
        await server.stop()
    }

    @Test func `a handshake without a response times out`() async throws {
        let server = try await FaultyServer.start()
        server.greet(with: .silence)
        var request = WireRequest(method: "GET", url: "https://127.0.0.1:\(server.port)/f")
        request.connectTimeout = 0.3
        let end = await Bench().run(request)
        #expect(end.failure == .timedOutConnecting)
        await server.stop()
    }
}
