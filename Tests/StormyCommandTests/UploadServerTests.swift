import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests `stormy upload` with servers that have particular rules.
@Suite(.timeLimit(.minutes(30))) struct UploadServerTests {
    private func upload(_ name: String, from home: VirtualHome) async throws {
        let photo = try home.picture(name)
        let sent = try await home.stormy("upload", "--wait", photo.path)
        #expect(sent.status == 0, "\(sent)")
    }

    /// Returns the message of the only transfer.
    private func message(_ home: VirtualHome) async throws -> String {
        let row = try #require(try await home.rows("transfers").first)
        return (row["error"] as? [String: Any])?["message"] as? String ?? ""
    }

    // MARK: Immich

    private func playImmich(
        version: Int?, _ body: @Sendable (VirtualHome, ImmichStore) async throws -> Void
    ) async throws {
        try await VirtualHome.play("") { home in
            home.server.route(nil, "*", .status(404))
            let store = ImmichStore(prefix: "/immich", version: version)
            home.server.mount(store)
            let key = try home.writeSecret(ImmichStore.key, to: "immich-key")
            try home.configure(PhotoHome.destination("immich", VirtualHome.origin + "/immich") + "token_file = \"\(key.path)\"\n")
            try await body(home, store)
        }
    }

    @Test(arguments: [2, 3, nil]) func `each version of Immich accepts photos, and its version is requested once`(_ version: Int?)
        async throws
    {
        try await playImmich(version: version) { home, store in
            let photos = try ["one.jpg", "two.jpg", "three.jpg"].map { try home.picture($0).path }
            for photo in photos { #expect(try await home.stormy("upload", "--wait", photo).status == 0) }
            #expect(store.files.count == 3 && store.needlessCopies == 0)
            let questions = home.server.requests(matching: "/immich/api/server/version").count
            #expect(version == nil ? questions >= 1 : questions == 1)
        }
    }

    @Test func `Immich accepts photos again after an update`() async throws {
        try await playImmich(version: 2) { home, store in
            try await upload("one.jpg", from: home)
            store.update(toVersion: 3)
            try await upload("two.jpg", from: home)
            try await upload("three.jpg", from: home)
            #expect(home.server.requests(matching: "/immich/api/server/version").count == 2)
            #expect(home.server.requests(matching: "/immich/api/assets").count { $0.method == "POST" } == 4)
        }
    }

    @Test func `--verify reads the original back, or names the server's record`() async throws {
        try await playImmich(version: 3) { home, store in
            try await upload("one.jpg", from: home)
            let bytes = try await home.stormy("upload", "--verify")
            #expect(
                bytes.status == 0 && bytes.output.contains("one.jpg: the file is correct (the bytes were read back)"), "\(bytes)")
            store.refuseOriginals()
            let record = try await home.stormy("upload", "--verify")
            #expect(record.status == 0 && record.output.contains("by the server's SHA-1"), "\(record)")
            #expect(record.output.contains("the bytes were not read back"))
            let json = try await home.stormy("upload", "--verify", "--json")
            #expect(json.output.contains("\"sameRecord\""), "\(json)")
            store.moveToTrash()
            let trashed = try await home.stormy("upload", "--verify")
            #expect(trashed.status == 69 && trashed.output.contains("trash"), "\(trashed)")
            store.deletePhotos()
            let gone = try await home.stormy("upload", "--verify")
            #expect(gone.status == 69 && gone.output.contains("is MISSING"), "\(gone)")
        }
    }

    @Test func `the errors that Immich lists are shown together`() async throws {
        try await playImmich(version: 3) { home, store in
            let error = #"{"path":["fileCreatedAt"],"message":"expected a time"}"#
            home.server.route(
                "POST", "/immich/api/assets",
                .json(
                    #"{"message":"Validation failed","errors":[\#(error),{"keys":["x"],"message":"Unrecognized keys"}]}"#,
                    status: 400))
            let failed = try await home.stormy("upload", "--wait", home.picture("one.jpg").path)
            #expect(failed.status == 69)
            let listed = try await home.stormy("transfers")
            #expect(
                listed.output.contains("Validation failed; fileCreatedAt: expected a time; Unrecognized keys: x"), "\(listed)")
        }
    }

    // MARK: Nextcloud

    private func playNextcloud(_ body: @Sendable (VirtualHome, NextcloudStore) async throws -> Void) async throws {
        let address = VirtualHome.origin + "/cloud/remote.php/dav/files/me/photos/"
        try await VirtualHome.play(PhotoHome.destination("nextcloud", address)) { home in
            home.server.route(nil, "*", .status(404))
            let store = NextcloudStore(prefix: "/cloud")
            home.server.mount(store)
            try await body(home, store)
        }
    }

    @Test(arguments: ["en", "de", "fr"])
    func `a name that Nextcloud forbids is sent with another name, and the output names the reason`(_ language: String)
        async throws
    {
        try await playNextcloud { home, store in
            store.forbid(":?*\"<>|", language: language)
            let photo = try home.picture("2026-11-26 12:00:00?.jpg")
            let sent = try await home.stormy("upload", "--wait", photo.path)
            #expect(sent.status == 0 && store.names == ["photos/2026-11-26 12_00_00_.jpg"], "\(sent) \(store.names)")
            #expect(sent.errors.contains("12_00_00_.jpg: the server does not allow : ? in file names"), "\(sent)")
            let row = try #require(try await home.rows("transfers").first)
            #expect((row["note"] as? String)?.contains("does not allow : ? in file names") == true, "\(row)")
            #expect(home.server.requests().count { $0.method == "PUT" } == 1)
            // The server already has the photo, so the photo is not sent again.
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            #expect(home.server.requests().count { $0.method == "PUT" } == 1)
            // On the server, the name of this photo would be equal to the name of the first photo.
            let other = try home.picture("2026-11-26 12_00_00_.jpg")
            #expect(try await home.stormy("upload", "--wait", other.path).status == 0)
            #expect(store.names == ["photos/2026-11-26 12_00_00_-1.jpg", "photos/2026-11-26 12_00_00_.jpg"])
        }
    }

    @Test(arguments: [
        ("CON.jpg", "photos/CON_.jpg"), ("tail.jpg ", "photos/tail.jpg_"), ("x.jpg.part", "photos/x.jpg.part_"),
    ])
    func `a name that Windows does not take is sent once more to Nextcloud, and the output names the reason`(
        _ name: String, _ other: String
    ) async throws {
        try await playNextcloud { home, store in
            store.forbidWindowsNames()
            let sent = try await home.stormy("upload", "--wait", home.picture(name).path)
            #expect(sent.status == 0 && store.names == [other], "\(sent) \(store.names)")
            #expect(sent.errors.contains("the server does not allow this file name, so \"_\" was added"), "\(sent)")
            #expect(home.server.requests().count { $0.method == "PUT" } == 1)
            #expect(home.server.requests().count { $0.method == "MOVE" } == 2)
        }
    }

    @Test func `the reason that Nextcloud gives is shown`() async throws {
        try await playNextcloud { home, _ in
            let body =
                #"<d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns"><s:exception>OCA\DAV\Connector\Sabre\Exception\UnsupportedMediaType"#
                + "</s:exception><s:message>Photos of Sundays are not accepted</s:message></d:error>"
            home.server.route(
                "MOVE", "/cloud/remote.php/dav/uploads/*",
                .status(415, headers: ["Content-Type": "application/xml"], body: .text(body)))
            let failed = try await home.stormy("upload", "--wait", home.picture("one.jpg").path)
            let message = try await self.message(home)
            #expect(failed.status == 69 && message.contains("Photos of Sundays are not accepted"), "\(message)")
        }
    }

    // MARK: S3

    private func playBucket(_ body: @Sendable (VirtualHome, S3Store) async throws -> Void) async throws {
        try await VirtualHome.play("") { home in
            home.server.route(nil, "*", .status(404))
            let store = S3Store(prefix: "/bucket")
            home.server.mount(store)
            let secret = try home.writeSecret("secret", to: "s3-secret")
            let access = "access_key = \"me\"\nsecret_key_file = \"\(secret.path)\"\n"
            try home.configure(PhotoHome.destination("s3", VirtualHome.origin + "/bucket/") + access)
            try await body(home, store)
        }
    }

    @Test func `a bucket that ignores If-None-Match is noticed, and no photo of another computer is replaced`() async throws {
        try await playBucket { home, store in
            store.ignoreConditions()
            store.storeFirst(Data("a photo of another computer".utf8))
            let sent = try await home.stormy("upload", "--wait", home.picture("noon.jpg").path)
            #expect(sent.status == 0 && sent.errors.contains("the bucket ignores If-None-Match"), "\(sent)")
            #expect(store.files.count == 1 && store.keys.first?.hasPrefix("noon-") == true, "\(store.keys)")
            // Another computer stores a photo with the same name in the bucket. An earlier upload has already found the
            // capabilities of the bucket.
            let probes = home.server.requests().count { $0.path.hasSuffix(".part") }
            store.put(Data("a photo of another computer".utf8), as: "evening.jpg")
            try await upload("evening.jpg", from: home)
            #expect(store.keys.count == 3 && store.files.contains(Data("a photo of another computer".utf8)), "\(store.keys)")
            #expect(home.server.requests().count { $0.path.hasSuffix(".part") } == probes)
        }
    }

    @Test(arguments: [-7_200.0, 31_536_000]) func `an upload is verified although the clocks of computer and server differ`(
        _ difference: Double
    ) async throws {
        try await playBucket { home, store in
            let photo = try home.picture("noon.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            store.setClock(home.driver.clock.date.addingTimeInterval(difference))
            let verified = try await home.stormy("upload", "--verify", photo)
            #expect(verified.status == 0 && verified.output.contains("the file is correct"), "\(verified)")
        }
    }

    @Test func `a bucket that honors If-None-Match keeps plain names and the photo of another computer`() async throws {
        try await playBucket { home, store in
            store.storeFirst(Data("a photo of another computer".utf8))
            let sent = try await home.stormy("upload", "--wait", home.picture("noon.jpg").path)
            #expect(sent.status == 0 && !sent.errors.contains("If-None-Match"), "\(sent)")
            #expect(store.keys == ["noon-1.jpg", "noon.jpg"] && store.files.contains(Data("a photo of another computer".utf8)))
        }
    }
}
