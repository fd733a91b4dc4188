import Foundation
import Synchronization

/// The output of a command that a test runs in the test's own process.
package final class CapturedOutput: Sendable {
    /// The captured output of the command that this Swift task belongs to. `nil` if the command runs in a separate process.
    @TaskLocal package static var current: CapturedOutput?

    private let written = Mutex((output: Data(), errors: Data()))

    /// The number of columns of the simulated terminal, or `nil` if the output does not go to a terminal.
    package let columns: Int?

    package init(columns: Int? = nil) { self.columns = columns }

    func append(_ data: Data, to descriptor: Int32) {
        written.withLock { if descriptor == STDERR_FILENO { $0.errors += data } else { $0.output += data } }
    }

    /// The text that was written to standard output.
    package var output: String { written.withLock { String(decoding: $0.output, as: UTF8.self) } }

    /// The text that was written to standard error.
    package var errors: String { written.withLock { String(decoding: $0.errors, as: UTF8.self) } }
}
