import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests the settings that decide whether a photo keeps its location: options, destinations and `keep_location`.
@Suite(.timeLimit(.minutes(30))) struct PhotoLocationChoiceTests {
    private static func configuration(_ general: String = "", _ lines: String = "") -> String {
        general + PhotoHome.destination() + lines
    }

    @Test(arguments: [
        ("", "", [], false, "default"),
        ("", "location = \"keep\"\n", [], true, "destination"),
        ("[upload]\nkeep_location = true\n", "location = \"remove\"\n", [], false, "destination"),
        ("[upload]\nkeep_location = true\n", "", [], true, "configuration"),
        ("", "location = \"keep\"\n", ["--remove-location"], false, "option"),
        ("", "location = \"remove\"\n", ["--keep-location"], true, "option"),
    ])
    func `the first setting that chooses decides what is sent, and upload names it`(
        _ general: String, _ lines: String, _ options: [String], _ isKept: Bool, _ source: String
    ) async throws {
        try await PhotoHome.play(Self.configuration(general, lines)) { home, store in
            // With `--recursive`, the test also covers photos in a folder. Stormy must make the same decision for photos in a
            // folder.
            let photos = [try home.picture("one.jpg", isLocated: true), try home.picture("deep/two.jpg", isLocated: true)]
            let result = try await home.stormy(["upload", "--wait", "--recursive", home.camera.path] + options)
            #expect(result.status == 0, "\(result)")
            let sentence = "The location is \(isKept ? "kept in" : "removed from") the photos "
            #expect(result.output.components(separatedBy: sentence).count == 2, "\(result)")
            for photo in photos {
                let sent = store.contents(of: photo.lastPathComponent)
                #expect((sent == (try Data(contentsOf: photo))) == isKept, "\(photo.lastPathComponent)")
                #expect(sent != nil)
            }
            let other = try home.picture("three.jpg", isLocated: true)
            let rows = try JSONSerialization.jsonObject(
                with: Data(try await home.stormy(["upload", "--json", other.path] + options).output.utf8))
            let location = try #require(((rows as? [[String: Any]])?.first)?["location"] as? [String: Any])
            #expect(location["isKept"] as? Bool == isKept && location["decidedBy"] as? String == source, "\(location)")
            #expect((rows as? [[String: Any]])?.first?["state"] is String)
        }
    }

    /// The location of the file cannot be removed, so the file is held back.
    @Test func `a command without the location does not continue an upload with the location`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(OtherPicture.heic, to: "camera/one.heic").path
            home.server.route(nil, "/photos/*", .status(503))
            #expect(try await home.stormy("upload", "--keep-location", photo).status == 0)
            #expect(try await home.stormy("transfers", "pause", "all").status == 0)
            home.server.mount(store)
            let again = try await home.stormy("upload", "--remove-location", "--wait", photo)
            #expect(again.status == 77 && again.errors.contains("keeps the location. To cancel that upload"), "\(again)")
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived.isEmpty)
        }
    }

    @Test func `the two options exclude each other`() async throws {
        try await PhotoHome.play { home, _ in
            let photo = try home.picture("one.jpg").path
            let result = try await home.stormy("upload", "--keep-location", "--remove-location", photo)
            #expect(result.status == 64 && result.errors.contains("cannot be used together"), "\(result)")
            #expect(try await home.stormy("upload", "--verify", "--remove-location").status == 64)
        }
    }

    @Test func `config --check shows the choices once, until a line of the configuration chooses`() async throws {
        let two = PhotoHome.destination() + PhotoHome.destination(name: "cloud")
        try await PhotoHome.play("[upload]\ndefault = \"home\"\n" + two) { home, _ in
            let unset = try await home.stormy("config", "--check")
            #expect(unset.status == 0 && unset.errors.components(separatedBy: "location = \"keep\"").count == 2, "\(unset)")
            #expect(unset.errors.contains("removed from photos for cloud, home."), "\(unset)")
            try home.configure("[upload]\ndefault = \"home\"\nkeep_location = false\n" + two)
            #expect(try await home.stormy("config", "--check").errors.isEmpty)
            try home.configure(PhotoHome.destination() + "location = \"remove\"\n")
            #expect(try await home.stormy("config", "--check").errors.isEmpty)
        }
    }

    @Test func `a refused password is reported with the destination and the lines to correct`() async throws {
        try await PhotoHome.play { home, store in
            let secret = try home.writeSecret("wrong", to: "password")
            try home.configure(PhotoHome.destination() + "user = \"me\"\npassword_file = \"\(secret.path)\"\n")
            store.refuse(status: 401, method: "PUT", next: 1)
            let message =
                "home: The server refused user name or password (401). "
                + "Correct user and password_file in [upload.destinations.home] of config.toml, then retry the upload."
            let result = try await home.stormy("upload", "--wait", try home.picture("one.jpg").path)
            #expect(result.status == 69 && result.errors.contains(message), "\(result)")
            #expect(try await home.stormy("transfers").output.contains(message))
            let error = try #require(try await home.rows("transfers").first?["error"] as? [String: Any])
            #expect(error["message"] as? String == message)
        }
    }
}
