import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Stores that are damaged, newer, read-only or too open: a clear word, and not a byte changed.
    @Suite struct Store {
        let home: Home

        init() throws {
            home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
        }

        /// A hundred at once, in a folder that is new to most of them: all wait their turn.
        @Test func aHundredAtOnceAllGetTheirTurn() throws {
            try FileManager.default.removeItem(at: url("data/stormy"))
            let script = "seq 100 | xargs -P 100 -I{} '\(Home.product("stormy"))' place add 'Place {}' '1,{}' --no-sync"
            let result = try Child.run("/bin/sh", ["-c", script], environment: home.environment)
            #expect(result.status == 0 && result.errors == "", "\(result)")
            #expect(try home.stormy("place", "list").output.split(separator: "\n").filter { $0.contains("Place ") }.count == 100)
        }

        private static let files = ["state/stormy/agent.sqlite", "data/stormy/stormy.sqlite"]

        private func url(_ file: String) -> URL { home.folder.appendingPathComponent(file) }

        private func expectRefused(_ file: String, status: Int32, words: String) throws {
            let before = try Data(contentsOf: url(file))
            for arguments in [["status"], ["schedule"], ["quit"], ["transfers"]] {
                let result = try home.run("stormy", arguments)
                #expect(result.status == status, "\(arguments): \(result.errors)")
                #expect(result.errors.contains(url(file).path) && result.errors.contains(words), "\(result.errors)")
                #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
            }
            if file == Self.files[0] {
                let agent = try home.run("background-agent", ["--app", "stormy"])
                #expect(agent.status == status)
                #expect(agent.errors.contains(words), "\(agent.errors)")
            }
            #expect(try Data(contentsOf: url(file)) == before, "\(file) was changed")
        }

        @Test(arguments: files)
        func garbageIsLeftUntouched(_ file: String) throws {
            for side in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: url(file).path + side) }
            try Data("This was never a database, but somebody's shopping list.\n".utf8 + Data(repeating: 0x5A, count: 9_000))
                .write(to: url(file))
            try expectRefused(file, status: 74, words: "left untouched")
        }

        @Test(arguments: files)
        func aNewerVersionIsLeftUntouched(_ file: String) throws {
            // The last connection to close writes everything back: the bytes are then at rest.
            let changed = try Child.run(
                "sqlite3", [url(file).path, "INSERT INTO grdb_migrations VALUES ('99: from the future')"],
                environment: home.environment)
            #expect(changed.status == 0, "\(changed.errors)")
            try expectRefused(file, status: 78, words: "newer version")
        }

        /// As somebody who may read but not write. Root may always write, so the verb runs as nobody.
        @Test(.enabled(if: getuid() == 0, "only root can give files to somebody else"))
        func aReadOnlyLedgerSaysSo() throws {
            try #require((try? Child.find("setpriv")) != nil, "setpriv (util-linux) is not installed")
            for folder in [
                "", "state", "state/stormy", "state/stormy/spool", "state/stormy/launches", "config", "config/stormy", "data",
                "data/stormy",
            ] {
                chmod(url(folder).path, 0o755)
            }
            for file in Self.files + ["config/stormy/config.toml"] { chmod(url(file).path, 0o644) }
            let result = try Child.run(
                "setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", Home.product("stormy"), "status"],
                environment: home.environment)
            // A build folder that nobody may enter says nothing about ledgers.
            guard result.status != 126, result.status != 127 else { return }
            #expect([73, 74].contains(result.status), "\(result.errors)")
            #expect(result.errors.contains(home.folder.path) && result.errors.contains(".sqlite"), "\(result.errors)")
            #expect(result.errors.contains("check the permissions"), "\(result.errors)")
        }

        @Test func foldersAreThePersonsAlone() async throws {
            let server = try await FaultyServer.start()
            let store = try DavStore(prefix: "/photos", directory: TestFolder.shared.appendingPathComponent(UUID().uuidString))
            server.mount(store)
            let home = try Home(extra: "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(server.url)/photos/\"\n")
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            // Caught with its copy in the spool.
            store.refuse(status: 507, method: "PUT")
            try home.stormy("upload", photo.path)
            try home.wait("waiting") { try $0.transfers().first { $0.state == .waiting } }
            try home.stormy("schedule")
            for folder in ["state/stormy", "data/stormy"] {
                let root = home.folder.appendingPathComponent(folder)
                let all =
                    [root.path] + (FileManager.default.enumerator(atPath: root.path)?.compactMap { root.path + "/\($0)" } ?? [])
                #expect(all.contains { $0.contains("/spool/") } || folder == "data/stormy")
                for path in all {
                    var information = stat()
                    guard lstat(path, &information) == 0 else { continue }
                    let isFolder = information.st_mode & S_IFMT == S_IFDIR
                    #expect(information.st_mode & 0o777 == (isFolder ? 0o700 : 0o600), "\(path)")
                }
            }
        }
    }
}
