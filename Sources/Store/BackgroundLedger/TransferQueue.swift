import BackgroundScheduling
import Foundation
import GRDB
import ProcessSupport
import TransferMachines

// What the agent asks of the transfers' table: each question an index seek, whatever the number of rows. The index is said
// where order matters: the planner, without statistics, takes the one of states and sorts all that wait.
extension LedgerTransaction {
    /// A queued transfer, as far as the choice of the next one needs it.
    package struct Candidate: Sendable, Equatable {
        package let id: Int64
        package let host: String
        package let hostLimit: Int
        let priority: Double
        let needs: TransferNeeds

        /// A row that somebody else wrote may hold anything: reading it fails, and is no end of the process.
        fileprivate init(_ row: Row) throws {
            id = try row.decode(Int64.self, atIndex: 0)
            host = try row.decode(String.self, atIndex: 1)
            hostLimit = try row.decode(Int.self, atIndex: 2)
            priority = try row.decode(Double.self, atIndex: 3)
            needs = TransferNeeds(rawValue: try row.decode(Int.self, atIndex: 4))
        }
    }

    /// Rows looked at per class before hosts that are busy are stepped over: as many as can begin at once.
    private static let candidateDepth = TransferRoom.limit
    /// Pairs of host and class looked at when the front of the queue is all busy hosts.
    private static let breadth = 64
    /// Such looks, at most.
    private static let pages = 16

    /// The next transfers to begin, best first: by priority, then by age, among those whose needs are met and whose host has
    /// room. Cost: some index seeks, whatever the number of rows.
    ///
    /// - Parameter last: the host that was served last. Where busy hosts stand before more others than are looked at, the
    ///   look goes on behind it, so that everyone's turn comes.
    package func nextTransfers(met: TransferNeeds, room: TransferRoom, behind last: String = "") throws -> [Candidate] {
        guard room.left > 0 else { return [] }
        var mayMiss = false
        var pool: [Candidate] = []
        for needs in try inhabited(met.openClasses) {
            let rows = try candidates(
                "INDEXED BY transferQueue", "needs = ? ORDER BY priority DESC, id LIMIT ?", [needs.rawValue, Self.candidateDepth])
            pool += rows
            // Some of these may find no room at their host; who stands behind them is not seen from here.
            mayMiss = mayMiss || rows.count == Self.candidateDepth && Self.choice(from: rows, room).count < room.left
        }
        guard mayMiss else { return Self.choice(from: pool, room) }
        // One busy host may stand at the front with thousands: the best of each other one, then more of those that win.
        let heads = try openHeads(met: met, room: room, behind: last)
        pool += heads
        for winner in Self.choice(from: pool, room) where heads.contains(winner) {
            pool += try candidates(
                "INDEXED BY transferHost", "host = ? AND needs = ? ORDER BY priority DESC, id LIMIT ?",
                [winner.host, winner.needs.rawValue, Self.candidateDepth])
        }
        return Self.choice(from: pool, room)
    }

    /// Those classes in which some transfer is queued: mostly none.
    private func inhabited(_ classes: [TransferNeeds]) throws -> [TransferNeeds] {
        let queued = "transfer INDEXED BY transferQueue WHERE state = 'queued' AND isSuspended = 0"
        let known = try needs(in: queued)
        return classes.filter { known.contains($0.rawValue) }
    }

    private static func choice(from pool: [Candidate], _ room: TransferRoom) -> [Candidate] {
        var room = room
        var chosen: [Candidate] = []
        // One may have been found twice.
        var seen: Set<Int64> = []
        for candidate in pool.sorted(by: { ($1.priority, $0.id) < ($0.priority, $1.id) })
        where seen.insert(candidate.id).inserted && room.has(candidate.host, limit: candidate.hostLimit) {
            room.take(candidate.host)
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

    /// The best of other hosts whose turn may come: page by page, as those of a page may all wait for something.
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

    /// The best of each host and class, host by host: from one to the next by the index, however many rows each has.
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

    /// Waiting transfers whose moment came join the queue; a handful at a time, as more cannot begin. Returns when the next
    /// one's moment comes.
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

    /// Transfers with which patience has ended, because nothing new of them comes or because they take too long, and when the next
    /// one's time is up. What is whole and proven only waits for its name.
    ///
    /// - Parameter tried: what this agent tried already.
    /// - Returns: `due`: to be given up; `untried`: those that wait, and are to be tried first. Some of many, oldest first.
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
                // Thousands that were never tried must not stand before one that was.
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

    /// Whatever waits because nobody could be reached is due at once.
    package func retryTransfers(waitingWith codes: [Int], now: Date) throws {
        let marks = codes.map(String.init).joined(separator: ", ")
        try database.run(
            sql:
                "UPDATE transfer SET nextAttemptAt = ? WHERE state = 'waiting' AND nextAttemptAt > ? AND errorCode IN (\(marks))",
            arguments: [now.timeIntervalSince1970, now.timeIntervalSince1970])
    }

    /// Something that goes to one of these hosts waits because of a trouble, or is tried again after one.
    package func isAnythingInTrouble(at hosts: [String]) throws -> Bool {
        let marks = hosts.map { _ in "?" }.joined(separator: ", ")
        return try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM transfer WHERE state IN ('waiting', 'running') AND isSuspended = 0
                    AND errorCode IS NOT NULL AND host IN (\(marks)))
                    """), arguments: StatementArguments(hosts)) ?? false
    }

    /// Keeps the length of pauses after trouble although the clock was set back. A beginning that the app chose stays.
    ///
    /// - Parameters:
    ///   - setBack: The seconds that the clock was set back.
    ///   - latest: The latest end of a pause, for pauses of an earlier agent.
    package func shortenTransferDelays(by setBack: Double, to latest: Date) throws {
        try database.run(
            sql: """
                UPDATE transfer SET nextAttemptAt = MIN(nextAttemptAt - ?1, ?2)
                WHERE state = 'waiting' AND errorCode IS NOT NULL AND (?1 > 0 OR nextAttemptAt > ?2)
                """, arguments: [setBack, latest.timeIntervalSince1970])
    }

    /// Bytes are to move, now or later, without anybody's doing.
    package func hasActiveTransfers() throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM transfer WHERE state IN ('queued', 'running', 'waiting') AND isSuspended = 0)
                    OR EXISTS (SELECT 1 FROM transfer WHERE state = 'running')
                    """)) ?? false
    }

    /// What an agent that died had under way, and those of which an app still waited for its last word.
    package func transfersOfADeadAgent() throws -> [TransferRecord] {
        try runningTransfers()
            + TransferRecord.fetchRare(
                database.cachedStatement(
                    sql: "SELECT * FROM transfer WHERE keptUntil IS NOT NULL AND state = 'cancelled' AND isSuspended = 1"))
    }

    /// Uploads into a folder that were begun and are not there for all that is known.
    ///
    /// - Parameter part: of those alone whose names have it, in whatever case of its ASCII letters, and of few others.
    package func uploadsWithOpenAnswer(to url: String, except id: Int64, having part: String = "") throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE url IN (?, ?) AND id <> ? AND kind = 'upload' AND uploadState IS NOT NULL
                    AND state NOT IN ('completed', 'cancelled') AND instr(lower(upload), ?) > 0
                    """), arguments: [Self.folder(url), Self.folder(url) + "/", id, part.lowercased()])
    }

    /// Without the last stroke: with it or without it is one folder.
    private static func folder(_ url: String) -> String { url.hasSuffix("/") ? String(url.dropLast()) : url }

    /// Addresses of the files that other uploads into a folder left there. Their rows hold the folder without secrets.
    ///
    /// - Parameter beginning: of those alone whose names begin with it, in whatever case of its ASCII letters; empty: of all.
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

    /// An unfinished download that will get this name.
    package func unfinishedTransfer(to destination: String) throws -> TransferRecord? {
        let file = URL(fileURLWithPath: destination, isDirectory: false)
        // Several paths can lead to one folder.
        let folder = SeenFolder(file.deletingLastPathComponent().path)?.text
        return try TransferRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE state IN ('queued', 'running', 'waiting', 'paused')
                    AND (destination = ?1 OR destinationFolder = ?2 AND substr(destination, -length(?3)) = ?3) LIMIT 1
                    """), arguments: [destination, folder, "/" + file.lastPathComponent])
    }

    /// Attempts that an agent which died had under way.
    package func runningTransfers(session: String? = nil) throws -> [TransferRecord] {
        try TransferRecord.fetchRare(
            database.cachedStatement(
                sql: "SELECT * FROM transfer WHERE state = 'running' AND (session = ?1 OR ?1 IS NULL) ORDER BY id"),
            arguments: [session])
    }

    /// Those of a session that an app may want to hear of: bytes move, or nobody can be reached.
    package func movingTransfers(session: String) throws -> [TransferRecord] {
        try TransferRecord.fetchRare(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE session = ?1 AND state = 'running'
                    UNION ALL SELECT * FROM (SELECT * FROM transfer WHERE session = ?1 AND state = 'waiting' LIMIT 64)
                    """), arguments: [session])
    }

    // MARK: Resume data

    /// The ended transfer that keeps a part under this name.
    package func transfer(keepingPart token: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM transfer WHERE resumeToken = ? AND keptUntil IS NOT NULL"),
            arguments: [token])
    }
}
