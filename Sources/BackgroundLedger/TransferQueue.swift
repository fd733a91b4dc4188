import BackgroundScheduling
import Foundation
import GRDB

// What the agent asks of the transfers' table: each question an index seek, whatever the number of rows.
extension LedgerTransaction {
    /// A queued transfer, as far as the choice of the next one needs it.
    public struct Candidate: Sendable, Equatable {
        public let id: Int64
        public let host: String
        public let hostLimit: Int
        let priority: Double
    }

    /// Rows looked at per class before hosts that are busy are stepped over.
    private static let candidateDepth = 64
    /// Hosts looked at when the front of the queue is all busy hosts.
    private static let hostBreadth = 256

    /// The next transfers to begin, best first: by priority, then by age, among those whose needs are met and whose host has
    /// room. Cost: some index seeks, whatever the number of rows.
    public func nextTransfers(met: TransferNeeds, room: TransferRoom) throws -> [Candidate] {
        guard room.left > 0 else { return [] }
        var room = room
        var chosen: [Candidate] = []
        func choose(from candidates: [Candidate]) {
            let known = Set(chosen.map(\.id))
            let sorted = candidates.sorted { ($1.priority, $0.id) < ($0.priority, $1.id) }
            for candidate in sorted where !known.contains(candidate.id) && room.has(candidate.host, limit: candidate.hostLimit) {
                room.take(candidate.host)
                chosen.append(candidate)
            }
        }
        var isCutShort = false
        var front: [Candidate] = []
        for needs in met.openClasses {
            let rows = try candidates(
                "needs = ? ORDER BY priority DESC, id LIMIT ?", [needs.rawValue, Self.candidateDepth])
            isCutShort = isCutShort || rows.count == Self.candidateDepth
            front += rows
        }
        choose(from: front)
        guard isCutShort, room.left > 0 else { return chosen }
        // One busy host may stand at the front with thousands: one row each of the others, host by host.
        var others: [Candidate] = []
        var last = ""
        for _ in 0..<Self.hostBreadth {
            guard
                let host = try String.fetchOne(
                    database.cachedStatement(
                        sql: """
                            SELECT host FROM transfer WHERE state = 'queued' AND isSuspended = 0 AND host > ? ORDER BY host LIMIT 1
                            """), arguments: [last])
            else { break }
            last = host
            for needs in met.openClasses {
                others += try candidates(
                    "host = ? AND needs = ? ORDER BY priority DESC, id LIMIT 6", [host, needs.rawValue])
            }
        }
        choose(from: others)
        return chosen
    }

    private func candidates(_ condition: String, _ arguments: StatementArguments) throws -> [Candidate] {
        let statement = try database.cachedStatement(
            sql: "SELECT id, host, hostLimit, priority FROM transfer WHERE state = 'queued' AND isSuspended = 0 AND \(condition)")
        return try Row.fetchAll(statement, arguments: arguments).map {
            Candidate(id: $0[0], host: $0[1], hostLimit: $0[2], priority: $0[3])
        }
    }

    /// Waiting transfers whose moment came join the queue; a handful at a time, as more cannot begin. Returns when the next
    /// one's moment comes.
    public func queueDueTransfers(now: Date, limit: Int) throws -> Date? {
        let seconds = now.timeIntervalSince1970
        try database.execute(
            sql: """
                UPDATE transfer SET state = 'queued', nextAttemptAt = NULL WHERE id IN (
                    SELECT id FROM transfer WHERE state = 'waiting' AND isSuspended = 0 AND nextAttemptAt <= ?
                    ORDER BY nextAttemptAt LIMIT ?)
                """, arguments: [seconds, limit])
        let next = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT nextAttemptAt FROM transfer WHERE state = 'waiting' AND isSuspended = 0 AND nextAttemptAt > ?
                    ORDER BY nextAttemptAt LIMIT 1
                    """), arguments: [seconds])
        return next.map { Date(timeIntervalSince1970: $0) }
    }

    /// Transfers without progress for too long, and when the next one's time is up.
    public func transfersToGiveUp(now: Date, limit: Int = 64) throws -> (due: [TransferRecord], next: Date?) {
        let condition = "state IN ('queued', 'running', 'waiting') AND isSuspended = 0"
        let due = try TransferRecord.fetchAll(
            database.cachedStatement(
                sql: "SELECT * FROM transfer WHERE \(condition) AND giveUpAt <= ? ORDER BY giveUpAt LIMIT ?"),
            arguments: [now.timeIntervalSince1970, limit])
        let next = try Double.fetchOne(
            database.cachedStatement(
                sql: "SELECT giveUpAt FROM transfer WHERE \(condition) AND giveUpAt > ? ORDER BY giveUpAt LIMIT 1"),
            arguments: [now.timeIntervalSince1970])
        return (due, next.map { Date(timeIntervalSince1970: $0) })
    }

    /// Whatever waits because nobody could be reached is due at once.
    public func retryTransfers(waitingWith codes: [Int], now: Date) throws {
        let marks = codes.map(String.init).joined(separator: ", ")
        try database.execute(
            sql:
                "UPDATE transfer SET nextAttemptAt = ? WHERE state = 'waiting' AND nextAttemptAt > ? AND errorCode IN (\(marks))",
            arguments: [now.timeIntervalSince1970, now.timeIntervalSince1970])
    }

    /// A pause after trouble ends at this moment at the latest; a beginning that the app chose stays.
    public func shortenTransferDelays(to latest: Date) throws {
        try database.execute(
            sql:
                "UPDATE transfer SET nextAttemptAt = ?1 WHERE state = 'waiting' AND nextAttemptAt > ?1 AND errorCode IS NOT NULL",
            arguments: [latest.timeIntervalSince1970])
    }

    /// Bytes are to move, now or later, without anybody's doing.
    public func hasActiveTransfers() throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM transfer WHERE state IN ('queued', 'running', 'waiting') AND isSuspended = 0)
                    """)) ?? false
    }

    /// Cancelled with their part kept, by an app that waited for an agent which died.
    public func cancelledTransfersToLetGo() throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database.cachedStatement(
                sql: "SELECT * FROM transfer WHERE keptUntil IS NOT NULL AND state = 'cancelled' AND isSuspended = 1"))
    }

    /// An unfinished download that will get this name.
    public func unfinishedTransfer(to destination: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE state IN ('queued', 'running', 'waiting', 'paused') AND destination = ? LIMIT 1
                    """), arguments: [destination])
    }

    /// Attempts that an agent which died had under way.
    public func runningTransfers(session: String? = nil) throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database.cachedStatement(
                sql: "SELECT * FROM transfer WHERE state = 'running' AND (session = ?1 OR ?1 IS NULL) ORDER BY id"),
            arguments: [session])
    }

    /// Those of a session that an app may want to hear of: bytes move, or nobody can be reached.
    public func movingTransfers(session: String) throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE session = ?1 AND state = 'running'
                    UNION ALL SELECT * FROM (SELECT * FROM transfer WHERE session = ?1 AND state = 'waiting' LIMIT 64)
                    """), arguments: [session])
    }

    // MARK: Resume data

    /// The ended transfer that keeps a part under this name.
    public func transfer(keepingPart token: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM transfer WHERE resumeToken = ? AND keptUntil IS NOT NULL"),
            arguments: [token])
    }
}
