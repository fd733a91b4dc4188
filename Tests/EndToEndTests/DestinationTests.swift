import BackgroundLedger
import FaultyServer
import Foundation
import ServerScripts
import Testing

extension EndToEnd {
    /// Tests of the command `destination`, with real servers on loopback.
    @Suite struct Destination {
        private let server: FaultyServer
        private let home: Home
        private var configuration: URL { home.directories.configuration.appendingPathComponent("config.toml") }

        init() async throws {
            server = try await FaultyServer.start()
            home = try Home()
            try home.configure("# my settings\n[storm]\ngusts_kmh = 60\n")
        }

        /// Runs a command whose questions are answered by lines of standard input.
        private func answer(_ answers: [String], _ arguments: String...) throws -> Child.Result {
            let environment = home.environment.merging(["TOOL": Home.product("stormy")]) { $1 }
            let words = arguments.map { "'\($0)'" }.joined(separator: " ")
            let lines = answers.map { "'\($0)'" }.joined(separator: " ")
            return try Child.run("sh", ["-c", "printf '%s\\n' \(lines) | $TOOL \(words)"], environment: environment)
        }

        private func mount(_ way: UploadWay) throws -> any UploadStore {
            let store = try way.makeStore(prefix: "/up", in: home.folder.appendingPathComponent("server"))
            server.mount(store)
            return store
        }

        /// Returns the answers to the questions of `destination add` for a server of the tests.
        private func answers(_ way: UploadWay) -> [String] {
            switch way {
            case .put, .webdav, .tus, .resumable: ["\(server.url)/up/", ""]
            case .multipart: ["\(server.url)/up", "", ""]
            case .s3, .s3Parts: ["\(server.url)/up/", "", "", "me", ImmichStore.key]
            case .nextcloud, .nextcloudChunks: ["\(server.url)/up/remote.php/dav/files/me/storms/", ""]
            case .immich: ["\(server.url)/up", ImmichStore.key]
            }
        }

        @Test(arguments: UploadWay.small)
        func `a destination of each kind is tried, added and used`(_ way: UploadWay) throws {
            let store = try mount(way)
            let added = try answer(["nas", way.kind] + answers(way), "destination", "add")
            #expect(added.status == 0 && added.output.contains("nas works: a test picture was uploaded"), "\(added)")
            let stays = [.multipart, .resumable].contains(way)
            #expect(stays || UploadWay.photos(in: store).isEmpty, "the test picture is still on the server")
            #expect(stays == added.errors.contains("The test picture is still at"), "\(added)")
            let before = UploadWay.photos(in: store).count
            let text = try String(contentsOf: configuration, encoding: .utf8)
            #expect(text.hasPrefix("# my settings\n[storm]\ngusts_kmh = 60\n\n[upload.destinations.nas]\n"))
            #expect(text.contains("location = \"\(["nextcloud", "immich"].contains(way.kind) ? "keep" : "remove")\""))
            let photo = home.folder.appendingPathComponent("noon.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(try home.stormy("upload", "--wait", photo.path).status == 0)
            #expect(UploadWay.photos(in: store).count == before + 1)
            #expect(try home.stormy("transfers").output.contains("noon.jpg"))
            #expect(try !home.stormy("transfers").output.contains("stormy-test"))
        }

        @Test func `a destination that does not work is not added`() throws {
            server.route(nil, "/up/*", .status(401))
            let lines = ["nas", "webdav", "\(server.url)/up/", "me", "wrong"]
            let before = try Data(contentsOf: configuration)
            let refused = try answer(lines, "destination", "add")
            #expect(
                refused.status == 69 && refused.errors.contains("The server refused user name or password (401)"), "\(refused)")
            #expect(refused.errors.contains("nas was not added"))
            #expect(try Data(contentsOf: configuration) == before)
            #expect(try FileManager.default.contentsOfDirectory(atPath: home.directories.configuration.path) == ["config.toml"])
            let untried = try answer(lines, "destination", "add", "--no-try")
            #expect(untried.status == 0, "\(untried)")
            let secret = home.directories.configuration.appendingPathComponent("nas.secret")
            #expect(try String(contentsOf: secret, encoding: .utf8) == "wrong\n")
            let mode = try FileManager.default.attributesOfItem(atPath: secret.path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let tried = try home.stormy("destination", "try")
            #expect(tried.status == 69 && tried.errors.contains("(401)"), "\(tried)")
            #expect(try home.stormy("destination", "remove", "nas").status == 0)
            #expect(try Data(contentsOf: configuration) == before)
        }

        @Test func `an answer that is not valid is refused, and a missing answer is named`() throws {
            let cases: [([String], Int32, String)] = [
                (["n a s"], 65, "not a valid name for a destination"),
                (["nas", "ftp"], 65, "not a kind of destination"),
                (["nas", "webdav", ""], 64, "missing --url"),
                (["nas", "webdav", "ftp://host/", ""], 78, "write http:// or https:// and a host"),
                (["nas", "webdav"], 64, "missing --url"),
                (["nas", "immich", "http://host/", ""], 64, "missing --secret-file"),
            ]
            for (answers, status, words) in cases {
                let result = try answer(answers, "destination", "add")
                #expect(result.status == status && result.errors.contains(words), "\(answers): \(result)")
            }
        }

        /// Another destination, or another program, may use the file.
        @Test func `the secret of a removed destination stays`() throws {
            let folder = home.directories.configuration
            let (secret, link) = (folder.appendingPathComponent("nas.secret"), folder.appendingPathComponent("link"))
            try Data("p\n".utf8).write(to: secret)
            chmod(secret.path, 0o600)
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: secret)
            func section(_ name: String, _ path: String) -> String {
                """
                [upload.destinations.\(name)]
                kind = "put"
                url = "\(server.url)/up/"
                user = "me"
                password_file = "\(path)"

                """
            }
            try home.configure(section("nas", secret.path) + section("two", link.path))
            let removed = try home.stormy("destination", "remove", "nas")
            #expect(removed.status == 0 && removed.errors.contains("stays in the file \(secret.path)"), "\(removed)")
            #expect(try String(contentsOf: configuration, encoding: .utf8) == section("two", link.path))
            #expect(try home.stormy("config", "--check").status == 0)
        }

        @Test func `destinations that are added at the same time are all kept`() throws {
            let environment = home.environment.merging(["TOOL": Home.product("stormy")]) { $1 }
            let script =
                "printf '%s\\n' a b c d | xargs -P 4 -I {} "
                + "$TOOL destination add {} --no-try --kind put --url http://127.0.0.1:9/{}/ --user ''"
            let result = try Child.run("sh", ["-c", script], environment: environment)
            #expect(result.status == 0, "\(result)")
            let listed = try #require(home.json("destination", "list") as? [[String: Any]])
            #expect(listed.compactMap { $0["name"] as? String } == ["a", "b", "c", "d"])
        }

        @Test func `a file with a new credential is private, and a secret file is found in every folder`() throws {
            chmod(configuration.path, 0o644)
            let given = home.folder.appendingPathComponent("given")
            try Data("p\n".utf8).write(to: given)
            chmod(given.path, 0o600)
            let environment = home.environment.merging(["TOOL": Home.product("stormy")]) { $1 }
            let script = """
                cd '\(home.folder.path)' && $TOOL destination add one --no-try --kind put --url http://127.0.0.1:9/ --user me --secret-file given \
                && $TOOL destination add two --no-try --kind put --url 'http://127.0.0.1:9/x?signature=1' --user ''
                """
            let added = try Child.run("sh", ["-c", script], environment: environment)
            #expect(added.status == 0, "\(added)")
            let mode = try FileManager.default.attributesOfItem(atPath: configuration.path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            #expect(try home.stormy("config", "--check").status == 0)
            let missing = try home.stormy(
                "destination", "add", "three", "--no-try", "--kind", "put", "--url", "http://127.0.0.1:9/", "--user", "me",
                "--secret-file", "/missing")
            #expect(missing.status == 78 && missing.errors.contains("/missing does not exist"), "\(missing)")
        }

        @Test func `trials at the same time do not cancel each other, and a trial without an agent ends`() throws {
            _ = try mount(.webdav)
            try home.configure("[upload.destinations.nas]\nkind = \"webdav\"\nurl = \"\(server.url)/up/\"\n")
            var environment = home.environment.merging(["TOOL": Home.product("stormy")]) { $1 }
            let script = "printf '%s\\n' 1 2 3 | xargs -P 3 -I {} $TOOL destination try"
            let result = try Child.run("sh", ["-c", script], environment: environment)
            #expect(result.status == 0, "\(result)")
            #expect(try home.stormy("quit").status == 0)
            environment["STORMY_NO_AGENT"] = "1"
            let alone = try Child.run(Home.product("stormy"), ["destination", "try"], environment: environment)
            #expect(alone.status == 69 && alone.errors.contains("STORMY_NO_AGENT"), "\(alone)")
        }

        /// A test picture would replace the photo at a presigned address.
        @Test func `a presigned address is not tried`() throws {
            server.route(nil, "/up/*", .status(200))
            let address = "\(server.url)/up/x.jpg?signature=1"
            let added = try home.stormy("destination", "add", "one", "--kind", "put", "--url", address, "--user", "")
            #expect(added.status == 0 && added.errors.contains("one was not tried"), "\(added)")
            let tried = try home.stormy("destination", "try", "one")
            #expect(tried.status == 69 && tried.errors.contains("one was not tried"), "\(tried)")
            #expect(server.requests().isEmpty)
        }

        /// A removed destination may be a server that the user does not trust any more.
        @Test func `queued photos wait while their destination is not configured`() throws {
            let store = try mount(.webdav)
            #expect(try answer(["nas", "webdav"] + answers(.webdav), "destination", "add", "--no-try").status == 0)
            let photo = home.folder.appendingPathComponent("noon.jpg")
            try JPEG.withoutPosition.write(to: photo)
            var offline = home.environment
            offline["STORMY_NO_AGENT"] = "1"
            #expect(try Child.run(Home.product("stormy"), ["upload", photo.path], environment: offline).status == 0)
            let removed = try home.stormy("destination", "remove", "nas")
            #expect(removed.status == 0 && removed.errors.contains("1 photo for nas will wait"), "\(removed)")
            #expect(try home.stormy("transfers", "retry", "all").status == 0)
            let reason = try home.wait("an upload that waits for its destination") { transaction in
                let transfer = try transaction.transfers().first
                return transfer?.errorMessage?.contains("does not contain the line") == true ? transfer?.errorMessage : nil
            }
            #expect(reason.contains("[upload.destinations.nas]"))
            #expect(UploadWay.photos(in: store).isEmpty)
            // The photo is not sent to the old address if the destination has another address now.
            let other = ["nas", "webdav", "http://127.0.0.1:9/", ""]
            #expect(try answer(other, "destination", "add", "--no-try").status == 0)
            #expect(try home.stormy("transfers", "retry", "all").status == 0)
            try home.wait("an upload that waits for its address") { transaction in
                try transaction.transfers().first?.errorMessage?.contains("the line url = ") == true ? true : nil
            }
            #expect(UploadWay.photos(in: store).isEmpty)
            #expect(try home.stormy("destination", "remove", "nas").status == 0)
            // The command continues the upload.
            #expect(try answer(["nas", "webdav"] + answers(.webdav), "destination", "add").status == 0)
            try home.wait("the photo") {
                try $0.transfers().contains { $0.session == "StormyPhotos" && $0.state == .completed } ? true : nil
            }
            #expect(UploadWay.photos(in: store) == [JPEG.withoutPosition])
        }
    }
}
