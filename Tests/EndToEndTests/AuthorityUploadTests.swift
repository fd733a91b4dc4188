import BackgroundLedger
import FaultyServer
import Foundation
import ServerScripts
import Testing

extension EndToEnd {
    /// Tests of uploads over TLS to a server with a private certificate authority.
    @Suite struct AuthorityUpload {
        private let server: FaultyServer
        private let home: Home
        private let authority: URL
        private let photo: URL
        private let secrets: URL

        init() async throws {
            server = try await FaultyServer.start()
            server.greet(with: .https(.valid))
            home = try Home()
            authority = home.folder.appendingPathComponent("ca.pem")
            photo = home.folder.appendingPathComponent("noon.jpg")
            secrets = home.folder.appendingPathComponent("secret")
            try server.certificateAuthority.write(to: authority, atomically: false, encoding: .utf8)
            try JPEG.withoutPosition.write(to: photo)
            try Data(ImmichStore.key.utf8).write(to: secrets)
            chmod(secrets.path, 0o600)
        }

        /// Adds an empty upload destination to the server, and writes the configuration for it.
        private func serve(_ way: UploadWay, line: String) throws -> any UploadStore {
            let store = try way.makeStore(prefix: "/up", in: home.folder.appendingPathComponent("server"))
            server.mount(store)
            try configure(way, line: line)
            return store
        }

        private func configure(_ way: UploadWay, line: String) throws {
            try home.configure(
                """
                [upload.destinations.home]
                kind = "\(way.kind)"
                \(way.lines("\(server.secureURL)/up", secrets: secrets))
                \(line)

                """)
        }

        private var line: String { "ca_file = \"\(authority.path)\"" }

        /// Returns the message of the transfer while it waits.
        private func waitingMessage(_ words: String) throws -> String {
            try home.wait("a transfer that waits: \(words)") { transaction in
                let transfer = try transaction.transfers().first
                return transfer?.state == .waiting && transfer?.errorMessage?.contains(words) == true
                    ? transfer?.errorMessage : nil
            }
        }

        @Test(arguments: UploadWay.allCases)
        func `every request of an upload and its verification trusts the authority of ca_file`(_ way: UploadWay) async throws {
            let store = try serve(way, line: line)
            let bytes = JPEG.withoutPosition + Data(repeating: 7, count: way.size)
            try bytes.write(to: photo)
            let uploaded = try home.stormy("upload", "--wait", photo.path)
            #expect(uploaded.status == 0, "\(uploaded)")
            #expect(UploadWay.photos(in: store) == [bytes])
            let verified = try home.stormy("upload", "--verify")
            // The form server does not support GET. The error status proves that the connection was accepted.
            #expect(
                verified.output.contains("could not be checked now") == (way == .multipart)
                    && (way != .multipart || verified.output.contains("status 400")), "\(verified)")
            await server.stop()
        }

        @Test func `without ca_file the upload waits and the message names the destination and the setting`() async throws {
            let store = try serve(.webdav, line: "")
            #expect(try home.stormy("upload", photo.path).status == 0)
            let message = try waitingMessage("certificate")
            #expect(message.hasPrefix("home: The server's certificate is not trusted: "), "\(message)")
            #expect(message.contains("as ca_file in [upload.destinations.home] of config.toml."), "\(message)")
            #expect(try home.stormy("transfers").output.contains("as ca_file in [upload.destinations.home]"))
            #expect(server.requests().isEmpty)
            // The corrected configuration also applies to the queued photo.
            try configure(.webdav, line: line)
            #expect(try home.stormy("transfers", "retry", "all").status == 0)
            try home.waitForQuiet()
            #expect(UploadWay.photos(in: store) == [JPEG.withoutPosition])
            await server.stop()
        }

        @Test func `a queued upload keeps its authority over a new agent, and waits while the file is missing`() async throws {
            let store = try serve(.webdav, line: line)
            home.environment["STORMY_NO_AGENT"] = "1"
            #expect(try home.stormy("upload", photo.path).status == 0)
            let aside = authority.appendingPathExtension("aside")
            try FileManager.default.moveItem(at: authority, to: aside)
            // The queued upload keeps the authority file with which it was queued.
            try configure(.webdav, line: "")
            let agent = try home.startAgent(["BACKGROUND_RETRY_BASE": "0.05"])
            let message = try waitingMessage("is missing")
            #expect(message.hasPrefix("home: The certificate authority file \(authority.path) is missing"), "\(message)")
            #expect(server.requests().isEmpty)
            agent.end(SIGKILL)
            _ = agent.waitForEnd()
            try FileManager.default.moveItem(at: aside, to: authority)
            let next = try home.startAgent(["BACKGROUND_RETRY_BASE": "0.05"])
            defer { next.end() }
            try home.wait("the photo") { transaction in
                try transaction.transfers().allSatisfy { $0.state == .completed } ? true : nil
            }
            #expect(UploadWay.photos(in: store) == [JPEG.withoutPosition])
            await server.stop()
        }

        @Test func `config --check and upload refuse a ca_file that cannot be used`() async throws {
            _ = try serve(.webdav, line: line)
            #expect(try home.stormy("config", "--check").status == 0)
            for (bytes, words) in [(nil, "does not exist"), (JPEG.withoutPosition, "contains no certificate")]
                as [(Data?, String)]
            {
                try FileManager.default.removeItem(at: authority)
                try bytes?.write(to: authority)
                for command in [["config", "--check"], ["upload", photo.path]] {
                    let result = try home.stormy(command)
                    #expect(result.status == 78 && result.errors.contains("upload.destinations.home.ca_file: "), "\(result)")
                    #expect(result.errors.contains(words) && result.errors.contains(authority.path), "\(result)")
                }
                try Data().write(to: authority)
            }
            await server.stop()
        }
    }
}
