import ProcessSupport
import BackgroundLedger
import CLinux
import FaultyServer
import Foundation
import Testing

/// A throw-away home: the built binaries run in it as a person would run them.
final class Home {
    let folder: URL
    var environment: [String: String]
    let directories: AppDirectories
    /// A command has written the path of the app's program.
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

    /// Built beside the tests.
    static let products: URL = {
        // The test bundle lies in the products' folder; /proc knows where.
        var url = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        for argument in CommandLine.arguments where argument.hasSuffix(".xctest") { url = URL(fileURLWithPath: argument) }
        return url.deletingLastPathComponent()
    }()

    static func product(_ name: String) -> String { products.appendingPathComponent(name).path }

    /// By a process of its own: a file that this one writes may be open, for a moment, in a child that another test starts, and then it
    /// cannot be executed.
    static func copyProgram(_ from: String, to: String) throws {
        let result = try Child.run("cp", [from, to], environment: ProcessInfo.processInfo.environment)
        guard result.status == 0 else { throw Desktop.Trouble(result.errors) }
    }

    @discardableResult
    func stormy(_ arguments: String...) throws -> Child.Result { try run("stormy", arguments) }

    @discardableResult
    func stormy(_ arguments: [String]) throws -> Child.Result { try run("stormy", arguments) }

    /// A storm is told of, and a person presses the button of its notification.
    func pressAddPhoto(on desktop: Desktop) throws {
        try stormy("place", "add", "Here", "1,1", "--no-sync")
        try stormy("schedule")
        try stormy("simulate", "launch", "StormyNoon", "--wait")
        #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
        try waitForQuiet()
        try desktop.press("Add photo")
    }

    /// Stands for the person's choice in the desktop's chooser; everything else is real.
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

    /// A verb's JSON document.
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

    /// Outcomes of the history, "kind outcome" each, oldest first.
    func history() throws -> [String] {
        try rows("history").map { "\($0["kind"] ?? "") \($0["outcome"] as? String ?? "running")" }
    }

    var log: String { (try? String(contentsOf: directories.agentLog, encoding: .utf8)) ?? "" }

    // MARK: The agent

    var agentPID: Int32? {
        guard FileLock.isHeld(directories.agentLock) else { return nil }
        return try? Ledger(directories).read { try $0.fact(.agent)?.pid }
    }

    /// An agent of the test's own making, with variables of its own; its end can be awaited.
    ///
    /// - Parameter openFiles: The limit of file descriptors, if it is not the usual one.
    func startAgent(_ variables: [String: String] = [:], openFiles: Int? = nil) throws -> Child {
        // The app says where it is before anybody is launched, where there is a ledger to say it in.
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

    /// kill -9, and gone when this returns.
    ///
    /// On a busy machine a command can have started a second agent, which does not have the lock yet. It would take the place of the first.
    func killAgent() throws {
        if let pid = agentPID { try kill(pid, SIGKILL) }
        for pid in agents { try kill(pid, SIGKILL) }
    }

    /// The processes of agents of this home, also of those that are only starting.
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

    /// With nothing left to do it goes by itself, having cleared away what it had: its files are no commit that could be waited for.
    func waitForAgentToLeave() throws {
        guard let pid = agentPID else { return }
        try kill(pid, 0)
    }

    /// What ends the agent, and then that end: its lock is free before, while it may still wait for a server that stands still.
    func waitForAgentsEnd<Value>(after body: () throws -> Value) throws -> Value {
        let descriptor = agentPID.map { clinux_pidfd_open($0) } ?? -1
        defer { if descriptor >= 0 { close(descriptor) } }
        let value = try body()
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if descriptor >= 0, poll(&poller, 1, 120_000) <= 0 { throw TimedOut(description: "the agent does not end") }
        return value
    }

    /// The agent stands still from now on, at a moment when it does not hold the ledger.
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

    /// The agent first, or it would start another app process; then those that it started, which would go on writing.
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

    /// Waits for the ledger to say something, woken by its bell.
    @discardableResult
    func wait<Value>(
        _ what: String, seconds: Double = 120, for question: (LedgerTransaction) throws -> Value?
    ) throws -> Value {
        try Self.wait(what, in: directories, seconds: seconds, for: question)
    }

    /// The same for another app's ledger.
    static func wait<Value>(
        _ what: String, in directories: AppDirectories, seconds: Double = 120,
        for question: (LedgerTransaction) throws -> Value?
    ) throws -> Value {
        let ledger = try Ledger(directories)
        let bell = try Bell(directories)
        let deadline = Date().addingTimeInterval(seconds)
        while true {
            if let value = try ledger.readAfterRing(question) { return value }
            let left = deadline.timeIntervalSinceNow
            guard left > 0 else {
                let log = (try? String(contentsOf: directories.agentLog, encoding: .utf8)) ?? ""
                throw TimedOut(description: "waited \(seconds) s for: \(what)\n\(try ledger.read(picture))\n\(log)")
            }
            // Some questions also ask about a process, a file or a server, whose changes do not ring the bell.
            var poller = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&poller, 1, Int32(min(left, 0.25) * 1000) + 1)
            bell.drain()
        }
    }

    /// What stands in the ledger, for whoever reads a failure.
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

    /// Until so many launches of a kind have ended.
    func waitForEnded(_ kind: String, count: Int = 1, seconds: Double = 120) throws {
        try wait("\(count) ended \(kind)", seconds: seconds) { transaction in
            try transaction.history(limit: 100).filter { $0.kind.rawValue == kind && $0.endedAt != nil }.count >= count
                ? true : nil
        }
    }

    /// The noon check begins, and its time is up while its question is under way. Said by a command: a short budget would also end
    /// the launches after it on a busy machine.
    func endNoonWhileItAsks() throws {
        try wait("the question") { try $0.unfinishedTransfers().first?.state == .running ? true : nil }
        let said = try stormy("simulate", "expire", "StormyNoon")
        #expect(said.status == 0, "\(said)")
        try waitForEnded("appRefresh")
    }

    /// Until everything that was to be shown is shown and remembered. A test that kills the agent for another reason waits for
    /// this first: one killed between showing and remembering shows again, as promised.
    func waitForNoticesRemembered() throws {
        try wait("notices") { transaction in
            try transaction.notifications().contains { $0.state == .pending || $0.state == .presenting } ? nil : true
        }
    }

    /// Until nothing moves and nothing is left to tell.
    func waitForQuiet(seconds: Double = 120) throws {
        try wait("quiet", seconds: seconds) { transaction in
            // A launch that is to be made up for, or is due, is not quiet either.
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
