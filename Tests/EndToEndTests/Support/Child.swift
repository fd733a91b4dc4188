import ProcessSupport
import BackgroundLedger
import Foundation

/// A program that a test starts, and that must end with the test. The signal mask of the program is empty. Threads of the test
/// runner block signals. If a program, for example dunst, inherited their mask, it would not end on SIGTERM.
final class Child {
    let pid: Int32
    private var isRunning = true
    private var status: Int32 = -1

    init(_ program: String, _ arguments: [String], environment: [String: String], output: Int32 = -1) throws {
        var child = ChildProcess(path: try Self.find(program), arguments: arguments, environment: environment)
        child.standardOutput = output
        pid = try child.start()
    }

    deinit { end(SIGKILL) }

    func end(_ signal: Int32 = SIGTERM) {
        guard isRunning else { return }
        kill(pid, signal)
        waitForEnd()
    }

    /// Returns the exit code, or 128 plus the signal that ended the program.
    @discardableResult
    func waitForEnd() -> Int32 {
        guard isRunning else { return status }
        isRunning = false
        var word: Int32 = 0
        waitpid(pid, &word, 0)
        status = word & 0x7f == 0 ? (word >> 8) & 0xff : 128 + (word & 0x7f)
        return status
    }

    struct Missing: Error, CustomStringConvertible {
        let program: String
        var description: String { "\(program) is not installed: `make test` installs it" }
    }

    static func find(_ program: String) throws -> String {
        if program.hasPrefix("/") { return program }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init) + ["/usr/sbin"]
        for folder in folders where access(folder + "/" + program, X_OK) == 0 { return folder + "/" + program }
        throw Missing(program: program)
    }

    struct Result {
        let status: Int32
        let output: String
        let errors: String
    }

    /// Runs a program until it ends.
    static func run(_ program: String, _ arguments: [String], environment: [String: String]) throws -> Result {
        let process = Process()
        let output = Pipe()
        let folder = FileManager.default.temporaryDirectory
        // Errors go to a file. If both outputs were pipes that are read one after the other, the second pipe could become full.
        let errorFile = folder.appendingPathComponent("stderr-" + UUID().uuidString)
        _ = FileManager.default.createFile(atPath: errorFile.path, contents: nil)
        defer { try? FileManager.default.removeItem(at: errorFile) }
        process.executableURL = URL(fileURLWithPath: try find(program))
        process.arguments = arguments
        process.environment = environment
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: errorFile)
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus, output: String(decoding: data, as: UTF8.self),
            errors: String(decoding: (try? Data(contentsOf: errorFile)) ?? Data(), as: UTF8.self))
    }
}

/// Reads the lines that a child writes.
final class LineReader {
    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Returns the next line. Returns `nil` if no complete line arrives within `seconds`, or at the end of the output.
    func next(within seconds: Double) -> String? {
        let deadline = Date().addingTimeInterval(seconds)
        while true {
            if let newline = buffer.firstIndex(of: 10) {
                let line = String(decoding: buffer[..<newline], as: UTF8.self)
                buffer.removeSubrange(...newline)
                return line
            }
            let left = deadline.timeIntervalSinceNow
            var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard left > 0, poll(&poller, 1, Int32(left * 1000) + 1) > 0 else { return nil }
            var piece = [UInt8](repeating: 0, count: 4096)
            let count = read(descriptor, &piece, piece.count)
            guard count > 0 else { return nil }
            buffer += piece[..<count]
        }
    }
}
