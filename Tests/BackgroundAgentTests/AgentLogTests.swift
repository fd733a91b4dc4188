import Foundation
import Testing

@testable import BackgroundAgent

/// Tests of the agent's log: its file and its journal entries.
@Suite struct AgentLogTests {
    @Test func `a log line contains the message and its fields`() {
        let entry = LogEntry(.launchWarned, [(.launch, 3), (.identifier, "StormyNoon"), (.reason, "its time ran out")])
        #expect(
            entry.line == "the app was warned that its launch must end "
                + "launch=3 identifier=StormyNoon reason=\"its time ran out\"")
        #expect(LogEntry(.hostWoke).line == "the machine woke from sleep")
    }

    /// Servers and other programs determine some values in the log. A value from another program must not look like a line that
    /// the agent wrote.
    @Test func `control characters in the values of log fields are escaped`() {
        let reason = "\"no\"\n2026-01-01T00:00:00Z agent stopped\u{1B}[2J\u{9B}\\"
        let line = LogEntry(.progressNotShown, [(.reason, reason)]).line
        #expect(line.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
        #expect(
            line
                == #"the progress of running work is not shown reason="\"no\"\n2026-01-01T00:00:00Z agent stopped\u{1b}[2J\u{9b}\\""#
        )
    }

    @Test func `a journal entry contains the fields of the log entry`() {
        let entry = LogEntry(.notificationWaits, [(.notification, "storm"), (.reason, "two\nlines")])
        let bytes = Journal.encoded(entry, app: "stormy")
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(
            text.hasPrefix(
                """
                MESSAGE=notification waits
                PRIORITY=4
                SYSLOG_IDENTIFIER=background-agent
                BACKGROUND_EVENT=notification-waits
                BACKGROUND_APP=stormy
                BACKGROUND_NOTIFICATION=storm
                BACKGROUND_REASON

                """))
        #expect(Array(bytes.suffix(18)) == [9, 0, 0, 0, 0, 0, 0, 0] + Array("two\nlines\n".utf8))
    }

    /// If standard error does not lead to the journal, the agent writes to standard error.
    @Test func `the journal is not used without a matching standard error and a socket`() {
        var information = stat()
        fstat(2, &information)
        let stream = "\(information.st_dev):\(information.st_ino)"
        #expect(Journal(stream: nil, standardError: 2, socket: "/nowhere") == nil)
        #expect(Journal(stream: "1:2", standardError: 2, socket: "/nowhere") == nil)
        #expect(Journal(stream: stream, standardError: 2, socket: "/nowhere") == nil)
    }

    // MARK: The page

    private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Sources/API/BackgroundTasks/BackgroundTasks.docc/AgentLog.md")

    private static var tables: String {
        let priorities = [3: "error", 4: "warning", 5: "notice", 6: "info"]
        let messages = LogMessage.allCases.map { message in
            let fields = message.fields.map { "`\($0.rawValue)`" }.joined(separator: " ")
            return "| `\(message.rawValue)` | \(message.text) | \(fields) | \(priorities[message.priority] ?? "?") |"
        }
        let fields = LogField.allCases.map { "| `\($0.rawValue)` | \($0.meaning) |" }
        return
            (["| Event | Message | Fields | Priority |", "|---|---|---|---|"] + messages + [
                "", "| Field | Meaning |", "|---|---|",
            ]
            + fields).joined(separator: "\n")
    }

    @Test func `the page lists all log messages and fields`() throws {
        let page = try String(contentsOf: Self.page, encoding: .utf8)
        #expect(page.contains(Self.tables), "the page's tables have to be:\n\(Self.tables)")
    }
}
