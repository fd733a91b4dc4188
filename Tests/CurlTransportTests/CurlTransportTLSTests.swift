import FaultyServer
import Foundation
import Glibc
import Testing
import TransferMachines

@testable import CurlTransport

/// A server that speaks TLS, and a file of the authority that it may be trusted by.
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
    @Test func whatIsTrustedIsFetched() async throws {
        let secure = try await TLSServer()
        secure.server.route("GET", "/f", [.status(200), .headers(["Content-Length": "5"]), .body("hello")])
        let end = await secure.get("/f", trusting: secure.authority)
        #expect(end.failure == nil && end.bytesReceived == 5)
        await secure.server.stop()
    }

    @Test(arguments: ServerCertificate.allCases)
    func noCertificateButTheRightOneIsTrusted(_ certificate: ServerCertificate) async throws {
        let secure = try await TLSServer(certificate)
        secure.server.route("GET", "/f", [.status(200), .body("hello")])
        // The valid one is nobody's for whoever trusts the system's authorities.
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
        // Nobody who is not trusted hears what is asked.
        #expect(end.bytesReceived == 0 && secure.server.requests().isEmpty)
        await secure.server.stop()
    }

    /// Without a length only TLS's own close_notify tells an end from a cut by somebody on the way.
    @Test func aBodyWhoseEndNobodySaidIsNotWhole() async throws {
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
            // The second request of a connection, as well as its first.
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

    /// Many servers never send a close_notify; what became of a photo is in the head, and asking again could store it twice.
    @Test(arguments: ["POST", "PUT"])
    func whatTheHeadSaysOfAnUploadHolds(_ method: String) async throws {
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

    @Test func anEncryptedRequestIsNotContinuedInTheClear() async throws {
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
