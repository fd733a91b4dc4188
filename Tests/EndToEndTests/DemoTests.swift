import Spool
import BackgroundLedger
import Foundation
import Testing

extension EndToEnd {
    /// Tests of the claims that the demo prints. The tests check these claims independently of the demo.
    @Suite struct Demo {
        @Test func `every claim of the demo holds`() throws {
            let desktop = try Desktop()
            let home = try Home(desktop: desktop)
            let evidence = home.folder.appendingPathComponent("evidence")
            let result = try home.stormy("demo", "--evidence", evidence.path)
            #expect(result.status == 0, "\(result.output)\(result.errors)")
            #expect(result.output.contains("12 of 12 passed"))
            // One notification was sent over the bus.
            #expect(try desktop.receivedTitles() == ["Storm expected in Storm Bay"])
            // The server has answered one weather request completely.
            let log = try String(contentsOf: evidence.appendingPathComponent("server.jsonl"), encoding: .utf8)
            let weather = try log.split(separator: "\n").map {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
            }.filter { ($0["path"] as? String)?.hasPrefix("/v1/forecast") == true }
            #expect(Set(weather.compactMap { $0["id"] as? Int }).count == 1)
            #expect(weather.last?["outcome"] as? String == "answered")
            // The received photo is equal to the sent photo.
            let photos = ["storm.jpg", "received/storm.jpg"].map { evidence.appendingPathComponent($0).path }
            func seen(_ tool: String, _ arguments: [String]) throws -> [String] {
                try photos.map { try Child.run(tool, arguments + [$0], environment: home.environment).output }
            }
            let pixels = try seen("identify", ["-format", "%m %w %h %#"])
            #expect(pixels[0] == pixels[1] && pixels[0].hasPrefix("JPEG 320 200 "), "\(pixels)")
            let places = try seen("exiftool", ["-n", "-s3", "-GPSPosition"])
            #expect(places == ["-43.1 147.5\n", ""], "\(places)")
            #expect(result.output.contains("place add Sydney -33.87,151.21 && stormy schedule"))
            // The demo does not use the home of the user.
            #expect(!FileManager.default.fileExists(atPath: home.directories.ledger.path))
        }

        @Test func `without a desktop the notification is drawn in the terminal`() throws {
            let result = try Home().stormy("demo")
            #expect(result.status == 0, "\(result.output)\(result.errors)")
            #expect(result.output.contains("│ Storm expected in Storm Bay"))
        }
    }

    /// Creates the picture of the README, a screenshot of a storm notification.
    @Suite struct NotificationPicture {
        @Test func `the notification on the screen shows the storm and the gusts`() async throws {
            let desktop = try Desktop()
            let server = try await EndToEnd.stormyServer()
            let home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Sydney", "-33.87,151.21", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(desktop.listen(for: 1) == ["Storm expected in Sydney"])
            try home.waitForQuiet()
            let wanted = ProcessInfo.processInfo.environment["STORMY_SCREENSHOT"]
            let path = wanted ?? home.folder.appendingPathComponent("shot.png").path
            // The notification server replies before it has drawn the notification. The loop needs no pause, because a screenshot
            // takes some time.
            let deadline = Date().addingTimeInterval(20)
            var size = 0
            while size <= 1_000, Date() < deadline {
                try desktop.screenshot(to: path)
                size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            }
            #expect(size > 1_000)
            _ = try desktop.receivedTitles()
            #expect(desktop.pictures == 1)
            // The colours of the storm area and of the gust line in the picture.
            for colour in ["rgb(0,130,143)", "rgb(21,102,191)"] {
                let seen = try Child.run(
                    "convert",
                    [
                        path, "-fuzz", "12%", "-fill", "black", "+opaque", colour, "-fill", "white", "-opaque", colour,
                        "-format", "%[fx:int(mean*w*h)]", "info:",
                    ],
                    environment: home.environment)
                #expect((Int(seen.output) ?? 0) > 20, "\(colour): \(seen.output)\(seen.errors)")
            }
        }
    }
}
