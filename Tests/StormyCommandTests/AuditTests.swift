import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests the command `audit`, which shows the photos of a folder that are not safely uploaded.
@Suite(.timeLimit(.minutes(30))) struct AuditTests {
    /// Returns the state of each file, by the name of the file.
    private func states(_ home: VirtualHome, _ options: String...) async throws -> [String: String] {
        let result = try await home.stormy(["audit", "--json", home.camera.path] + options)
        let rows = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
        return rows.reduce(into: [:]) { states, row in
            let file = row["file"] as? String ?? ""
            states[URL(fileURLWithPath: file).lastPathComponent] = row["state"] as? String
        }
    }

    @Test func `each photo has a state, and the exit code is 0 only if all photos are uploaded`() async throws {
        try await PhotoHome.play { home, store in
            let (sent, held) = (try home.picture("sent.jpg").path, try home.picture("held.jpg").path)
            #expect(try await home.stormy("upload", "--wait", sent).status == 0)
            home.server.route("PUT", "/photos/*", .status(503))
            #expect(try await home.stormy("upload", held).status == 0)
            #expect(try await home.stormy("transfers", "pause", "all").status == 0)
            try home.picture("new.jpg")
            try home.write(Data("text".utf8), to: "camera/notes.txt")
            let audit = try await home.stormy("audit", home.camera.path)
            #expect(audit.status == 75, "\(audit)")
            #expect(audit.output.contains("new.jpg: never uploaded"), "\(audit)")
            #expect(audit.output.contains("held.jpg: on its way: paused"), "\(audit)")
            #expect(audit.output.contains("3 photos for home: 1 uploaded, 1 on its way, 1 never uploaded."), "\(audit)")
            #expect(audit.errors.contains("notes.txt"), "\(audit)")
            #expect(try await states(home) == ["sent.jpg": "uploaded", "held.jpg": "onItsWay", "new.jpg": "neverUploaded"])
            let complete = try await home.stormy("audit", sent)
            #expect(complete.status == 0 && complete.output == "1 photo for home: 1 uploaded.\n", "\(complete)")
            #expect(store.arrived == ["sent.jpg"], "an audit sends no photo")
        }
    }

    @Test func `an unreadable photo, a missing folder and an empty folder are not reported as uploaded`() async throws {
        try await PhotoHome.play { home, _ in
            let empty = home.folder.appendingPathComponent("empty")
            try FileManager.default.createDirectory(at: empty, withIntermediateDirectories: true)
            #expect(try await home.stormy("audit", empty.path).status == 66)
            #expect(try await home.stormy("audit", empty.path + "/none").status != 0)
            #expect(try await home.stormy("audit").status == 64)
        }
    }

    @Test func `a photo with a location is found by its copy, also after its name has changed`() async throws {
        try await PhotoHome.play { home, _ in
            let photo = try home.picture("one.jpg", isLocated: true)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            try FileManager.default.moveItem(at: photo, to: home.camera.appendingPathComponent("other name.jpg"))
            let before = home.server.requests().count
            let rows = try await home.rows("audit", home.camera.path)
            #expect(rows.first?["state"] as? String == "uploaded" && rows.first?["isLocationRemoved"] as? Bool == true)
            #expect(rows.first?["isProven"] as? Bool == false)
            #expect(home.server.requests().count == before, "a known photo needs no request")
            let changed = try Data(contentsOf: home.camera.appendingPathComponent("other name.jpg")) + Data([0xFF])
            try changed.write(to: home.camera.appendingPathComponent("other name.jpg"))
            #expect(try await states(home) == ["other name.jpg": "neverUploaded"])
        }
    }

    @Test func `a server that lost photos is found by --verify, and the photos can be sent again`() async throws {
        try await PhotoHome.play { home, store in
            let photos = [try home.picture("gone.jpg"), try home.picture("other.jpg"), try home.picture("fine.jpg")].map(\.path)
            #expect(try await home.stormy(["upload", "--wait"] + photos).status == 0)
            try FileManager.default.removeItem(at: store.directory.appendingPathComponent("gone.jpg"))
            let size = try Data(contentsOf: store.directory.appendingPathComponent("other.jpg")).count
            try Data(repeating: 7, count: size).write(to: store.directory.appendingPathComponent("other.jpg"))
            #expect(try await home.stormy("audit", home.camera.path).status == 0, "without --verify the server is not asked")
            let safe = try await home.stormy("audit", "--safe-to-delete", home.camera.path)
            #expect(safe.status == 69 && safe.output == photos[2] + "\n", "\(safe)")
            #expect(
                try await states(home) == ["gone.jpg": "neverUploaded", "other.jpg": "neverUploaded", "fine.jpg": "uploaded"])
            #expect(try await home.stormy(["upload", "--wait"] + photos).status == 0)
            #expect(store.arrived == ["fine.jpg", "gone.jpg", "other-1.jpg", "other.jpg"])
            #expect(try await home.stormy("audit", "--verify", home.camera.path).status == 0)
        }
    }

    @Test func `a server that does not respond leaves the state open, and no photo counts as lost`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("one.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            try home.picture("new.jpg")
            home.server.route(nil, "/photos/*", .status(503))
            let audit = try await home.stormy("audit", "--verify", home.camera.path)
            #expect(audit.status == 75 && audit.output.contains("2 photos for home: 2 not known."), "\(audit)")
            home.server.mount(store)
            #expect(try await states(home, "--verify") == ["one.jpg": "uploaded", "new.jpg": "neverUploaded"])
        }
    }

    @Test func `a server that hides its files is not believed`() async throws {
        try await PhotoHome.play(PhotoHome.destination("put")) { home, _ in
            try home.picture("one.jpg")
            home.server.route("HEAD", "/photos/*", .status(405))
            home.server.route("PUT", "/photos/*", .status(201))
            let audit = try await home.stormy("audit", home.camera.path)
            #expect(audit.status == 75 && audit.output.contains("does not show whether"), "\(audit)")
            #expect(!home.server.requests().contains { $0.method == "PUT" })
        }
    }

    @Test func `a server that hides the content of its files does not lose photos`() async throws {
        try await PhotoHome.play(PhotoHome.destination("put")) { home, store in
            let photo = try home.picture("one.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            home.server.route("GET", "/photos/*", .status(403))
            let audit = try await home.stormy("audit", "--verify", photo)
            #expect(audit.status == 75 && audit.output.contains("does not show whether"), "\(audit)")
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(store.arrived == ["one.jpg"], "the photo is not sent again")
        }
    }

    @Test func `without an agent the server is not asked`() async throws {
        try await PhotoHome.play { home, _ in
            let photo = try home.picture("one.jpg").path
            await home.setStartsAgents(false)
            await home.driver.killAgent()
            let audit = try await home.stormy("audit", photo)
            #expect(audit.status == 75 && audit.output.contains("forbids the start of an agent"), "\(audit)")
        }
    }

    @Test func `a photo for another destination is not uploaded for this destination`() async throws {
        let two = PhotoHome.destination(name: "one") + PhotoHome.destination("webdav", VirtualHome.origin + "/else/", name: "two")
        try await PhotoHome.play("[upload]\ndefault = \"one\"\n" + two) { home, _ in
            let photo = try home.picture("one.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(try await home.stormy("audit", photo).status == 0)
            let other = try await home.stormy("audit", "--to", "two", photo)
            #expect(other.status == 69 && other.output.contains("never uploaded"), "\(other)")
        }
    }
}
