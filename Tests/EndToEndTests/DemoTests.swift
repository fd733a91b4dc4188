import Spool
import BackgroundLedger
import Foundation
import Testing

extension EndToEnd {
    /// What the demo says of itself, checked from outside.
    @Suite struct Demo {
        @Test func everyClaimHolds() throws {
            let desktop = try Desktop()
            let home = try Home(desktop: desktop)
            let evidence = home.folder.appendingPathComponent("evidence")
            let result = try home.stormy("demo", "--evidence", evidence.path)
            #expect(result.status == 0, "\(result.output)\(result.errors)")
            #expect(result.output.contains("12 of 12 held"))
            // The bus heard one notification.
            #expect(try desktop.heardSoFar() == ["Storm expected in Storm Bay"])
            // The server answered one weather request, whole.
            let log = try String(contentsOf: evidence.appendingPathComponent("server.jsonl"), encoding: .utf8)
            let weather = try log.split(separator: "\n").map {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
            }.filter { ($0["path"] as? String)?.hasPrefix("/v1/forecast") == true }
            #expect(Set(weather.compactMap { $0["id"] as? Int }).count == 1)
            #expect(weather.last?["outcome"] as? String == "answered")
            // The photo that arrived is the photo that was sent.
            let photos = ["storm.jpg", "received/storm.jpg"].map { evidence.appendingPathComponent($0).path }
            func seen(_ tool: String, _ arguments: [String]) throws -> [String] {
                try photos.map { try Child.run(tool, arguments + [$0], environment: home.environment).output }
            }
            let pixels = try seen("identify", ["-format", "%m %w %h %#"])
            #expect(pixels[0] == pixels[1] && pixels[0].hasPrefix("JPEG 320 200 "), "\(pixels)")
            let places = try seen("exiftool", ["-n", "-s3", "-GPSPosition"])
            #expect(places == ["-43.1 147.5\n", ""], "\(places)")
            #expect(result.output.contains("place add Sydney -33.87,151.21 && stormy schedule"))
            // Nothing of it touched the person's own home.
            #expect(!FileManager.default.fileExists(atPath: home.directories.ledger.path))
        }

        @Test func withoutADesktopItIsDrawnInTheTerminal() throws {
            let result = try Home().stormy("demo")
            #expect(result.status == 0, "\(result.output)\(result.errors)")
            #expect(result.output.contains("│ Storm expected in Storm Bay"))
        }
    }

    /// The picture in the README is taken here.
    @Suite struct NotificationPicture {
        @Test func isWhatAPersonSees() async throws {
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
            // The server answers before it has drawn. Asked until it has: each look takes as long as a screenshot.
            let deadline = Date().addingTimeInterval(20)
            var size = 0
            while size <= 1_000, Date() < deadline {
                try desktop.screenshot(to: path)
                size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            }
            #expect(size > 1_000)
            _ = try desktop.heardSoFar()
            #expect(desktop.pictures == 1)
            // The storm's field and the line of the gusts, as they are drawn.
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
