import Foundation
import Glibc

/// A private desktop for a test: a virtual screen, a session bus, a real notification server, and a bus monitor.
final class Desktop {
    let folder: URL
    let display: String
    let address: String
    private var children: [Child] = []
    private var server: Child?
    private var monitor: LineReader
    private let readers: [LineReader]
    /// The titles of the notifications that were sent over the bus.
    private(set) var titles: [String] = []

    /// dunst's timeout for notifications of low urgency, in seconds. 0 means no timeout.
    private let lowTimeout: Int

    /// - Parameter hasServer: Whether dunst is started immediately.
    init(hasServer: Bool = true, lowTimeout: Int = 0) throws {
        self.lowTimeout = lowTimeout
        folder = try TestFolder.make("desk")
        let environment = ProcessInfo.processInfo.environment
        let screen = try Self.pipe()
        let bus = try Self.pipe()
        let ear = try Self.pipe()
        // Xvfb chooses a free display, and prints its number on standard output.
        children.append(
            try Child("Xvfb", ["-displayfd", "1", "-screen", "0", "800x600x24"], environment: environment, output: screen.write))
        close(screen.write)
        // The pipe is kept open, because a child that writes to a closed pipe is killed.
        let screenReader = LineReader(screen.read)
        let busReader = LineReader(bus.read)
        readers = [screenReader, busReader]
        var number = screenReader.next(within: 240)
        // Xvfb prints errors about used displays before it prints its number.
        while let line = number, Int(line) == nil { number = screenReader.next(within: 240) }
        guard let number else { throw Trouble("Xvfb named no display") }
        display = ":" + number
        // The bus has no service folders. If the bus could start a notification server, this server would compete with the server
        // of the test.
        let busConfiguration = folder.appendingPathComponent("bus.conf")
        let busText = """
            <busconfig><type>session</type><listen>unix:dir=\(folder.path)</listen>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
            </busconfig>
            """
        try Data(busText.utf8).write(to: busConfiguration)
        children.append(
            try Child(
                "dbus-daemon", ["--config-file=\(busConfiguration.path)", "--nofork", "--print-address=1"],
                environment: environment, output: bus.write))
        close(bus.write)
        guard let address = busReader.next(within: 240) else { throw Trouble("dbus-daemon gave no address") }
        self.address = address
        monitor = LineReader(ear.read)
        let own = environment.merging(["DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": address]) { $1 }
        children.append(
            try Child(
                "dbus-monitor", ["--session", "interface='org.freedesktop.Notifications'"], environment: own, output: ear.write))
        close(ear.write)
        // The first line of the monitor shows that it is listening.
        guard monitor.next(within: 240) != nil else { throw Trouble("dbus-monitor does not listen") }
        if hasServer { try startServer() }
    }

    deinit {
        server?.end()
        for child in children.reversed() { child.end() }
        try? FileManager.default.removeItem(at: folder)
    }

    struct Trouble: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    private static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard Glibc.pipe(&ends) == 0 else { throw Trouble("no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    var environment: [String: String] { ["DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": address] }

    /// Starts dunst without timeouts. The menu of dunst chooses the first line that contains the text of the file `choice`.
    func startServer() throws {
        let menu = folder.appendingPathComponent("menu")
        try Data("#!/bin/sh\ngrep -F \"$(cat '\(folder.path)/choice')\" | head -n 1\n".utf8).write(to: menu)
        chmod(menu.path, 0o700)
        let configuration = folder.appendingPathComponent("dunstrc")
        let text = """
            [global]
                width = 420
                offset = 20x20
                font = Sans 12
                max_icon_size = 96
                dmenu = \(menu.path)
                notification_limit = 20
                show_indicators = yes
            [urgency_low]
                timeout = \(lowTimeout)
            [urgency_normal]
                timeout = 0
                background = "#1d2b3a"
                foreground = "#ffffff"
            [urgency_critical]
                timeout = 0
            """
        try Data(text.utf8).write(to: configuration)
        let own = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let log = folder.appendingPathComponent("dunst.log").path
        let output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(output) }
        server = try Child("dunst", ["-config", configuration.path], environment: own, output: output)
        let ready = try Child.run(
            "gdbus", ["wait", "--session", "--timeout", "20", "org.freedesktop.Notifications"], environment: own)
        guard ready.status == 0 else {
            throw Trouble(
                "dunst did not take its name: \(ready.errors) \((try? String(contentsOfFile: log, encoding: .utf8)) ?? "")")
        }
    }

    var serverPID: Int32? { server?.pid }

    func endServer() {
        server?.end()
        server = nil
    }

    /// Ends the notification server and starts another server. The server is also replaced when the user changes to another
    /// desktop.
    func restartServer() throws {
        server?.end()
        server = nil
        try startServer()
    }

    @discardableResult
    func dunstctl(_ arguments: String...) throws -> String {
        let own = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        return try Child.run("dunstctl", arguments, environment: own).output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Waits until the screen is empty. A removed notification leaves the screen some time after the ledger records the removal.
    func waitForEmptyScreen() throws { try wait(forDisplayed: 0) }

    func wait(forDisplayed count: Int) throws {
        let end = ContinuousClock.now + .seconds(30)
        while try dunstctl("count", "displayed") != "\(count)" {
            guard ContinuousClock.now < end else {
                throw Home.TimedOut(description: "on the screen: \(try dunstctl("count")), heard \(titles)")
            }
        }
    }

    /// Presses a button of the displayed notification, using the menu of dunst.
    func press(_ label: String) throws {
        try Data(label.utf8).write(to: folder.appendingPathComponent("choice"))
        try dunstctl("context")
    }

    /// Reads the bus until `count` notifications were sent, or until `seconds` have passed.
    @discardableResult
    func listen(for count: Int, within seconds: Double = 20) -> [String] {
        let deadline = Date().addingTimeInterval(seconds)
        while titles.count < count, Date() < deadline, let line = monitor.next(within: deadline.timeIntervalSinceNow) {
            take(line)
        }
        return titles
    }

    /// Returns the titles that were sent up to now. The method first sends a marker signal. When the marker arrives, all earlier
    /// titles have arrived, so no timeout is needed.
    func receivedTitles() throws -> [String] {
        let marker = "marker-" + UUID().uuidString
        let own = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        _ = try Child.run(
            "gdbus",
            ["emit", "--session", "--object-path", "/marker", "--signal", "org.freedesktop.Notifications.Marker", marker],
            environment: own)
        while let line = monitor.next(within: 240) {
            if line.contains(marker) { break }
            take(line)
        }
        return titles
    }

    /// Waits until a displayed notification is shown again as a replacement, for example by another agent.
    func listenForShownAgain(within seconds: Double = 20) -> Bool {
        let deadline = Date().addingTimeInterval(seconds)
        while shownAgain == 0, Date() < deadline, let line = monitor.next(within: deadline.timeIntervalSinceNow) { take(line) }
        return shownAgain > 0
    }

    /// Parses a line of the monitor. The arguments of Notify follow the call, one per line. The third string argument is the
    /// title. The first number argument identifies the notification that is replaced.
    private func take(_ line: String) {
        if line.contains("string \"image-data\"") { pictures += 1 }
        if line.contains("string \"suppress-sound\"") { isSilent = true }
        // The last argument follows after the hints.
        if line.hasPrefix("   int32 "), let title { note(title) }
        if line.hasPrefix("method call"), line.contains("member=Notify") {
            (stringsToSkip, replaced, isSilent) = (3, nil, false)
        } else if stringsToSkip > 0, replaced == nil, line.hasPrefix("   uint32 ") {
            replaced = UInt32(line.dropFirst("   uint32 ".count))
        } else if stringsToSkip > 0, line.hasPrefix("   string ") {
            stringsToSkip -= 1
            if stringsToSkip == 0 { title = String(line.dropFirst("   string ".count)).trimmingCharacters(in: ["\""]) }
        }
    }

    private func note(_ title: String) {
        self.title = nil
        if !countsEveryShowing, let replaced, replaced != 0, isSilent || titles.contains(title) {
            shownAgain += 1
        } else {
            titles.append(title)
        }
    }

    private var stringsToSkip = 0
    private var replaced: UInt32?
    private var title: String?
    private var isSilent = false
    /// Whether a replacement with the same title counts as a new notification. An app may use equal titles for different things.
    var countsEveryShowing = false
    /// The number of notifications that replaced another notification without a sound or with the same title.
    private(set) var shownAgain = 0
    /// The number of notifications with a picture.
    private(set) var pictures = 0

    func screenshot(to path: String) throws {
        let own = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        _ = try Child.run("import", ["-window", "root", "-trim", "+repage", path], environment: own)
    }
}

enum TestFolder {
    /// The folder for files that a server uses until the process ends. The folder is removed at exit.
    static let shared: URL = {
        guard let folder = try? make("all") else { return FileManager.default.temporaryDirectory }
        atexit { try? FileManager.default.removeItem(at: TestFolder.shared) }
        return folder
    }()

    /// Creates a folder with a short path, because the path of a socket has at most 107 bytes.
    static func make(_ name: String) throws -> URL {
        var template = Array(FileManager.default.temporaryDirectory.appendingPathComponent("st-\(name)-XXXXXX").path.utf8CString)
        guard mkdtemp(&template) != nil else { throw Desktop.Trouble("no temporary folder") }
        return URL(fileURLWithPath: String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
}
