import Foundation
import Simulation
import TestSamples
import Testing

/// Every cause in every state, in virtual time; the page in the documentation is made of them.
@Suite struct MatrixTests {
    @Test(arguments: MatrixState.allCases) func everyPromiseIsKept(state: MatrixState) throws {
        for cause in TableSample.rows(of: MatrixCause.allCases, in: state.rawValue) {
            let cell = MatrixCell(state, cause)
            let seen = try cell.play()
            #expect(seen == cell.promised, "\(state.rawValue): \(cause.rawValue): \(seen) and not \(cell.promised)")
        }
    }

    private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Sources/API/BackgroundTasks/BackgroundTasks.docc/Matrix.md")

    @Test func thePageSaysTheSame() throws {
        var text = """
            # What is promised, cell by cell

            Sixteen states of work and what can happen in the middle of each, played in virtual time by the real agent. What is seen when
            all is over is promised, word for word; `as usual` is as if nothing had happened, and `–` says that the cause found nobody: no
            process of the app runs then, whose time could run out or that could be ended.

            "told" and "heard" count what the app was told; "shown" what its server showed; "version" is which of the server's two
            versions of the file was handed over.

            Written by its test: `WRITE_TABLES=1 swift test --filter MatrixTests`.

            """
        for state in MatrixState.allCases {
            let usual = MatrixCell(state, .nothing).promised
            text += "\n## While \(state.rawValue)\n\n| what happens | promised and seen |\n| --- | --- |\n"
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
