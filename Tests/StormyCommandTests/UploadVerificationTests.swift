import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests `stormy upload --verify`, which checks whether the server still has the uploaded photos.
@Suite(.timeLimit(.minutes(30))) struct UploadVerificationTests {
    /// After the upload, the server reports that the URL of the photo is on another server.
    @Test func `the password is not sent to another server`() async throws {
        let configuration =
            PhotoHome.destination("multipart", VirtualHome.origin + "/up") + "user = \"u\"\npassword = \"secret\"\n"
        try await PhotoHome.play(configuration) { home, _ in
            let stranger = home.driver.network.server("http://service.test:8080")
            home.server.route("POST", "/up", .status(201, headers: ["Location": "http://service.test:8080/one.jpg"]))
            stranger.route("GET", "/one.jpg", .status(200, body: "what"))
            let photo = try home.picture("one.jpg")
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            #expect(try await home.stormy("upload", "--verify").output.contains("differs from the uploaded file"))
            #expect(home.server.requests(matching: "/up").first?.headers["Authorization"] != nil)
            #expect(stranger.requests().map { $0.headers["Authorization"] } == [nil])
        }
    }

    @Test func `the first file in the order given decides the exit code, and the JSON document is printed`() async throws {
        try await PhotoHome.play { home, store in
            let (photo, other) = (try home.picture("one.jpg").path, home.camera.path + "/other.jpg")
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            let none = try await home.stormy("upload", "--verify", "--json", other)
            let rows = try #require(try JSONSerialization.jsonObject(with: Data(none.output.utf8)) as? [[String: Any]])
            #expect(none.status == 66 && rows.map { $0["finding"] as? String } == ["notUploaded"], "\(none)")
            #expect(rows.first?["file"] as? String == other && rows.first?["url"] is NSNull)
            try FileManager.default.removeItem(at: store.directory.appendingPathComponent("one.jpg"))
            #expect(try await home.stormy("upload", "--verify", other, photo).status == 66)
            #expect(try await home.stormy("upload", "--verify", photo, other).status == 69)
        }
    }

    @Test func `lost and changed photos are reported and sent again`() async throws {
        try await PhotoHome.play { home, store in
            let photos = [try home.picture("one.jpg"), try home.picture("two.jpg")].map(\.path)
            #expect(try await home.stormy(["upload", "--wait"] + photos).status == 0)
            let fine = try await home.stormy("upload", "--verify")
            #expect(
                fine.status == 0 && fine.output.contains("one.jpg: the file is correct (the bytes were read back)"), "\(fine)")
            let receipt = try #require(try await home.rows("transfers").first?["receipt"] as? [String: Any])
            #expect(receipt["verified"] as? String == "digest" && receipt["checkedAt"] is String)
            try FileManager.default.removeItem(at: store.directory.appendingPathComponent("one.jpg"))
            try Data("other".utf8).write(to: store.directory.appendingPathComponent("two.jpg"))
            let lost = try await home.stormy("upload", "--verify")
            #expect(lost.status == 69)
            #expect(
                lost.output.contains("one.jpg: the file is MISSING")
                    && lost.output.contains("two.jpg: the file is DIFFERENT on the server"),
                "\(lost)")
            // The store has recorded that the photos are lost.
            #expect(try await home.stormy(["upload", "--wait"] + photos).status == 0)
            #expect(store.arrived == ["one.jpg", "two-1.jpg", "two.jpg"])
        }
    }

    /// The query with the signature is not stored after the upload.
    @Test func `a presigned address is not asked without its signature`() async throws {
        let configuration = PhotoHome.destination("put", VirtualHome.origin + "/up/one.jpg?signature=x")
        try await PhotoHome.play(configuration) { home, _ in
            home.server.route("PUT", "/up/*", .status(200))
            let photo = try home.picture("one.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            let before = home.server.requests().count
            let verified = try await home.stormy("upload", "--verify")
            #expect(verified.status == 69 && verified.output.contains("no check of the stored file"), "\(verified)")
            #expect(home.server.requests().count == before)
            #expect(try await home.stormy("upload", "--wait", photo).errors.contains("is already uploaded"))
        }
    }

    @Test func `a named file that was replaced after its upload is not reported as correct`() async throws {
        try await PhotoHome.play { home, _ in
            let photo = try home.picture("one.jpg", isLocated: true).path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(try await home.stormy("upload", "--verify", photo).status == 0)
            try home.write(JPEG.picture("another"), to: "camera/one.jpg")
            let changed = try await home.stormy("upload", "--verify", photo)
            #expect(changed.status == 69 && changed.output.contains("the file changed after its upload"), "\(changed)")
        }
    }

    /// The server lost the photo. The user uploaded it again under the same name.
    @Test(arguments: [true, false]) func `a photo that was uploaded twice is reported once`(_ isNamed: Bool) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("one.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            try FileManager.default.removeItem(at: store.directory.appendingPathComponent("one.jpg"))
            #expect(try await home.stormy("upload", "--verify").status == 69)
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            let result = try await home.stormy(["upload", "--verify"] + (isNamed ? [photo] : []))
            #expect(result.status == 0)
            #expect(result.output.components(separatedBy: "one.jpg: the file is correct").count == 2, "\(result)")
        }
    }

    @Test func `the option --to queries only the named destination`() async throws {
        let second = "[upload.destinations.second]\nkind = \"webdav\"\nurl = \"\(VirtualHome.origin)/second/\"\n"
        let first = "[upload.destinations.first]\nkind = \"webdav\"\nurl = \"\(VirtualHome.origin)/first/\"\n"
        try await VirtualHome.play("[upload]\ndefault = \"first\"\n" + first + second) { home in
            home.server.route(nil, "*", .status(404))
            for name in ["first", "second"] {
                home.server.mount(try DavStore(prefix: "/\(name)", directory: home.folder.appendingPathComponent(name)))
            }
            let photo = try home.picture("one.jpg").path
            for name in ["first", "second"] {
                #expect(try await home.stormy("upload", "--wait", "--to", name, photo).status == 0)
            }
            let other = try home.picture("two.jpg").path
            #expect(try await home.stormy("upload", "--wait", "--to", "first", other).status == 0)
            let requests = home.server.requests(matching: "/first/*").count
            let result = try await home.stormy("upload", "--verify", "--to", "second", photo)
            #expect(result.status == 0 && result.output.contains("/second/one.jpg"), "\(result)")
            #expect(!result.output.contains("/first/") && home.server.requests(matching: "/first/*").count == requests)
            let none = try await home.stormy("upload", "--verify", "--to", "second", other)
            #expect(
                none.status == 66 && none.errors.contains("no upload of this file to second is recorded on this computer"),
                "\(none)")
            #expect(try await home.stormy("upload", "--verify", "--to", "third", photo).status == 78)
            #expect(try await home.stormy("upload", "--verify").output.contains("/first/one.jpg"))
        }
    }

    /// The name of a destination can contain spaces.
    @Test func `the option --to does not accept another destination whose name begins with the same word`() async throws {
        let names = ["home", "home cloud"]
        let tables = names.map { name in
            "[upload.destinations.\"\(name)\"]\nkind = \"webdav\"\nurl = \"\(VirtualHome.origin)/\(name.count)/\"\n"
        }
        try await VirtualHome.play("[upload]\ndefault = \"home\"\n" + tables.joined()) { home in
            home.server.route(nil, "*", .status(404))
            for name in names {
                home.server.mount(
                    try DavStore(prefix: "/\(name.count)", directory: home.folder.appendingPathComponent("\(name.count)")))
            }
            let photo = try home.picture("one.jpg").path
            #expect(try await home.stormy("upload", "--wait", "--to", "home cloud", photo).status == 0)
            #expect(try await home.stormy("upload", "--verify", "--to", "home", photo).status == 66)
            #expect(try await home.stormy("upload", "--verify", "--to", "home cloud", photo).status == 0)
        }
    }
}
