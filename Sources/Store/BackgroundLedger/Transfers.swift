import BackgroundScheduling
import Foundation
import GRDB
import TransferMachines

/// One transfer of a background session, from its first byte the agent's.
///
/// Its ``life`` changes by ``handle(_:)`` alone: other modules can read the columns in which it stands, and write the others.
package struct TransferRecord: Codable, Sendable, Equatable, Identifiable {
    package enum Kind: String, Codable, Sendable {
        case download
        case upload
    }

    package enum State: String, Codable, Sendable {
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

        package var isTerminal: Bool {
            switch self {
            case .queued, .running, .waiting, .paused: false
            case .completed, .failed, .cancelled: true
            }
        }
    }

    package var id: Int64?
    package var session: String
    /// What makes two requests the same: session, method, URL, headers and body, hashed.
    package var key: String
    package var kind: Kind
    package var method: String
    package var url: String
    package var headers: [HeaderField]
    package internal(set) var state: State
    package var taskIdentifier: Int
    package var taskDescription: String?
    package var upload: UploadOrder?
    /// The agent's own copy of an upload's bytes, inside the spool.
    package var bodyFile: String?
    /// The part file, later the finished file, inside the spool.
    package var file: String?
    package var partial: PartialFile?
    /// The upload machine's own memory, JSON.
    package var uploadState: String?
    package var head: ResponseHead?
    /// How it got on, in words: resumed or started over, and why.
    package var note: String?
    package var sha256: String?
    package var sourceSHA256: String?
    /// The name a person knows the file by.
    package var sourceName: String?
    package internal(set) var errorCode: Int?
    package internal(set) var errorMessage: String?
    package var bytesDone: Int64
    package var bytesTotal: Int64?
    package var bytesOnWire: Int64
    package var attempts: Int
    /// Attempts in a row without a new durable byte.
    package var fruitlessAttempts: Int
    /// Tells a late answer of an old attempt.
    package var attemptNumber: Int
    package var maximumBodyBytes: Int64?
    /// Delivered by an event when it ends. Otherwise only its waiters want it.
    package internal(set) var isAdopted: Bool
    /// Without waiter or adopter it is collected after this.
    package internal(set) var adoptableUntil: Date?
    package var createdAt: Date
    package internal(set) var lastProgressAt: Date
    package internal(set) var nextAttemptAt: Date?
    package internal(set) var finishedAt: Date?
    /// Seconds.
    package var idleTimeout: Double
    /// Seconds without a new byte after which it is given up.
    package var resourceTimeout: Double
    /// Since when it is tried; `nil`: queued by a version that did not count that.
    package internal(set) var triedSince: Date?
    /// Seconds since then after which it is given up, whatever came meanwhile; `nil`: never.
    package var patience: Double?
    /// What stands at its destination in the end is replaced, whoever put it there. Otherwise it gets a numbered name.
    package var mayReplace: Bool
    /// `FileIdentity` of the only file that is replaced; `nil`: any is.
    package var replacedFile: String?
    /// Whom the connections of this transfer count against: scheme, host and port.
    package var host: String
    /// Attempts at once that this transfer allows its host.
    package var hostLimit: Int
    /// 0…1, the greater first.
    package var priority: Double
    package var needs: TransferNeeds
    /// Held by the app, not by the person. On a cancelled one: the agent has still to let go of its part.
    package internal(set) var isSuspended: Bool
    /// Its end is worth a launch; otherwise it waits until somebody comes for it.
    package var launchesApp: Bool
    /// Whole and verified; only the rename to its destination is left.
    package internal(set) var isFinishing: Bool
    /// Bytes that were ever here for good: only more than that is progress.
    package var furthest: Int64
    /// "data": the app knows it as a data task.
    package var taskKind: String?
    /// Absolute path that a download gets when it is whole; `nil`: it waits in the spool.
    package var destination: String?
    /// `SeenFolder` of the destination's folder; `nil`: queued by a version that did not record it.
    package internal(set) var destinationFolder: String?
    /// Hex digest that the whole file must have.
    package var expectedSHA256: String?
    /// Bytes per second.
    package var rateLimit: Int64?
    package var expectedToSend: Int64?
    package var expectedToReceive: Int64?
    /// Where the last 206 went on.
    package var resumedAt: Int64?
    package var earliestBegin: Date?
    /// Names the part that resume data speaks of.
    package internal(set) var resumeToken: String?
    /// Until when the part of a transfer that ended is kept for resume data.
    package internal(set) var keptUntil: Date?
    /// Of an upload that ended well.
    package var receipt: UploadReceipt?
    /// Of the file that a copy was made of, where the copy was changed before it was queued.
    package var originalSHA256: String?

    package init(session: String, key: String, kind: Kind, method: String, url: String, headers: [HeaderField], now: Date) {
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
        resourceTimeout = Self.longestIdle
        triedSince = now
        mayReplace = false
        host = Self.host(of: url)
        hostLimit = 6
        priority = 0.5
        needs = []
        isSuspended = false
        launchesApp = true
        isFinishing = false
        furthest = 0
    }

    /// Seconds without a new byte after which any transfer is given up.
    package static let longestIdle: Double = 7 * 86_400

    /// Scheme, host and port, in lower case; without names and passwords.
    static func host(of url: String) -> String {
        guard let separator = url.firstRange(of: "://") else { return "" }
        let rest = url[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let name = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
        return (url[..<separator.upperBound] + name).lowercased()
    }

    /// What opens the server's door. The bytes are overwritten in the file (`secure_delete`), and leave its log with ``Ledger/putAway()``.
    package mutating func forgetSecrets() {
        upload?.s3?.forgetKeys()
        headers.removeAll { !RedirectRule.isHarmless($0.name) }
        url = PublicAddress.of(url)
        if let answered = head?.url { head?.url = PublicAddress.of(answered) }
        // The address of an unfinished upload on the server may contain a key.
        uploadState = nil
    }

    /// Where an upload stands. What cannot be read is as if nothing were known.
    package var uploadMemory: UploadMemory? {
        get { uploadState.flatMap { try? JSONDecoder().decode(UploadMemory.self, from: Data($0.utf8)) } }
        set { uploadState = newValue.flatMap { try? JSONEncoder().encode($0) }.map { String(decoding: $0, as: UTF8.self) } }
    }
}

extension TransferRecord: RowCodable {
    package static let databaseTableName = "transfer"
}

extension TransferRecord {
    /// Replaces a header of the request, whatever its case; `nil` leaves it out.
    package mutating func setHeader(_ name: String, _ value: String?) {
        headers.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { headers.append(HeaderField(name, value)) }
    }
}

extension LedgerTransaction {
    /// Ended transfers kept for `transfers`, however old; more are dropped with their files once they are
    /// ``endedTransferAge`` seconds old.
    static let endedTransferLimit = 2_000
    static let endedTransferAge: Double = 30 * 86_400
    /// More are dropped at any age: there is an end to a ledger.
    static let mostEndedTransfers = 50_000

    package func insert(_ transfer: TransferRecord) throws -> TransferRecord {
        var transfer = transfer
        if transfer.taskIdentifier == 0 { transfer.taskIdentifier = try reserveTaskIdentifiers(1) }
        transfer.id = try transfer.insertRow(database)
        return transfer
    }

    /// The first of `count` task identifiers that nobody has and nobody else will get.
    package func reserveTaskIdentifiers(_ count: Int) throws -> Int {
        let last = try fact(.lastTaskIdentifier) ?? 0
        try setFact(.lastTaskIdentifier, last + count)
        return last + 1
    }

    func update(_ transfer: TransferRecord) throws { try transfer.updateRow(transfer.id, database) }

    // MARK: What is written besides its life

    /// The agent's: how far it is, what the server said, what is asked next. Its life is written by ``handle(_:_:now:)``.
    package func record(_ transfer: TransferRecord) throws { try update(transfer) }

    /// The app's: a task takes over what was awaited, with what the app set on it. One that has ended meanwhile is delivered as it is.
    package func adopt(_ transfer: TransferRecord, now: Date) throws {
        try update(transfer)
        if transfer.state.isTerminal { try addEvent(for: transfer, now: now) }
    }

    /// The app's: what may be changed of a task while it is not at its end.
    package func change(
        transfer id: Int64, description: String?, priority: Double, expectedToSend: Int64?, expectedToReceive: Int64?,
        earliestBegin: Date?, now: Date
    ) throws {
        guard var transfer = try transfer(id), !transfer.state.isTerminal else { return }
        transfer.taskDescription = description
        transfer.priority = priority
        if transfer.bodyFile == nil { transfer.expectedToSend = expectedToSend }
        transfer.expectedToReceive = expectedToReceive
        if transfer.earliestBegin != earliestBegin {
            transfer.earliestBegin = earliestBegin
            _ = transfer.handle(.scheduled(for: earliestBegin, now: now))
        }
        try update(transfer)
    }

    /// The person's: what opens the door of an upload's server by now.
    package func renewCredential(
        of transfer: inout TransferRecord, header: (name: String, value: String)?, s3: S3Access?, server: UploadServer?
    )
        throws
    {
        if let s3 { transfer.upload?.s3 = s3 }
        if let server { transfer.upload?.server = server }
        if let header { transfer.setHeader(header.name, header.value) }
        try update(transfer)
    }

    /// A server was asked again, and still has what was uploaded.
    ///
    /// - Parameter proof: what is known of its copy by now; `nil`: no more than before.
    package func uploadWasChecked(_ id: Int64, proof: UploadProof?, now: Date) throws {
        guard var transfer = try transfer(id), transfer.receipt != nil else { return }
        if let proof { transfer.receipt?.proof = proof }
        transfer.receipt?.checkedAt = now
        try update(transfer)
    }

    package func transfer(_ id: Int64) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM transfer WHERE id = ?"), arguments: [id])
    }

    /// Of these that an agent runs: the ones that somebody stopped meanwhile. Asked at every turn, so no row is read whole.
    package func stoppedTransfers(among running: some Sequence<Int64>) throws -> Set<Int64> {
        let statement = try database.cachedStatement(
            sql: "SELECT EXISTS (SELECT 1 FROM transfer WHERE id = ? AND state = 'running' AND isSuspended = 0)")
        return Set(try running.filter { try Bool.fetchOne(statement, arguments: [$0]) != true })
    }

    /// Oldest first.
    package func transfers() throws -> [TransferRecord] {
        try TransferRecord.fetchAll(database.cachedStatement(sql: "SELECT * FROM transfer ORDER BY id"))
    }

    package func unfinishedTransfers(session: String? = nil) throws -> [TransferRecord] {
        try TransferRecord.fetchRare(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE state IN ('queued', 'running', 'waiting', 'paused')
                    AND (session = ?1 OR ?1 IS NULL) ORDER BY id
                    """), arguments: [session])
    }

    package func unfinishedTransfers(among ids: [Int64]) throws -> Set<Int64> {
        let statement = try database.cachedStatement(
            sql: "SELECT id FROM transfer WHERE id = ? AND state IN ('queued', 'running', 'waiting', 'paused')")
        return Set(try ids.compactMap { try Int64.fetchOne(statement, arguments: [$0]) })
    }

    package func newestUnfinishedTransfer(session: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE state IN ('queued', 'running', 'waiting', 'paused') AND session = ?
                    ORDER BY id DESC LIMIT 1
                    """), arguments: [session])
    }

    /// The transfer that an await of a request with this key joins: unfinished, or ended and still wanted by somebody.
    ///
    /// One that has used half of its patience is not joined: whoever asks now would wait for what is as good as given up, or be
    /// answered with what is old by then. But for what must not be sent twice.
    package func joinableTransfer(session: String, key: String, now: Date) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE session = ?1 AND key = ?2
                    AND ((state IN ('queued', 'running', 'waiting', 'paused')
                          AND (lateAt IS NULL OR lateAt - ?3 > patience / 2 OR method IN ('POST', 'PATCH')))
                         OR (state = 'completed' AND isAdopted = 0 AND adoptableUntil > ?3))
                    ORDER BY id DESC LIMIT 1
                    """), arguments: [session, key, now.timeIntervalSince1970])
    }

    /// The same for a task: only what nobody adopted yet, or what this task's own process awaited.
    package func adoptableTransfer(session: String, key: String, cancelledAwaits: Set<Int64>, now: Date) throws -> TransferRecord?
    {
        guard let transfer = try joinableTransfer(session: session, key: key, now: now), let id = transfer.id,
            !transfer.isAdopted || cancelledAwaits.contains(id)
        else { return nil }
        return transfer
    }

    /// The upload that was submitted under this key and runs or succeeded.
    package func repeatableUpload(session: String, key: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE session = ? AND key = ? AND kind = 'upload' AND state NOT IN ('failed', 'cancelled')
                    ORDER BY id DESC LIMIT 1
                    """), arguments: [session, key])
    }
}
