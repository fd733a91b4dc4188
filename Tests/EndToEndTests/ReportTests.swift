import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of `stormy report`, which writes one page with the state of all work.
    @Suite struct Report {
        @Test func `the report shows checks, storms and uploads without secrets`() async throws {
            let (server, desktop) = (try await FaultyServer.start(), try Desktop())
            Weather.serve(.json(Weather.forecast()), on: server)
            server.route("PUT", "/d/*", .status(201))
            let home = try Home(
                server: server, desktop: desktop,
                extra: "[upload.destinations.there]\nkind = \"put\"\nurl = \"\(server.url)/d/a.jpg?signature=hunter2\"\n")
            // Names that the user chose are escaped, so that they are not markup.
            let name = "<script>alert(1)</script> & \"Co\""
            try home.stormy("place", "add", name, "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            let photo = home.folder.appendingPathComponent("a<b>.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(try home.stormy("upload", "--wait", photo.path).status == 0)
            // The stored forecast is recent, so the report sends no request.
            Weather.serve(ResponseScript([.stall]), on: server)
            let asked = server.activity.requests.count
            let made = try home.stormy("report")
            let path = home.directories.data.path + "/report.html"
            #expect(made.status == 0 && made.output == path + "\n", "\(made)")
            #expect(server.activity.requests.count == asked)
            let page = try String(contentsOfFile: path, encoding: .utf8)
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
            for part in [
                "Because: thunderstorm (WMO 95) with rain of 2.4 mm per hour", "daily check (StormyNoon): completed: manual",
                "expected, and the notification is shown",
                "a&lt;b&gt;.jpg", "verified by answer", "<svg", "Next check ",
                "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;Co&quot;",
                "Forecasts and warnings: Open-Meteo.", "✓ well",
            ] {
                #expect(page.contains(part), "\(part)")
            }
            #expect(!page.contains("<script") && !page.contains("hunter2") && !page.contains("http-equiv=\"refresh\""))
            // The page loads no other resources.
            for word in ["src=", "@import", "url(", "<link", "<iframe", "<img"] { #expect(!page.contains(word), "\(word)") }
            let printed = try home.stormy("report", "-o", "-").output
            #expect(printed.hasPrefix("<!DOCTYPE html>") && printed.hasSuffix("</html>\n"))
        }

        /// The home is empty, no desktop is running, and the configuration is invalid.
        @Test func `a report is written for an empty home`() throws {
            let home = try Home()
            try home.configure("[weather\n")
            let made = try home.stormy("report", "-o", home.folder.path + "/page.html")
            #expect(made.status == 0 && made.errors.contains("config.toml"), "\(made)")
            let page = try String(contentsOfFile: home.folder.path + "/page.html", encoding: .utf8)
            #expect(
                page.contains("No place is configured.") && page.contains("Nothing has run yet.") && page.contains("✗ failed"))
            #expect(page.contains("To fix this: ") && !page.contains("stormy report"), "the page has the advice of doctor")
            #expect(try home.stormy("report", "-o", "/nowhere/page.html").status == 73)
            let link = home.folder.path + "/link.html"
            #expect(symlink("page.html", link) == 0)
            #expect(try home.stormy("report", "-o", link).status == 73)
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "page.html")
        }

        @Test func `report --open starts the browser`() throws {
            let home = try Home()
            let bin = home.folder.appendingPathComponent("bin")
            try FileManager.default.createDirectory(at: bin, withIntermediateDirectories: true)
            let opener = bin.appendingPathComponent("xdg-open")
            try Data("#!/bin/sh\necho \"$1\" > \"$HOME/opened\"\n".utf8).write(to: opener)
            chmod(opener.path, 0o700)
            home.environment["PATH"] = bin.path + ":" + (home.environment["PATH"] ?? "")
            let path = try home.stormy("report", "--open").output
            #expect(try String(contentsOfFile: home.folder.path + "/opened", encoding: .utf8) == path)
            try Data("#!/bin/sh\nexit 3\n".utf8).write(to: opener)
            let failed = try home.stormy("report", "--open")
            #expect(failed.status == 69 && failed.errors.contains("no browser could be started"), "\(failed)")
        }

        /// The handler of the button opens the page. The browser continues to run after the agent has ended. If no browser can be
        /// started, the text of the notification is shown again.
        @Test(arguments: [true, false]) func `the Details button opens the report`(_ hasBrowser: Bool) async throws {
            let desktop = try Desktop()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server, desktop: desktop)
            let bin = home.folder.appendingPathComponent("bin")
            try FileManager.default.createDirectory(at: bin, withIntermediateDirectories: true)
            let opener = bin.appendingPathComponent("xdg-open")
            let browser =
                hasBrowser ? "echo $$ \"$1\" > \"$HOME/opening\"; mv \"$HOME/opening\" \"$HOME/opened\"; exec sleep 60" : "exit 3"
            try Data("#!/bin/sh\n\(browser)\n".utf8).write(to: opener)
            chmod(opener.path, 0o700)
            home.environment["PATH"] = bin.path + ":" + (home.environment["PATH"] ?? "")
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            try home.waitForQuiet()
            try desktop.press("Details")
            try home.waitForEnded("notificationResponse")
            guard hasBrowser else {
                #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Storm expected in Here"])
                return
            }
            let said = try String(contentsOfFile: home.folder.path + "/opened", encoding: .utf8).split(
                separator: " ", maxSplits: 1)
            let pid = try #require(Int32(said[0]))
            defer { kill(pid, SIGKILL) }
            let page = String(said[1]).trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(try String(contentsOfFile: page, encoding: .utf8).contains("expected, and the notification is shown"))
            endAgent(home)
            #expect(kill(pid, 0) == 0, "the browser ended together with the agent")
            #expect(desktop.titles.count == 1)
        }

        private func endAgent(_ home: Home) {
            if let pid = try? Ledger(home.directories).read({ try $0.fact(.agent)?.pid }) { kill(pid, SIGKILL) }
        }
    }
}
