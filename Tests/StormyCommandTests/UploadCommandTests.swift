import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests `stormy upload`: the bytes that are sent, files that cannot be queued, and servers that fail.
@Suite(.timeLimit(.minutes(30))) struct UploadCommandTests {
    @Test func `a photo is sent as it was when it was queued`() async throws {
        try await PhotoHome.play { home, store in
            await home.setStartsAgents(false)
            let wanted = try home.makePhotos(2)
            let files = wanted.keys.sorted().map { home.camera.appendingPathComponent($0) }
            #expect(try await home.stormy("upload", files[0].path, files[1].path).status == 0)
            try FileManager.default.removeItem(at: files[0])
            try Data("something else".utf8).write(to: files[1])
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            #expect(store.digests == wanted)
        }
    }

    /// The test sends 600 kB at 10 kB per second.
    @Test func `photos to one destination share its limit`() async throws {
        try await PhotoHome.play(PhotoHome.destination() + "limit_kbps = 80\n") { home, store in
            let wanted = try home.makePhotos(2)
            let files = wanted.keys.sorted().map { home.camera.appendingPathComponent($0).path }
            #expect(try await home.stormy(["upload"] + files).status == 0)
            try await home.driver.advance(by: .seconds(55))
            #expect(store.arrived == [])
            // A new agent also obeys the limit.
            await home.driver.killAgent()
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(45))
            #expect(store.arrived == [])
            try await home.driver.advance(by: .seconds(90))
            #expect(store.digests == wanted)
        }
    }

    @Test func `files that cannot be queued are named and the others are sent`() async throws {
        try await PhotoHome.play { home, store in
            let empty = try home.write(Data(), to: "empty.jpg")
            let good = try home.makePhotos(1)
            let photo = home.camera.appendingPathComponent(try #require(good.keys.first))
            let result = try await home.stormy("upload", "/nowhere.jpg", home.folder.path, empty.path, photo.path)
            #expect(result.status == 66)
            #expect(result.errors.contains("/nowhere.jpg: no such file"))
            #expect(result.errors.contains("is a folder"))
            #expect(result.errors.contains("is empty"))
            try await home.driver.advance(by: .seconds(60))
            #expect(store.digests == good)
            // Without a destination no photo is queued.
            try home.configure("")
            #expect(try await home.stormy("upload", photo.path).status == 78)
        }
    }

    @Test func `the first problem in the order given decides the exit code`() async throws {
        try await PhotoHome.play { home, store in
            let good = try home.picture("good.jpg").path
            let held = try home.write(OtherPicture.heic, to: "camera/held.heic").path
            let missing = home.camera.path + "/missing.jpg"
            let heldFirst = try await home.stormy("upload", good, held, missing)
            #expect(heldFirst.status == 77 && heldFirst.errors.contains("held.heic: held back"), "\(heldFirst)")
            let missingFirst = try await home.stormy("upload", missing, held, good)
            #expect(missingFirst.status == 66, "\(missingFirst)")
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["good.jpg"])
        }
    }

    @Test func `a photo that is held back is in the JSON document and fails a folder`() async throws {
        try await PhotoHome.play { home, store in
            try home.picture("card/a.jpg")
            try home.write(OtherPicture.heic, to: "camera/card/b.heic")
            try home.write(Data("notes".utf8), to: "camera/card/notes.txt")
            let result = try await home.stormy("upload", "--recursive", "--wait", "--json", home.camera.path + "/card")
            #expect(result.status == 77, "\(result)")
            #expect(result.errors.contains("1 other file was skipped"))
            let rows = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
            #expect(rows.map { $0["state"] as? String } == ["completed", "held"], "\(rows)")
            #expect(store.arrived == ["a.jpg"])
        }
    }

    @Test func `a file that is not queued is in the JSON document`() async throws {
        try await PhotoHome.play { home, _ in
            let (photo, empty) = (try home.picture("a.jpg").path, try home.write(Data(), to: "camera/empty.jpg").path)
            let result = try await home.stormy("upload", "--json", photo, home.camera.path + "/missing.jpg", empty)
            #expect(result.status == 66, "\(result)")
            let rows = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
            #expect(rows.map { $0["state"] as? String } == ["queued", "notQueued", "notQueued"], "\(rows)")
            let errors = rows.compactMap { $0["error"] as? [String: Any] }
            #expect(errors.first?["code"] as? Int == 66 && (errors.first?["message"] as? String)?.contains("missing.jpg") == true)
            #expect(rows.last?["file"] as? String == empty)
        }
    }

    @Test func `a photo that the server refuses is in the JSON document of an upload that waits`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("a.jpg")
            store.refuse(status: 403, method: "PUT", next: 1)
            let result = try await home.stormy("upload", "--wait", "--json", photo.path)
            #expect(result.status == 69, "\(result)")
            let rows = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
            #expect(rows.map { $0["state"] as? String } == ["failed"])
        }
    }

    @Test func `a text file does not fulfil the photo request of a storm`() async throws {
        try await PhotoHome.play { home, store in
            home.serveForecast()
            try await home.stormy("place", "add", "Sydney", "-33.87,151.21", "--no-sync")
            try await home.stormy("check", "--notify")
            func requests() async throws -> [String?] {
                try await home.rows("transfers").map { $0["state"] as? String }.filter { $0 == "awaitingPhoto" }
            }
            #expect(try await requests().count == 1)
            let notes = try home.write(Data("notes".utf8), to: "notes.txt")
            #expect(try await home.stormy("upload", "--wait", notes.path).status == 0)
            #expect(try await requests().count == 1)
            #expect(try await home.stormy("upload", "--wait", try home.picture("storm.jpg").path).status == 0)
            #expect(try await requests().count == 0)
        }
    }

    // MARK: Servers that fail

    @Test func `each photo arrives once at a server that refuses requests, is full or cuts connections`() async throws {
        try await PhotoHome.play { home, store in
            let name = try home.makePhotos(1).keys.first
            let photo = home.camera.appendingPathComponent(try #require(name))
            store.refuse(status: 403, method: "PUT", next: 1)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 69)
            let refused = try #require(try await home.rows("transfers").last)
            #expect(refused["state"] as? String == "failed")
            #expect((refused["error"] as? [String: Any])?["message"] is String)

            // The photos are different, because an equal photo is not sent again.
            try Data(repeating: 1, count: 1_000).write(to: photo)
            store.refuse(status: 507, method: "PUT", next: 1)
            try await home.stormy("upload", photo.path)
            try await home.driver.advance(by: .seconds(1))
            let full = try #require(try await home.rows("transfers").last)
            #expect(full["state"] as? String == "waiting")
            #expect(full["nextAttemptAt"] is String && (full["error"] as? [String: Any])?["message"] is String, "\(full)")
            let id = try #require(full["id"] as? String)
            #expect(try await home.stormy("transfers", "retry", id).status == 0)
            try await home.driver.advance(by: .seconds(60))

            try Data(repeating: 2, count: 1_000).write(to: photo)
            store.cutUploads(afterBytes: 500, next: 1)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            try Data(repeating: 3, count: 1_000).write(to: photo)
            store.loseAnswers(to: "MOVE", next: 1)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            // The server refused one photo, and received three photos, each under another name.
            #expect(store.files.count == 3, "\(store.files)")
            #expect(store.unfinishedUploads == 0)
        }
    }

    /// Creates photos with the same name and size but different contents.
    private static func photos(_ count: Int, in home: VirtualHome) throws -> [URL] {
        try (0..<count).map { number in
            try home.write(
                JPEG.withoutPosition + Data(repeating: UInt8(number), count: 1_000), to: "\(number)/DSC1.jpg")
        }
    }

    /// Cameras use one name for many photos, and raw files have equal sizes. If the server refuses one photo, Stormy must not
    /// mistake the file of the other photo for it.
    @Test(arguments: [503, 403, nil])
    func `two photos of the same name and size both arrive`(_ status: Int?) async throws {
        // The URL of the second destination is written in a different form.
        let address = "http://me:pw@service.test/photos"
        let configuration =
            "[upload]\ndefault = \"home\"\n" + PhotoHome.destination("put", address + "/")
            + PhotoHome.destination("put", address, name: "again")
        try await PhotoHome.play(configuration) { home, store in
            let files = try Self.photos(2, in: home)
            if let status {
                store.refuse(status: status, method: "PUT", next: 1)
            } else {
                store.cutUploads(afterBytes: 500, next: 1)
                store.loseAnswers(to: "PUT", next: 1)
            }
            #expect(try await home.stormy("upload", files[0].path).status == 0)
            // The second photo is queued while the first photo waits for its next attempt.
            try await home.advance(untilFirstTransferIs: status == 403 ? .failed : .waiting)
            #expect(try await home.stormy("upload", files[1].path, "--to", "again").status == 0)
            try await home.driver.advance(by: .seconds(600))
            if status == 403 {
                #expect(try await home.stormy("transfers", "retry", "all").status == 0)
                try await home.driver.advance(by: .seconds(600))
            }
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["completed", "completed"])
            let there = store.files.compactMap { store.contents(of: $0) }
            #expect(try Set(there) == Set(files.map { try Data(contentsOf: $0) }), "\(store.files)")
        }
    }

    /// The server does not report whether a name is in use. A PUT to this server replaces an existing file.
    @Test func `photos of the same name are all kept by a server that only supports PUT`() async throws {
        try await PhotoHome.play(PhotoHome.destination("put", "http://me:pw@service.test/")) { home, _ in
            for name in ["DSC1.jpg", "DSC1-1.jpg", "DSC1-2.jpg"] {
                home.server.route("HEAD", "/\(name)", .status(501))
                home.server.route("PUT", "/\(name)", .status(200))
            }
            for (number, photo) in try Self.photos(3, in: home).enumerated() {
                let result = try await home.stormy(["upload", photo.path] + (number == 1 ? [] : ["--wait"]))
                #expect(result.status == 0, "\(result)")
            }
            try await home.driver.advance(by: .seconds(600))
            let transfers = home.driver.ledger.transfers
            #expect(transfers.count == 3 && transfers.allSatisfy { $0.state == .completed }, "\(transfers)")
            let written = home.server.requests().filter { $0.method == "PUT" }.map(\.path)
            #expect(written.sorted() == ["/DSC1-1.jpg", "/DSC1-2.jpg", "/DSC1.jpg"])
        }
    }

    // MARK: Passwords and tokens

    @Test func `a retry uses the password that is configured now`() async throws {
        try await PhotoHome.play { home, store in
            let secret = try home.writeSecret("old\n", to: "password")
            // The permissions of the file are checked, and not the permissions of the symbolic link.
            let link = home.folder.appendingPathComponent("link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: secret)
            try home.configure(PhotoHome.destination() + "user = \"me\"\npassword_file = \"\(link.path)\"\n")
            let photo = try home.write(JPEG.withoutPosition, to: "a.jpg")
            store.refuse(status: 401, method: "PUT", next: 1)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 69)
            try home.writeSecret("new\n", to: "password")
            #expect(try await home.stormy("transfers", "retry", "all").status == 0)
            try await home.driver.advance(by: .seconds(60))
            let sent = home.server.requests(matching: "/photos/*").filter { $0.method == "PUT" }
            let wanted = ["old", "new"].map { "Basic " + Data("me:\($0)".utf8).base64EncodedString() }
            #expect(sent.map { $0.headers["Authorization"] ?? "none" } == wanted)
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["completed"])
        }
    }

    /// If a secret has a second line, it could add another header, or the server would refuse the request.
    @Test(arguments: ["one\r\nX-Other: two\n", "one\ntwo", "one\u{0}"])
    func `a secret of more than one line is refused`(_ text: String) async throws {
        try await PhotoHome.play { home, _ in
            let secret = try home.writeSecret(text, to: "token")
            try home.configure(PhotoHome.destination() + "token_file = \"\(secret.path)\"\n")
            let photo = try home.write(JPEG.withoutPosition, to: "a.jpg")
            let result = try await home.stormy("upload", photo.path)
            #expect(result.status == 78 && result.errors.contains("more than one line or a control character"), "\(result)")
        }
    }
}
