import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Who hears how photos ended: the terminal that waits for them, or the desktop.
    @Suite struct FollowedUpload {
        let server: FaultyServer
        let desktop: Desktop
        let home: Home

        init() async throws {
            (server, desktop) = (try await FaultyServer.start(), try Desktop())
            home = try Home(
                desktop: desktop,
                extra: """
                    [upload]
                    default = "held"
                    [upload.destinations.held]
                    kind = "put"
                    url = "\(server.url)/held/"
                    [upload.destinations.open]
                    kind = "multipart"
                    url = "\(server.url)/open"
                    field = "photo"
                    """)
            server.route("PUT", "/held/*", ResponseScript([.hold(until: "held"), .status(403)]))
            server.route("POST", "/open", .status(200))
        }

        private func photo(_ name: String) throws -> String {
            let photo = home.folder.appendingPathComponent(name)
            try (JPEG.withoutPosition + Data(name.utf8)).write(to: photo)
            return photo.path
        }

        private func follow(_ photo: String) throws -> Child {
            let follower = try Child(Home.product("stormy"), ["upload", "--wait", photo], environment: home.environment)
            try home.wait("its upload") { try $0.transfers().contains { $0.state == .running } ? true : nil }
            return follower
        }

        @Test func aTerminalThatWaitsHearsItAlone() throws {
            let follower = try follow(photo("a.jpg"))
            server.openGate("held")
            #expect(follower.waitForEnd() == 69)
            try home.waitForQuiet()
            #expect(try home.history() == [])
            #expect(try desktop.heardSoFar() == [])
            #expect(try home.rows("transfers").map { $0["state"] as? String } == ["failed"])
        }

        /// Closed while it waits, or killed: what failed then is told by notification.
        @Test(arguments: [SIGHUP, SIGINT, SIGKILL]) func aTerminalThatIsGoneHearsNothing(_ signal: Int32) throws {
            let follower = try follow(photo("a.jpg"))
            follower.end(signal)
            server.openGate("held")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Photo not uploaded"])
        }

        /// Those of one that waits count for the others, and their end is the end of the batch.
        @Test func theLastOfABatchMayBeATerminals() throws {
            let follower = try follow(photo("a.jpg"))
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            server.openGate("held")
            #expect(follower.waitForEnd() == 69)
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Uploading photos", "Photo uploaded"])
        }

        /// Two photos of one name that end in the same words are two ends: one after the other, and one that a person held back.
        @Test func sameWordsOfAnotherPhotoAreToldToo() throws {
            server.openGate("held")
            for folder in ["1", "2"] {
                try FileManager.default.createDirectory(
                    at: home.folder.appendingPathComponent(folder), withIntermediateDirectories: true)
                #expect(try home.stormy("upload", photo("\(folder)/a.jpg"), "--to", "open").status == 0)
                try home.waitForEnded("urlSession", count: Int(folder)!)
                try home.waitForNoticesRemembered()
            }
            #expect(try desktop.heardSoFar() == ["Photo uploaded", "Photo uploaded"])
            #expect(try home.stormy("upload", photo("3.jpg")).status == 0)
            try home.waitForEnded("urlSession", count: 3)
            try home.waitForNoticesRemembered()
            #expect(try home.stormy("transfers", "retry", "3").status == 0)
            try home.waitForEnded("urlSession", count: 4)
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar().suffix(2) == ["Photo not uploaded", "Photo not uploaded"])
        }

        /// The store is gone, or from a backup, while a photo waits: how that ends is told all the same.
        @Test(arguments: [false, true]) func aPhotoThatNobodyRemembersIsToldOf(_ isFromBackup: Bool) throws {
            let store = home.folder.appendingPathComponent("data/stormy")
            let backup = home.folder.appendingPathComponent("backup")
            #expect(try home.stormy("place", "list").status == 0)
            try FileManager.default.copyItem(at: store, to: backup)
            #expect(try home.stormy("upload", photo("a.jpg")).status == 0)
            try home.wait("its upload") { try $0.transfers().contains { $0.state == .running } ? true : nil }
            try FileManager.default.removeItem(at: store)
            if isFromBackup { try FileManager.default.moveItem(at: backup, to: store) }
            server.openGate("held")
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Photo not uploaded"])
        }

        /// A person who pauses one does not wait for it: the others are told as whole.
        @Test func aPausedPhotoKeepsNoBatchOpen() throws {
            #expect(try home.stormy("upload", photo("a.jpg")).status == 0)
            try home.wait("its upload") { try $0.transfers().contains { $0.state == .running } ? true : nil }
            #expect(try home.stormy("upload", photo("b.jpg"), "--to", "open").status == 0)
            try home.waitForEnded("urlSession")
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Uploading photos"])
            #expect(try home.stormy("transfers", "pause", "1").status == 0)
            try home.waitForNoticesRemembered()
            #expect(try desktop.heardSoFar() == ["Uploading photos", "Photo uploaded"])
        }
    }
}
