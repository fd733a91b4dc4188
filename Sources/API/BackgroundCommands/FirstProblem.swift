import ArgumentParser
import BackgroundRuntime

/// Determines the exit code of a command that processes several items. If several items cause problems, the exit code belongs to
/// the first of these items.
package struct FirstProblem {
    private var first: (position: Int, status: ExitStatus)?

    package init() {}

    /// - Parameter position: The position of the item among the arguments, from 0.
    package mutating func add(_ status: ExitStatus, at position: Int) {
        if let first, first.position <= position { return }
        first = (position, status)
    }

    /// Prints the problem as one line.
    package mutating func report(_ failure: CommandFailure, at position: Int) {
        Output.sentence("\(AppRuntime.programName): \(failure.message)")
        add(failure.status, at: position)
    }

    /// - Throws: `ExitCode` if a problem was recorded. The problem was already printed.
    package func throwIfAny() throws {
        if let first { throw ExitCode(first.status.rawValue) }
    }
}
