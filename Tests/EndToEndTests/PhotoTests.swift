import Spool
import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of `stormy upload`: location removal, choice of files, no duplicates, and verification.
    @Suite struct Photos {
        private let nginx: Nginx
        private let home: Home
        private let camera: URL

        init() throws {
            nginx = try Nginx()
            home = try Home(extra: "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(nginx.url)photos/\"\n")
            camera = home.folder.appendingPathComponent("camera")
            try FileManager.default.createDirectory(at: camera, withIntermediateDirectories: true)
        }

        private func tool(_ command: String, _ arguments: [String]) throws -> String {
            try Child.run(command, arguments, environment: ProcessInfo.processInfo.environment).output
        }

        /// Creates a real picture, with a location if requested.
        private func picture(_ name: String, isLocated: Bool = false) throws -> URL {
            let file = camera.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            _ = try tool("convert", ["-size", "200x150", "plasma:", file.path])
            if isLocated {
                _ = try tool(
                    "exiftool",
                    [
                        "-q", "-overwrite_original", "-n", "-GPSLatitude=48.1", "-GPSLatitudeRef=N", "-Orientation=6",
                        "-XMP-photoshop:City=Munich", file.path,
                    ])
            }
            return file
        }

        private var arrived: [String] {
            get throws { try FileManager.default.contentsOfDirectory(atPath: nginx.photos.path).sorted() }
        }

        /// nginx does not support `If-None-Match`. Concurrent uploads of one name would replace each other.
        @Test func `photos with the same name are all uploaded`() throws {
            let home = try Home(extra: "[upload.destinations.put]\nkind = \"put\"\nurl = \"\(nginx.url)photos/\"\n")
            var wanted: Set<Data> = []
            var paths: [String] = []
            for number in 0..<6 {
                let file = camera.appendingPathComponent("\(number)/DSC0001.jpg")
                try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                let bytes = Data([0xFF, 0xD8, 0xFF]) + Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 &* (number + 3)) })
                try bytes.write(to: file)
                wanted.insert(bytes)
                paths.append(file.path)
            }
            let sent = try home.run("stormy", ["upload", "--wait"] + paths)
            #expect(sent.status == 0, "\(sent.errors)")
            let there = try arrived.map { try Data(contentsOf: nginx.photos.appendingPathComponent($0)) }
            #expect(Set(there) == wanted && there.count == 6)
        }

        // MARK: Privacy

        @Test func `the location is removed from the uploaded photo`() throws {
            let photo = try picture("garden.jpg", isLocated: true)
            let original = try Data(contentsOf: photo)
            let sent = try home.stormy("upload", "--wait", photo.path)
            #expect(sent.status == 0, "\(sent.errors)")
            #expect(sent.errors.contains("location removed (GPS directory of Exif"))
            let there = nginx.photos.appendingPathComponent("garden.jpg")
            let tags = try tool("exiftool", ["-s", there.path])
            #expect(!tags.replacing("GPSVersionID", with: "").contains("GPS"), "\(tags)")
            #expect(!tags.contains("Munich") && tags.contains("Orientation"))
            let pixels = try [photo, there].map { try tool("identify", ["-format", "%#", $0.path]) }
            #expect(pixels[0] == pixels[1])
            // The user's file is not changed.
            #expect(try Data(contentsOf: photo) == original)
            let row = try #require(try home.rows("transfers").first)
            #expect(row["sourceSha256"] as? String == FileDigest.sha256(of: original))
            #expect(row["sha256"] as? String == (try FileDigest.sha256(of: there).digest))
            let receipt = try #require(row["receipt"] as? [String: Any])
            #expect(receipt["verified"] as? String == "length" && receipt["sha256"] as? String == row["sha256"] as? String)
        }

        @Test func `--keep-location uploads the photo unchanged`() throws {
            let photo = try picture("garden.jpg", isLocated: true)
            #expect(try home.stormy("upload", "--keep-location", "--wait", photo.path).status == 0)
            #expect(try Data(contentsOf: nginx.photos.appendingPathComponent("garden.jpg")) == Data(contentsOf: photo))
        }

        /// The cleaner parses photos that are not trusted. The cleaner rejects a photo outside its folder. The process of the
        /// cleaner has a seccomp filter and cannot gain privileges.
        @Test func `the photo cleaner can read only the photos of its folder`() throws {
            let folder = home.folder.appendingPathComponent("cleaning")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let (inside, outside) = (folder.appendingPathComponent("photo"), try picture("private.jpg", isLocated: true))
            let original = try Data(contentsOf: outside)
            try original.write(to: inside)
            let (questions, answers) = (home.folder.path + "/questions", home.folder.path + "/answers")
            for pipe in [questions, answers] { #expect(mkfifo(pipe, 0o600) == 0) }
            let script = "exec '\(Home.product("photo-cleaner"))' '\(folder.path)' < '\(questions)' > '\(answers)'"
            let cleaner = try Child("sh", ["-c", script], environment: home.environment)
            let question = try #require(FileHandle(forWritingAtPath: questions))
            let answer = try #require(FileHandle(forReadingAtPath: answers))
            func ask(_ photo: URL) throws -> String {
                try question.write(contentsOf: Data("\(photo.path)\0".utf8))
                return String(decoding: answer.availableData, as: UTF8.self)
            }
            let other = try ask(outside)
            #expect(other.hasPrefix("fault\0"), "\(other)")
            #expect(try Data(contentsOf: outside) == original)
            let cleaned = try ask(inside)
            #expect(cleaned.hasPrefix("clean\0") && cleaned.contains("GPS directory"), "\(cleaned)")
            let status = try String(contentsOfFile: "/proc/\(cleaner.pid)/status", encoding: .utf8)
            #expect(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"))
            try question.close()
            #expect(cleaner.waitForEnd() == 0)
        }

        /// The folder of the cleaner is missing, so the cleaner cannot be confined. The cleaner did not read the photo, so the
        /// message must not name the photo as the cause.
        @Test func `a cleaner that cannot be confined reads no photo and reports a fault`() throws {
            let folder = home.folder.appendingPathComponent("missing").path
            let script = "printf '/photo\\0' | '\(Home.product("photo-cleaner"))' '\(folder)' | tr '\\0' '|'"
            let result = try Child.run("sh", ["-c", script], environment: home.environment)
            #expect(result.output.hasPrefix("fault|photo-cleaner cannot be confined"), "\(result)")
        }

        /// The first cleaner process is killed while it reads the photo. A second process then cleans the photo.
        @Test func `a photo is cleaned by a second process if the first one is killed`() throws {
            let programs = home.folder.appendingPathComponent("programs")
            try FileManager.default.createDirectory(at: programs, withIntermediateDirectories: true)
            for name in ["stormy", "background-agent"] {
                try Home.copyProgram(Home.product(name), to: programs.appendingPathComponent(name).path)
            }
            let script = """
                #!/bin/sh
                if mkdir '\(programs.path)/killed'; then head -c 1 > /dev/null; kill -9 $$; fi
                exec '\(Home.product("photo-cleaner"))' "$@"
                """
            let cleaner = programs.appendingPathComponent("photo-cleaner")
            try Data(script.utf8).write(to: cleaner)
            chmod(cleaner.path, 0o700)
            let photo = try picture("garden.jpg", isLocated: true)
            let sent = try Child.run(
                programs.appendingPathComponent("stormy").path, ["upload", "--wait", photo.path], environment: home.environment)
            #expect(sent.status == 0 && sent.errors.contains("location removed"), "\(sent)")
            #expect(FileManager.default.fileExists(atPath: programs.path + "/killed"))
        }

        // MARK: Choice of files

        @Test func `a photo of a list on standard input is not sent again`() throws {
            let photo = try picture("a/one.jpg")
            #expect(try home.stormy("upload", "--wait", photo.path).status == 0)
            let list = try Child.run(
                "/bin/sh", ["-c", "find '\(camera.path)/a' -name 'one*' -print0 | '\(Home.product("stormy"))' upload -"],
                environment: home.environment)
            #expect(list.errors.contains("one.jpg: is already uploaded, as \(nginx.url)photos/one.jpg"), "\(list.errors)")
            #expect(try arrived == ["one.jpg"])
        }

        @Test func `a closed standard input is an error and an empty list is not`() throws {
            func upload(from input: String) throws -> Child.Result {
                try Child.run(
                    "/bin/sh", ["-c", "'\(Home.product("stormy"))' upload - \(input)"], environment: home.environment)
            }
            let closed = try upload(from: "<&-")
            #expect(closed.status == 74 && closed.errors.contains("the list cannot be read"), "\(closed)")
            let empty = try upload(from: "</dev/null")
            #expect(empty.status == 0 && empty.errors.contains("nothing to upload"), "\(empty)")
        }

        /// Another program writes the list of photos, so the list can name any file.
        @Test func `only the photos of a list are uploaded`() throws {
            _ = try picture("a/one.jpg")
            try Data("notes".utf8).write(to: camera.appendingPathComponent("a/notes.txt"))
            #expect(try home.stormy("upload", "--wait", picture("a/two.jpg").path).status == 0)
            let before = try arrived
            let all = try Child.run(
                "/bin/sh", ["-c", "find '\(home.folder.path)' -print0 | '\(Home.product("stormy"))' upload --wait -"],
                environment: home.environment)
            #expect(all.errors.contains("skipped. To upload the photos in folders of the list, use --recursive"), "\(all.errors)")
            #expect(
                all.errors.contains("other files were skipped, because only known kinds of photos are uploaded: "),
                "\(all.errors)")
            #expect(try Set(arrived).subtracting(before) == ["one.jpg"])
            #expect(try home.rows("transfers").count == 2)
            let folders = try Child.run(
                "/bin/sh", ["-c", "echo '\(camera.path)' | '\(Home.product("stormy"))' upload -"], environment: home.environment)
            #expect(folders.status == 65 && folders.errors.contains("the list has only folders"), "\(folders)")
            let none = try home.stormy("upload", "--recursive", home.folder.appendingPathComponent("config").path)
            #expect(none.status == 0 && none.errors.contains("nothing to upload: no photo was found"), "\(none.errors)")
        }

        /// If the list names a file that does not exist, the name is reported, even if it looks like a pattern. The other photos
        /// of the list are queued.
        @Test(arguments: ["*.jpg", "~[", "~u2[1].jpg", "~nobody*", "gone.jpg"])
        func `names in a list are not treated as patterns`(_ name: String) throws {
            _ = try picture("one.jpg")
            try FileManager.default.createDirectory(at: camera.appendingPathComponent("other"), withIntermediateDirectories: true)
            _ = try picture("other/two.jpg")
            let script = "cd '\(camera.path)/other' && printf '%s\\r\\n' \"$0\" ../one.jpg | '\(Home.product("stormy"))' upload -"
            home.environment["STORMY_NO_AGENT"] = "1"
            let list = try Child.run("/bin/sh", ["-c", script, name], environment: home.environment)
            #expect(list.status == 74 || list.status == 66, "\(list)")
            #expect(list.errors.contains("\(name): no such file"), "\(list)")
            #expect(try home.rows("transfers").compactMap { ($0["file"] as? String)?.hasSuffix("one.jpg") } == [true])
            let named = try home.stormy("upload", name.hasPrefix("~") ? name : camera.path + "/gone.jpg")
            #expect(named.errors.contains("no such file"), "\(named)")
        }

        /// Symbolic links are also checked. `StormyCommandTests` contains the tests of the configuration and the store.
        @Test func `files of Stormy are never uploaded`() throws {
            let own = home.folder.appendingPathComponent("state/stormy/agent.sqlite")
            let link = camera.appendingPathComponent("link.jpg")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: own)
            #expect(try home.stormy("status").status == 0)
            #expect(try home.stormy("upload", picture("a.jpg").path).status == 0)
            let second = camera.appendingPathComponent("second.jpg")
            try FileManager.default.linkItem(at: own, to: second)
            for file in [own, link, second] {
                let refused = try home.stormy("upload", "--keep-location", file.path)
                #expect(refused.status == 77 && refused.errors.contains("the file belongs to Stormy"), "\(refused.errors)")
            }
            #expect(try home.rows("transfers").count == 1)
        }

        // MARK: Verification

        /// If Stormy could not store the end of an upload, the agent delivers the end again. If Stormy's store was restored from
        /// a backup, the store does not contain the result of the upload. Stormy then reads the result from the ledger.
        @Test(arguments: [true, false])
        func `an upload whose end the store does not know can be queued again`(_ isFromBackup: Bool) async throws {
            let server = try await FaultyServer.start()
            server.route("PUT", "/one.jpg", .status(403))
            let home = try Home(extra: "[upload.destinations.home]\nkind = \"put\"\nurl = \"\(server.url)/\"\n")
            home.environment["STORMY_NO_AGENT"] = "1"
            let photo = try picture("one.jpg")
            #expect(try home.stormy("upload", photo.path).status == 0)
            let store = home.folder.appendingPathComponent("data/stormy/stormy.sqlite")
            let backup = home.folder.appendingPathComponent("backup.sqlite")
            _ = try Child.run("sqlite3", [store.path, ".backup \(backup.path)"], environment: home.environment)
            let holder = isFromBackup ? nil : try home.stopAWriter(of: "data/stormy/stormy.sqlite")
            let agent = try home.startAgent()
            defer { agent.end() }
            if let holder {
                let told = try home.wait("a launch for its end") { try $0.history(limit: 9).first { $0.outcome != nil } }
                #expect(told.outcome == .crashed, "\(told)")
                holder.end(SIGKILL)
                try home.wait("the next one") {
                    try $0.history(limit: 9).contains { $0.outcome == .completed } ? true : nil
                }
            } else {
                try home.waitForEnded("urlSession")
                try home.waitForQuiet()
                agent.end()
                for side in ["", "-wal", "-shm"] { unlink(store.path + side) }
                try FileManager.default.copyItem(at: backup, to: store)
            }
            let again = try home.stormy("upload", photo.path)
            #expect(again.status == 0 && again.output.contains("Queued 1 photo"), "\(again)")
            #expect(again.errors.contains("not sent: ") == isFromBackup, "\(again)")
            await server.stop()
        }

        /// The ledger with the receipts is lost, so the photo cannot be verified. The user can send the photo again.
        @Test func `a photo without a receipt is uploaded again only with --again`() throws {
            let photo = try picture("one.jpg").path
            #expect(try home.stormy("upload", "--wait", photo).status == 0)
            try home.stormy("quit")
            try FileManager.default.removeItem(at: home.directories.state)
            try FileManager.default.removeItem(at: nginx.photos.appendingPathComponent("one.jpg"))
            let looked = try home.stormy("upload", "--verify", photo)
            #expect(looked.status == 69 && looked.errors.contains("stormy upload --again"), "\(looked)")
            // Verification still works for another photo.
            #expect(try home.stormy("upload", "--wait", try picture("two.jpg").path).status == 0)
            let verifiedAll = try home.stormy("upload", "--verify")
            #expect(verifiedAll.status == 69 && verifiedAll.errors.contains("1 photo cannot be checked"), "\(verifiedAll)")
            #expect(try home.stormy("upload", "--wait", photo).errors.contains("is already uploaded"))
            #expect(try home.stormy("upload", "--wait", "--again", photo).status == 0)
            #expect(try arrived.sorted() == ["one.jpg", "two.jpg"])
        }
    }
}
