import Spool
import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// What a person asks of `stormy upload`: privacy, folders, no doubles, a good moment, proof.
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

        /// A real picture; with a place if wanted.
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

        /// nginx knows no `If-None-Match`: sent at the same time, one would take the other's place.
        @Test func photosOfOneNameAreAllThere() throws {
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

        @Test func aPhotosPlaceIsRemovedFromWhatIsSent() throws {
            let photo = try picture("garden.jpg", isLocated: true)
            let original = try Data(contentsOf: photo)
            let sent = try home.stormy("upload", "--wait", photo.path)
            #expect(sent.status == 0, "\(sent.errors)")
            #expect(sent.errors.contains("location removed (GPSLatitude"))
            let there = nginx.photos.appendingPathComponent("garden.jpg")
            let tags = try tool("exiftool", ["-s", there.path])
            #expect(!tags.contains("GPS") && !tags.contains("Munich") && tags.contains("Orientation"))
            let pixels = try [photo, there].map { try tool("identify", ["-format", "%#", $0.path]) }
            #expect(pixels[0] == pixels[1])
            // The person's own file is theirs.
            #expect(try Data(contentsOf: photo) == original)
            let row = try #require(try home.rows("transfers").first)
            #expect(row["sourceSha256"] as? String == FileDigest.sha256(of: original))
            #expect(row["sha256"] as? String == (try FileDigest.sha256(of: there).digest))
            let receipt = try #require(row["receipt"] as? [String: Any])
            #expect(receipt["verified"] as? String == "length" && receipt["sha256"] as? String == row["sha256"] as? String)
        }

        @Test func asItIsWhenThePersonSaysSo() throws {
            let photo = try picture("garden.jpg", isLocated: true)
            #expect(try home.stormy("upload", "--keep-location", "--wait", photo.path).status == 0)
            #expect(try Data(contentsOf: nginx.photos.appendingPathComponent("garden.jpg")) == Data(contentsOf: photo))
        }

        /// Whoever takes over the parser of strangers' photos finds one photo, no network and no other program.
        @Test func theCleanerSeesOnePhotoAlone() throws {
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
            #expect(other.hasPrefix("unreadable\0"), "\(other)")
            #expect(try Data(contentsOf: outside) == original)
            let cleaned = try ask(inside)
            #expect(cleaned.hasPrefix("clean\0") && cleaned.contains("GPSLatitude"), "\(cleaned)")
            let status = try String(contentsOfFile: "/proc/\(cleaner.pid)/status", encoding: .utf8)
            #expect(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"))
            try question.close()
            #expect(cleaner.waitForEnd() == 0)
        }

        /// What cannot be cleaned is not sent in silence.
        @Test func whatCannotBeCleanedIsHeldBack() throws {
            let photo = camera.appendingPathComponent("new.heic")
            try
                (Data([0, 0, 0, 24]) + Data("ftypheic".utf8) + Data(count: 4) + Data("mif1heic".utf8)
                + Data(repeating: 7, count: 900))
                .write(to: photo)
            let held = try home.stormy("upload", photo.path)
            #expect(held.status == 77)
            #expect(held.errors.contains("HEIC photos cannot be cleaned") && held.errors.contains("--keep-location"))
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["held"])
            #expect(try home.stormy("upload", "--keep-location", "--wait", photo.path).status == 0)
            #expect(try arrived == ["new.heic"])
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["completed"])
        }

        // MARK: Which files

        @Test func foldersPatternsAndLists() throws {
            let photos = try ["a/one.jpg", "a/b/two.png", "a/three.dat.jpg", "four.webp"].map { try picture($0) }
            // By content, not by name.
            let named = camera.appendingPathComponent("a/three.dat")
            try FileManager.default.moveItem(at: photos[2], to: named)
            try Data("notes".utf8).write(to: camera.appendingPathComponent("a/notes.jpg"))
            let folder = try home.stormy("upload", "--recursive", "--wait", camera.appendingPathComponent("a").path)
            #expect(folder.status == 0 && folder.errors.contains("1 other file skipped"), "\(folder.errors)")
            #expect(try arrived == ["one.jpg", "three.dat", "two.png"])
            _ = try picture("c/five.jpg")
            let folders = try home.stormy("upload", "--recursive", "--wait", camera.path + "/[c]")
            #expect(try folders.status == 0 && arrived.contains("five.jpg"), "\(folders.errors)")
            let pattern = try home.stormy("upload", "--wait", camera.path + "/f*.webp")
            #expect(pattern.status == 0, "\(pattern.errors)")
            let list = try Child.run(
                "/bin/sh", ["-c", "find '\(camera.path)/a' -name 'one*' -print0 | '\(Home.product("stormy"))' upload -"],
                environment: home.environment)
            #expect(list.errors.contains("one.jpg: is there already, as \(nginx.url)photos/one.jpg"), "\(list.errors)")
            #expect(try arrived.contains("four.webp"))
        }

        /// A list is made by a program, which names whatever it finds.
        @Test func ofAListPhotosAloneAreSent() throws {
            _ = try picture("a/one.jpg")
            try Data("notes".utf8).write(to: camera.appendingPathComponent("a/notes.txt"))
            #expect(try home.stormy("upload", "--wait", picture("a/two.jpg").path).status == 0)
            let before = try arrived
            let all = try Child.run(
                "/bin/sh", ["-c", "find '\(home.folder.path)' -print0 | '\(Home.product("stormy"))' upload --wait -"],
                environment: home.environment)
            #expect(all.errors.contains("of the list skipped: --recursive sends the photos in them"), "\(all.errors)")
            #expect(all.errors.contains("other files skipped, no photo of a kind that is known: "), "\(all.errors)")
            #expect(try Set(arrived).subtracting(before) == ["one.jpg"])
            #expect(try home.rows("transfers").count == 2)
            let none = try home.stormy("upload", "--recursive", home.folder.appendingPathComponent("config").path)
            #expect(none.status == 0 && none.errors.contains("nothing to upload: no photo was found"), "\(none.errors)")
        }

        /// A folder that was made of links: what they lead to is meant, and what is left out is said.
        @Test func linksToPhotosAreSentAndOthersNamed() throws {
            let elsewhere = home.folder.appendingPathComponent("elsewhere")
            try FileManager.default.createDirectory(at: elsewhere, withIntermediateDirectories: true)
            try FileManager.default.moveItem(at: picture("one.jpg"), to: elsewhere.appendingPathComponent("one.jpg"))
            let album = home.folder.appendingPathComponent("album")
            try FileManager.default.createDirectory(at: album, withIntermediateDirectories: true)
            for (name, goal) in [
                ("linked.jpg", elsewhere.path + "/one.jpg"), ("folder", elsewhere.path), ("gone.jpg", "/nowhere/a.jpg"),
            ] {
                try FileManager.default.createSymbolicLink(
                    atPath: album.appendingPathComponent(name).path, withDestinationPath: goal)
            }
            #expect(mkfifo(album.appendingPathComponent("pipe.jpg").path, 0o600) == 0)
            let sent = try home.stormy("upload", "--wait", "--recursive", album.path)
            #expect(sent.status == 0)
            #expect(try arrived == ["linked.jpg"])
            #expect(sent.errors.contains("1 linked folder skipped"), "\(sent.errors)")
            #expect(sent.errors.contains("1 link skipped: nothing is there"), "\(sent.errors)")
            #expect(sent.errors.contains("1 other file skipped"), "\(sent.errors)")
        }

        /// What a list names and is not there is said, also where it looks like a pattern, and over no name the others are forgotten.
        @Test(arguments: ["*.jpg", "~[", "~u2[1].jpg", "~nobody*", "gone.jpg"])
        func aListHasNamesAndNoPatterns(_ name: String) throws {
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

        /// Wherever it lies.
        @Test func aPasswordOfADestinationIsNeverSent() throws {
            let secret = home.folder.appendingPathComponent("secret.txt")
            try Data("word".utf8).write(to: secret)
            chmod(secret.path, 0o600)
            let home = try Home(
                extra: """
                    [upload.destinations.home]
                    kind = "webdav"
                    url = "\(nginx.url)photos/"
                    user = "me"
                    password_file = "\(secret.path)"
                    """)
            let refused = try home.stormy("upload", secret.path)
            #expect(refused.status == 77 && refused.errors.contains("one of Stormy's own files"), "\(refused.errors)")
            #expect(try arrived == [])
        }

        /// Whoever names them, by whatever link.
        @Test(arguments: ["config/stormy/config.toml", "state/stormy/agent.sqlite", "data/stormy/stormy.sqlite"])
        func stormysOwnFilesAreNeverSent(_ name: String) throws {
            let link = camera.appendingPathComponent("link.jpg")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: home.folder.appendingPathComponent(name))
            #expect(try home.stormy("status").status == 0)
            #expect(try home.stormy("upload", picture("a.jpg").path).status == 0)
            let second = camera.appendingPathComponent("second.jpg")
            try FileManager.default.linkItem(at: home.folder.appendingPathComponent(name), to: second)
            for file in [home.folder.appendingPathComponent(name), link, second] {
                let refused = try home.stormy("upload", "--keep-location", file.path)
                #expect(refused.status == 77 && refused.errors.contains("one of Stormy's own files"), "\(refused.errors)")
            }
            #expect(try home.rows("transfers").count == 1)
        }

        // MARK: No doubles

        @Test func theSamePhotoTwiceIsOneUpload() throws {
            let photo = try picture("one.jpg", isLocated: true)
            let copy = camera.appendingPathComponent("copy of one.jpg")
            try FileManager.default.copyItem(at: photo, to: copy)
            home.environment["STORMY_NO_AGENT"] = "1"
            #expect(try home.stormy("upload", photo.path).status == 0)
            let again = try home.stormy("upload", copy.path)
            #expect(again.status == 0 && again.errors.contains("is on its way already"))
            home.environment["STORMY_NO_AGENT"] = nil
            #expect(try home.stormy("upload", "--wait", copy.path).status == 0)
            try home.waitForQuiet()
            #expect(try arrived == ["one.jpg"])
            let third = try home.stormy("upload", "--wait", copy.path)
            #expect(third.status == 0 && third.errors.contains("is there already, as"), "\(third)")
            #expect(!third.output.contains("Uploaded"), "\(third)")
            #expect(try home.rows("transfers").count == 1)
            // Another photo of that name does not take its place.
            let other = try picture("elsewhere/one.jpg")
            #expect(try home.stormy("upload", "--wait", other.path).status == 0)
            #expect(try arrived == ["one-1.jpg", "one.jpg"])
        }

        // MARK: A good moment

        @Test func heldUntilThereIsPower() throws {
            let system = try SystemServices()
            home.environment.merge(system.environment) { $1 }
            try system.set(.power, "OnBattery", "true")
            let photos = try [picture("one.jpg"), picture("two.jpg")]
            let queued = try home.run("stormy", ["upload", "--when", "charging"] + photos.map(\.path))
            #expect(queued.status == 0 && queued.output.contains("held until there is external power"))
            try home.wait("an agent that knows") { try $0.fact(.conditions)?.conditions.isOnExternalPower == false ? true : nil }
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["held", "held"])
            #expect(try home.stormy("why", "StormyUploads").output.contains("external power"))
            // The original is of no matter any more.
            try FileManager.default.removeItem(at: photos[0])
            try system.set(.power, "OnBattery", "false")
            try home.waitForQuiet(seconds: 60)
            #expect(try arrived == ["one.jpg", "two.jpg"])
            #expect(try home.rows("transfers").allSatisfy { $0["state"] as? String == "completed" })
        }

        /// The processing task's time ends in the middle: held again, and asked for another moment.
        @Test func anExpiredReleaseHoldsBackWhatIsLeft() async throws {
            let server = try await FaultyServer.start()
            server.route("PUT", "/p/*", .status(201).after(.hold(until: "never")))
            let home = try Home(extra: "[upload.destinations.home]\nkind = \"put\"\nurl = \"\(server.url)/p/\"\n")
            let photo = try picture("one.jpg")
            #expect(try home.stormy("upload", "--when", "charging", photo.path).status == 0)
            _ = try home.stormy("simulate", "launch", "StormyUploads")
            try home.wait("sending") { try $0.transfers().first?.state == .running ? true : nil }
            _ = try home.stormy("simulate", "expire", "StormyUploads")
            // Not looked at by a verb afterwards: on a machine that says nothing of its power the next good moment is soon.
            try home.wait("held again") { transaction in
                let photo = try transaction.transfers().first
                let isHeld = photo?.isSuspended == true && photo?.state != .running
                return try isHeld && transaction.request("StormyUploads") != nil ? true : nil
            }
            #expect(try home.stormy("transfers", "cancel", "all").status == 0)
        }

        /// What a person paused is neither released by the processing task nor waited for: it would wait for ever.
        @Test func aPausedPhotoIsNotReleased() throws {
            home.environment["STORMY_NO_AGENT"] = "1"
            let (paused, held) = (try picture("one.jpg"), try picture("two.jpg"))
            #expect(try home.stormy("upload", paused.path).status == 0)
            #expect(try home.stormy("transfers", "pause", "all").status == 0)
            #expect(try home.stormy("upload", "--when", "charging", held.path).status == 0)
            home.environment["STORMY_NO_AGENT"] = nil
            _ = try home.stormy("simulate", "launch", "StormyUploads", "--wait")
            try home.wait("the held one") { try $0.transfers().map(\.state) == [.paused, .completed] ? true : nil }
            try home.waitForEnded("processing")
            #expect(try arrived == ["two.jpg"])
            #expect(
                try home.rows("history").filter { $0["kind"] as? String == "processing" }.allSatisfy {
                    $0["outcome"] as? String == "completed"
                })
        }

        /// Names that are no text are not left out in silence.
        @Test func namesThatAreNoText() throws {
            let photo = try picture("camera/one.jpg")
            let folder = photo.deletingLastPathComponent().path
            for name in [[0x66, 0xE9, 0x2E, 0x6A, 0x70, 0x67], [0xE9, 0x74]] as [[UInt8]] {
                let path = Array((folder + "/").utf8) + name + [0]
                let descriptor = path.withUnsafeBytes {
                    open($0.bindMemory(to: CChar.self).baseAddress!, O_CREAT | O_WRONLY, 0o600)
                }
                close(descriptor)
            }
            home.environment["STORMY_NO_AGENT"] = "1"
            let result = try home.run("stormy", ["upload", "--recursive", folder])
            #expect(result.status == 65 && result.output.contains("Queued 1 photo"), "\(result.errors)")
            #expect(result.errors.components(separatedBy: "its name is not UTF-8").count == 3, "\(result.errors)")
        }

        /// A folder so deep that no system call takes its path is said, and the rest sent.
        @Test func aFolderThatIsTooDeepIsSaid() throws {
            let photo = try picture("camera/one.jpg")
            let folder = photo.deletingLastPathComponent().path
            let dig = "cd \"$1\" && for i in $(seq 25); do mkdir \"$2\" && cd \"$2\" || exit 1; done"
            let name = String(repeating: "d", count: 200)
            #expect(try Child.run("bash", ["-c", dig, "dig", folder, name], environment: home.environment).status == 0)
            defer { _ = try? Child.run("rm", ["-rf", folder + "/" + name], environment: home.environment) }
            home.environment["STORMY_NO_AGENT"] = "1"
            let result = try home.run("stormy", ["upload", "--recursive", folder])
            #expect(result.status == 66 && result.output.contains("Queued 1 photo"), "\(result)")
            #expect(result.errors.contains("cannot be read: File name too long"), "\(result.errors)")
        }

        /// How a photo ended is told again where it could not be kept; and where the store comes from a backup, it asks.
        @Test(arguments: [true, false]) func anEndThatTheStoreDidNotHearOf(_ isFromBackup: Bool) async throws {
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
                try home.wait("the next one", seconds: 60) {
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

        /// Held for a good moment, and then wanted at once.
        @Test func heldAndThenWantedNow() throws {
            let photo = try picture("one.jpg")
            // Without an agent: on a machine that says nothing of its power the good moment may be now.
            home.environment["STORMY_NO_AGENT"] = "1"
            #expect(try home.stormy("upload", "--when", "charging", photo.path).status == 0)
            home.environment["STORMY_NO_AGENT"] = nil
            let now = try home.stormy("upload", "--wait", photo.path)
            #expect(now.status == 0 && now.errors.contains("is on its way already"), "\(now.errors)")
            #expect(try arrived == ["one.jpg"])
        }

        /// A presigned address is one photo's, and nobody sees its signature.
        @Test func aPresignedAddress() throws {
            let home = try Home(
                extra: "[upload.destinations.home]\nkind = \"put\"\nurl = \"\(nginx.url)photos/x.jpg?X-Sig=secret\"\n")
            let (first, second) = (try picture("one.jpg"), try picture("two.jpg"))
            #expect(try home.stormy("upload", "--wait", first.path).status == 0)
            let refused = try home.stormy("upload", second.path)
            #expect(refused.status != 0 && refused.errors.contains("is for one file"), "\(refused.errors)")
            #expect(try Data(contentsOf: nginx.photos.appendingPathComponent("x.jpg")) == Data(contentsOf: first))
            #expect(try !home.stormy("transfers", "--json").output.contains("secret"))
            #expect(try !String(contentsOf: home.directories.agentLog, encoding: .utf8).contains("secret"))
        }

        // MARK: Proof

        /// What a server says of a photo's place is not where the password goes.
        @Test func verifyingAsksNoStrangerWithThePassword() async throws {
            let (server, stranger) = (try await FaultyServer.start(), try await FaultyServer.start())
            server.route("POST", "/up", .status(201, headers: ["Location": stranger.url + "/one.jpg"]))
            stranger.route("GET", "/one.jpg", .status(200, body: "what"))
            let home = try Home(
                extra: """
                    [upload.destinations.home]
                    kind = "multipart"
                    url = "\(server.url)/up"
                    user = "u"
                    password = "secret"

                    """)
            #expect(try home.stormy("upload", "--wait", try picture("one.jpg").path).status == 0)
            #expect(try home.stormy("upload", "--verify").output.contains("shows something else"))
            #expect(server.requests(matching: "/up").first?.headers["Authorization"] != nil)
            #expect(stranger.requests().map { $0.headers["Authorization"] } == [nil])
        }

        /// The list of transfers is lost, and with it what was known of the server's copy: it can be sent once more.
        @Test func withoutReceiptsAPhotoIsSentAgainWhenAsked() throws {
            let photo = try picture("one.jpg").path
            #expect(try home.stormy("upload", "--wait", photo).status == 0)
            try home.stormy("quit")
            try FileManager.default.removeItem(at: home.directories.state)
            try FileManager.default.removeItem(at: nginx.photos.appendingPathComponent("one.jpg"))
            let looked = try home.stormy("upload", "--verify", photo)
            #expect(looked.status == 69 && looked.errors.contains("stormy upload --again"), "\(looked)")
            #expect(try home.stormy("upload", "--verify").errors.contains("1 photo cannot be checked"))
            #expect(try home.stormy("upload", "--wait", photo).errors.contains("is there already"))
            #expect(try home.stormy("upload", "--wait", "--again", photo).status == 0)
            #expect(try arrived == ["one.jpg"])
        }

        @Test func whatTheServerLostIsFoundOut() throws {
            let photos = try [picture("one.jpg"), picture("two.jpg")]
            #expect(try home.run("stormy", ["upload", "--wait"] + photos.map(\.path)).status == 0)
            let fine = try home.stormy("upload", "--verify")
            #expect(
                fine.status == 0 && fine.output.contains("one.jpg: is what was sent (read back)"), "\(fine.output)\(fine.errors)")
            let receipt = try #require(try home.rows("transfers").first?["receipt"] as? [String: Any])
            #expect(receipt["verified"] as? String == "digest" && receipt["checkedAt"] is String)
            try FileManager.default.removeItem(at: nginx.photos.appendingPathComponent("one.jpg"))
            try Data("other".utf8).write(to: nginx.photos.appendingPathComponent("two.jpg"))
            let lost = try home.stormy("upload", "--verify")
            #expect(lost.status == 69)
            #expect(lost.output.contains("one.jpg: is GONE") && lost.output.contains("two.jpg: is NOT what was sent"))
            // Known to be lost, it is sent again.
            #expect(try home.run("stormy", ["upload", "--wait"] + photos.map(\.path)).status == 0)
            #expect(try arrived == ["one.jpg", "two-1.jpg", "two.jpg"])
        }
    }
}
