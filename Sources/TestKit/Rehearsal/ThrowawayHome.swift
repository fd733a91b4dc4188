import ProcessSupport
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import CLinux
import Foundation
import Synchronization

/// A temporary home with its own folders, ledger and agent. The user's files are not used, and all files of the home are removed
/// at the end.
final class ThrowawayHome: Sendable {
    let folder: URL
    let environment: [String: String]
    let directories: AppDirectories

    /// Creates a home.
    ///
    /// - Parameters:
    ///   - name: The beginning of the folder's name.
    ///   - parent: The folder in which the home is kept at the end; `nil` if the home is removed.
    ///   - isSilent: `true` to show no notifications on the user's desktop and no errors of commands.
    /// - Throws: ``CommandFailure``. After an error, all files of the home are removed.
    init(_ name: String, in parent: URL? = nil, isSilent: Bool = false, configuration: String) throws {
        stormy = try Self.findStormy()
        folder = try Cleanup.shared.makeFolder(name, keptIn: parent)
        self.isSilent = isSilent
        isKept = parent != nil
        environment = Self.environment(of: folder, isSilent: isSilent)
        directories = AppDirectories(appIdentifier: "stormy", environment: environment)
        Cleanup.shared.add(self)
        do {
            if isSilent { try AppDirectories.createPrivateFolder(folder.appendingPathComponent("run")) }
            try AppDirectories.createPrivateFolder(directories.configuration)
            try Data(configuration.utf8).write(to: directories.configuration.appendingPathComponent("config.toml"))
        } catch {
            discard()
            throw CommandFailure(cannotWriteIn: folder, error)
        }
    }

    private static func environment(of folder: URL, isSilent: Bool) -> [String: String] {
        // Environment variables that set a fault, a launch or a clock for another process are removed, because they would affect
        // every process of the home. The variable with the path of the agent's program is kept. Proxy variables are removed,
        // because the server is on the loopback interface, which a proxy cannot reach.
        var environment = ProcessInfo.processInfo.environment.filter { name, _ in
            (!name.hasPrefix("BACKGROUND_") || name == "BACKGROUND_AGENT") && !name.lowercased().hasSuffix("_proxy")
        }
        environment["HOME"] = folder.path
        for name in ["CONFIG", "STATE", "DATA"] { environment["XDG_\(name)_HOME"] = folder.path + "/" + name.lowercased() }
        environment["STORMY_NO_AGENT"] = nil
        environment["NO_COLOR"] = "1"
        if isSilent {
            for name in ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"] { environment[name] = nil }
            environment["XDG_RUNTIME_DIR"] = folder.path + "/run"
        }
        return environment
    }

    private static func findStormy() throws -> String {
        switch CompanionProgram.find("stormy", override: CompanionProgram.starterVariable) {
        case .success(let path): return path
        case .failure(let missing):
            throw CommandFailure(.unavailable, "\(missing)")
        }
    }

    private struct Verbs {
        /// `true` after an interruption. From then on, no command may begin.
        var isOver = false
        /// The processes of running commands.
        var running: Set<Int32> = []
    }

    /// Returns additional environment variables for commands. The closure is called for each command.
    /// A lock that protects a function directly would wrap the function again at each access, without a limit.
    struct Surroundings {
        var variables: @Sendable () -> [String: String] = { [:] }
    }

    let surroundings = Mutex(Surroundings())
    private let verbs = Mutex(Verbs())
    private let isSilent: Bool
    private let isKept: Bool
    /// The path of the program that runs the commands.
    var program: String { stormy }
    private let stormy: String

    /// Returns a configuration with weather and photos on one server. The only destination in the configuration has the name
    /// `destination`. Times are in seconds.
    static func configuration(server url: String, budget: Int, grace: Int, destination: String) -> String {
        """
        [weather]
        base_url = "\(url)"
        [background]
        refresh_budget_seconds = \(budget)
        grace_seconds = \(grace)
        [upload.destinations.\(destination)]
        kind = "webdav"
        url = "\(url)/photos/"

        """
    }

    // MARK: Commands

    /// Runs a command, like a user. Errors are printed unchanged.
    @discardableResult
    func stormy(_ arguments: String...) throws -> (output: Data, status: Int32) { try stormy(arguments) }

    @discardableResult
    func stormy(_ arguments: [String]) throws -> (output: Data, status: Int32) { try run(arguments, isLast: false) }

    /// - Parameter isLast: `true` if the command may begin even after an interruption.
    private func run(_ arguments: [String], isLast: Bool) throws -> (output: Data, status: Int32) {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: stormy)
        process.arguments = arguments
        process.environment = environment.merging(surroundings.withLock { $0.variables }()) { $1 }
        process.standardOutput = output
        if isSilent { process.standardError = try errorLog() }
        let pid = try verbs.withLock { verbs -> Int32? in
            guard isLast || !verbs.isOver else { return nil }
            try process.run()
            verbs.running.insert(process.processIdentifier)
            return process.processIdentifier
        }
        guard let pid else { Cleanup.park() }
        defer { verbs.withLock { _ = $0.running.remove(pid) } }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (data, process.terminationStatus)
    }

    /// The file that receives the standard error of commands if the home is silent.
    private var errorFile: URL { folder.appendingPathComponent("errors") }

    private func errorLog() throws -> FileHandle {
        let descriptor = clinux_open(errorFile.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CommandFailure(cannotWriteIn: folder, POSIXError(.init(rawValue: errno) ?? .EIO)) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// The last line of the error file.
    var lastError: String? {
        guard let data = try? Data(contentsOf: errorFile) else { return nil }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").last.map(String.init)
    }

    // MARK: The ledger

    func ledger() throws -> Ledger {
        // After an interruption the ledger is not opened, because opening the ledger would create the folders again.
        if isOver { Cleanup.park() }
        return try Ledger(directories)
    }

    private var isOver: Bool { verbs.withLock { $0.isOver } }

    /// Waits until the ledger contains a value. The ledger is read at each change notification. Returns `nil` after `seconds`.
    func wait<Value>(_ seconds: Double, for question: (LedgerTransaction) throws -> Value?) throws -> Value? {
        let ledger = try ledger()
        let bell = try ChangeListener(directories)
        let deadline = Date().addingTimeInterval(seconds)
        while true {
            if let value = try ledger.readAfterRing(question) { return value }
            let left = deadline.timeIntervalSinceNow
            guard left > 0 else { return nil }
            var descriptor = pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&descriptor, 1, Int32(left * 1000) + 1)
            bell.drain()
        }
    }

    // MARK: The end

    /// Ends the agent, and removes the home unless it is kept. Returns `true` if the agent stopped on request and the removal succeeded.
    func finish() -> Bool {
        let status = try? stormy("quit").status
        if isOver { Cleanup.park() }
        let isStopped = !AgentStarter(directories: directories, environment: environment).isRunning
        if !isStopped { killProcesses() }
        if !isKept { Cleanup.shared.remove(folder) }
        Cleanup.shared.forget(self)
        return status == 0 && isStopped && (isKept || access(folder.path, F_OK) != 0)
    }

    /// Removes a home that could not be set up.
    func discard() {
        Cleanup.shared.remove(folder)
        Cleanup.shared.forget(self)
    }

    /// Ends all processes of the home after an interruption. The folder is not removed.
    func end() {
        // Commands are killed first, because a command could start an agent after the other processes were killed.
        verbs.withLock { verbs in
            verbs.isOver = true
            for pid in verbs.running { kill(pid, SIGKILL) }
        }
        // The agent receives the command `quit`, because it then also withdraws its notifications from the user's screen.
        _ = try? run(["quit"], isLast: true)
        killProcesses()
    }

    /// Kills commands, agents, apps, and processes that are just starting, until no process has this home in its environment.
    private func killProcesses() {
        for _ in 0..<50 {
            let left = processes
            if left.isEmpty { return }
            for pid in left {
                let descriptor = clinux_pidfd_open(pid)
                guard descriptor >= 0 else { continue }
                defer { close(descriptor) }
                // The process is checked after the descriptor was opened, because the descriptor always refers to the same process.
                guard isOurs(pid) else { continue }
                _ = clinux_pidfd_send_signal(descriptor, SIGKILL)
                var gone = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                poll(&gone, 1, 1_000)
            }
        }
    }

    private var processes: [Int32] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int32($0) }.filter(isOurs)
    }

    private func isOurs(_ pid: Int32) -> Bool {
        guard let variables = try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(pid)/environ")) else { return false }
        return variables.range(of: Data("HOME=\(folder.path)\0".utf8)) != nil
    }
}
