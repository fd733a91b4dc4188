import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of "Add photo…" with the real portal and its chooser window. The user's key presses are simulated.
    @Suite struct Portal {
        private let desktop: Desktop
        private let nginx: Nginx
        private let home: Home
        /// The folder in which the chooser opens.
        private let photos: URL
        private let children: [Child]
        private let environment: [String: String]

        init() async throws {
            desktop = try Desktop()
            nginx = try Nginx()
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            home = try Home(
                server: server, desktop: desktop,
                extra: "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(nginx.url)photos/\"\n")
            photos = home.folder.appendingPathComponent("photos")
            try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: false)
            let settings = home.folder.appendingPathComponent("settings")
            let keyfile = settings.appendingPathComponent("glib-2.0/settings")
            try FileManager.default.createDirectory(at: keyfile, withIntermediateDirectories: true)
            try Data("[org/gtk/settings/file-chooser]\nstartup-mode='cwd'\n".utf8).write(
                to: keyfile.appendingPathComponent("keyfile"))
            // The portal chooses its backend by the name of the desktop.
            environment = home.environment.merging(desktop.environment) { $1 }.merging(["XDG_CURRENT_DESKTOP": "GNOME"]) { $1 }
            let own = environment.merging(["GSETTINGS_BACKEND": "keyfile", "XDG_CONFIG_HOME": settings.path]) { $1 }
            var children: [Child] = []
            for (program, name) in [
                ("xdg-desktop-portal-gtk", "org.freedesktop.impl.portal.desktop.gtk"),
                ("xdg-desktop-portal", "org.freedesktop.portal.Desktop"),
            ] {
                children.append(try Child("env", ["-C", photos.path, "/usr/libexec/\(program)"], environment: own))
                let ready = try Child.run("gdbus", ["wait", "--session", "--timeout", "30", name], environment: environment)
                try #require(ready.status == 0, "\(name): \(ready.errors)")
            }
            self.children = children
        }

        private static let window = ["search", "--onlyvisible", "--name", "Add a photo of the storm"]

        @discardableResult
        private func xdotool(_ arguments: [String]) throws -> Bool {
            try Child.run("timeout", ["30", "xdotool"] + arguments, environment: environment).status == 0
        }

        private func waitForChooser() throws {
            try #require(try xdotool(["search", "--sync"] + Self.window.dropFirst() + ["windowfocus", "--sync"]))
        }

        /// The error for a chooser that is still open after all key presses.
        private struct NoChoice: Error {
            /// The names of the visible windows.
            let windows: String
        }

        /// Returns whether the chooser closed within this number of seconds. The chooser reads the file before it closes.
        private func isClosing(within seconds: Int) throws -> Bool {
            let end = ContinuousClock.now + .seconds(seconds)
            while ContinuousClock.now < end { if try !xdotool(Self.window) { return true } }
            return false
        }

        /// Chooses the only photo in the chooser's folder. The path is not typed, because a busy machine loses key presses. The
        /// chooser would also accept a typed path of a missing file.
        private func chooseTheOnlyPhoto() throws {
            for round in 0..<30 {
                try xdotool(Self.window + ["windowfocus", "--sync"])
                // If one call of `xdotool` searches for a window and sends a key, the key is sent directly to this window. The
                // window does not treat this key as a key press of the user.
                if !round.isMultiple(of: 2) { try xdotool(["key", "Down"]) }
                try xdotool(["key", "Return"])
                if try isClosing(within: 1 + round / 3) { return }
            }
            let names = ["search", "--onlyvisible", "--name", ".", "getwindowname", "%@"]
            throw NoChoice(windows: try Child.run("xdotool", names, environment: environment).output)
        }

        @Test func `a photo chosen in the portal is uploaded`() throws {
            let photo = photos.appendingPathComponent("storm one.jpg")
            let bytes = Data([0xFF, 0xD8, 0xFF]) + Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) })
            try bytes.write(to: photo)
            try home.pressAddPhoto(on: desktop)
            try waitForChooser()
            try chooseTheOnlyPhoto()
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Photo uploaded"])
            try home.waitForQuiet()
            #expect(try FileManager.default.contentsOfDirectory(atPath: nginx.photos.path) == [photo.lastPathComponent])
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.isEmpty)
        }

        /// No second chooser opens. The storm continues to wait for its photo.
        @Test func `closing the chooser uploads nothing`() throws {
            try home.pressAddPhoto(on: desktop)
            try waitForChooser()
            try xdotool(["key", "Escape"])
            try home.waitForEnded("notificationResponse")
            #expect(try home.history() == ["appRefresh completed", "notificationResponse completed"])
            #expect(
                try home.rows("transfers").filter { $0["kind"] as? String == "upload" }.map { $0["state"] as? String } == [
                    "awaitingPhoto"
                ])
            #expect(try desktop.receivedTitles() == ["Storm expected in Here"])
        }
    }
}
