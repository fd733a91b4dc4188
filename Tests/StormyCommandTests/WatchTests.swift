import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyCommand
import Testing

/// Tests the command `watch`: the new photos of a folder are uploaded without further commands.
@Suite(.timeLimit(.minutes(30))) struct WatchTests {
    /// Examines the watched folders, and lets time pass until the photos are uploaded.
    private func upload(_ home: VirtualHome) async throws {
        try await home.driver.examineFolders()
        try await home.driver.advance(by: .seconds(60))
    }

    private func makeFolder(_ home: VirtualHome) throws {
        try FileManager.default.createDirectory(at: home.camera, withIntermediateDirectories: true)
    }

    @Test func `a new photo is uploaded, and older photos and other files are not`() async throws {
        try await PhotoHome.play { home, store in
            try home.picture("old.jpg")
            let added = try await home.stormy("watch", "add", home.camera.path)
            #expect(added.status == 0 && added.output.contains("New photos in the folder are uploaded to home"), "\(added)")
            try await upload(home)
            #expect(store.arrived.isEmpty)
            try home.picture("new.jpg", isLocated: true)
            try home.picture("sub/deep.jpg")
            try home.picture(".hidden.jpg")
            try home.picture("partial.jpg.part")
            try home.write(Data("text".utf8), to: "camera/notes.txt")
            try FileManager.default.moveItem(
                at: home.camera.appendingPathComponent("old.jpg"), to: home.camera.appendingPathComponent("renamed.jpg"))
            try await upload(home)
            #expect(store.arrived == ["new.jpg"])
            #expect(try await home.stormy("watch", "list").output == "\(home.camera.path)  to home\n")
            let launches = try await home.rows("history").filter { $0["identifier"] as? String == "StormyFolders" }
            #expect(launches.contains { $0["detail"] as? String == "1 photo queued" }, "\(launches)")
            try await upload(home)
            #expect(store.arrived == ["new.jpg"], "no photo is sent twice")
        }
    }

    @Test func `with --since all and --recursive every photo of the folder is uploaded once`() async throws {
        try await PhotoHome.play { home, store in
            try home.picture("one.jpg")
            try home.picture("sub/two.jpg")
            // The same photo under another name.
            try home.write(JPEG.picture("one.jpg"), to: "camera/copy.jpg")
            #expect(try await home.stormy("upload", "--wait", home.camera.path + "/one.jpg").status == 0)
            #expect(try await home.stormy("watch", "add", "--since", "all", "--recursive", home.camera.path).status == 0)
            try await upload(home)
            #expect(store.arrived == ["one.jpg", "two.jpg"])
            #expect(try await home.stormy("audit", home.camera.path).status == 0)
        }
    }

    @Test func `an audit without folders checks the watched folders`() async throws {
        try await PhotoHome.play { home, _ in
            try makeFolder(home)
            #expect(try await home.stormy("audit").status == 64)
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            try home.picture("one.jpg")
            try home.picture("inside/two.jpg")
            try await upload(home)
            let audit = try await home.stormy("audit")
            #expect(audit.status == 0 && audit.output.contains("1 photo for home: 1 uploaded."), "\(audit)")
        }
    }

    @Test func `a changed photo is uploaded as another photo`() async throws {
        try await PhotoHome.play { home, store in
            try makeFolder(home)
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            try home.picture("one.jpg")
            try await upload(home)
            try home.write(JPEG.picture("edited"), to: "camera/one.jpg")
            try await upload(home)
            #expect(store.arrived == ["one-1.jpg", "one.jpg"])
        }
    }

    @Test func `a folder that disappears and returns with other files is scanned`() async throws {
        try await PhotoHome.play { home, store in
            try home.picture("old.jpg")
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            try await upload(home)
            let away = home.folder.appendingPathComponent("away")
            try FileManager.default.moveItem(at: home.camera, to: away)
            try await upload(home)
            #expect(try await home.stormy("watch", "list").output.contains("cannot be read now"))
            try FileManager.default.moveItem(at: away, to: home.camera)
            try home.picture("new.jpg")
            try await upload(home)
            #expect(store.arrived == ["new.jpg"])
        }
    }

    @Test func `a removed folder is not watched, and queued photos are still uploaded`() async throws {
        try await PhotoHome.play { home, store in
            try makeFolder(home)
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            home.server.route(nil, "/photos/*", .status(503))
            try home.picture("one.jpg")
            try await home.driver.examineFolders()
            try await home.driver.advance(by: .seconds(15))
            #expect(try await home.stormy("watch", "remove", home.camera.path + "/").status == 0)
            home.server.mount(store)
            try home.picture("two.jpg")
            try await home.driver.examineFolders()
            try await home.driver.advance(by: .seconds(3_600))
            #expect(store.arrived == ["one.jpg"])
            #expect(try await home.stormy("watch", "remove", home.camera.path).status == 66)
            #expect(try await home.stormy("why").output == "Nothing is pending.\n")
        }
    }

    @Test func `a destination that is not configured any more is reported, and the photos are uploaded later`() async throws {
        try await PhotoHome.play { home, store in
            try makeFolder(home)
            #expect(try await home.stormy("watch", "add", "--to", "home", home.camera.path).status == 0)
            try home.picture("one.jpg")
            try home.configure("")
            try await home.command { try StormyTool.configure() }
            try await upload(home)
            #expect(home.notification("trouble-folders")?.body.contains("home is not configured") == true)
            #expect(store.arrived.isEmpty)
            try home.configure(PhotoHome.destination())
            try await home.command { try StormyTool.configure() }
            try await home.driver.advance(by: .seconds(86_400))
            #expect(store.arrived == ["one.jpg"])
            #expect(home.notification("trouble-folders")?.state == .withdrawn)
        }
    }

    @Test func `photos wait for external power if the folder was added with --when charging`() async throws {
        try await PhotoHome.play { home, store in
            try makeFolder(home)
            try await home.driver.setConditions { $0.isOnExternalPower = false }
            #expect(try await home.stormy("watch", "add", "--when", "charging", home.camera.path).status == 0)
            try home.picture("one.jpg")
            try await upload(home)
            #expect(store.arrived.isEmpty)
            try await home.driver.setConditions { $0.isOnExternalPower = true }
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["one.jpg"])
        }
    }

    @Test func `after quit the folders are not watched until the user adds a folder again`() async throws {
        try await PhotoHome.play { home, store in
            try makeFolder(home)
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            let quit = try await home.stormy("quit")
            #expect(quit.output.contains("The folders are not watched"), "\(quit)")
            #expect(try await home.stormy("watch", "list").output.contains("because of `stormy quit`"))
            #expect(try await home.stormy("why").output == "Nothing is pending.\n")
            try home.picture("inside/old.jpg")
            // The options of the new command are used.
            #expect(try await home.stormy("watch", "add", "--recursive", home.camera.path).status == 0)
            try home.picture("one.jpg")
            try home.picture("inside/two.jpg")
            try await upload(home)
            #expect(store.arrived == ["one.jpg", "two.jpg"])
        }
    }

    @Test func `files whose names are not UTF-8 are reported`() async throws {
        try await PhotoHome.play { home, store in
            try makeFolder(home)
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            let name = Array(home.camera.path.utf8) + Array("/bad".utf8) + [0xFF] + Array(".jpg".utf8) + [0]
            let descriptor = name.withUnsafeBytes {
                open($0.baseAddress!.assumingMemoryBound(to: CChar.self), O_CREAT | O_WRONLY, 0o600)
            }
            #expect(descriptor >= 0)
            close(descriptor)
            try await upload(home)
            #expect(home.notification("trouble-folders")?.body.contains("the name is not UTF-8") == true)
            #expect(store.arrived.isEmpty)
        }
    }

    @Test func `a folder that is watched, is missing or is a file is refused`() async throws {
        try await PhotoHome.play { home, _ in
            let file = try home.picture("one.jpg").path
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            #expect(try await home.stormy("watch", "add", home.camera.path + "/.").status == 65)
            #expect(try await home.stormy("watch", "add", file).status == 65)
            #expect(try await home.stormy("watch", "add", home.camera.path + "/none").status == 66)
            #expect(try await home.stormy("watch", "add", home.directories.data.path).status == 65)
            #expect(try await home.stormy("watch", "add", "--to", "none", home.camera.path).status == 78)
        }
    }
}
