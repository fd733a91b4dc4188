import ProcessSupport
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import CLinux
import Foundation
import Synchronization

/// A throw-away home: own folders, own ledger, own agent. Nothing of the person's is touched, nothing stays.
final class ThrowawayHome: Sendable {
    let folder: URL
    let environment: [String: String]
    let directories: AppDirectories

    /// - Parameters:
    ///   - name: what its folder's name begins with.
    ///   - parent: kept there when all is over; `nil`: gone then.
    ///   - isSilent: away from the person's desktop, too: no notification is shown, no error of a verb either.
    /// - Throws: ``CommandFailure``; then nothing of it is left.
    init(_ name: String, in parent: URL? = nil, isSilent: Bool = false, configuration: String) throws {
        stormy = try Self.findStormy()
        folder = try Leftovers.shared.makeFolder(name, keptIn: parent)
        self.isSilent = isSilent
        isKept = parent != nil
        environment = Self.environment(of: folder, isSilent: isSilent)
        directories = AppDirectories(appIdentifier: "stormy", environment: environment)
        Leftovers.shared.add(self)
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
        // A fault, a launch or a clock that was meant for another process would be one of every process here. Where the agent's
        // program is holds here, too. The server is on loopback, where no proxy finds it.
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
        /// Interrupted: none may begin any more.
        var isOver = false
        /// Processes of those that run.
        var running: Set<Int32> = []
    }

    /// What verbs find in their environment besides, at each moment.
    let surroundings = Mutex<@Sendable () -> [String: String]>({ [:] })
    private let verbs = Mutex(Verbs())
    private let isSilent: Bool
    private let isKept: Bool
    /// Whose verbs are run: its path.
    var program: String { stormy }
    private let stormy: String

    /// Weather and photos at one server; its only destination is called `destination`. Times in seconds.
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

    // MARK: Verbs

    /// Runs a verb as a person would; its errors are shown as they are.
    @discardableResult
    func stormy(_ arguments: String...) throws -> (output: Data, status: Int32) { try stormy(arguments) }

    @discardableResult
    func stormy(_ arguments: [String]) throws -> (output: Data, status: Int32) { try run(arguments, isLast: false) }

    /// - Parameter isLast: it may begin after everything else was ended.
    private func run(_ arguments: [String], isLast: Bool) throws -> (output: Data, status: Int32) {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: stormy)
        process.arguments = arguments
        process.environment = environment.merging(surroundings.withLock { $0 }()) { $1 }
        process.standardOutput = output
        if isSilent { process.standardError = try errorLog() }
        let pid = try verbs.withLock { verbs -> Int32? in
            guard isLast || !verbs.isOver else { return nil }
            try process.run()
            verbs.running.insert(process.processIdentifier)
            return process.processIdentifier
        }
        guard let pid else { Leftovers.park() }
        defer { verbs.withLock { _ = $0.running.remove(pid) } }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (data, process.terminationStatus)
    }

    /// What its verbs say of errors while it is silent.
    private var errorFile: URL { folder.appendingPathComponent("errors") }

    private func errorLog() throws -> FileHandle {
        let descriptor = clinux_open(errorFile.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CommandFailure(cannotWriteIn: folder, POSIXError(.init(rawValue: errno) ?? .EIO)) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// The last of it.
    var lastError: String? {
        guard let data = try? Data(contentsOf: errorFile) else { return nil }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").last.map(String.init)
    }

    // MARK: The ledger

    func ledger() throws -> Ledger {
        // Opening it would make its folders anew.
        if isOver { Leftovers.park() }
        return try Ledger(directories)
    }

    private var isOver: Bool { verbs.withLock { $0.isOver } }

    /// Waits for its ledger to say something, woken by its bell. `nil` after `seconds`.
    func wait<Value>(_ seconds: Double, for question: (LedgerTransaction) throws -> Value?) throws -> Value? {
        let ledger = try ledger()
        let bell = try Bell(directories)
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

    /// Ends the agent and removes what is not to be kept. `true`: everything ended as it was asked to.
    func leave() -> Bool {
        let status = try? stormy("quit").status
        if isOver { Leftovers.park() }
        let isStopped = !AgentStarter(directories: directories, environment: environment).isRunning
        if !isStopped { killProcesses() }
        if !isKept { Leftovers.shared.remove(folder) }
        Leftovers.shared.forget(self)
        return status == 0 && isStopped && (isKept || access(folder.path, F_OK) != 0)
    }

    /// It could not be set up: there is nothing in it to keep.
    func discard() {
        Leftovers.shared.remove(folder)
        Leftovers.shared.forget(self)
    }

    /// Interrupted: nothing of it runs when this returns. Its folder is not removed.
    func end() {
        // First of all the verbs: one that is just starting an agent would start it behind our back.
        verbs.withLock { verbs in
            verbs.isOver = true
            for pid in verbs.running { kill(pid, SIGKILL) }
        }
        // What is on the person's screen goes with it.
        _ = try? run(["quit"], isLast: true)
        killProcesses()
    }

    /// Until nothing is found that has this home in its environment: verbs, agents, apps, also those that only just begin.
    private func killProcesses() {
        for _ in 0..<50 {
            let left = processes
            if left.isEmpty { return }
            for pid in left {
                let descriptor = clinux_pidfd_open(pid)
                guard descriptor >= 0 else { continue }
                defer { close(descriptor) }
                // Asked after opening: from here on the descriptor means this very process.
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
