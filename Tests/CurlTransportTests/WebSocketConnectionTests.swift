import FaultyServer
import Foundation
import Testing
import TransferMachines

@testable import CurlTransport

/// Tests of TLS on the connection of a web socket. The messages are tested by the tests of web socket tasks.
@Suite(.timeLimit(.minutes(30)))
struct WebSocketConnectionTests {
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="

    private func events(
        _ server: FaultyServer, _ path: String, trusting authority: String?, leastTLS: LeastTLS? = nil
    ) async -> [WebSocketEvent] {
        let url = server.secureURL + path
        let handshake = WebSocketHandshake(url: url, headers: [], key: Self.key) { _ in "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" }
        var request = WireRequest(method: "GET", url: url)
        request.leastTLS = leastTLS
        let connection = WebSocketConnection(
            request, handshake, maximumMessageSize: 1 << 20, certificateAuthorities: authority)
        let (events, continuation) = AsyncStream.makeStream(of: WebSocketEvent.self)
        connection.begin { event in
            continuation.yield(event)
            if case .ended = event { continuation.finish() }
        }
        var heard: [WebSocketEvent] = []
        for await event in events { heard.append(event) }
        return heard
    }

    private func withAuthority(_ server: FaultyServer, _ body: (String) async throws -> Void) async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString + ".pem").path
        try server.certificateAuthority.write(toFile: file, atomically: false, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        try await body(file)
    }

    /// The server sends the handshake response, a message in many TLS records, and a close frame.
    @Test(arguments: [nil, LeastTLS.v13]) func `messages are received over TLS`(_ leastTLS: LeastTLS?) async throws {
        let server = try await FaultyServer.start()
        server.greet(with: .https(.valid))
        let message = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
        let head = Data([0x82, 127, 0, 0, 0, 0, 0, 3, 0x0D, 0x40])
        let bytes = Data(answer.utf8) + head + message + Data([0x88, 0x04, 0x03, 0xE8, 0x6F, 0x6B])
        server.route("GET", "/s", .init([.raw(.bytes(bytes)), .stall]))
        try await withAuthority(server) { authority in
            let heard = await events(server, "/s", trusting: authority, leastTLS: leastTLS)
            #expect(heard.count == 3)
            guard case .opened(nil, _)? = heard.first, case .message(.binary(message))? = heard.dropFirst().first,
                case .ended(.closed(code: 1000, reason: Data("ok".utf8)))? = heard.last
            else {
                Issue.record("\(heard)")
                return
            }
        }
        await server.stop()
    }

    @Test(arguments: ServerCertificate.allCases)
    func `an untrusted certificate ends the connection before a request`(_ certificate: ServerCertificate) async throws {
        let server = try await FaultyServer.start()
        server.greet(with: .https(certificate))
        try await withAuthority(server) { authority in
            // The authority that signed the valid certificate is not an authority of the system.
            let heard = await events(server, "/s", trusting: certificate == .valid ? nil : authority)
            guard case .ended(.noConnection(.tlsUntrusted))? = heard.first, heard.count == 1 else {
                Issue.record("\(heard)")
                return
            }
            // An untrusted server does not receive the request.
            #expect(server.requests().isEmpty)
        }
        await server.stop()
    }
}
