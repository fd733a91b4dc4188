import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests whether a photo keeps its location if no running command sends the photo.
    @Suite struct PhotoLocationChoice {
        private static func destination(_ nginx: Nginx, _ choice: String) -> String {
            """
            [upload.destinations.home]
            kind = "webdav"
            url = "\(nginx.url)photos/"
            location = "\(choice)"

            """
        }

        @Test(arguments: [("keep", true), ("remove", false)])
        func `the button follows the destination's choice about the location`(_ choice: String, _ isKept: Bool) async throws {
            let desktop = try Desktop()
            let nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop, extra: Self.destination(nginx, choice))
            let photo = home.folder.appendingPathComponent("noon.jpg")
            try JPEG.withPosition.write(to: photo)
            try home.installChooser("echo '\(photo.path)'")
            try home.pressAddPhoto(on: desktop)
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Photo uploaded"])
            try home.waitForQuiet()
            let sent = try Data(contentsOf: nginx.photos.appendingPathComponent("noon.jpg"))
            #expect((sent == JPEG.withPosition) == isKept)
            #expect(sent.count == JPEG.withPosition.count)
            await server.stop()
        }

        /// The ledger and the copy of the cleaned photo are lost before the photo is sent.
        @Test func `a photo that is queued again follows the option with which it was given`() throws {
            let nginx = try Nginx()
            let home = try Home(extra: Self.destination(nginx, "keep"))
            home.environment["STORMY_NO_AGENT"] = "1"
            let photo = home.folder.appendingPathComponent("noon.jpg")
            try JPEG.withPosition.write(to: photo)
            #expect(try home.stormy("upload", "--remove-location", photo.path).status == 0)
            let copies = try FileManager.default.contentsOfDirectory(atPath: home.directories.spool.path)
            let lost =
                ["", "-wal", "-shm"].map { home.directories.state.appendingPathComponent("agent.sqlite" + $0) }
                + copies.map { home.directories.spool.appendingPathComponent($0) }
            for file in lost where FileManager.default.fileExists(atPath: file.path) {
                try FileManager.default.removeItem(at: file)
            }
            home.environment["STORMY_NO_AGENT"] = nil
            let again = try home.stormy("transfers")
            #expect(again.errors.contains("1 photo queued again"), "\(again)")
            try home.waitForQuiet()
            #expect(try Data(contentsOf: nginx.photos.appendingPathComponent("noon.jpg")) != JPEG.withPosition)
        }

        /// The copy in the spool contains the location. The destination is now configured to remove the location.
        @Test func `a left copy is cleaned before it is queued again`() throws {
            let nginx = try Nginx()
            let home = try Home(extra: Self.destination(nginx, "keep"))
            home.environment["STORMY_NO_AGENT"] = "1"
            let photo = home.folder.appendingPathComponent("noon.jpg")
            try JPEG.withPosition.write(to: photo)
            #expect(try home.stormy("upload", photo.path).status == 0)
            for suffix in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(at: home.directories.state.appendingPathComponent("agent.sqlite" + suffix))
            }
            try FileManager.default.removeItem(at: photo)
            try home.configure(Self.destination(nginx, "remove"))
            home.environment["STORMY_NO_AGENT"] = nil
            let again = try home.stormy("transfers")
            #expect(again.errors.contains("1 photo queued again"), "\(again)")
            try home.waitForQuiet()
            let sent = try Data(contentsOf: nginx.photos.appendingPathComponent("noon.jpg"))
            #expect(sent != JPEG.withPosition)
            #expect(sent.count == JPEG.withPosition.count)
        }
    }
}
