import Foundation

/// A virtual screen, with a real notification server (dunst) on a bus of the test.
final class DunstDesktop: Sendable {
    private let screen: ChildProcess
    private let dunst: ChildProcess
    let environment: [String: String]
    private let folder: URL

    init(on bus: PrivateBus) throws {
        folder = try TemporaryFolder.make()
        let file = folder.appendingPathComponent("dunstrc")
        try Data(Self.configuration.utf8).write(to: file)
        screen = try ChildProcess("Xvfb", ["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp"])
        environment = ["DISPLAY": ":" + (try screen.firstLine()), "DBUS_SESSION_BUS_ADDRESS": bus.address]
        dunst = try ChildProcess("dunst", ["-config", file.path], environment: environment)
    }

    func stop() {
        dunst.stop()
        screen.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Kills the notification server. The virtual screen keeps running.
    func crashServer() {
        kill(dunst.pid, SIGKILL)
    }

    func freezeServer() { kill(dunst.pid, SIGSTOP) }

    func thawServer() { kill(dunst.pid, SIGCONT) }

    /// Moves the pointer onto the topmost notification and clicks, as a user does.
    func click() throws {
        let search = ["search", "--sync", "--onlyvisible", "--class", "Dunst"]
        try ChildProcess.run("xdotool", search, environment: environment)
        try ChildProcess.run("xdotool", ["mousemove", "40", "12", "click", "1"], environment: environment)
    }

    @discardableResult
    func control(_ arguments: String...) throws -> String {
        try ChildProcess.run("dunstctl", arguments, environment: environment)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The configuration of dunst. Notifications of low urgency expire after a second, and other notifications stay. A click
    /// starts the action. The first notification is in the corner.
    private static let configuration = """
        [global]
        origin = top-left
        offset = 0x0
        width = 300
        idle_threshold = 0
        markup = full
        format = "%s\\n%b"
        mouse_left_click = do_action
        [urgency_low]
        timeout = 1
        [urgency_normal]
        timeout = 0
        [urgency_critical]
        timeout = 0
        """
}
