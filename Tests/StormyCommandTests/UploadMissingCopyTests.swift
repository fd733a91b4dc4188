import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests a spool that is missing, or that is on another file system than its parent folder.
@Suite(.timeLimit(.minutes(30))) struct UploadMissingCopyTests {
    /// Queues one photo, and then replaces the spool by an empty folder.
    private func playWithoutCopy(
        _ body: @Sendable (_ home: VirtualHome, _ store: DavStore, _ photo: String, _ away: URL) async throws -> Void
    ) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("a.jpg").path
            await home.setStartsAgents(false)
            #expect(try await home.stormy("upload", photo).status == 0)
            let (spool, away) = (home.directories.spool, home.folder.appendingPathComponent("away"))
            try FileManager.default.moveItem(at: spool, to: away)
            try FileManager.default.createDirectory(
                at: spool, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            await home.setStartsAgents(true)
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            #expect(home.driver.ledger.transfers.map(\.state) == [.waiting])
            try await body(home, store, photo, away)
        }
    }

    @Test(arguments: [[], ["--again"]]) func `a photo that is given again replaces its missing copy`(_ options: [String])
        async throws
    {
        try await playWithoutCopy { home, store, photo, _ in
            let again = try await home.stormy(["upload", photo] + options)
            #expect(again.status == 0)
            #expect(again.output.contains("Queued 1 photo"), "\(again)")
            #expect(again.errors.contains("the queued copy was missing; a new copy replaces the missing copy"), "\(again)")
            try await home.driver.advance(by: .seconds(60))
            #expect(home.driver.ledger.transfers.map(\.state) == [.completed])
            #expect(store.arrived == ["a.jpg"])
            #expect(try await home.stormy("upload", photo).errors.contains("is already uploaded"))
        }
    }

    @Test func `the copy that returns is sent`() async throws {
        try await playWithoutCopy { home, store, photo, away in
            let spool = home.directories.spool
            try FileManager.default.removeItem(at: spool)
            try FileManager.default.moveItem(at: away, to: spool)
            #expect(try await home.stormy("upload", photo).errors.contains("is already queued"))
            try await home.driver.advance(by: .seconds(120))
            #expect(home.driver.ledger.transfers.map(\.state) == [.completed])
            #expect(store.arrived == ["a.jpg"])
        }
    }

    @Test func `a missing copy is named with what to do`() async throws {
        try await playWithoutCopy { home, _, _, _ in
            let spool = home.directories.spool.path
            let advice =
                "1 queued copy is missing from \(spool). Put the folder with the queued copies back, or upload the files again."
            #expect(try await home.stormy("why").output.contains(advice))
            let row = try #require(try await home.rows("transfers").first)
            let message = try #require((row["error"] as? [String: Any])?["message"] as? String)
            #expect(message.contains("Put the folder with the queued copies back. Or upload the file again."))
        }
    }

    @Test func `another photo does not replace a missing copy`() async throws {
        try await playWithoutCopy { home, store, _, _ in
            #expect(try await home.stormy("upload", home.picture("b.jpg").path).status == 0)
            try await home.driver.advance(by: .seconds(120))
            #expect(home.driver.ledger.transfers.map(\.state) == [.waiting, .completed])
            #expect(store.arrived == ["b.jpg"])
        }
    }

    /// The spool is still the same folder. The missing copy is therefore treated as lost, and the transfer fails.
    @Test func `a photo whose copy was removed is sent again after its upload failed`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("a.jpg").path
            await home.setStartsAgents(false)
            #expect(try await home.stormy("upload", photo).status == 0)
            let spool = home.directories.spool
            for name in try FileManager.default.contentsOfDirectory(atPath: spool.path) where name.hasPrefix("upload-") {
                try FileManager.default.removeItem(at: spool.appendingPathComponent(name))
            }
            await home.setStartsAgents(true)
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            #expect(home.driver.ledger.transfers.map(\.state) == [.failed])
            for ids in [["1"], ["all"]] {
                let retried = try await home.stormy(["transfers", "retry"] + ids)
                #expect(retried.status == 69, "\(retried)")
                #expect(retried.errors.contains("the queued copy of its file is missing. Upload the file again"), "\(retried)")
            }
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(store.arrived == ["a.jpg"])
        }
    }

    @Test(arguments: ["flip", "cut", "folder", "link"])
    func `a photo whose copy was damaged is sent again`(_ damage: String) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("a.jpg").path
            await home.setStartsAgents(false)
            #expect(try await home.stormy("upload", photo).status == 0)
            let spool = home.directories.spool
            let name = try #require(
                try FileManager.default.contentsOfDirectory(atPath: spool.path).first { $0.hasPrefix("upload-") })
            let copy = spool.appendingPathComponent(name)
            var bytes = try Data(contentsOf: copy)
            try FileManager.default.removeItem(at: copy)
            switch damage {
            case "flip":
                bytes[bytes.count / 2] ^= 1
                try bytes.write(to: copy)
            case "cut": try bytes.prefix(100).write(to: copy)
            case "folder": try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
            default: try FileManager.default.createSymbolicLink(atPath: copy.path, withDestinationPath: name)
            }
            await home.setStartsAgents(true)
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == [])
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(store.arrived == ["a.jpg"])
        }
    }

    @Test func `a photo that is renamed after its name was refused is sent under the new name`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("bad.jpg")
            store.refuse(status: 403, method: "PUT", next: 1)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 69)
            let renamed = photo.deletingLastPathComponent().appendingPathComponent("good.jpg")
            try FileManager.default.moveItem(at: photo, to: renamed)
            let result = try await home.stormy("upload", "--wait", renamed.path)
            #expect(result.status == 0, "\(result)")
            #expect(store.arrived == ["good.jpg"])
        }
    }

    // MARK: Another file system

    private static let otherPlace = URL(fileURLWithPath: "/dev/shm")
    private static func device(_ path: String) -> dev_t? {
        var found = stat()
        return stat(path, &found) == 0 ? found.st_dev : nil
    }
    private static let hasOtherPlace =
        access(otherPlace.path, W_OK) == 0 && device(otherPlace.path) != device(FileManager.default.temporaryDirectory.path)

    /// The spool may be a symbolic link or a mount point.
    @Test(.enabled(if: hasOtherPlace, "one file system only"))
    func `a photo is cleaned in a spool on another file system`() async throws {
        try await PhotoHome.play { home, store in
            let (spool, other) = (home.directories.spool, Self.otherPlace.appendingPathComponent("stormy-\(UUID().uuidString)"))
            defer { try? FileManager.default.removeItem(at: other) }
            try FileManager.default.createDirectory(
                at: other, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try FileManager.default.removeItem(at: spool)
            try FileManager.default.createSymbolicLink(at: spool, withDestinationURL: other)
            let result = try await home.stormy("upload", home.picture("a.jpg", isLocated: true).path)
            #expect(result.status == 0, "\(result)")
            #expect(result.errors.contains("location removed"), "\(result)")
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["a.jpg"])
        }
    }
}
