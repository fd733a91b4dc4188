import CLinux
import Foundation

/// A child that is started and left to itself: nothing of ours stays open in it but what is named.
package struct ChildProcess: Sendable {
    package var path: String
    package var arguments: [String]
    package var environment: [String: String]
    /// A descriptor for its output and errors; -1: none.
    package var standardOutput: Int32 = -1
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
                        standard_output: standardOutput, inherited: inherited, starts_session: startsSession ? 1 : 0,
                        blocks_sigterm: blocksTermination ? 1 : 0)
                    return clinux_spawn(&request, &pid)
                }
            }
        }
        guard code == 0 else { throw Failure(path: path, code: code) }
        return pid
    }
}
