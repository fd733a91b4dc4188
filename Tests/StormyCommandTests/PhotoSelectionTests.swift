import BackgroundTasksTesting
import Foundation
import ProcessSupport
import ServerScripts
import Synchronization
import Testing

@testable import StormyCommand

/// Tests which files `stormy upload` sends.
@Suite(.timeLimit(.minutes(30))) struct PhotoSelectionTests {
    /// Runs another program and waits for its end.
    private static func run(_ program: String, _ arguments: [String]) throws -> ChildProcess.End {
        try ChildProcess(
            path: "/usr/bin/env", arguments: [program] + arguments, environment: ProcessInfo.processInfo.environment
        ).run(within: 60, outputLimit: 1_000)
    }

    // MARK: Folders and patterns

    @Test func `photos are found in folders and by patterns`() async throws {
        try await PhotoHome.play { home, store in
            try home.picture("a/one.jpg")
            try home.write(OtherPicture.png, to: "camera/a/b/two.png")
            // A photo is recognized by its content, and not by its name.
            try home.picture("a/three.dat")
            try home.write(Data("notes".utf8), to: "camera/a/notes.jpg")
            try home.write(OtherPicture.webP, to: "camera/four.webp")
            let folder = try await home.stormy("upload", "--recursive", "--wait", home.camera.path + "/a")
            #expect(folder.status == 0 && folder.errors.contains("1 other file was skipped"), "\(folder)")
            #expect(store.arrived == ["one.jpg", "three.dat", "two.png"])
            try home.picture("c/five.jpg")
            let folders = try await home.stormy("upload", "--recursive", "--wait", home.camera.path + "/?")
            #expect(folders.status == 0 && store.arrived.contains("five.jpg"), "\(folders)")
            let pattern = try await home.stormy("upload", "--wait", home.camera.path + "/f*.webp")
            #expect(pattern.status == 0, "\(pattern)")
            #expect(store.arrived.contains("four.webp"))
        }
    }

    @Test func `links to photos in a folder are followed and other links are reported`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(JPEG.picture("one.jpg"), to: "elsewhere/one.jpg")
            let album = home.folder.appendingPathComponent("album")
            try FileManager.default.createDirectory(at: album, withIntermediateDirectories: true)
            for (name, target) in [
                ("linked.jpg", photo.path), ("folder", photo.deletingLastPathComponent().path), ("gone.jpg", "/nowhere/a.jpg"),
            ] {
                try FileManager.default.createSymbolicLink(
                    atPath: album.appendingPathComponent(name).path, withDestinationPath: target)
            }
            #expect(mkfifo(album.appendingPathComponent("pipe.jpg").path, 0o600) == 0)
            let sent = try await home.stormy("upload", "--wait", "--recursive", album.path)
            #expect(sent.status == 66)
            #expect(store.arrived == ["linked.jpg"])
            #expect(sent.errors.contains("1 linked folder was skipped"), "\(sent)")
            #expect(sent.errors.contains("\(album.path)/gone.jpg: the target of the link does not exist"), "\(sent)")
            #expect(sent.errors.contains("1 other file was skipped"), "\(sent)")
        }
    }

    /// Returns a finder that renames photos. The first `times` times that it lists a folder, the finder then renames all photos
    /// in this folder.
    private static func finder(renaming times: Int) -> PhotoFinder {
        let count = Mutex(0)
        return PhotoFinder(isRecursive: true) { folder in
            let list = PhotoFinder.entries(of: folder)
            let isMoved = count.withLock { count in
                count += 1
                return count <= times
            }
            for name in list.names.map({ String(decoding: $0, as: UTF8.self) }) where isMoved && name.hasSuffix(".jpg") {
                rename(folder + "/" + name, folder + "/n" + name)
            }
            return list
        }
    }

    @Test(arguments: [1, 2, 3]) func `photos that are renamed while their folder is read are found`(_ times: Int) async throws {
        try await VirtualHome.play { home in
            for name in ["1.jpg", "2.jpg"] { try home.picture(name) }
            var finder = Self.finder(renaming: times)
            let prefix = home.camera.path + "/" + String(repeating: "n", count: times)
            #expect(Self.words(finder.find([home.camera.path])) == [prefix + "1.jpg", prefix + "2.jpg"])
        }
    }

    @Test func `photos that are renamed again and again are reported`() async throws {
        try await VirtualHome.play { home in
            for name in ["1.jpg", "2.jpg"] { try home.picture(name) }
            var finder = Self.finder(renaming: .max)
            let found = Self.words(finder.find([home.camera.path]))
            #expect(found.count { $0.contains("/1.jpg was renamed or removed while the folder was read") } == 1, "\(found)")
            #expect(found.count { $0.contains("/2.jpg was renamed or removed while the folder was read") } == 1, "\(found)")
        }
    }

    @Test func `photos in a folder that is renamed while it is read are found`() async throws {
        try await VirtualHome.play { home in
            try home.picture("a/deep/1.jpg")
            let (old, new) = (home.camera.path + "/a", home.camera.path + "/b")
            var finder = PhotoFinder(isRecursive: true) { folder in
                let list = PhotoFinder.entries(of: folder)
                if folder == old { rename(old, new) }
                return list
            }
            #expect(Self.words(finder.find([home.camera.path])) == [new + "/deep/1.jpg"])
        }
    }

    private static func words(_ found: [PhotoFinder.Found]) -> [String] {
        found.map {
            switch $0 {
            case .file(let file): file.path
            case .problem(let failure): failure.message
            }
        }
    }

    @Test(arguments: [
        "a.jpg\nb.jpg\n", "a.jpg\r\n\r\nb.jpg\r\n", "\n\na.jpg\n\nb.jpg", "\r\na.jpg\r\nb.jpg\r", "a.jpg\0\0b.jpg\0",
    ])
    func `empty lines of a list are not names`(_ list: String) {
        #expect(PhotoFinder.paths(in: Data(list.utf8)) == [Array("a.jpg".utf8), Array("b.jpg".utf8)])
        #expect(PhotoFinder.paths(in: Data([0xEF, 0xBB, 0xBF] + list.utf8)) == [Array("a.jpg".utf8), Array("b.jpg".utf8)])
    }

    @Test func `an empty argument is not the working directory`() async throws {
        try await PhotoHome.play { home, _ in
            let result = try await home.stormy("upload", "")
            #expect(result.status == 65 && result.errors.contains("an empty argument"), "\(result)")
        }
    }

    @Test func `file names that are not UTF-8 are reported`() async throws {
        try await PhotoHome.play { home, _ in
            let folder = try home.picture("one.jpg").deletingLastPathComponent().path
            let names: [[UInt8]] = [[0x66, 0xE9, 0x2E, 0x6A, 0x70, 0x67], [0xE9, 0x74]]
            let paths = names.map { Array((folder + "/").utf8) + $0 + [0] }
            // FileManager cannot remove these files.
            defer {
                for path in paths { _ = path.withUnsafeBytes { unlink($0.bindMemory(to: CChar.self).baseAddress!) } }
            }
            for path in paths {
                let descriptor = path.withUnsafeBytes {
                    open($0.bindMemory(to: CChar.self).baseAddress!, O_CREAT | O_WRONLY, 0o600)
                }
                #expect(descriptor >= 0)
                close(descriptor)
            }
            await home.setStartsAgents(false)
            let result = try await home.stormy("upload", "--recursive", folder)
            #expect(result.status == 65 && result.output.contains("Queued 1 photo"), "\(result)")
            #expect(result.errors.components(separatedBy: "the name of the file is not UTF-8").count == 3, "\(result)")
        }
    }

    /// The paths of the deepest folders are too long for every system call.
    @Test func `a folder that is too deep is reported and the other photos are queued`() async throws {
        try await PhotoHome.play { home, _ in
            let folder = try home.picture("one.jpg").deletingLastPathComponent().path
            let dig = "cd \"$1\" && for i in $(seq 25); do mkdir \"$2\" && cd \"$2\" || exit 1; done"
            let name = String(repeating: "d", count: 200)
            let dug = try Self.run("bash", ["-c", dig, "dig", folder, name])
            #expect(dug.code == 0, "\(dug)")
            defer { _ = try? Self.run("rm", ["-rf", folder + "/" + name]) }
            await home.setStartsAgents(false)
            let result = try await home.stormy("upload", "--recursive", folder)
            #expect(result.status == 74 && result.output.contains("Queued 1 photo"), "\(result)")
            #expect(result.errors.contains("cannot be read: File name too long"), "\(result)")
            // The patterns match a folder that cannot be opened, and a name that cannot be examined.
            for end in ["/*.jpg", "/none/*.jpg"] {
                for depth in 18...24 {
                    let pattern = folder + String(repeating: "/d*", count: depth) + end
                    let matched = try await home.stormy("upload", folder + "/one.jpg", pattern)
                    let isTooDeep = depth * 201 + folder.utf8.count + (end == "/*.jpg" ? 0 : 5) >= 4_096
                    #expect(matched.status == (isTooDeep ? 74 : 66), "\(depth): \(matched)")
                    #expect(matched.errors.contains("cannot be read: File name too long") == isTooDeep, "\(matched)")
                }
            }
        }
    }

    @Test func `hidden photos and folders with photos are counted`() async throws {
        try await PhotoHome.play { home, store in
            let folder = try home.picture("card/one.jpg").deletingLastPathComponent().path
            try home.write(Data("settings".utf8), to: "camera/card/.settings")
            try home.write(Data("a copy of attributes".utf8), to: "camera/card/._one.jpg")
            try home.write(Data("thumbnail".utf8), to: "camera/card/.empty/deep/thumbnail.jpg")
            let first = try await home.stormy("upload", "--recursive", "--wait", folder)
            #expect(first.status == 0 && !first.errors.contains("hidden"), "\(first)")
            try home.picture("card/.two.jpg")
            try home.picture("card/sub/.trash/deep/three.jpg")
            let second = try await home.stormy("upload", "--recursive", "--wait", folder)
            #expect(second.status == 0 && store.arrived == ["one.jpg"], "\(second)")
            let hidden = "2 hidden photos or folders with photos were skipped. To upload a hidden file, name the file"
            #expect(second.errors.contains("\(hidden). Skipped: \(folder)/.two.jpg, \(folder)/sub/.trash"), "\(second)")
            let named = try await home.stormy("upload", "--recursive", "--wait", folder + "/.two.jpg", folder + "/sub/.trash")
            #expect(named.status == 0 && store.arrived == [".two.jpg", "one.jpg", "three.jpg"], "\(named)")
        }
    }

    // MARK: Files that are not sent

    @Test func `a photo that cannot be cleaned is held back`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(OtherPicture.heic, to: "camera/new.heic")
            let held = try await home.stormy("upload", photo.path)
            #expect(held.status == 77)
            #expect(
                held.errors.contains("a location in the file cannot be removed (item Exif of")
                    && held.errors.contains("--keep-location"))
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["held"])
            #expect(try await home.stormy("upload", "--keep-location", "--wait", photo.path).status == 0)
            #expect(store.arrived == ["new.heic"])
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["completed"])
        }
    }

    @Test func `an HDR photo is sent with its gain map and without its location`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(JPEG.withGainMap, to: "camera/hdr.jpg")
            let sent = try await home.stormy("upload", "--wait", photo.path)
            #expect(sent.status == 0 && sent.errors.contains("location removed (GPS directory of Exif of JPEG)"), "\(sent)")
            let arrived = try #require(store.contents(of: "hdr.jpg"))
            // The GPS directory is in the first 160 bytes. The index of pictures, XMP and both pictures follow after it. All
            // blocks after the GPS directory must be unchanged.
            #expect(arrived.count == JPEG.withGainMap.count && arrived.dropFirst(160) == JPEG.withGainMap.dropFirst(160))
            #expect(arrived != JPEG.withGainMap)
        }
    }

    @Test func `cancelling a photo without a transfer counts the photo`() async throws {
        try await PhotoHome.play { home, _ in
            let photo = try home.write(OtherPicture.heic, to: "camera/new.heic")
            #expect(try await home.stormy("upload", photo.path).status == 77)
            let id = try #require(try await home.rows("transfers").first?["id"] as? String)
            let cancelled = try await home.stormy("transfers", "cancel", id)
            #expect(cancelled.status == 0 && cancelled.errors == "Cancelled 1 photo.\n", "\(cancelled)")
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["cancelled"])
        }
    }

    /// The password file is outside Stormy's folders.
    @Test func `the password file of a destination is never sent`() async throws {
        try await PhotoHome.play { home, store in
            let secret = try home.writeSecret("word", to: "secret.txt")
            try home.configure(PhotoHome.destination() + "user = \"me\"\npassword_file = \"\(secret.path)\"\n")
            let refused = try await home.stormy("upload", secret.path)
            #expect(refused.status == 77 && refused.errors.contains("the file belongs to Stormy"), "\(refused)")
            #expect(store.arrived == [])
        }
    }

    /// The agent's database is in memory in these tests, so `EndToEndTests` tests its file.
    @Test(arguments: ["config.toml", "stormy.sqlite"])
    func `the configuration and the store are never sent, not even through a link`(_ name: String) async throws {
        try await PhotoHome.play { home, _ in
            let folder = name == "config.toml" ? home.directories.configuration : home.directories.data
            let own = folder.appendingPathComponent(name)
            let photo = try home.picture("a.jpg")
            let link = home.camera.appendingPathComponent("link.jpg")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: own)
            #expect(try await home.stormy("status").status == 0)
            #expect(try await home.stormy("upload", photo.path).status == 0)
            let second = home.camera.appendingPathComponent("second.jpg")
            try FileManager.default.linkItem(at: own, to: second)
            for file in [own, link, second] {
                let refused = try await home.stormy("upload", "--keep-location", file.path)
                #expect(refused.status == 77 && refused.errors.contains("the file belongs to Stormy"), "\(refused)")
            }
            #expect(try await home.rows("transfers").count == 1)
        }
    }

    // MARK: Photos that are given again

    @Test func `a photo given twice is uploaded once`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("one.jpg", isLocated: true)
            let copy = home.camera.appendingPathComponent("copy of one.jpg")
            try FileManager.default.copyItem(at: photo, to: copy)
            await home.setStartsAgents(false)
            #expect(try await home.stormy("upload", photo.path).status == 0)
            let again = try await home.stormy("upload", copy.path)
            #expect(again.status == 0 && again.errors.contains("is already queued"))
            await home.setStartsAgents(true)
            #expect(try await home.stormy("upload", "--wait", copy.path).status == 0)
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["one.jpg"])
            let third = try await home.stormy("upload", "--wait", copy.path)
            #expect(third.status == 0 && third.errors.contains("is already uploaded, as"), "\(third)")
            #expect(!third.output.contains("Uploaded"), "\(third)")
            #expect(try await home.rows("transfers").count == 1)
            // Another photo with the same name does not replace the first photo.
            let other = try home.picture("elsewhere/one.jpg")
            #expect(try await home.stormy("upload", "--wait", other.path).status == 0)
            #expect(store.arrived == ["one-1.jpg", "one.jpg"])
        }
    }

    @Test func `a presigned address is used for one photo and its signature is not shown`() async throws {
        let address = PhotoHome.address + "x.jpg?X-Sig=secret"
        try await PhotoHome.play(PhotoHome.destination("put", address)) { home, store in
            let (first, second) = (try home.picture("one.jpg"), try home.picture("two.jpg"))
            #expect(try await home.stormy("upload", "--wait", first.path).status == 0)
            let refused = try await home.stormy("upload", second.path)
            #expect(refused.status != 0 && refused.errors.contains("presigned address was already used"), "\(refused)")
            #expect(store.contents(of: "/x.jpg") == (try Data(contentsOf: first)))
            let listed = try await home.stormy("transfers", "--json").output
            #expect(listed.contains("x.jpg") && !listed.contains("secret"), "\(listed)")
            let log = await home.driver.transcript
            #expect(!log.isEmpty && !log.contains { $0.contains("secret") }, "\(log)")
        }
    }

    // MARK: Sentences

    /// If a file name contains a line break, a part of the name could look like a message of Stormy.
    @Test func `a line break in a file name begins no line`() async throws {
        try await PhotoHome.play { home, store in
            let name = "a\nstormy: all is well.jpg"
            let photo = try home.picture(name, isLocated: true).path
            let missing = home.camera.path + "/missing\nstormy: all is well.jpg"
            for arguments in [["--wait", photo], [photo], [missing]] {
                let result = try await home.stormy(["upload"] + arguments)
                #expect(result.errors.contains("all is well.jpg"), "\(result)")
                #expect(!result.errors.contains("\nstormy: all is well"), "\(result)")
            }
            #expect(store.arrived.count == 1)
        }
    }

    @Test func `the sentences about transfers have the order of the arguments`() async throws {
        try await PhotoHome.play { home, _ in
            #expect(try await home.stormy("upload", "--wait", home.picture("a.jpg").path).status == 0)
            let id = try #require(home.driver.ledger.transfers.first?.id)
            for arguments in [["\(id)", "99", "photo-7"], ["photo-7", "\(id)", "99"], ["99", "photo-7", "\(id)"]] {
                let result = try await home.stormy(["transfers", "retry"] + arguments)
                let sentences = result.errors.split(separator: "\n").filter {
                    $0.contains("no transfer has the id") || $0.contains("has ended")
                }
                let order = sentences.map { line in arguments.first { line.split(separator: " ").contains(Substring($0)) } }
                #expect(order == arguments, "\(result)")
            }
        }
    }
}
