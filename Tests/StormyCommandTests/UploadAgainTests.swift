import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import ProcessSupport
import ServerScripts
import Spool
import Stormy
import Testing

/// Tests that each photo arrives once, even if the user adds it again or retries it, or if Stormy's store was lost.
@Suite(.timeLimit(.minutes(30))) struct UploadAgainTests {
    /// Runs a test with one photo. The server refuses the photo the first time.
    private func playRefusedOnce(
        _ body: @Sendable (_ home: VirtualHome, _ store: DavStore, _ photo: String) async throws -> Void
    ) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(JPEG.withoutPosition, to: "a.jpg")
            store.refuse(status: 403, method: "PUT", next: 1)
            try await body(home, store, photo.path)
        }
    }

    /// The server responds with 201 to the PUT, but has not stored the file.
    @Test(arguments: ["webdav", "put"])
    func `a photo is not completed if the server does not store it`(_ kind: String) async throws {
        try await PhotoHome.play(PhotoHome.destination(kind)) { home, store in
            let photo = try home.picture("one.jpg")
            store.keepNothing(ofNext: 1_000)
            #expect(try await home.stormy("upload", photo.path).status == 0)
            try await home.driver.advance(by: .seconds(2 * 3_600))
            #expect(home.driver.ledger.transfers.map(\.state) == [.waiting])
            #expect(home.server.requests().contains { $0.method == "PUT" && $0.status == 201 })
            #expect(store.arrived.isEmpty)
            store.clearFaults()
            try await home.driver.advance(by: .seconds(8 * 3_600))
            #expect(home.driver.ledger.transfers.map(\.state) == [.completed])
            #expect(store.arrived == ["one.jpg"])
        }
    }

    private static func retryAll(_ home: VirtualHome) async throws -> VirtualHome.Result {
        let result = try await home.stormy("transfers", "retry", "all")
        try await home.driver.advance(by: .seconds(60))
        return result
    }

    @Test(arguments: [false, true])
    func `a photo that is given again and retried arrives once`(_ retriesFirst: Bool) async throws {
        try await playRefusedOnce { home, store, photo in
            let first = try await home.stormy("upload", "--wait", photo)
            #expect(first.status == 69, "\(first)")
            if retriesFirst {
                #expect(try await Self.retryAll(home).status == 0)
                #expect(try await home.stormy("upload", "--wait", photo).errors.contains("is already uploaded"))
            } else {
                #expect(try await home.stormy("upload", "--wait", photo).status == 0)
                #expect(try await Self.retryAll(home).status == 0)
            }
            #expect(home.driver.ledger.transfers.map(\.state) == [.completed])
            let requests = home.server.requests().map { "\($0.method) \($0.path) \($0.status ?? 0)" }
            #expect(store.files.count == 1, "\(store.files) \(requests)")
        }
    }

    /// The user retries the photo while another command uploads the same photo again. The retry has changed the store, but not
    /// yet the ledger.
    @Test func `a photo that is given again while it is retried arrives once`() async throws {
        try await playRefusedOnce { home, store, photo in
            #expect(try await home.stormy("upload", "--wait", photo).status == 69)
            try home.changeStore("UPDATE photo SET state = 'queued', message = NULL")
            let again = try await home.stormy("upload", "--wait", photo)
            #expect(again.status == 0 && again.errors.contains("the failed upload of the photo continues"), "\(again)")
            #expect(try await Self.retryAll(home).status == 0)
            #expect(home.driver.ledger.transfers.map(\.state) == [.completed] && store.files.count == 1, "\(store.files)")
        }
    }

    /// A process received the failure and was then stopped for some time. The process stored the failure after the user had
    /// retried the photo.
    @Test func `a failure that is written late does not send a photo again`() async throws {
        try await playRefusedOnce { home, store, photo in
            #expect(try await home.stormy("upload", "--wait", photo).status == 69)
            #expect(try await Self.retryAll(home).status == 0)
            try home.changeStore("UPDATE photo SET state = 'failed', message = 'refused', remoteURL = NULL")
            let again = try await home.stormy("upload", "--wait", photo)
            #expect(again.status == 0 && again.errors.contains("is already uploaded"), "\(again)")
            #expect(home.driver.ledger.transfers.map(\.state) == [.completed] && store.files.count == 1, "\(store.files)")
        }
    }

    /// The second destination has another user or another kind than the first. The destination is therefore a different folder on
    /// the server.
    @Test(arguments: ["user = \"bob\"\npassword = \"x\"\n", "put"])
    func `a photo is not known at another account or kind of its destination`(_ other: String) async throws {
        try await PhotoHome.play(PhotoHome.destination("webdav") + "user = \"alice\"\npassword = \"x\"\n") { home, _ in
            let photo = try home.picture("one.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(try await home.stormy("upload", photo).errors.contains("is already uploaded"))
            // An earlier version stored the destination in this form.
            try home.changeStore("UPDATE photo SET destination = 'home \(PhotoHome.address)'")
            #expect(try await home.stormy("upload", photo).errors.contains("is already uploaded"))
            try home.configure(PhotoHome.destination(other == "put" ? "put" : "webdav") + (other == "put" ? "" : other))
            let again = try await home.stormy("upload", photo)
            #expect(again.status == 0 && again.output.contains("Queued 1 photo"), "\(again)")
        }
    }

    @Test(arguments: [false, true])
    func `a photo is known after its destination got another name`(_ isSecond: Bool) async throws {
        let home = PhotoHome.destination("webdav")
        let other = home.replacing("destinations.home", with: "destinations.nas")
        try await PhotoHome.play(home) { virtual, _ in
            let photo = try virtual.picture("one.jpg").path
            #expect(try await virtual.stormy("upload", "--wait", photo).status == 0)
            try virtual.configure(isSecond ? home + other : other)
            let again = try await virtual.stormy("upload", "--to", "nas", photo)
            // If two destinations have the same URL but different users, each destination has its own photos.
            #expect(again.errors.contains("is already uploaded") == !isSecond && again.status == 0, "\(again)")
        }
    }

    /// The transfer failed, and then the store was lost. The server may have a part of the photo.
    @Test func `a failed transfer that the store does not know is continued if its photo is given again`() async throws {
        try await playRefusedOnce { home, store, photo in
            #expect(try await home.stormy("upload", "--wait", photo).status == 69)
            try home.removeStore()
            let again = try await home.stormy("upload", "--wait", photo)
            #expect(again.status == 0 && again.errors.contains("the failed upload of the photo continues"), "\(again)")
            #expect(home.driver.ledger.transfers.map(\.state) == [.completed] && store.files.count == 1, "\(store.files)")
        }
    }

    /// No agent is running, so the store does not record how the uploads ended.
    @Test func `photos whose uploads were cancelled are queued again among hundreds`() async throws {
        try await PhotoHome.play { home, _ in
            await home.setStartsAgents(false)
            for number in 0..<250 { try home.write(JPEG.withoutPosition + Data("\(number)".utf8), to: "card/\(number).jpg") }
            let upload = ["upload", "--keep-location", "--recursive", home.folder.path + "/card"]
            #expect(try await home.stormy(upload).output.contains("Queued 250 photos"))
            let cancelled = try await home.command { try BackgroundTransfers.perform(.cancel, on: .all).changed.count }
            #expect(cancelled == 250)
            let again = try await home.stormy(upload)
            #expect(again.status == 0 && again.output.contains("Queued 250 photos"), "\(again)")
            #expect(!again.errors.contains("is uploaded or queued"), "\(again)")
        }
    }

    /// When the command began, it compared the store with the ledger. The upload ended after the command had compared the store
    /// with the ledger.
    @Test func `a photo is queued again if its upload ended a moment ago`() async throws {
        try await PhotoHome.play { home, _ in
            await home.setStartsAgents(false)
            let photos = try ["a.jpg", "b.jpg"].map { try home.picture($0) }
            let results = try await home.command {
                let destination = try #require(StormySettings.current.destination)
                let order = PhotoUploads.BatchOptions(
                    to: destination, location: LocationDecision(option: true, destination: destination, configuration: nil))
                let uploads = PhotoUploads(store: try StormyStore.open())
                func add() throws -> [PhotoUploads.Result] { try photos.map { try uploads.add($0, order) } }
                let first = try add()
                guard case .queued(_, let transfer, _, _, _)? = first.first else { return first }
                try BackgroundTransfers.perform(.cancel, on: .ids([transfer]))
                return try first + add()
            }
            let isQueued = results.map { if case .queued = $0 { true } else { false } }
            #expect(isQueued == [true, true, true, false], "\(results)")
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["cancelled", "queued", "queued"])
        }
    }

    /// The upload of the first photo failed. After that, another photo was sent to the same presigned URL.
    @Test func `a retried photo does not replace the photo at its presigned address`() async throws {
        try await PhotoHome.play(PhotoHome.destination("put", PhotoHome.address + "x.jpg?X-Sig=secret")) { home, store in
            let (first, second) = (try home.picture("one.jpg"), try home.picture("two.jpg"))
            store.refuse(status: 403, method: "PUT", next: 1)
            #expect(try await home.stormy("upload", "--wait", first.path).status == 69)
            #expect(try await home.stormy("upload", "--wait", second.path).status == 0)
            let retry = try await Self.retryAll(home)
            #expect(retry.errors.contains("the presigned address was already used for another photo"), "\(retry)")
            #expect(store.contents(of: "/x.jpg") == (try Data(contentsOf: second)))
        }
    }

    /// A command of an earlier version is running during the upgrade. The command stores the number of the transfer instead of
    /// its key.
    @Test func `a photo of an earlier version gets the key of its transfer`() async throws {
        try await PhotoHome.play { home, _ in
            await home.setStartsAgents(false)
            let photo = try home.write(JPEG.withoutPosition, to: "a.jpg").path
            #expect(try await home.stormy("upload", photo).status == 0)
            try home.changeStore("UPDATE photo SET \"transfer\" = 1, submission = NULL")
            #expect(try await home.stormy("transfers").errors == "")
            #expect(try await home.stormy("upload", photo).errors.contains("is already queued"))
            #expect(try await home.rows("transfers").count == 1)
        }
    }

    // MARK: A killed command

    /// Runs a test with the record of a photo whose command was killed before it could queue the photo. The key of the record is
    /// `key:killed`.
    private func playKilled(
        _ body: @Sendable (_ home: VirtualHome, _ store: DavStore, _ photo: String) async throws -> Void
    ) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(JPEG.withoutPosition, to: "a.jpg").path
            #expect(try await home.stormy("place", "list").status == 0)
            try home.changeStore(
                """
                INSERT INTO photo (state, path, digest, submission, destination, createdAt, changedAt) VALUES ('queued', '\(photo)',
                    '\(FileDigest.sha256(of: JPEG.withoutPosition))', 'key:killed', 'home \(PhotoHome.address) webdav', 0, 0)
                """)
            await home.setStartsAgents(false)
            try await body(home, store, photo)
            #expect(try await home.command { try BackgroundTransfers.all().map(\.submission) } == ["key:killed"])
            await home.setStartsAgents(true)
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["a.jpg"])
            #expect(try await home.stormy("upload", photo).errors.contains("is already uploaded"))
        }
    }

    @Test func `a photo of a killed command is queued by the next command`() async throws {
        try await playKilled { home, _, photo in
            let next = try await home.stormy("transfers")
            #expect(next.errors.contains("1 photo queued again"), "\(next)")
            #expect(try await home.stormy("upload", photo).errors.contains("is already queued"))
            #expect(try await home.stormy("transfers").errors == "")
        }
    }

    /// The process holds the lock of the spool until the ledger contains the photo.
    @Test func `a photo that a living process queues is left alone and may be given again`() async throws {
        try await playKilled { home, _, photo in
            let claim = try FileLock.share(home.directories.spoolLock)
            #expect(try await home.stormy("transfers").errors == "")
            #expect(try await home.rows("transfers").isEmpty)
            // Another command queues the photo with the key of the first command.
            let second = try await home.stormy("upload", photo)
            #expect(second.status == 0 && second.output.contains("Queued 1 photo"), "\(second)")
            extendLifetime(claim)
        }
    }

    @Test func `a photo of a killed command is lost with its file`() async throws {
        try await PhotoHome.play { home, _ in
            #expect(try await home.stormy("place", "list").status == 0)
            try home.changeStore(
                """
                INSERT INTO photo (state, path, digest, submission, destination, createdAt, changedAt)
                    VALUES ('queued', '/gone.jpg', 'aa', 'key:killed', 'home \(PhotoHome.address) webdav', 0, 0)
                """)
            #expect(try await home.stormy("transfers").errors.contains("the file and its queued copy are missing"))
            #expect(try await home.stormy("transfers").errors == "")
        }
    }

    /// The path now leads to another photo, because every camera creates a file IMG_0001.jpg.
    @Test func `another file at the path of a photo is not sent`() async throws {
        try await PhotoHome.play { home, store in
            let photo = home.camera.appendingPathComponent(try #require(try home.makePhotos(1).keys.first)).path
            #expect(try await home.stormy("place", "list").status == 0)
            try home.changeStore(
                """
                INSERT INTO photo (state, path, digest, submission, destination, createdAt, changedAt)
                    VALUES ('queued', '\(photo)', 'aa', 'key:killed', 'home \(PhotoHome.address) webdav', 0, 0)
                """)
            let next = try await home.stormy("transfers")
            #expect(next.errors.contains("\(photo): not sent, because another file has this path now"), "\(next)")
            #expect(try await home.rows("transfers").isEmpty && store.digests.isEmpty)
            #expect(try await home.stormy("transfers").errors == "")
            // The other file is another photo, and may be sent separately.
            #expect(try await home.stormy("upload", photo).status == 0)
        }
    }

    @Test func `a photo whose drive is not connected is not lost`() async throws {
        try await PhotoHome.play { home, _ in
            #expect(try await home.stormy("place", "list").status == 0)
            let mount = home.camera.deletingLastPathComponent().appendingPathComponent("stick")
            // The folder under the mount point is older than the photo.
            try FileManager.default.createDirectory(at: mount, withIntermediateDirectories: false)
            for path in [mount.path + "/a.jpg", mount.path + "/DCIM/b.jpg"] {
                try home.changeStore(
                    """
                    INSERT INTO photo (state, path, digest, submission, destination, createdAt, changedAt)
                        VALUES ('queued', '\(path)', 'aa', 'key:\(path)', 'home \(PhotoHome.address) webdav', 4e9, 4e9)
                    """)
            }
            for _ in 0..<2 {
                let next = try await home.stormy("transfers")
                #expect(next.errors.contains("/DCIM/b.jpg: not sent yet, because the file cannot be read now"), "\(next)")
                #expect(next.errors.contains("/a.jpg: not sent yet") && !next.errors.contains("any more"), "\(next)")
            }
        }
    }

    // MARK: A lost store

    @Test func `queued photos are found again after the store was lost`() async throws {
        try await PhotoHome.play { home, store in
            await home.setStartsAgents(false)
            let wanted = try home.makePhotos(2)
            let files = wanted.keys.sorted().map { home.camera.appendingPathComponent($0).path }
            #expect(try await home.stormy(["upload"] + files).status == 0)
            try home.removeStore()
            #expect(try await home.stormy("transfers").errors.contains("2 photos found in the agent's database"))
            #expect(try await home.stormy("upload", files[0]).errors.contains("is already queued"))
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            #expect(store.digests == wanted)
            #expect(try await home.stormy("upload", files[1]).errors.contains("is already uploaded"))
        }
    }

    /// The photo was cleaned, so the digest of the sent bytes differs from the digest of the user's file.
    @Test(arguments: [true, false]) func `a cleaned photo is not sent again after the store was lost`(_ hasArrived: Bool)
        async throws
    {
        try await PhotoHome.play { home, store in
            await home.setStartsAgents(hasArrived)
            let photo = try home.write(JPEG.picture("a", isLocated: true), to: "a.jpg").path
            #expect(try await home.stormy(["upload", photo] + (hasArrived ? ["--wait"] : [])).status == 0)
            try home.removeStore()
            let again = try await home.stormy("upload", photo)
            let words = hasArrived ? "is already uploaded" : "is already queued"
            #expect("\(again)".contains(words), "\(again)")
            #expect(try await home.rows("transfers").count == 1)
        }
    }

    @Test(arguments: [true, false]) func `a presigned address is used once after the store was lost`(_ hasArrived: Bool)
        async throws
    {
        try await PhotoHome.play(PhotoHome.destination("put", PhotoHome.address + "x.jpg?X-Sig=secret")) { home, _ in
            await home.setStartsAgents(hasArrived)
            let (first, second) = (try home.picture("one.jpg"), try home.picture("two.jpg"))
            #expect(try await home.stormy(["upload", first.path] + (hasArrived ? ["--wait"] : [])).status == 0)
            try home.removeStore()
            let other = try await home.stormy("upload", second.path)
            #expect(other.status != 0 && "\(other)".contains("was already used for another photo"), "\(other)")
            let again = try await home.stormy("upload", first.path)
            #expect("\(again)".contains("already"), "\(again)")
            #expect(try await home.rows("transfers").count == 1)
        }
    }

    /// A new store numbers its photos from one again. The agent's ledger still contains the old uploads.
    @Test func `a new store does not mistake an old upload for the upload of a new photo`() async throws {
        let configuration =
            PhotoHome.destination("webdav", VirtualHome.origin + "/one/")
            + PhotoHome.destination("webdav", VirtualHome.origin + "/two/", name: "other")
        try await PhotoHome.play(configuration) { home, _ in
            for prefix in ["/one", "/two"] {
                home.server.mount(try DavStore(prefix: prefix, directory: home.folder.appendingPathComponent("served" + prefix)))
            }
            let photo = try home.write(JPEG.withoutPosition, to: "a.jpg").path
            #expect(try await home.stormy("upload", "--wait", "--to", "home", photo).status == 0)
            try home.removeStore()
            #expect(try await home.stormy("upload", "--wait", "--to", "other", photo).status == 0)
            #expect(home.server.requests(matching: "/two/*").contains { $0.method == "PUT" })
            #expect(try await home.rows("transfers").count == 2)
            // The first destination already has the photo.
            let again = try await home.stormy("upload", "--wait", "--to", "home", photo)
            #expect(again.output.contains("is already uploaded") || again.errors.contains("is already uploaded"), "\(again)")
            #expect(home.server.requests(matching: "/one/*").filter { $0.method == "PUT" }.count == 1)
            #expect(try await home.rows("transfers").count == 2)
        }
    }
}
