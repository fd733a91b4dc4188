import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// "Add photo…" with the desktop's own chooser: the real portal, its real window, and a person's keys.
    @Suite struct Portal {
        private let desktop: Desktop
        private let nginx: Nginx
        private let home: Home
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
            // Its backend is chosen by the desktop's name.
            environment = home.environment.merging(desktop.environment) { $1 }.merging(["XDG_CURRENT_DESKTOP": "GNOME"]) { $1 }
            var children: [Child] = []
            for (program, name) in [
                ("xdg-desktop-portal-gtk", "org.freedesktop.impl.portal.desktop.gtk"),
                ("xdg-desktop-portal", "org.freedesktop.portal.Desktop"),
            ] {
                children.append(try Child("/usr/libexec/\(program)", [], environment: environment))
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

        /// The chooser took no path in twelve tries.
        private struct NoChoice: Error {
            /// Names of the windows that stand there then.
            let windows: String
        }

        /// It has closed, or has had so many seconds for it: it looks at the file first.
        private func isClosing(within seconds: Int) throws -> Bool {
            let end = ContinuousClock.now + .seconds(seconds)
            while ContinuousClock.now < end { if try !xdotool(Self.window) { return true } }
            return false
        }

        /// Types a path, as often as it takes: on a busy machine the chooser loses keys, or puts a proposal of its own behind them.
        /// Each try is slower than the one before.
        private func choose(_ path: String) throws {
            for round in 0..<12 {
                // A dialog in front of it, about a half-typed name, takes the keys and goes with one of the Returns below.
                try xdotool(Self.window + ["windowfocus", "--sync"])
                // Not in one call with the search: keys that are meant for one window are not a person's to it. Ctrl+l closes an
                // entry for a path that is open; then a slash opens it.
                if [0, 3].contains(round % 4) { try xdotool(["key", "ctrl+l"]) }
                try xdotool(["key", "ctrl+a"])
                try xdotool(["type", "--delay", "\(12 + 10 * round)", path])
                // The first may take what the chooser proposes.
                for _ in 0..<(round.isMultiple(of: 2) ? 3 : 2) {
                    try xdotool(["key", "Return"])
                    if try isClosing(within: 1 + round / 3) { return }
                }
            }
            let names = ["search", "--onlyvisible", "--name", ".", "getwindowname", "%@"]
            throw NoChoice(windows: try Child.run("xdotool", names, environment: environment).output)
        }

        @Test func aPhotoChosenInItIsUploaded() throws {
            let photo = home.folder.appendingPathComponent("storm one.jpg")
            let bytes = Data([0xFF, 0xD8, 0xFF]) + Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) })
            try bytes.write(to: photo)
            try home.pressAddPhoto(on: desktop)
            try waitForChooser()
            try choose(photo.path)
            #expect(desktop.listen(for: 2) == ["Storm expected in Here", "Photo uploaded"])
            try home.waitForQuiet()
            #expect(try FileManager.default.contentsOfDirectory(atPath: nginx.photos.path) == [photo.lastPathComponent])
            #expect(try home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.isEmpty)
        }

        /// A no is a no: no other chooser comes up, and the storm goes on waiting for its photo.
        @Test func whoeverClosesItHasChosenNothing() throws {
            try home.pressAddPhoto(on: desktop)
            try waitForChooser()
            try xdotool(["key", "Escape"])
            try home.waitForEnded("notificationResponse")
            #expect(try home.history() == ["appRefresh completed", "notificationResponse completed"])
            #expect(
                try home.rows("transfers").filter { $0["kind"] as? String == "upload" }.map { $0["state"] as? String } == [
                    "awaitingPhoto"
                ])
            #expect(try desktop.heardSoFar() == ["Storm expected in Here"])
        }
    }
}
