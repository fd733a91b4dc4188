import ProcessSupport
import BackgroundLedger
import CLinux
import FaultyServer
import Foundation
import Testing

/// A temporary home in which the built programs run.
final class Home {
    let folder: URL
    var environment: [String: String]
    let directories: AppDirectories
    /// Whether a command has stored the path of the app's program.
    private var isAppKnown = false

    init(
        server: FaultyServer? = nil, desktop: Desktop? = nil, app: String = "stormy", budget: Double? = nil, extra: String = ""
    ) throws {
        folder = try TestFolder.make("home")
        var environment = ProcessInfo.processInfo.environment
        for name in ["DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "WAYLAND_DISPLAY", "STORMY_NO_AGENT"] { environment[name] = nil }
        environment["HOME"] = folder.path
        environment["TZ"] = "Europe/Berlin"
        environment["LC_ALL"] = "C.UTF-8"
        for name in ["CONFIG", "STATE", "DATA"] { environment["XDG_\(name)_HOME"] = folder.path + "/" + name.lowercased() }
        environment["XDG_RUNTIME_DIR"] = folder.path + "/run"
        environment.merge(desktop?.environment ?? [:]) { $1 }
        self.environment = environment
        directories = AppDirectories(appIdentifier: app, environment: environment)
        try AppDirectories.createPrivateFolder(directories.configuration)
        try AppDirectories.createPrivateFolder(folder.appendingPathComponent("run"))
        var text = server.map { "[weather]\nbase_url = \"\($0.url)\"\n" } ?? ""
        if let budget { text += "[background]\nrefresh_budget_seconds = \(budget)\ngrace_seconds = 2\n" }
        try configure(text + extra)
    }

    deinit {
        endAgent()
        try? FileManager.default.removeItem(at: folder)
    }

    func configure(_ text: String) throws {
        let file = directories.configuration.appendingPathComponent("config.toml")
        try Data(text.utf8).write(to: file)
        chmod(file.path, 0o600)
    }

    /// The folder that contains the built programs.
    static let products: URL = {
        // The test bundle is in the folder of the built programs.
        var url = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        for argument in CommandLine.arguments where argument.hasSuffix(".xctest") { url = URL(fileURLWithPath: argument) }
        return url.deletingLastPathComponent()
    }()

    static func product(_ name: String) -> String { products.appendingPathComponent(name).path }

    /// Copies a program in another process. If the test process wrote the file itself, a child of another test could have the
    /// file open for a short time. A file that is open for writing cannot be executed.
    static func copyProgram(_ from: String, to: String) throws {
        let result = try Child.run("cp", [from, to], environment: ProcessInfo.processInfo.environment)
        guard result.status == 0 else { throw Desktop.Trouble(result.errors) }
    }

    @discardableResult
    func stormy(_ arguments: String...) throws -> Child.Result { try run("stormy", arguments) }

    @discardableResult
    func stormy(_ arguments: [String]) throws -> Child.Result { try run("stormy", arguments) }

    /// Shows the notification of a storm and presses its button.
    func pressAddPhoto(on desktop: Desktop) throws {
        try prepareAddPhoto(on: desktop)
        try desktop.press("Add photo")
    }

    /// Shows the notification of a storm.
    func prepareAddPhoto(on desktop: Desktop) throws {
        try stormy("place", "add", "Here", "1,1", "--no-sync")
        try stormy("schedule")
        try stormy("simulate", "launch", "StormyNoon", "--wait")
        #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
        try waitForQuiet()
    }

    /// Installs a script as the photo chooser, so that no user has to choose.
    func installChooser(_ script: String) throws {
        let bin = folder.appendingPathComponent("bin")
        try FileManager.default.createDirectory(at: bin, withIntermediateDirectories: true)
        let chooser = bin.appendingPathComponent("zenity")
        try Data("#!/bin/sh\n\(script)\n".utf8).write(to: chooser)
        chmod(chooser.path, 0o700)
        environment["PATH"] = bin.path + ":" + (environment["PATH"] ?? "")
    }

    func run(_ product: String, _ arguments: [String]) throws -> Child.Result {
        try Child.run(Self.product(product), arguments, environment: environment)
    }

    /// Returns the JSON output of a command.
    func json(_ arguments: String...) throws -> Any {
        let result = try run("stormy", arguments + ["--json"])
        return try JSONSerialization.jsonObject(with: Data(result.output.utf8))
    }

    func rows(_ arguments: String...) throws -> [[String: Any]] {
        let result = try run("stormy", arguments + ["--json"])
        return try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]] ?? []
    }

    func status() throws -> [String: Any] { try json("status") as? [String: Any] ?? [:] }

    func status(_ part: String, _ key: String) throws -> Any? { (try status()[part] as? [String: Any])?[key] }

    /// Returns the history, oldest first. Each entry is "kind outcome".
    func history() throws -> [String] {
        try rows("history").map { "\($0["kind"] ?? "") \($0["outcome"] as? String ?? "running")" }
    }

    var log: String { (try? String(contentsOf: directories.agentLog, encoding: .utf8)) ?? "" }

    // MARK: The agent

    var agentPID: Int32? {
        guard FileLock.isHeld(directories.agentLock) else { return nil }
        return try? Ledger(directories).read { try $0.fact(.agent)?.pid }
    }

    /// Starts an agent as a child of the test, with additional environment variables. The test can wait for the agent's end.
    ///
    /// - Parameter openFiles: The limit of file descriptors, if it is not the usual limit.
    func startAgent(_ variables: [String: String] = [:], openFiles: Int? = nil) throws -> Child {
        // The first command stores the path of the app in the ledger, before the agent launches the app.
        if !isAppKnown {
            _ = try Ledger(directories)
            isAppKnown = try stormy("place", "list").status == 0
        }
        let log = open(directories.agentLog.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(log) }
        let (program, environment) = (Self.product("background-agent"), environment.merging(variables) { $1 })
        let arguments = ["--app", directories.appIdentifier]
        guard let openFiles else { return try Child(program, arguments, environment: environment, output: log) }
        let script = "ulimit -n \(openFiles) && exec \"$@\""
        return try Child("sh", ["-c", script, "sh", program] + arguments, environment: environment, output: log)
    }

    /// Kills all agents of this home, and waits until they have ended.
    ///
    /// On a busy machine, a command may have started a second agent, which does not have the lock yet. When the first agent ends,
    /// the second agent would take the lock.
    func killAgent() throws {
        if let pid = agentPID { try kill(pid, SIGKILL) }
        for pid in agents { try kill(pid, SIGKILL) }
    }

    /// The agent processes of this home, including agents that are starting.
    var agents: [Int32] {
        let marks = [("environ", "HOME=\(folder.path)"), ("cmdline", directories.appIdentifier)]
        return ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int32($0) }.filter { pid in
            guard ThisProcess.executable(of: pid)?.path.hasSuffix("/background-agent") == true else { return false }
            return marks.allSatisfy { file, mark in
                let content = FileManager.default.contents(atPath: "/proc/\(pid)/\(file)") ?? Data()
                return content.split(separator: 0).contains { $0.elementsEqual(mark.utf8) }
            }
        }
    }

    /// Waits until an agent without work has ended. The test cannot wait for a commit, because an agent that exits removes its
    /// files without a commit.
    func waitForAgentExit() throws {
        guard let pid = agentPID else { return }
        try kill(pid, 0)
    }

    /// Runs the body, which ends the agent, and waits for the end of the agent's process. The lock is released earlier, and the
    /// agent may still wait for a stopped server.
    func waitForAgentsEnd<Value>(after body: () throws -> Value) throws -> Value {
        let descriptor = agentPID.map { clinux_pidfd_open($0) } ?? -1
        defer { if descriptor >= 0 { close(descriptor) } }
        let value = try body()
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if descriptor >= 0, poll(&poller, 1, 120_000) <= 0 { throw TimedOut(description: "the agent does not end") }
        return value
    }

    /// Stops the agent's process at a time when the test, and not the agent, holds the write lock of the ledger.
    func freezeAgent() throws {
        let pid = try wait("an agent") { try $0.fact(.agent)?.pid }
        try Ledger(directories).write { _ in _ = Foundation.kill(pid, SIGSTOP) }
    }

    private func kill(_ pid: Int32, _ signal: Int32) throws {
        let descriptor = clinux_pidfd_open(pid)
        _ = Foundation.kill(pid, signal)
        guard descriptor >= 0 else { return }
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        poll(&poller, 1, 20_000)
        close(descriptor)
    }

    /// Ends the agent first, and then its launches. If a launch ended first, the agent would start another app process. If the
    /// launches did not end, they would continue to write.
    func endAgent() {
        try? killAgent()
        guard FileManager.default.fileExists(atPath: directories.ledger.path), let ledger = try? Ledger(directories) else {
            return
        }
        for launch in (try? ledger.read { try $0.liveLaunches() }) ?? [] {
            guard let pid = launch.pid, FileLock.isHeld(directories.launchLock(launch.id!)) else { continue }
            try? kill(pid, SIGKILL)
        }
    }

    // MARK: Waiting

    struct TimedOut: Error, CustomStringConvertible {
        let description: String
    }

    /// The number of seconds after which a wait fails. Work that takes seconds on an idle machine can take minutes on a busy
    /// machine.
    static let patience = 600.0

    /// Waits until the ledger contains a value. The ledger is read at each change notification.
    @discardableResult
    func wait<Value>(
        _ what: String, seconds: Double = patience, for question: (LedgerTransaction) throws -> Value?
    ) throws -> Value {
        try Self.wait(what, in: directories, seconds: seconds, for: question)
    }

    /// Waits until the ledger of another app contains a value.
    static func wait<Value>(
        _ what: String, in directories: AppDirectories, seconds: Double = patience,
        for question: (LedgerTransaction) throws -> Value?
    ) throws -> Value {
        let ledger = try Ledger(directories)
        let bell = try ChangeListener(directories)
        let deadline = Date().addingTimeInterval(seconds)
        while true {
            if let value = try ledger.readAfterRing(question) { return value }
            let left = deadline.timeIntervalSinceNow
            guard left > 0 else {
                let log = (try? String(contentsOf: directories.agentLog, encoding: .utf8)) ?? ""
                throw TimedOut(description: "waited \(seconds) s for: \(what)\n\(try ledger.read(picture))\n\(log)")
            }
            // Some conditions also depend on a process, a file or a server. A change of a process, a file or a server causes no
            // change notification.
            var poller = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&poller, 1, Int32(min(left, 0.25) * 1000) + 1)
            bell.drain()
        }
    }

    /// Returns the content of the ledger as text, for the message of a failure.
    private static func picture(_ transaction: LedgerTransaction) throws -> String {
        var lines = try transaction.requests().map {
            "request \($0.identifier) failures \($0.failures) begins \($0.earliestBegin as Any)"
        }
        lines += try transaction.history(limit: 50).map {
            "launch \($0.id!) \($0.kind) \($0.identifier) \($0.outcome as Any) pid \($0.pid as Any) \($0.detail ?? "")"
        }
        lines += try transaction.transfers().map { "transfer \($0.id!) \($0.state) \($0.errorMessage ?? "")" }
        lines += try transaction.undeliveredEvents().map { "event of transfer \($0.transfer)" }
        lines += try transaction.notifications().map { "notification \($0.identifier) \($0.state) \($0.trouble ?? "")" }
        return lines.joined(separator: "\n")
    }

    /// Waits until a number of launches of a kind have ended.
    func waitForEnded(_ kind: String, count: Int = 1, seconds: Double = patience) throws {
        try wait("\(count) ended \(kind)", seconds: seconds) { transaction in
            try transaction.history(limit: 100).filter { $0.kind.rawValue == kind && $0.endedAt != nil }.count >= count
                ? true : nil
        }
    }

    /// Waits until the daily check has sent its request. Then a command ends the check as if its time were up. The test does not
    /// set a short time limit, because this limit would also end later launches on a busy machine.
    func endNoonWhileItAsks() throws {
        try wait("the question") { try $0.unfinishedTransfers().first?.state == .running ? true : nil }
        let said = try stormy("simulate", "expire", "StormyNoon")
        #expect(said.status == 0, "\(said)")
        try waitForEnded("appRefresh")
    }

    /// Waits until all notifications are shown and recorded as shown. A test must call this method before it kills the agent. If
    /// an agent is killed before it recorded a notification as shown, the next agent shows the notification again.
    func waitForNoticesRemembered() throws {
        try wait("notices") { transaction in
            try transaction.notifications().contains { $0.state == .pending || $0.state == .presenting } ? nil : true
        }
    }

    /// Waits until no work is running, and until no event is waiting to be delivered.
    func waitForQuiet(seconds: Double = patience) throws {
        try wait("quiet", seconds: seconds) { transaction in
            // A launch that is due or that has to be retried also counts as work.
            let isServed = try !transaction.requests().contains {
                $0.failures > 0 || ($0.earliestBegin ?? .distantPast) <= Date()
            }
            let isQuiet =
                try isServed && transaction.liveLaunches().isEmpty && transaction.unfinishedTransfers().isEmpty
                && transaction.undeliveredEvents().isEmpty && transaction.undeliveredResponses().isEmpty
                && !transaction.notifications().contains { $0.state == .pending || $0.state == .presenting }
            return isQuiet ? true : nil
        }
    }
}
