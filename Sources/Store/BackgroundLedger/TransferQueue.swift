import BackgroundScheduling
import Foundation
import GRDB
import ProcessSupport
import TransferMachines

// The agent's queries of the table of transfers. Each query uses an index, so its cost does not depend on the number of rows. A
// query that needs a sort order names its index explicitly. Otherwise SQLite's planner, which has no statistics, would use the
// index of states and sort all waiting rows.
extension LedgerTransaction {
    /// The values of a queued transfer that are needed to choose the next transfer.
    package struct Candidate: Sendable, Equatable {
        package let id: Int64
        package let host: String
        package let hostLimit: Int
        let priority: Double
        let needs: TransferNeeds

        /// Decodes a row. A row that another program wrote can contain any values, so decoding throws an error instead of
        /// stopping the process.
        fileprivate init(_ row: Row) throws {
            id = try row.decode(Int64.self, atIndex: 0)
            host = try row.decode(String.self, atIndex: 1)
            hostLimit = try row.decode(Int.self, atIndex: 2)
            priority = try row.decode(Double.self, atIndex: 3)
            needs = TransferNeeds(rawValue: try row.decode(Int.self, atIndex: 4))
        }
    }

    /// The number of rows that are read for each class (each set of needs) before busy hosts are skipped. The number is equal to
    /// the number of transfers that can run at the same time.
    private static let candidateDepth = TransferRoom.limit
    /// The number of combinations of a host and a class that one query reads if all hosts at the beginning of the queue are busy.
    private static let breadth = 64
    /// The maximum number of queries that read combinations of a host and a class.
    private static let pages = 16

    /// Returns the next transfers to begin, sorted by priority and then by age. The conditions of these transfers are met, and
    /// each host has fewer running attempts than the maximum. Cost: some index lookups, independent of the number of rows.
    ///
    /// - Parameter last: the last host of the previous read. The queue may begin with more busy hosts than one read checks. In
    ///   this case the next read begins after this host, so that every host is checked at some time.
    package func nextTransfers(met: TransferNeeds, room: TransferRoom, behind last: String = "") throws -> [Candidate] {
        guard room.left > 0 else { return [] }
        var mayMiss = false
        var pool: [Candidate] = []
        for needs in try inhabited(met.openClasses) {
            let rows = try candidates(
                "INDEXED BY transferQueue", "needs = ? ORDER BY priority DESC, id LIMIT ?", [needs.rawValue, Self.candidateDepth])
            pool += rows
            // If some of these rows cannot begin because their hosts are busy, other rows that were not read may be able to
            // begin.
            mayMiss = mayMiss || rows.count == Self.candidateDepth && Self.choice(from: rows, room).count < room.left
        }
        guard mayMiss else { return Self.choice(from: pool, room) }
        // Thousands of rows of one busy host can be at the beginning of the queue. For this reason, the first row of each other
        // host is read, and then more rows of the chosen hosts.
        let heads = try openHeads(met: met, room: room, behind: last)
        pool += heads
        for winner in Self.choice(from: pool, room) where heads.contains(winner) {
            pool += try candidates(
                "INDEXED BY transferHost", "host = ? AND needs = ? ORDER BY priority DESC, id LIMIT ?",
                [winner.host, winner.needs.rawValue, Self.candidateDepth])
        }
        return Self.choice(from: pool, room)
    }

    /// Returns the given classes that contain a queued transfer.
    private func inhabited(_ classes: [TransferNeeds]) throws -> [TransferNeeds] {
        let queued = "transfer INDEXED BY transferQueue WHERE state = 'queued' AND isSuspended = 0"
        let known = try needs(in: queued)
        return classes.filter { known.contains($0.rawValue) }
    }

    private static func choice(from pool: [Candidate], _ room: TransferRoom) -> [Candidate] {
        var room = room
        var chosen: [Candidate] = []
        // The ids are stored in a set, because several reads can find the same transfer.
        var seen: Set<Int64> = []
        for candidate in pool.sorted(by: { ($1.priority, $0.id) < ($0.priority, $1.id) })
        where seen.insert(candidate.id).inserted && room.has(candidate.host, limit: candidate.hostLimit) {
            room.insert(candidate.host)
            chosen.append(candidate)
        }
        return chosen
    }

    private func candidates(_ index: String, _ condition: String, _ arguments: StatementArguments) throws -> [Candidate] {
        let statement = try database.cachedStatement(
            sql: """
                SELECT id, host, hostLimit, priority, needs FROM transfer \(index)
                WHERE state = 'queued' AND isSuspended = 0 AND \(condition)
                """)
        return try Row.fetchRare(statement, arguments: arguments).map(Candidate.init(_:))
    }

    /// Returns the transfers that have to begin first at hosts that are not busy. The query runs page by page, because all
    /// transfers of a page may have to wait.
    private func openHeads(met: TransferNeeds, room: TransferRoom, behind last: String) throws -> [Candidate] {
        var open: [Candidate] = []
        var (place, hasWrapped) = (last, last.isEmpty)
        for _ in 0..<Self.pages where open.count < room.left {
            let page = try heads(behind: place)
            open += page.filter { met.isSuperset(of: $0.needs) && room.has($0.host, limit: $0.hostLimit) }
            if page.count == Self.breadth, let end = page.last?.host {
                place = end
            } else if hasWrapped {
                break
            } else {
                (place, hasWrapped) = ("", true)
            }
        }
        return open
    }

    /// For each host and class, returns the transfer that has to begin first, host by host. The query steps through the index, so
    /// the cost does not depend on the number of rows.
    private func heads(behind host: String) throws -> [Candidate] {
        let queued = "transfer INDEXED BY transferHost WHERE state = 'queued' AND isSuspended = 0"
        let statement = try database.cachedStatement(
            sql: """
                WITH RECURSIVE head (id, atHost, atNeeds) AS (
                    SELECT id, host, needs FROM (
                        SELECT id, host, needs FROM \(queued) AND host > ? ORDER BY host, needs, priority DESC, id LIMIT 1)
                    UNION ALL
                    SELECT found.id, found.host, found.needs FROM head JOIN transfer AS found ON found.id = COALESCE(
                        (SELECT id FROM \(queued) AND host = atHost AND needs > atNeeds ORDER BY needs, priority DESC, id LIMIT 1),
                        (SELECT id FROM \(queued) AND host > atHost ORDER BY host, needs, priority DESC, id LIMIT 1))
                    LIMIT ?)
                SELECT transfer.id, host, hostLimit, priority, needs FROM head JOIN transfer ON transfer.id = head.id
                """)
        return try Row.fetchRare(statement, arguments: [host, Self.breadth]).map(Candidate.init(_:))
    }

    /// Queues waiting transfers that are due. The method queues at most `limit` transfers, because more transfers could not
    /// begin. Returns the due time of the next waiting transfer.
    package func queueDueTransfers(now: Date, limit: Int) throws -> Date? {
        let seconds = now.timeIntervalSince1970
        try database.cachedStatement(
            sql: """
                UPDATE transfer SET state = 'queued', nextAttemptAt = NULL WHERE id IN (
                    SELECT id FROM transfer INDEXED BY transferWaiting
                    WHERE state = 'waiting' AND isSuspended = 0 AND nextAttemptAt <= ?
                    ORDER BY nextAttemptAt LIMIT ?)
                """
        ).execute(arguments: [seconds, limit])
        let next = try Double.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT nextAttemptAt FROM transfer INDEXED BY transferWaiting
                    WHERE state = 'waiting' AND isSuspended = 0 AND nextAttemptAt > ?
                    ORDER BY nextAttemptAt LIMIT 1
                    """), arguments: [seconds])
        return next.map { Date(timeIntervalSince1970: $0) }
    }

    /// Returns the transfers that made no progress for too long, or that take too long in total. Also returns the time at which
    /// the next transfer reaches its limit. Complete and verified transfers are not included, because their files only have to be
    /// renamed.
    ///
    /// - Parameter tried: the transfers that this agent has already tried.
    /// - Returns: the transfers in `due` must fail. The transfers in `untried` are waiting and must be tried first. The number of
    ///   returned transfers is limited, oldest first.
    package func transfersToGiveUp(
        tried: Set<Int64>, now: Date, limit: Int = 64
    ) throws -> (due: [TransferRecord], untried: [TransferRecord], next: Date?) {
        let unfinished = "state IN ('queued', 'running', 'waiting') AND isSuspended = 0 AND isFinishing = 0"
        var (due, untried, next): ([TransferRecord], [TransferRecord], Double?) = ([], [], nil)
        let seconds = now.timeIntervalSince1970
        for (column, index) in [("giveUpAt", "transferGiveUp"), ("lateAt", "transferLate")] {
            let waiting = "transfer INDEXED BY \(index) WHERE \(column) IS NOT NULL AND \(unfinished)"
            func found(_ condition: String, _ arguments: StatementArguments) throws -> [TransferRecord] {
                try TransferRecord.fetchRare(
                    database.cachedStatement(
                        sql: "SELECT * FROM \(waiting) AND \(column) <= ? AND \(condition) ORDER BY \(column) LIMIT ?"),
                    arguments: [seconds] + arguments + [limit])
            }
            func first(_ condition: String, _ arguments: StatementArguments = []) throws -> Double? {
                try Double.fetchOne(
                    database.cachedStatement(sql: "SELECT \(column) FROM \(waiting)\(condition) ORDER BY \(column) LIMIT 1"),
                    arguments: arguments)
            }
            var later = try first("")
            if let earliest = later, earliest <= seconds {
                // This second query is necessary, because the limited result may contain only untried transfers.
                let list = "[" + tried.map(String.init).joined(separator: ",") + "]"
                let given = try found("id IN (SELECT value FROM json_each(?))", [list])
                due += given.filter { new in !due.contains { $0.id == new.id } }
                untried += try found(
                    "state = 'waiting' AND nextAttemptAt > ? AND id NOT IN (SELECT value FROM json_each(?))", [seconds, list])
                later = try first(" AND \(column) > ?", [seconds])
            }
            next = [next, later].compactMap { $0 }.min()
        }
        return (due, untried, next.map { Date(timeIntervalSince1970: $0) })
    }

    /// Ends the wait of all transfers that are waiting because of one of these error codes, so that the agent tries them again.
    package func retryTransfers(waitingWith codes: [Int], now: Date) throws {
        let marks = codes.map(String.init).joined(separator: ", ")
        try database.run(
            sql:
                "UPDATE transfer SET nextAttemptAt = ? WHERE state = 'waiting' AND nextAttemptAt > ? AND errorCode IN (\(marks))",
            arguments: [now.timeIntervalSince1970, now.timeIntervalSince1970])
    }

    /// Returns whether a transfer of one of these hosts waits because of an error, or is being retried after an error.
    package func isAnythingInTrouble(at hosts: [String]) throws -> Bool {
        let marks = hosts.map { _ in "?" }.joined(separator: ", ")
        return try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM transfer WHERE state IN ('waiting', 'running') AND isSuspended = 0
                    AND errorCode IS NOT NULL AND host IN (\(marks)))
                    """), arguments: StatementArguments(hosts)) ?? false
    }

    /// Corrects the end times of pauses after errors, and of waits for other uploads, because the clock was set back. Begin dates
    /// that the app set are not changed.
    ///
    /// - Parameters:
    ///   - setBack: The seconds that the clock was set back.
    ///   - latest: The latest permitted end time of a pause. The value limits pauses that an earlier agent began.
    package func shortenTransferDelays(by setBack: Double, to latest: Date) throws {
        try database.run(
            sql: """
                UPDATE transfer SET nextAttemptAt = MIN(nextAttemptAt - ?1, ?2)
                WHERE state = 'waiting' AND (?1 > 0 OR nextAttemptAt > ?2)
                    AND (errorCode IS NOT NULL OR upload ->> '$.company.leader' IS NOT NULL)
                """, arguments: [setBack, latest.timeIntervalSince1970])
    }

    /// Returns whether a transfer is running, or will run even if the user and the app do nothing.
    package func hasActiveTransfers() throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM transfer WHERE state IN ('queued', 'running', 'waiting') AND isSuspended = 0)
                    OR EXISTS (SELECT 1 FROM transfer WHERE state = 'running')
                    """)) ?? false
    }

    /// Returns the transfers that were running when an agent was killed, and cancelled transfers for which the app still waits
    /// for resume data.
    package func transfersOfADeadAgent() throws -> [TransferRecord] {
        try runningTransfers()
            + TransferRecord.fetchRare(
                database.cachedStatement(
                    sql: "SELECT * FROM transfer WHERE keptUntil IS NOT NULL AND state = 'cancelled' AND isSuspended = 1"))
    }

    /// Returns the uploads into a folder on the server that have begun and whose result is not known.
    ///
    /// - Parameter part: limits the result to uploads whose names contain this text, and ignores the case of ASCII letters. The
    ///   result can contain a few uploads whose names do not contain the text.
    package func uploadsWithOpenAnswer(to url: String, except id: Int64, having part: String = "") throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE url IN (?, ?) AND id <> ? AND kind = 'upload' AND uploadState IS NOT NULL
                    AND state NOT IN ('completed', 'cancelled') AND instr(lower(upload), ?) > 0
                    """), arguments: [Self.folder(url), Self.folder(url) + "/", id, part.lowercased()])
    }

    /// Returns the address without a slash at the end, because both forms are the address of the same folder.
    private static func folder(_ url: String) -> String { url.hasSuffix("/") ? String(url.dropLast()) : url }

    /// Returns the addresses of the files that other uploads stored in a folder. The address of the folder is compared without
    /// secrets, because the rows of these uploads contain no secrets.
    ///
    /// - Parameter beginning: a text that limits the result to names that begin with this text, in upper or lower case. An empty
    ///   text selects all names.
    package func storedUploads(to url: String, except id: Int64, beginning: String = "") throws -> Set<String> {
        let folder = Self.folder(PublicAddress.of(url))
        let lowest = beginning.lowercased()
        return try Set(
            String.fetchAll(
                database.cachedStatement(
                    sql: """
                        SELECT storedURL FROM transfer
                        WHERE kind = 'upload' AND state = 'completed' AND receipt IS NOT NULL AND url IN (?, ?) AND id <> ?
                        AND storedName >= ? AND storedName < ?
                        """), arguments: [folder, folder + "/", id, lowest, lowest + "\u{10FFFF}"]))
    }

    /// Returns an unfinished download with this destination.
    package func unfinishedTransfer(to destination: String) throws -> TransferRecord? {
        let file = URL(fileURLWithPath: destination, isDirectory: false)
        // The identity of the folder is also compared, because several paths can lead to the same folder.
        let folder = SeenFolder(file.deletingLastPathComponent().path)?.text
        return try TransferRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE state IN ('queued', 'running', 'waiting', 'paused')
                    AND (destination = ?1 OR destinationFolder = ?2 AND substr(destination, -length(?3)) = ?3) LIMIT 1
                    """), arguments: [destination, folder, "/" + file.lastPathComponent])
    }

    /// Returns the running transfers. After an agent was killed, these are the unfinished attempts of that agent.
    package func runningTransfers(session: String? = nil) throws -> [TransferRecord] {
        try TransferRecord.fetchRare(
            database.cachedStatement(
                sql: "SELECT * FROM transfer WHERE state = 'running' AND (session = ?1 OR ?1 IS NULL) ORDER BY id"),
            arguments: [session])
    }

    /// Returns the running and waiting transfers of a session. The app may have to be notified of the progress of these
    /// transfers.
    package func movingTransfers(session: String) throws -> [TransferRecord] {
        try TransferRecord.fetchRare(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE session = ?1 AND state = 'running'
                    UNION ALL SELECT * FROM (SELECT * FROM transfer WHERE session = ?1 AND state = 'waiting' LIMIT 64)
                    """), arguments: [session])
    }

    // MARK: Resume data

    /// Returns the ended transfer whose partial file is kept for this token.
    package func transfer(keepingPart token: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM transfer WHERE resumeToken = ? AND keptUntil IS NOT NULL"),
            arguments: [token])
    }
}
