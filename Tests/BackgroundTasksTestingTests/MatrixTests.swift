import Foundation
import Simulation
import TestSamples
import Testing

/// Tests what happens to work in every state of the work and for every cause. The page Matrix.md is generated from the results.
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

            Lists what happens to background work after an interruption. The page has a section for each of sixteen states of the work, and each section
            has a row for each kind of interruption. A check is a launch of the app that downloads a forecast and shows a storm as a notification. A
            delivery is a launch in which the app receives the result of an ended transfer.

            A test runs every state with every interruption, with the real agent in virtual time. The real result must be equal to the promised result, word for word. The
            words "as usual" mean that the interruption does not change the result. The sign "–" means that no process of the app runs in this state, so
            the interruption is not possible.

            The number after "shown" is the number of notifications that the notification server showed. The number after "on the server" is the number
            of complete files on the server. The number after "reported" is the number of times that the app was notified of the ended upload. The number
            after "received" is the number of times that the app was notified of the pressed button. The server has two versions of a file. The number
            after "version" is the version that the app downloaded.

            The command `WRITE_TABLES=1 swift test --filter MatrixTests` runs this test, and writes this page.

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
        #expect(try String(contentsOf: Self.page, encoding: .utf8) == text, "WRITE_TABLES=1 writes the page again")
    }
}
