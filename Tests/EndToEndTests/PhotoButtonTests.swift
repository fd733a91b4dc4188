import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// The photo button of a storm's notification.
    @Suite struct PhotoButton {
        @Test(arguments: [("keep", true), ("remove", false)])
        func `the button follows the destination's choice about the location`(_ choice: String, _ isKept: Bool) async throws {
            let desktop = try Desktop()
            let nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(
                server: server, desktop: desktop,
                extra: """
                    [upload.destinations.home]
                    kind = "webdav"
                    url = "\(nginx.url)photos/"
                    location = "\(choice)"

                    """)
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
    }
}
