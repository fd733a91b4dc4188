import Foundation
import Synchronization

struct FixtureFailure: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) {
        self.description = description
    }
}

/// A child process of the test, with its standard output in a pipe. Foundation's `Process` needs a run loop to detect the end of
/// a child, so this type uses posix_spawn and waitpid.
final class ChildProcess: Sendable {
    /// All descriptors below this number are closed in the child. The tests have fewer descriptors open at a time. If a
    /// descriptor is not open, closing it is not an error here.
    private static let descriptors: Int32 = 1_024

    let pid: pid_t
    private let output: Int32
    private let isStopped = Mutex(false)

    init(_ tool: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        let path = try Self.find(tool)
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw FixtureFailure("no pipe: \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Other tests also start children, and wait for the end of the output of these children. A frozen child must not keep the
        // output of another child open.
        for descriptor in 3..<Self.descriptors { posix_spawn_file_actions_addclose(&actions, descriptor) }

        // Threads of libdispatch block signals. A child inherits the blocked signals, and would not end on SIGTERM.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var noSignals = sigset_t()
        sigemptyset(&noSignals)
        posix_spawnattr_setsigmask(&attributes, &noSignals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        var variables = ProcessInfo.processInfo.environment
        // The tests must not use the developer's desktop.
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS"] {
            variables[name] = nil
        }
        variables.merge(environment) { _, new in new }
        var argv = ([path] + arguments).map { strdup($0) } + [nil]
        var envp = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { (argv + envp).forEach { free($0) } }
        var spawned: pid_t = 0
        let result = posix_spawn(&spawned, path, &actions, &attributes, &argv, &envp)
        close(ends[1])
        guard result == 0 else {
            close(ends[0])
            throw FixtureFailure("\(tool) could not be started: \(result)")
        }
        pid = spawned
        output = ends[0]
    }

    /// Waits for the next line of the output and returns it.
    func firstLine() throws -> String {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(output, &byte, 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        throw FixtureFailure("a child ended before it said that it is ready")
    }

    /// Ends the child, and waits for its exit. A second call of `stop` has no effect.
    func stop() {
        let isFirst = isStopped.withLock { stopped in
            defer { stopped = true }
            return !stopped
        }
        guard isFirst else { return }
        kill(pid, SIGTERM)
        _ = reap()
        close(output)
    }

    /// Runs a command to its end and returns what it printed.
    @discardableResult
    static func run(_ tool: String, _ arguments: [String], environment: [String: String]) throws -> String {
        let child = try ChildProcess(tool, arguments, environment: environment)
        let text = try FileHandle(fileDescriptor: child.output, closeOnDealloc: false).readToEnd() ?? Data()
        let status = child.reap()
        close(child.output)
        guard status == 0 else { throw FixtureFailure("\(tool) \(arguments.joined(separator: " ")) failed: \(status)") }
        return String(decoding: text, as: UTF8.self)
    }

    private func reap() -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status
    }

    private static func find(_ tool: String) throws -> String {
        if tool.hasPrefix("/") { return tool }
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
        for folder in folders {
            let path = "\(folder)/\(tool)"
            if access(path, X_OK) == 0 { return path }
        }
        throw FixtureFailure("\(tool) is not installed: these tests need dbus, xvfb, dunst and xdotool")
    }
}
