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
    init(_ name: String, in parent: URL? = nil, isSilent: Bool = false, configuration: String) throws {
        let template = (parent ?? FileManager.default.temporaryDirectory).appendingPathComponent("\(name)-XXXXXX").path
        var path = Array(template.utf8CString)
        guard mkdtemp(&path) != nil else {
            throw CommandFailure(.cannotCreate, "\(template): \(String(cString: strerror(errno)))")
        }
        folder = URL(fileURLWithPath: String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
        var environment = ProcessInfo.processInfo.environment
        environment["HOME"] = folder.path
        for name in ["CONFIG", "STATE", "DATA"] { environment["XDG_\(name)_HOME"] = folder.path + "/" + name.lowercased() }
        environment["STORMY_NO_AGENT"] = nil
        environment["NO_COLOR"] = "1"
        if isSilent {
            for name in ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"] { environment[name] = nil }
            environment["XDG_RUNTIME_DIR"] = folder.path + "/run"
            try AppDirectories.createPrivateFolder(folder.appendingPathComponent("run"))
        }
        self.isSilent = isSilent
        isKept = parent != nil
        self.environment = environment
        directories = AppDirectories(appIdentifier: "stormy", environment: environment)
        try AppDirectories.createPrivateFolder(directories.configuration)
        try Data(configuration.utf8).write(to: directories.configuration.appendingPathComponent("config.toml"))
    }

    /// What verbs find in their environment besides, at each moment.
    let surroundings = Mutex<@Sendable () -> [String: String]>({ [:] })
    private let isSilent: Bool
    private let isKept: Bool

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

    /// Runs a verb as a person would, with the same executable; its errors are shown as they are.
    @discardableResult
    func stormy(_ arguments: String...) throws -> (output: Data, status: Int32) { try stormy(arguments) }

    @discardableResult
    func stormy(_ arguments: [String]) throws -> (output: Data, status: Int32) {
        let process = Process()
        let output = Pipe()
        process.executableURL = AppManifest.executableURL
        process.arguments = arguments
        process.environment = environment.merging(surroundings.withLock { $0 }()) { $1 }
        process.standardOutput = output
        if isSilent { process.standardError = FileHandle.nullDevice }
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (data, process.terminationStatus)
    }

    /// Waits for its ledger to say something, woken by its bell. `nil` after `seconds`.
    func wait<Value>(_ seconds: Double, for question: (LedgerTransaction) throws -> Value?) throws -> Value? {
        let ledger = try Ledger(directories)
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

    /// Ends the agent and removes what is not to be kept. `true`: nothing of it runs any more.
    func leave() -> Bool {
        let status = try? stormy("quit").status
        let isStopped = !AgentStarter(directories: directories, environment: environment).isRunning
        if !isKept { try? FileManager.default.removeItem(at: folder) }
        return status == 0 && isStopped
    }
}
