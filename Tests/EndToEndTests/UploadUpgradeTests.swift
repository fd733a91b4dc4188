import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests in which a store of the previous version is upgraded in place. The previous version stored the number of a transfer
    /// instead of its key.
    @Suite struct UploadUpgrade {
        private let server: FaultyServer
        private let store: DavStore
        private let home: Home

        init() async throws {
            server = try await FaultyServer.start()
            store = try DavStore(prefix: "/photos", directory: TestFolder.shared.appendingPathComponent(UUID().uuidString))
            server.mount(store)
            home = try Home(extra: "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(server.url)/photos/\"\n")
        }

        private func photo(_ name: String) throws -> String {
            let file = home.folder.appendingPathComponent(name)
            try (JPEG.withoutPosition + Data(name.utf8)).write(to: file)
            return file.path
        }

        /// Converts the store to the format of the previous version.
        ///
        /// - Parameter change: SQL statements that are run on the converted store.
        private func makeEarlier(_ change: String = "") throws {
            let statements = """
                ATTACH '\(home.directories.ledger.path)' AS ledger;
                UPDATE photo SET "transfer" = (SELECT id FROM transfer WHERE transfer.key = submission);
                UPDATE ledger.transfer SET taskDescription = 'photo-' || (SELECT id FROM photo WHERE submission = ledger.transfer.key);
                UPDATE photo SET "transfer" = 0, state = 'failed' WHERE state = 'lost';
                DROP INDEX photoSubmission;
                ALTER TABLE photo DROP COLUMN submission;
                DELETE FROM main.grdb_migrations WHERE identifier LIKE '18:%';
                \(change)
                """
            let file = home.folder.appendingPathComponent("data/stormy/stormy.sqlite").path
            let changed = try Child.run("sqlite3", ["-bail", file, statements], environment: home.environment)
            #expect(changed.status == 0, "\(changed)")
        }

        /// The server has lost the first photo. The command that sent the photo again was killed before the ledger contained the
        /// transfer.
        @Test func `a photo that its server lost does not count as sent after an upgrade`() throws {
            let file = try photo("1.jpg")
            #expect(try home.stormy("upload", "--wait", file).status == 0)
            try makeEarlier(
                """
                INSERT INTO photo (state, path, digest, destination, createdAt, changedAt)
                    SELECT 'queued', path, digest, destination, createdAt, changedAt FROM photo;
                UPDATE photo SET "transfer" = 0, state = 'failed' WHERE id = 1;
                """)
            #expect(try home.stormy("transfers").errors.contains("1 photo queued again"))
            try home.waitForQuiet()
            #expect(try home.rows("transfers").count == 2)
            #expect(try home.stormy("upload", file).errors.contains("is already uploaded"))
        }

        @Test func `photos under way are found again after an upgrade`() throws {
            home.environment["STORMY_NO_AGENT"] = "1"
            let files = try ["1.jpg", "2.jpg", "3.jpg", "4.jpg"].map(photo)
            #expect(try home.stormy(["upload"] + files).status == 0)
            // The command was killed before it had stored the numbers of two transfers.
            try makeEarlier("UPDATE photo SET \"transfer\" = NULL WHERE id IN (2, 4);")
            #expect(try home.stormy("transfers").errors == "")
            let again = try home.stormy(["upload"] + files)
            #expect(again.errors.components(separatedBy: "is already queued").count == 5, "\(again)")
            home.environment["STORMY_NO_AGENT"] = nil
            #expect(try home.stormy("status").status == 0)
            try home.waitForQuiet()
            #expect(store.files.sorted() == ["/1.jpg", "/2.jpg", "/3.jpg", "/4.jpg"])
            let last = try home.stormy(["upload"] + files)
            #expect(last.errors.components(separatedBy: "is already uploaded").count == 5, "\(last)")
            #expect(try home.rows("transfers").count == 4)
        }

        @Test func `photos that had ended are known after an upgrade`() throws {
            let files = try ["arrived.jpg", "failed.jpg", "lost.jpg"].map(photo)
            #expect(try home.stormy("upload", "--wait", files[0]).status == 0)
            store.refuse(status: 403, method: "PUT", next: 1)
            #expect(try home.stormy("upload", "--wait", files[1]).status == 69)
            #expect(try home.stormy("upload", "--wait", files[2]).status == 0)
            try FileManager.default.removeItem(at: store.directory.appendingPathComponent("lost.jpg"))
            #expect(try home.stormy("upload", "--verify", files[2]).status == 69)
            try home.waitForQuiet()
            try home.stormy("quit")
            try makeEarlier()
            let result = try home.stormy(["upload", "--wait"] + files)
            #expect(result.status == 0, "\(result)")
            #expect(result.errors.contains("arrived.jpg: is already uploaded"), "\(result)")
            #expect(result.errors.contains("failed.jpg: the failed upload of the photo continues"), "\(result)")
            #expect(result.output.contains("Queued 2 photos"), "\(result)")
            #expect(store.files.sorted() == ["/arrived.jpg", "/failed.jpg", "/lost.jpg"])
            #expect(try home.rows("transfers").count == 4)
            #expect(try home.stormy("upload", "--verify").status == 0)
        }

        /// The ledger was lost. In a new ledger, the numbers of transfers begin at one again.
        @Test func `a photo is not matched to another transfer of the same number after an upgrade`() throws {
            home.environment["STORMY_NO_AGENT"] = "1"
            let files = try ["one.jpg", "two.jpg"].map(photo)
            #expect(try home.stormy(["upload"] + files).status == 0)
            try makeEarlier(
                """
                DELETE FROM transfer WHERE id = 1;
                UPDATE photo SET "transfer" = 2;
                """)
            #expect(try home.stormy("transfers").errors.contains("1 photo queued again"))
            home.environment["STORMY_NO_AGENT"] = nil
            #expect(try home.stormy("status").status == 0)
            try home.waitForQuiet()
            #expect(store.files.sorted() == ["/one.jpg", "/two.jpg"])
        }
    }
}
