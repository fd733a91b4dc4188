import Foundation
import Synchronization

/// Output of a command that runs in a test without a process.
package final class CapturedOutput: Sendable {
    /// The capture of the command that this task is part of, or `nil` in a separate process.
    @TaskLocal package static var current: CapturedOutput?

    private let written = Mutex((output: Data(), errors: Data()))

    /// The number of columns, if the output goes to a terminal.
    package let columns: Int?

    package init(columns: Int? = nil) { self.columns = columns }

    func append(_ data: Data, to descriptor: Int32) {
        written.withLock { if descriptor == STDERR_FILENO { $0.errors += data } else { $0.output += data } }
    }

    /// Everything written to standard output so far.
    package var output: String { written.withLock { String(decoding: $0.output, as: UTF8.self) } }

    /// Everything written to standard error so far.
    package var errors: String { written.withLock { String(decoding: $0.errors, as: UTF8.self) } }
}
