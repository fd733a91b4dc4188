import ProcessSupport
import Foundation
import GRDB

/// A command that a process of the app sends to the agent. The row contains the command, and the agent writes the response into
/// this row.
package struct ControlRecord: Codable, Sendable, Equatable {
    package enum Verb: String, Codable, Sendable {
        case simulateLaunch
        case simulateExpire
        case quit
    }

    package var id: Int64?
    package var verb: Verb
    package var argument: String
    package var createdAt: Date
    /// The response of the agent, or `nil` until the agent has handled the command.
    package var answer: String?
    /// The number of the process that waits for the response.
    package var askerPID: Int32?
    package var askerStart: Int64?

    /// Returns whether the process that sent the command is still running. The result is `false` if an earlier version sent the
    /// command, because that version did not record the process.
    package func isAwaited(in directories: AppDirectories) -> Bool {
        guard let askerPID, let askerStart else { return false }
        return ProcessIdentity(pid: askerPID, start: askerStart).isAlive(in: directories)
    }
}

extension ControlRecord: LedgerRecord {
    package static let databaseTableName = "control"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension LedgerTransaction {
    /// Adds a command and returns the id of its row. The caller needs the id to read the response.
    @discardableResult
    package func addControl(
        _ verb: ControlRecord.Verb, _ argument: String = "", by asker: ProcessIdentity = .current, now: Date
    ) throws -> Int64 {
        // Commands that are older than a day are deleted.
        try database.run(
            sql: "DELETE FROM control WHERE createdAt < ?", arguments: [now.timeIntervalSince1970 - 86_400])
        var record = ControlRecord(id: nil, verb: verb, argument: argument, createdAt: now, answer: nil)
        (record.askerPID, record.askerStart) = (asker.pid, asker.start)
        try record.insert(database)
        return record.id!
    }

    package func openQuestions() throws -> [ControlRecord] {
        try ControlRecord.fetchRare(database.cachedStatement(sql: "SELECT * FROM control WHERE answer IS NULL ORDER BY id"))
    }

    package func answer(_ id: Int64, _ text: String) throws {
        try database.run(sql: "UPDATE control SET answer = ? WHERE id = ?", arguments: [text, id])
    }

    /// Writes an error into all commands that have no response yet, so that no agent handles these commands any more.
    package func dropQuestions() throws {
        try database.run(sql: "UPDATE control SET answer = 'error: all background work was ended' WHERE answer IS NULL")
    }

    package func answer(to id: Int64) throws -> String? {
        try String.fetchOne(database.cachedStatement(sql: "SELECT answer FROM control WHERE id = ?"), arguments: [id])
    }
}
