import Foundation
import Simulation
import TestSamples
import Testing

/// Tests of every cause in every state, in virtual time. The page in the documentation is generated from the results.
@Suite struct MatrixTests {
    @Test(arguments: MatrixState.allCases) func `every promise of the matrix is kept`(state: MatrixState) throws {
        for cause in TableSample.rows(of: MatrixCause.allCases, in: state.rawValue) {
            let cell = MatrixCell(state, cause)
            let seen = try cell.play()
            #expect(seen == cell.promised, "\(state.rawValue): \(cause.rawValue): \(seen) and not \(cell.promised)")
        }
    }

    private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Sources/API/BackgroundTasks/BackgroundTasks.docc/Matrix.md")

    @Test func `the page shows the cells of the matrix`() throws {
        var text = """
            # Every cause in every state

            Sixteen states of work, and the causes that can interrupt each state. The real agent plays every combination in virtual time. The result
            must be equal to the promise, word for word. `as usual` means that the result is the same as without the cause. `–` means that no process
            of the app runs in this state, so that its time cannot run out and it cannot be ended.

            "shown" counts the notifications that the server showed. "reported" counts the ends of an upload that the app received, and
            "received" counts the presses that the app received. "version" is the version of the file, of two on the server, that the app received.

            Written by its test: `WRITE_TABLES=1 swift test --filter MatrixTests`.

            """
        for state in MatrixState.allCases {
            let usual = MatrixCell(state, .nothing).promised
            text += "\n## While \(state.rawValue)\n\n| event | promised result |\n| --- | --- |\n"
            for cause in MatrixCause.allCases {
                let cell = MatrixCell(state, cause)
                let promised = cause != .nothing && cell.promised == usual ? "as usual" : cell.promised
                text += "| \(cause.rawValue) | \(cell.findsNobody ? "–" : promised) |\n"
            }
        }
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(text.utf8).write(to: Self.page) }
        #expect(try String(contentsOf: Self.page, encoding: .utf8) == text, "WRITE_TABLES=1 writes the page anew")
    }
}
