import ArgumentParser
import BackgroundRuntime

/// The exit code of a command that takes several things: the code of the first problem, in the order in which the things were given.
package struct FirstProblem {
    private var first: (position: Int, status: ExitStatus)?

    package init() {}

    /// - Parameter position: Where the thing was given, from 0.
    package mutating func note(_ status: ExitStatus, at position: Int) {
        if let first, first.position <= position { return }
        first = (position, status)
    }

    /// Prints the problem as one line.
    package mutating func note(_ failure: CommandFailure, at position: Int) {
        Output.sentence("\(AppRuntime.programName): \(failure.message)")
        note(failure.status, at: position)
    }

    /// - Throws: `ExitCode` if there was a problem. Each problem was printed before.
    package func throwIfAny() throws {
        if let first { throw ExitCode(first.status.rawValue) }
    }
}
