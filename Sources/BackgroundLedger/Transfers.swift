import BackgroundScheduling
import Foundation
import GRDB
import TransferMachines

/// Where an upload goes and how; the agent's upload machine is built from it.
public struct UploadOrder: Codable, Sendable, Equatable {
    public enum Method: String, Codable, Sendable {
        /// The request as it stands, with the file as its body.
        case plain
        /// PUT to a temporary name, then MOVE.
        case webdav
        /// One PUT to a free name.
        case put
    }

    public var method: Method
    /// Name wanted on the server (webdav).
    public var fileName: String
    public var byteCount: Int64
    /// Makes the temporary name unique.
    public var token: String
    /// The furthest it came, as ``UploadMachine`` counts it: looking again after a failed step is no progress.
    public var furthest: Int?

    public init(method: Method, fileName: String, byteCount: Int64, token: String) {
        self.method = method
        self.fileName = fileName
        self.byteCount = byteCount
        self.token = token
    }
}

/// One transfer of a background session, from its first byte the agent's.
public struct TransferRecord: Codable, Sendable, Equatable, Identifiable {
    public enum Kind: String, Codable, Sendable {
        case download
        case upload
    }

    public enum State: String, Codable, Sendable {
        /// Wants to run.
        case queued
        /// Bytes are moving (or were, when the agent died).
        case running
        /// Will be tried again at `nextAttemptAt`, or when the network changes.
        case waiting
        case paused
        case completed
        case failed
        case cancelled

        public var isTerminal: Bool {
            switch self {
            case .queued, .running, .waiting, .paused: false
            case .completed, .failed, .cancelled: true
            }
        }
    }

    public var id: Int64?
    public var session: String
    /// What makes two requests the same: session, method, URL, headers and body, hashed.
    public var key: String
    public var kind: Kind
    public var method: String
    public var url: String
    public var headers: [HeaderField]
    public var state: State
    public var taskIdentifier: Int
    public var taskDescription: String?
    public var upload: UploadOrder?
    /// The agent's own copy of an upload's bytes, inside the spool.
    public var bodyFile: String?
    /// The part file, later the finished file, inside the spool.
    public var file: String?
    public var partial: PartialFile?
    /// The upload machine's own memory, JSON.
    public var uploadState: String?
    public var head: ResponseHead?
    /// How it got on, in words: resumed or started over, and why.
    public var note: String?
    public var sha256: String?
    public var sourceSHA256: String?
    /// The name a person knows the file by.
    public var sourceName: String?
    public var errorCode: Int?
    public var errorMessage: String?
    public var bytesDone: Int64
    public var bytesTotal: Int64?
    public var bytesOnWire: Int64
    public var attempts: Int
    /// Attempts in a row without a new durable byte.
    public var fruitlessAttempts: Int
    /// Tells a late answer of an old attempt.
    public var attemptNumber: Int
    public var maximumBodyBytes: Int64?
    /// Delivered by an event when it ends. Otherwise only its waiters want it.
    public var isAdopted: Bool
    /// Without waiter or adopter it is collected after this.
    public var adoptableUntil: Date?
    public var createdAt: Date
    public var lastProgressAt: Date
    public var nextAttemptAt: Date?
    public var finishedAt: Date?
    /// Seconds.
    public var idleTimeout: Double
    /// Seconds without a new byte after which it is given up.
    public var resourceTimeout: Double
    /// Whom the connections of this transfer count against: scheme, host and port.
    public var host: String
    /// Attempts at once that this transfer allows its host.
    public var hostLimit: Int
    /// 0…1, the greater first.
    public var priority: Double
    public var needs: TransferNeeds
    /// Held by the app, not by the person. On a cancelled one: the agent has still to let go of its part.
    public var isSuspended: Bool
    /// Its end is worth a launch; otherwise it waits until somebody comes for it.
    public var launchesApp: Bool
    /// Whole and verified; only the rename to its destination is left.
    public var isFinishing: Bool
    /// "data": the app knows it as a data task.
    public var taskKind: String?
    /// Absolute path that a download gets when it is whole; `nil`: it waits in the spool.
    public var destination: String?
    /// Hex digest that the whole file must have.
    public var expectedSHA256: String?
    /// Bytes per second.
    public var rateLimit: Int64?
    public var expectedToSend: Int64?
    public var expectedToReceive: Int64?
    /// Where the last 206 went on.
    public var resumedAt: Int64?
    public var earliestBegin: Date?
    /// Names the part that resume data speaks of.
    public var resumeToken: String?
    /// Until when the part of a transfer that ended is kept for resume data.
    public var keptUntil: Date?

    public init(session: String, key: String, kind: Kind, method: String, url: String, headers: [HeaderField], now: Date) {
        id = nil
        self.session = session
        self.key = key
        self.kind = kind
        self.method = method
        self.url = url
        self.headers = headers
        state = .queued
        taskIdentifier = 0
        bytesDone = 0
        bytesOnWire = 0
        attempts = 0
        fruitlessAttempts = 0
        attemptNumber = 0
        isAdopted = false
        createdAt = now
        lastProgressAt = now
        idleTimeout = 60
        resourceTimeout = 7 * 86_400
        host = Self.host(of: url)
        hostLimit = 6
        priority = 0.5
        needs = []
        isSuspended = false
        launchesApp = true
        isFinishing = false
    }

    /// Scheme, host and port, in lower case; without names and passwords.
    static func host(of url: String) -> String {
        guard let separator = url.firstRange(of: "://") else { return "" }
        let rest = url[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let name = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
        return (url[..<separator.upperBound] + name).lowercased()
    }

    /// Not before this moment; its time without progress begins then.
    public mutating func begin(at date: Date?, now: Date) {
        earliestBegin = date
        guard !state.isTerminal, state != .running, state != .paused else { return }
        if let date, date > now {
            state = .waiting
            nextAttemptAt = date
            lastProgressAt = date
        } else if state == .waiting, errorCode == nil {
            requeue(now: now)
        }
    }

    /// Paused or waiting until now: to be tried at once, and its time without progress begins anew.
    public mutating func requeue(now: Date) {
        state = .queued
        nextAttemptAt = nil
        lastProgressAt = now
        // A part that was kept for others is its own again.
        (keptUntil, resumeToken) = (nil, nil)
    }
}

extension TransferRecord: LedgerRecord {
    public static let databaseTableName = "transfer"

    public mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension TransferRecord {
    /// Replaces a header of the request, whatever its case; `nil` leaves it out.
    public mutating func setHeader(_ name: String, _ value: String?) {
        headers.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { headers.append(HeaderField(name, value)) }
    }
}

extension LedgerTransaction {
    /// Ended transfers kept for `transfers`; older ones are dropped with their files.
    static let endedTransferLimit = 2_000

    public func insert(_ transfer: TransferRecord) throws -> TransferRecord {
        var transfer = transfer
        if transfer.taskIdentifier == 0 { transfer.taskIdentifier = try reserveTaskIdentifiers(1) }
        try transfer.insert(database)
        return transfer
    }

    /// The first of `count` task identifiers that nobody has and nobody else will get.
    public func reserveTaskIdentifiers(_ count: Int) throws -> Int {
        let last = try fact(.lastTaskIdentifier) ?? 0
        try setFact(.lastTaskIdentifier, last + count)
        return last + 1
    }

    public func update(_ transfer: TransferRecord) throws { try transfer.update(database) }

    public func transfer(_ id: Int64) throws -> TransferRecord? { try TransferRecord.fetchOne(database, key: id) }

    /// Oldest first.
    public func transfers() throws -> [TransferRecord] {
        try TransferRecord.fetchAll(database, sql: "SELECT * FROM transfer ORDER BY id")
    }

    public func unfinishedTransfers(session: String? = nil) throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database,
            sql: """
                SELECT * FROM transfer WHERE state IN ('queued', 'running', 'waiting', 'paused')
                AND (session = ?1 OR ?1 IS NULL) ORDER BY id
                """, arguments: [session])
    }

    /// The transfer that a request with this key would join: unfinished, or ended and still wanted by somebody.
    public func adoptableTransfer(session: String, key: String, now: Date) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database,
            sql: """
                SELECT * FROM transfer WHERE session = ? AND key = ?
                AND (state IN ('queued', 'running', 'waiting', 'paused')
                     OR (state = 'completed' AND isAdopted = 0 AND adoptableUntil > ?))
                ORDER BY id DESC LIMIT 1
                """, arguments: [session, key, now.timeIntervalSince1970])
    }

    /// The same for a task: only what nobody adopted yet, or what this task's own process handed over.
    public func revivableTransfer(session: String, key: String, handedOver: Set<Int64>, now: Date) throws -> TransferRecord? {
        guard let transfer = try adoptableTransfer(session: session, key: key, now: now), let id = transfer.id,
            !transfer.isAdopted || handedOver.contains(id)
        else { return nil }
        return transfer
    }

    /// The upload that was submitted under this key and runs or succeeded.
    public func repeatableUpload(session: String, key: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database,
            sql: """
                SELECT * FROM transfer WHERE session = ? AND key = ? AND kind = 'upload' AND state NOT IN ('failed', 'cancelled')
                ORDER BY id DESC LIMIT 1
                """, arguments: [session, key])
    }

    // MARK: The agent's questions

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
                    database,
                    sql: """
                        SELECT host FROM transfer WHERE state = 'queued' AND isSuspended = 0 AND host > ? ORDER BY host LIMIT 1
                        """, arguments: [last])
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
            database,
            sql: """
                SELECT nextAttemptAt FROM transfer WHERE state = 'waiting' AND isSuspended = 0 AND nextAttemptAt > ?
                ORDER BY nextAttemptAt LIMIT 1
                """, arguments: [seconds])
        return next.map { Date(timeIntervalSince1970: $0) }
    }

    /// Transfers without progress for too long, and when the next one's time is up.
    public func transfersToGiveUp(now: Date, limit: Int = 64) throws -> (due: [TransferRecord], next: Date?) {
        let condition = "state IN ('queued', 'running', 'waiting') AND isSuspended = 0"
        let due = try TransferRecord.fetchAll(
            database, sql: "SELECT * FROM transfer WHERE \(condition) AND giveUpAt <= ? ORDER BY giveUpAt LIMIT ?",
            arguments: [now.timeIntervalSince1970, limit])
        let next = try Double.fetchOne(
            database, sql: "SELECT giveUpAt FROM transfer WHERE \(condition) AND giveUpAt > ? ORDER BY giveUpAt LIMIT 1",
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
            database,
            sql: """
                SELECT EXISTS (SELECT 1 FROM transfer WHERE state IN ('queued', 'running', 'waiting') AND isSuspended = 0)
                """) ?? false
    }

    /// Attempts that an agent which died had under way.
    public func runningTransfers(session: String? = nil) throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database, sql: "SELECT * FROM transfer WHERE state = 'running' AND (session = ?1 OR ?1 IS NULL) ORDER BY id",
            arguments: [session])
    }

    /// Those of a session that an app may want to hear of: bytes move, or nobody can be reached.
    public func movingTransfers(session: String) throws -> [TransferRecord] {
        try TransferRecord.fetchAll(
            database,
            sql: """
                SELECT * FROM transfer WHERE session = ?1 AND state = 'running'
                UNION ALL SELECT * FROM (SELECT * FROM transfer WHERE session = ?1 AND state = 'waiting' LIMIT 64)
                """, arguments: [session])
    }

    // MARK: Resume data

    /// The ended transfer that keeps a part under this name.
    public func transfer(keepingPart token: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database, sql: "SELECT * FROM transfer WHERE resumeToken = ? AND keptUntil IS NOT NULL", arguments: [token])
    }

    // MARK: Tidying

    /// Rows that hold something nobody wants any more: not adopted, not awaited and past the grace time; delivered; cancelled
    /// with their copy of a body; parts that nobody came back for.
    public func collectableTransfers(now: Date, limit: Int = 256) throws -> [TransferRecord] {
        let seconds = now.timeIntervalSince1970
        let queries: [(String, StatementArguments)] = [
            (
                """
                isAdopted = 0 AND adoptableUntil IS NOT NULL AND adoptableUntil <= ? AND id NOT IN (SELECT transfer FROM waiter)
                """, [seconds]
            ),
            ("state = 'cancelled' AND bodyFile IS NOT NULL AND keptUntil IS NULL", []),
            ("keptUntil IS NOT NULL AND keptUntil <= ?", [seconds]),
            (
                """
                id IN (SELECT transfer FROM sessionEvent WHERE deliveredAt IS NOT NULL AND isSettled = 0)
                AND id NOT IN (SELECT transfer FROM waiter)
                """, []
            ),
        ]
        return try queries.flatMap { condition, arguments in
            try TransferRecord.fetchAll(
                database, sql: "SELECT * FROM transfer WHERE \(condition) LIMIT \(limit)", arguments: arguments)
        }
    }

    /// Nothing of this transfer's is left to tidy away.
    public func settle(_ transfer: Int64) throws {
        try database.execute(
            sql: "UPDATE sessionEvent SET isSettled = 1 WHERE transfer = ? AND deliveredAt IS NOT NULL", arguments: [transfer])
    }

    /// When the next transfer becomes collectable by time alone.
    public func nextCollection(after now: Date) throws -> Date? {
        let seconds = try Double.fetchOne(
            database,
            sql: """
                SELECT MIN(adoptableUntil) FROM transfer WHERE isAdopted = 0 AND adoptableUntil IS NOT NULL
                AND adoptableUntil > ? AND id NOT IN (SELECT transfer FROM waiter)
                """, arguments: [now.timeIntervalSince1970])
        return seconds.map { Date(timeIntervalSince1970: $0) }
    }

    /// Names in the spool that some row knows, finished or in part.
    public func spoolFiles() throws -> Set<String> {
        let names = try String.fetchAll(
            database,
            sql: """
                SELECT file FROM transfer WHERE file IS NOT NULL AND destination IS NULL
                UNION SELECT bodyFile FROM transfer WHERE bodyFile IS NOT NULL
                """)
        return Set(names + names.map { $0 + TransferRecord.partSuffix })
    }

    /// Drops the oldest ended transfers beyond the limit; returns them, for their files to be removed after the commit.
    public func pruneTransfers() throws -> [TransferRecord] {
        let old = try TransferRecord.fetchAll(
            database,
            sql: """
                SELECT * FROM transfer WHERE finishedAt IS NOT NULL
                AND id NOT IN (SELECT transfer FROM sessionEvent WHERE deliveredAt IS NULL)
                AND id NOT IN (SELECT transfer FROM waiter)
                ORDER BY finishedAt DESC, id DESC LIMIT -1 OFFSET ?
                """, arguments: [Self.endedTransferLimit])
        for transfer in old { try transfer.delete(database) }
        return old
    }
}

extension TransferRecord {
    /// What a file is called until it is whole.
    public static let partSuffix = ".part"

    /// Where its bytes collect. `nil` before its first attempt.
    public func partFile(in spool: URL) -> URL? {
        guard let file, Self.isPlainName(file) else { return nil }
        guard let destination else { return spool.appendingPathComponent(file + Self.partSuffix) }
        return URL(fileURLWithPath: destination).deletingLastPathComponent().appendingPathComponent(file)
    }

    /// Where the whole file stands in the end.
    public func wholeFile(in spool: URL) -> URL? {
        if let destination { return URL(fileURLWithPath: destination) }
        guard let file, Self.isPlainName(file) else { return nil }
        return spool.appendingPathComponent(file)
    }

    /// Names are our own; a damaged row must not reach outside its folder.
    public static func isPlainName(_ name: String) -> Bool { !name.isEmpty && !name.contains("/") && name != "." && name != ".." }

    /// A name for the part, once: beside a destination a hidden one that says what it belongs to.
    public mutating func nameFile() {
        guard file == nil, let id else { return }
        guard let destination else {
            file = "transfer-\(id)"
            return
        }
        // Random: a name of another store's transfer, or of somebody else, is not taken.
        let mark = String(UInt32.random(in: .min ... .max), radix: 36)
        let name = URL(fileURLWithPath: destination).lastPathComponent
        let full = ".\(name).\(mark)\(Self.partSuffix)"
        file = full.utf8.count <= 255 ? full : ".download.\(mark)\(Self.partSuffix)"
    }
}
