import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import CLinux
import Foundation

/// A throw-away home: own folders, own ledger, own agent. Nothing of the person's is touched, nothing stays.
final class DemoHome: Sendable {
    let folder: URL
    let environment: [String: String]
    private let directories: AppDirectories

    init(servers: DemoServers) throws {
        let template = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-demo-XXXXXX").path
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
        self.environment = environment
        directories = AppDirectories(appIdentifier: "stormy", environment: environment)
        try AppDirectories.createPrivateFolder(directories.configuration)
        let configuration = """
            [weather]
            base_url = "\(servers.url)"
            [background]
            refresh_budget_seconds = \(DemoStory.budget)
            grace_seconds = 2
            [upload.destinations.demo]
            kind = "webdav"
            url = "\(servers.url)/photos/"

            """
        try Data(configuration.utf8).write(to: directories.configuration.appendingPathComponent("config.toml"))
    }

    /// Runs a verb as a person would, with the same executable; its errors are shown as they are.
    @discardableResult
    func stormy(_ arguments: String...) throws -> (output: Data, status: Int32) {
        let process = Process()
        let output = Pipe()
        process.executableURL = AppManifest.executableURL
        process.arguments = arguments
        process.environment = environment
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (data, process.terminationStatus)
    }

    /// Waits for the demo's ledger to say something, woken by its bell. `nil` after `seconds`.
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

    /// Ends the agent and removes everything. `true`: nothing of it runs any more.
    func leave() -> Bool {
        let status = try? stormy("quit").status
        let isStopped = !AgentStarter(directories: directories, environment: environment).isRunning
        try? FileManager.default.removeItem(at: folder)
        return status == 0 && isStopped
    }
}
