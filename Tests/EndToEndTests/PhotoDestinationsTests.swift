import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of several destinations, with a store or a ledger from a backup.
    @Suite struct PhotoDestinations {
        private let nginx: Nginx
        private let home: Home
        private let photo: URL

        init() throws {
            nginx = try Nginx()
            home = try Home(
                extra: """
                    [upload]
                    keep_location = true
                    [upload.destinations.first]
                    kind = "webdav"
                    url = "\(nginx.url)photos/"
                    [upload.destinations.second]
                    kind = "webdav"
                    url = "\(nginx.url)photos/more/"
                    [upload.destinations.third]
                    kind = "webdav"
                    url = "\(nginx.url)photos/more/"

                    """)
            photo = home.folder.appendingPathComponent("noon.jpg")
            try JPEG.withPosition.write(to: photo)
            home.environment["STORMY_NO_AGENT"] = "1"
        }

        private func files(_ name: String, in folder: String) -> [URL] {
            ["", "-wal", "-shm"].map { home.folder.appendingPathComponent("\(folder)/stormy/\(name).sqlite\($0)") }
                .filter { FileManager.default.fileExists(atPath: $0.path) }
        }

        private func upload(to destination: String) throws {
            let said = try home.stormy("upload", "--to", destination, photo.path)
            #expect(said.status == 0, "\(said)")
        }

        /// The store is from a backup. In the current ledger, the transfer number of the store's photo belongs to another
        /// transfer.
        @Test func `a transfer to another destination is not mistaken for the transfer of the photo`() throws {
            let kept = home.folder.appendingPathComponent("backup")
            try FileManager.default.createDirectory(at: kept, withIntermediateDirectories: false)
            try upload(to: "first")
            for file in files("stormy", in: "data") {
                try FileManager.default.moveItem(at: file, to: kept.appendingPathComponent(file.lastPathComponent))
            }
            for file in files("agent", in: "state") { try FileManager.default.removeItem(at: file) }
            for copy in try FileManager.default.contentsOfDirectory(at: home.directories.spool, includingPropertiesForKeys: nil) {
                try FileManager.default.removeItem(at: copy)
            }
            try upload(to: "second")
            for file in files("stormy", in: "data") { try FileManager.default.removeItem(at: file) }
            for file in try FileManager.default.contentsOfDirectory(at: kept, includingPropertiesForKeys: nil) {
                try FileManager.default.moveItem(
                    at: file, to: home.folder.appendingPathComponent("data/stormy/" + file.lastPathComponent))
            }
            home.environment["STORMY_NO_AGENT"] = nil
            let said = try home.stormy("transfers")
            #expect(said.errors.contains("1 photo queued again"), "\(said)")
            try home.waitForQuiet()
            for folder in ["", "more"] {
                let place = nginx.photos.appendingPathComponent(folder).appendingPathComponent("noon.jpg")
                #expect(FileManager.default.fileExists(atPath: place.path), "\(place.path)")
            }
        }

        /// The second and the third destination have the same URL.
        @Test func `a photo that is found again belongs to the destination that it was given to`() throws {
            try upload(to: "third")
            for file in files("stormy", in: "data") { try FileManager.default.removeItem(at: file) }
            home.environment["STORMY_NO_AGENT"] = nil
            let said = try home.stormy("transfers")
            #expect(said.errors.contains("1 photo found in the agent's database"), "\(said)")
            try home.waitForQuiet()
            let again = try home.stormy("upload", "--to", "third", photo.path)
            #expect(again.errors.contains("is already uploaded"), "\(again)")
            let other = try home.stormy("upload", "--to", "second", photo.path)
            #expect(!other.errors.contains("is already uploaded"), "\(other)")
            try home.waitForQuiet()
        }
    }
}
