import CLinux
import Foundation
import Glibc

/// A child that is started and left to itself: nothing of ours stays open in it but what is named.
package struct ChildProcess: Sendable {
    package var path: String
    package var arguments: [String]
    package var environment: [String: String]
    /// A descriptor for its input; -1: none.
    package var standardInput: Int32 = -1
    /// A descriptor for its output; -1: none.
    package var standardOutput: Int32 = -1
    /// A descriptor for its errors; -1: where its output goes.
    package var standardError: Int32 = -1
    /// A descriptor it keeps, as number 3; -1: none.
    package var inherited: Int32 = -1
    /// A session of its own: closing the terminal does not end it.
    package var startsSession = false
    /// It is to hear SIGTERM only when it is ready for it.
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

    /// Returns its process number. Cost: about a millisecond, whatever the size of this process.
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

    /// How a child ended.
    package struct End: Sendable, Equatable {
        /// Its exit code; 128 and the signal that ended it, as shells have it.
        package let code: Int32
        /// What it wrote to its output and its errors, as far as that was wanted.
        package let output: String
        /// It did not end in time, and was killed.
        package let wasLate: Bool
    }

    /// Runs it to its end. Blocks. Foundation's `Process` was tried: it waits for all that inherits a socket of its own, and for ever in a
    /// namespace whose loopback is down.
    ///
    /// - Parameters:
    ///   - seconds: of a machine that is awake; then it is killed. What it started itself is not.
    ///   - outputLimit: so many bytes of output are kept. Its end is waited for, too: whoever it leaves behind with that open is waited for,
    ///     for as long.
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
        // It is not reaped yet: the number is its own.
        if wasLate { kill(pid, SIGKILL) }
        return End(code: Self.wait(for: pid), output: output, wasLate: wasLate)
    }

    private static func hasEnded(_ pid: Int32, by deadline: SuspendingClock.Instant) -> Bool {
        let descriptor = clinux_pidfd_open(pid)
        // A kernel that has none: whoever closed its output in time is about to end.
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

    /// Returns the exit code of a child that was started here, when it has ended; 128 and the signal that ended it, as shells have it.
    package static func wait(for pid: Int32) -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        return signal == 0 ? status >> 8 & 0xff : 128 + signal
    }

    /// All that comes until nobody can write any more, or the time is up, of which so many bytes are kept.
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
