import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests `stormy upload` with files that are not photos, that have unusual names, or that contain two formats.
@Suite(.timeLimit(.minutes(30))) struct UploadBadInputTests {
    // MARK: Files that cannot be sent

    @Test func `an empty file, a named pipe, devices and a loop of links are named, and the photo is sent`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("good.jpg")
            let folder = photo.deletingLastPathComponent()
            let (empty, pipe, loop) = ("empty.jpg", "pipe.jpg", "loop.jpg")
            try home.write(Data(), to: "camera/" + empty)
            #expect(mkfifo(folder.appendingPathComponent(pipe).path, 0o600) == 0)
            for (name, target) in [(loop, "back.jpg"), ("back.jpg", loop)] {
                #expect(symlink(target, folder.appendingPathComponent(name).path) == 0)
            }
            let files = [empty, pipe, loop].map { folder.appendingPathComponent($0).path } + ["/dev/null", "/dev/zero"]
            let result = try await home.stormy(["upload", "--wait"] + files + [photo.path])
            #expect(result.status != 0 && store.arrived == ["good.jpg"], "\(result)")
            for file in files { #expect(result.errors.contains(file), "\(file) in \(result.errors)") }
            for reason in ["is empty", "Too many levels of symbolic links"] {
                #expect(result.errors.contains(reason), "\(result.errors)")
            }
            #expect(try await home.rows("transfers").count == 1)
        }
    }

    @Test func `a folder with such files sends its photo and counts the others`() async throws {
        try await PhotoHome.play { home, store in
            let folder = try home.picture("album/good.jpg").deletingLastPathComponent()
            try home.write(Data(), to: "camera/album/empty.jpg")
            #expect(mkfifo(folder.appendingPathComponent("pipe.jpg").path, 0o600) == 0)
            #expect(symlink("self.jpg", folder.appendingPathComponent("self.jpg").path) == 0)
            #expect(symlink(".", folder.appendingPathComponent("again").path) == 0)
            let result = try await home.stormy("upload", "--wait", "--recursive", folder.path)
            #expect(store.arrived == ["good.jpg"], "\(result)")
            #expect(result.errors.contains("skipped") || result.errors.contains("is empty"), "\(result)")
        }
    }

    // MARK: Names

    /// The first name has 255 bytes. 255 bytes are the maximum in most file systems.
    @Test(arguments: [
        String(repeating: "n", count: 251) + ".jpg", "two\nlines.jpg", "tab\tand\u{1B}[31mred.jpg", "-", "--wait", "%2e%2e.jpg",
    ])
    func `a photo of any name arrives`(_ name: String) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture(name, isLocated: true)
            let result = try await home.stormy("upload", "--wait", photo.path)
            #expect(result.status == 0 && result.errors.contains("location removed"), "\(result)")
            #expect(store.files.count == 1, "\(store.files)")
        }
    }

    /// These file names begin with a hyphen. A parser of options would read an "h" after the hyphen as a request for help, and
    /// would exit with 0.
    @Test(arguments: ["-photo.jpg", "-1h.jpg", "-x.jpg", "-vh"])
    func `a name that begins with a hyphen is refused, and nothing is uploaded`(_ name: String) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("good.jpg")
            for command in [["upload", photo.path, name], ["place", "add", name, "1,1"], ["transfers", "cancel", "all", name]] {
                let result = try await home.stormy(command)
                #expect(result.status == 64 && result.errors.contains(name) && result.output.isEmpty, "\(result)")
            }
            #expect(try await home.rows("transfers").isEmpty && store.arrived.isEmpty)
        }
    }

    // MARK: Two formats in one file

    @Test(arguments: [
        "<html><script>var p = {\"latitude\": 47.370094, \"longitude\": 8.549106}</script></html>",
        "PK\u{3}\u{4}\0\0notes.txt +47.370094+008.549106/ PK\u{1}\u{2}",
    ])
    func `a web page or an archive behind a photo arrives without its location`(_ text: String) async throws {
        try await PhotoHome.play { home, store in
            let original = JPEG.picture("two formats", isLocated: true) + Data(text.utf8)
            let photo = try home.write(original, to: "camera/both.jpg")
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            let arrived = try #require(store.contents(of: "both.jpg"))
            #expect(arrived.count == original.count && arrived.range(of: Data("47.37".utf8)) == nil)
            #expect(arrived.range(of: Data("8.549106".utf8)) == nil && arrived.range(of: Data(text.utf8.prefix(2))) != nil)
        }
    }

    // MARK: Damage

    /// A single command uploads all photos.
    @Test func `photos that are cut at many bytes are sent without a location or held`() async throws {
        try await PhotoHome.play { home, store in
            let original = JPEG.picture("cut", isLocated: true)
            let position = Data([0x88, 4, 0, 1, 0, 0, 0])
            try #require(original.range(of: position) != nil)
            let files = try stride(from: 4, to: original.count, by: 7).map {
                try home.write(original.prefix($0), to: "camera/cut-\($0).jpg").path
            }
            let result = try await home.stormy(["upload", "--wait"] + files)
            let held = try await home.rows("transfers").filter { $0["state"] as? String == "held" }
            #expect(store.arrived.count + held.count == files.count, "\(result)")
            for name in store.arrived {
                let arrived = try #require(store.contents(of: name))
                // The latitude consists of 24 bytes, each with the value 1.
                #expect(arrived.range(of: Data(repeating: 1, count: 24)) == nil, "\(name)")
            }
        }
    }

    @Test func `a photo with a hundred thousand items is sent or held in one command`() async throws {
        try await PhotoHome.play { home, store in
            let segments = Data((0..<100_000).flatMap { _ in [0xFF, 0xE5, 0, 4, 1, 2] as [UInt8] })
            let photo = try home.write(Data([0xFF, 0xD8]) + segments + Data([0xFF, 0xD9]), to: "camera/many.jpg")
            let result = try await home.stormy("upload", "--wait", photo.path)
            #expect(result.status == 0 && store.arrived == ["many.jpg"], "\(result)")
        }
    }
}
