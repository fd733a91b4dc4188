import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import ProcessSupport
import ServerScripts
import Stormy
import StormyFixtures
import Testing

@testable import StormyCommand

/// Tests that a path leads to the file that the system finds under exactly these bytes.
@Suite(.timeLimit(.minutes(30))) struct FileNameTests {
    /// The letter "é" as one code point, which is usual on Linux, and as two code points, which is usual on a Mac.
    private static let (composed, decomposed) = ("\u{E9}", "e\u{301}")

    private static func names(_ found: [PhotoFinder.Found]) -> Set<PathName> {
        Set(found.compactMap { if case .file(let file) = $0 { PathName(file.path) } else { nil } })
    }

    private static func isSame(_ store: DavStore, _ name: String, _ photo: URL) throws -> Bool {
        try store.contents(of: name) == Data(contentsOf: photo)
    }

    // MARK: Names that are equal as text

    @Test func `names that differ only in their code points are different`() {
        let (first, second) = (PathName("/" + Self.composed), PathName("/" + Self.decomposed))
        #expect(first != second && Set([first, second]).count == 2 && second < first)
        #expect(PathName("/a/b").isInside(PathName("/a")) && PathName("/a").isInside(PathName("/a")))
        #expect(!PathName("/ab").isInside(PathName("/a")) && !second.isInside(first))
        // If a combining character follows a slash, Swift treats both as one character.
        #expect(PathName("/a/\u{301}b").isInside(PathName("/a")))
    }

    @Test func `photos whose names differ only in their code points are all found`() async throws {
        try await VirtualHome.play { home in
            let names = [Self.composed, Self.decomposed].flatMap { ["\($0).jpg", "\($0)/one.jpg"] }
            let expected = Set(try names.map { PathName(try home.picture($0).path) })
            #expect(expected.count == 4)
            var finder = PhotoFinder(isRecursive: true)
            #expect(Self.names(finder.find([home.camera.path])) == expected)
            #expect(Self.names(finder.find([home.camera.path + "/*"])) == expected)
        }
    }

    @Test func `a photo that was not sent is not verified as the photo with an equal name`() async throws {
        try await PhotoHome.play { home, store in
            let (sent, other) = (try home.picture("\(Self.composed).jpg").path, try home.picture("\(Self.decomposed).jpg").path)
            #expect(try await home.stormy("upload", "--wait", sent).status == 0)
            let verified = try await home.stormy("upload", "--verify", sent)
            #expect(verified.status == 0 && verified.output.contains("is correct"), "\(verified)")
            let refused = try await home.stormy("upload", "--verify", other)
            #expect(refused.status == 66 && refused.output.isEmpty, "\(refused)")
            #expect(try await home.stormy("upload", "--wait", "--recursive", home.camera.path).status == 0)
            #expect(store.arrived.count == 2)
            let both = try await home.stormy("upload", "--verify", sent, other)
            #expect(both.status == 0 && both.output.components(separatedBy: "is correct").count == 3, "\(both)")
        }
    }

    // MARK: The folder above a linked folder

    /// Creates two folders. The folder `near` contains the symbolic link `link`, and the path `link/..` leads to the folder
    /// `far`.
    private static func linkFolder(_ home: VirtualHome) throws -> (near: String, far: String) {
        let (near, far) = (home.camera.path + "/near", home.camera.path + "/far")
        for folder in [near, far + "/sub"] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try FileManager.default.createSymbolicLink(atPath: near + "/link", withDestinationPath: far + "/sub")
        return (near, far)
    }

    /// Returns a path that begins in the working folder.
    private static func relative(_ path: String) -> String { String(repeating: "../", count: 50) + path.dropFirst() }

    @Test func `an absolute path leads to the same file`() {
        #expect(PathName.absolute("link/../a.jpg", in: "/w") == "/w/link/../a.jpg")
        #expect(PathName.absolute("./a//b/./c", in: "/w/") == "/w/a/b/c")
        #expect(PathName.absolute("/a/./b/../c") == "/a/b/../c")
        #expect(PathName.absolute("a/", in: "/w") == "/w/a/." && PathName.absolute(".", in: "/w") == "/w/.")
        #expect(PathName.absolute("~root/a", in: "/w") == "/w/~root/a")
        #expect(URL(exactPath: "/w/link/../a").path == "/w/link/../a")
    }

    @Test(arguments: [false, true]) func `an upload sends the file behind a link`(_ isRelative: Bool) async throws {
        try await PhotoHome.play { home, store in
            let (near, far) = try Self.linkFolder(home)
            try home.picture("near/one.jpg")
            let photo = try home.picture("far/one.jpg")
            let path = isRelative ? Self.relative(near + "/link/../one.jpg") : near + "/link/../one.jpg"
            #expect(try await home.stormy("upload", "--wait", path).status == 0)
            #expect(try Self.isSame(store, "one.jpg", photo))
            for name in [path, far + "/one.jpg"] {
                let verified = try await home.stormy("upload", "--verify", name)
                #expect(verified.status == 0 && verified.output.contains("one.jpg: the file is correct"), "\(verified)")
            }
            let other = try await home.stormy("upload", "--verify", near + "/one.jpg")
            #expect(other.status == 66, "\(other)")
        }
    }

    @Test(arguments: [["--recursive", ""], ["/*.jpg"]]) func `photos in the folder above a linked folder are sent`(
        _ arguments: [String]
    ) async throws {
        try await PhotoHome.play { home, store in
            let (near, _) = try Self.linkFolder(home)
            // In the wrong folder, `one.jpg` is another photo, and `two.jpg` is not a photo.
            try home.picture("near/one.jpg")
            try home.write(Data("notes".utf8), to: "camera/near/two.jpg")
            let photos = [try home.picture("far/one.jpg"), try home.picture("far/two.jpg")]
            let path = Self.relative(near + "/link/..") + arguments[arguments.count - 1]
            let sent = try await home.stormy(["upload", "--wait"] + arguments.dropLast() + [path])
            #expect(sent.status == 0 && store.arrived == ["one.jpg", "two.jpg"], "\(sent)")
            #expect(try Self.isSame(store, "one.jpg", photos[0]) && Self.isSame(store, "two.jpg", photos[1]))
        }
    }

    @Test(arguments: [false, true]) func `a download replaces the file behind a link`(_ isRelative: Bool) async throws {
        try await VirtualHome.play { home in
            home.server.route("GET", "/new", .status(200, body: "new"))
            let (near, far) = try Self.linkFolder(home)
            for folder in [near, far] { try Data("old".utf8).write(to: URL(fileURLWithPath: folder + "/file")) }
            let path = isRelative ? Self.relative(near + "/link/../file") : near + "/link/../file"
            let result = try await home.stormy("download", VirtualHome.origin + "/new", "-o", path, "--wait")
            #expect(result.status == 0, "\(result)")
            #expect(try String(contentsOfFile: far + "/file", encoding: .utf8) == "new")
            #expect(try String(contentsOfFile: near + "/file", encoding: .utf8) == "old")
        }
    }

    @Test func `a file with two paths has one download`() async throws {
        try await VirtualHome.play { home in
            home.server.route("GET", "/new", .status(200, body: "new"))
            let (near, far) = try Self.linkFolder(home)
            await home.setStartsAgents(false)
            #expect(try await home.stormy("download", VirtualHome.origin + "/new", "-o", far + "/file").status == 0)
            let second = try await home.stormy("download", VirtualHome.origin + "/new", "-o", near + "/link/../file")
            #expect(second.status == 73 && second.errors.contains("transfer 1 already downloads to this file"), "\(second)")
            for path in [near + "/file", far + "/a file"] {
                #expect(try await home.stormy("download", VirtualHome.origin + "/new", "-o", path).status == 0)
            }
        }
    }

    @Test func `a report is written to the folder above a linked folder`() async throws {
        try await VirtualHome.play { home in
            let (near, far) = try Self.linkFolder(home)
            let result = try await home.stormy("report", "-o", Self.relative(near + "/link/../page.html"))
            #expect(result.status == 0, "\(result)")
            #expect(access(far + "/page.html", F_OK) == 0 && access(near + "/page.html", F_OK) != 0)
        }
    }

    // MARK: Patterns

    @Test func `brackets are part of a name`() async throws {
        try await PhotoHome.play { home, store in
            try home.picture("photo1.jpg")
            let path = home.camera.path + "/photo[1].jpg"
            let missing = try await home.stormy("upload", path)
            #expect(missing.status == 66 && missing.errors.contains("photo[1].jpg: no such file"), "\(missing)")
            #expect(missing.errors.contains("only * and ? have a special meaning in a pattern"), "\(missing)")
            let photo = try home.picture("photo[1].jpg")
            #expect(try await home.stormy("upload", "--wait", path).status == 0)
            #expect(try store.arrived.count == 1 && Self.isSame(store, "photo[1].jpg", photo))
        }
    }

    @Test func `brackets are part of a name in a pattern`() async throws {
        try await VirtualHome.play { home in
            try home.picture("day1/one.jpg")
            let photos = [try home.picture("day[1]/one.jpg"), try home.picture("day[1]/two].jpg")]
            var finder = PhotoFinder(isRecursive: false)
            for pattern in ["/day[1]/*.jpg", "/day\\[1]/*.jpg", "/d?y[1]/*.jpg"] {
                #expect(Self.names(finder.find([home.camera.path + pattern])) == Set(photos.map { PathName($0.path) }))
            }
        }
    }

    // MARK: Other characters

    @Test func `a tilde in quotes is not a home folder`() async throws {
        try await PhotoHome.play { home, _ in
            for path in ["~root/file", "~/file"] {
                let download = try await home.stormy("download", VirtualHome.origin + "/new", "-o", path)
                #expect(download.status == 66 && download.errors.contains("/~"), "\(download)")
                let upload = try await home.stormy("upload", path)
                #expect(upload.status != 0 && upload.errors.contains("/\(path): no such file"), "\(upload)")
            }
            #expect(try await home.rows("transfers").isEmpty)
        }
    }

    /// The replacement character and a following combining character are one character in Swift.
    @Test func `names that are not UTF-8 are refused before a combining character`() async throws {
        try await PhotoHome.play { home, _ in
            let path = home.folder.path + "/b\u{FFFD}\u{301}.jpg"
            let download = try await home.stormy("download", VirtualHome.origin + "/new", "-o", path)
            #expect(download.status == 65 && download.errors.contains("the name of the file is not UTF-8"), "\(download)")
            let upload = try await home.stormy("upload", path)
            #expect(upload.status == 65 && upload.errors.contains("the name of the file is not UTF-8"), "\(upload)")
        }
    }

    @Test func `the name in an address does not hide the file`() throws {
        let address = try #require(URL(string: "http://service.test/%2E%CC%81x"))
        #expect(DownloadVerb.fileName(of: address).utf8.first != UInt8(ascii: "."))
    }
}
