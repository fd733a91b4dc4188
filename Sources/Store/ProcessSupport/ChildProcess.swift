import CLinux
import Foundation
import Glibc

/// A detached child process. Only the descriptors in the properties below stay open in the child.
package struct ChildProcess: Sendable {
    package var path: String
    package var arguments: [String]
    package var environment: [String: String]
    /// The descriptor for standard input, or -1 for no input.
    package var standardInput: Int32 = -1
    /// The descriptor for standard output, or -1 for no output.
    package var standardOutput: Int32 = -1
    /// The descriptor for standard error, or -1 for the descriptor of standard output.
    package var standardError: Int32 = -1
    /// A descriptor that the child inherits as number 3, or -1 for no descriptor.
    package var inherited: Int32 = -1
    /// `true` if the child gets a new session, so that the child does not end when the terminal is closed.
    package var startsSession = false
    /// `true` if the signal SIGTERM is blocked until the child is ready to receive the signal.
    package var blocksTermination = false

    package init(path: String, arguments: [String], environment: [String: String]) {
        self.path = path
        self.arguments = arguments
        self.environment = environment
    }

    package struct Failure: Error, CustomStringConvertible {
        package let path: String
        package let code: Int32

        package var description: String { "\(path) cannot be started: " + String(cString: strerror(code)) }
    }

    /// Starts the child and returns the child's process number. Cost: about a millisecond, independent of the memory size of this
    /// process.
    package func start() throws(Failure) -> Int32 {
        let argumentStrings = ([path] + arguments).map { strdup($0) }
        let variableStrings = environment.map { strdup("\($0.key)=\($0.value)") }
        defer { (argumentStrings + variableStrings).forEach { free($0) } }
        var pid: pid_t = 0
        let code = path.withCString { path in
            (argumentStrings + [nil]).withUnsafeBufferPointer { arguments in
                (variableStrings + [nil]).withUnsafeBufferPointer { variables in
                    var request = clinux_spawn_request(
                        path: path, arguments: arguments.baseAddress!, environment: variables.baseAddress!,
                        standard_input: standardInput, standard_output: standardOutput,
                        standard_error: standardError, inherited: inherited, starts_session: startsSession ? 1 : 0,
                        blocks_sigterm: blocksTermination ? 1 : 0)
                    return clinux_spawn(&request, &pid)
                }
            }
        }
        guard code == 0 else { throw Failure(path: path, code: code) }
        return pid
    }

    /// The result of a child process that has ended.
    package struct End: Sendable, Equatable {
        /// The exit code. If a signal ended the child, the code is 128 plus the number of the signal, as in shells.
        package let code: Int32
        /// The text that the child wrote to standard output and standard error, up to the limit.
        package let output: String
        /// `true` if the child did not end in time and was killed.
        package let wasLate: Bool
    }

    /// Runs the child, and returns when the child has ended. The call blocks the thread. Foundation's `Process` is not used,
    /// because it waits for every process that inherits one of its sockets. In a network namespace without a loopback interface,
    /// this wait would never end.
    ///
    /// - Parameters:
    ///   - seconds: the time limit. The time in which the machine sleeps does not shorten this limit. After this time the child
    ///     is killed, but processes that the child started are not killed.
    ///   - outputLimit: the maximum number of output bytes that are kept. The call also waits until the output is closed. If a
    ///     process that the child started keeps the output open, the call waits for this process, up to the time limit.
    package func run(within seconds: Double, outputLimit: Int) throws(Failure) -> End {
        var ends: [Int32] = [-1, -1]
        guard clinux_pipe(&ends) == 0 else { throw Failure(path: path, code: errno) }
        defer { close(ends[0]) }
        var child = self
        child.standardOutput = ends[1]
        let deadline = SuspendingClock.now + .seconds(seconds)
        let started = Result { () throws(Failure) in try child.start() }
        close(ends[1])
        let pid = try started.get()
        let output = Self.read(ends[0], limit: outputLimit, until: deadline)
        let wasLate = !Self.hasEnded(pid, by: deadline)
        // `waitpid` was not called for the child yet, so no other process can have the same process number.
        if wasLate { kill(pid, SIGKILL) }
        return End(code: Self.wait(for: pid), output: output, wasLate: wasLate)
    }

    private static func hasEnded(_ pid: Int32, by deadline: SuspendingClock.Instant) -> Bool {
        let descriptor = clinux_pidfd_open(pid)
        // If the kernel does not support pidfd, the method assumes that a child that closed its output in time will end soon.
        guard descriptor >= 0 else { return SuspendingClock.now < deadline }
        defer { close(descriptor) }
        return isReadable(descriptor, by: deadline)
    }

    private static func isReadable(_ descriptor: Int32, by deadline: SuspendingClock.Instant) -> Bool {
        while true {
            let rest = max(.zero, deadline - SuspendingClock.now)
            var asked = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let count = poll(&asked, 1, Int32(clamping: Int((rest / .milliseconds(1)).rounded(.up))))
            if count > 0 { return true }
            if count == 0 || errno != EINTR { return false }
        }
    }

    /// Waits for a child of this process and returns its exit code. If a signal ended the child, the result is 128 plus the
    /// number of the signal, as in shells.
    package static func wait(for pid: Int32) -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 { if errno != EINTR { return 255 } }
        let signal = status & 0x7f
        return signal == 0 ? status >> 8 & 0xff : 128 + signal
    }

    /// Reads until no process can write to the descriptor any more, or until the deadline. Returns at most the first `limit`
    /// bytes.
    package static func read(_ descriptor: Int32, limit: Int, until deadline: SuspendingClock.Instant? = nil) -> String {
        var (text, piece) = ([UInt8](), [UInt8](repeating: 0, count: 4_096))
        while deadline.map({ isReadable(descriptor, by: $0) }) ?? true {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            text += piece.prefix(min(count, max(0, limit - text.count)))
        }
        return String(decoding: text, as: UTF8.self)
    }
}
