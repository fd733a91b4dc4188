import BackgroundScheduling
import Foundation
import GRDB
import TransferMachines

/// A transfer of a background session. The agent sends or receives all bytes of the transfer.
///
/// Only ``handle(_:)`` changes its ``life``. Other modules can read the columns of ``life``, and can write the other columns.
package struct TransferRecord: Codable, Sendable, Equatable, Identifiable {
    package enum Kind: String, Codable, Sendable {
        case download
        case upload
    }

    package enum State: String, Codable, Sendable {
        /// The transfer begins when a connection is free.
        case queued
        /// The transfer is running, or was running when the agent was killed.
        case running
        /// The transfer waits until `nextAttemptAt`, or until the network changes.
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
    /// A hash of session, method, URL, headers and body. Requests with equal keys are equal.
    package var key: String
    package var kind: Kind
    package var method: String
    package var url: String
    package var headers: [HeaderField]
    package internal(set) var state: State
    package var taskIdentifier: Int
    package var taskDescription: String?
    package var upload: UploadOrder?
    /// The name of the file in the spool that contains the agent's copy of an upload's bytes.
    package var bodyFile: String?
    /// The name of the file in the spool that contains the partial download, and later the complete download. If the download has
    /// a destination, the partial file with this name is in the destination's folder.
    package var file: String?
    package var partial: PartialFile?
    /// The state of the upload machine, as JSON.
    package var uploadState: String?
    package var head: ResponseHead?
    /// A remark about the progress of the transfer, for example the reason why the transfer was started again.
    package var note: String?
    package var sha256: String?
    package var sourceSHA256: String?
    /// The path of the user's original file.
    package var sourceName: String?
    package internal(set) var errorCode: Int?
    package internal(set) var errorMessage: String?
    package var bytesDone: Int64
    package var bytesTotal: Int64?
    package var bytesOnWire: Int64
    package var attempts: Int
    /// The number of consecutive attempts without a new byte on the disk.
    package var fruitlessAttempts: Int
    /// The number of the current attempt. A late result of an earlier attempt has another number.
    package var attemptNumber: Int
    package var maximumBodyBytes: Int64?
    /// `true` if a task of the app has adopted the transfer. An event then reports the end of the transfer to the app. Otherwise
    /// only the processes that await the transfer receive its result.
    package internal(set) var isAdopted: Bool
    /// The time after which the transfer is removed if no process awaits it and no task has adopted it.
    package internal(set) var adoptableUntil: Date?
    package var createdAt: Date
    package internal(set) var lastProgressAt: Date
    package internal(set) var nextAttemptAt: Date?
    package internal(set) var finishedAt: Date?
    /// The maximum number of seconds without data in one attempt.
    package var idleTimeout: Double
    /// The number of seconds without a new byte after which the transfer fails.
    package var resourceTimeout: Double
    /// The time of the first attempt, or `nil` if an earlier version queued the transfer without this time.
    package internal(set) var triedSince: Date?
    /// The maximum number of seconds after `triedSince`, independent of the progress. `nil` if the duration is not limited.
    package var patience: Double?
    /// `true` if an existing file at the destination is replaced. Otherwise the download gets a numbered name.
    package var mayReplace: Bool
    /// The `FileIdentity` of the only file that the download is allowed to replace, or `nil` if any file can be replaced.
    package var replacedFile: String?
    /// The scheme, host and port of the server. The number of connections is limited for each combination of these three.
    package var host: String
    /// The maximum number of simultaneous attempts at the host.
    package var hostLimit: Int
    /// The priority from 0 to 1. Transfers with a greater priority begin first.
    package var priority: Double
    package var needs: TransferNeeds
    /// `true` if the app, and not the user, suspended the transfer. For a cancelled transfer, the value `true` means that the
    /// agent must still report the number of received bytes.
    package internal(set) var isSuspended: Bool
    /// `true` if the agent launches the app when the transfer ends. Otherwise the app receives the result the next time that a
    /// process of the app runs.
    package var launchesApp: Bool
    /// `true` if the file is complete and verified, and only its renaming to the destination is left.
    package internal(set) var isFinishing: Bool
    /// The greatest number of bytes that were on the disk. Only a greater number counts as progress.
    package var furthest: Int64
    /// The text "data" if the app created a data task.
    package var taskKind: String?
    /// The absolute path of the complete download, or `nil` if the file stays in the spool.
    package var destination: String?
    /// The `SeenFolder` of the destination's folder, or `nil` if an earlier version queued the transfer without this value.
    package internal(set) var destinationFolder: String?
    /// The SHA-256 in hexadecimal digits that the complete file must have.
    package var expectedSHA256: String?
    /// The maximum rate in bytes per second.
    package var rateLimit: Int64?
    package var expectedToSend: Int64?
    package var expectedToReceive: Int64?
    /// The offset in the file at which the last response with status 206 began.
    package var resumedAt: Int64?
    package var earliestBegin: Date?
    /// The token that resume data contains instead of the path of the partial file.
    package internal(set) var resumeToken: String?
    /// The time until which the partial file or the copy of an ended transfer is kept.
    package internal(set) var keptUntil: Date?
    /// The receipt of a completed upload.
    package var receipt: UploadReceipt?
    /// The digest of the original file, if the app changed the copy before the upload was queued.
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

    /// The number of seconds without a new byte after which every transfer fails.
    package static let longestIdle: Double = 7 * 86_400

    /// Returns scheme, host and port in lower case, without user names and passwords.
    static func host(of url: String) -> String {
        guard let separator = url.firstRange(of: "://") else { return "" }
        let rest = url[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let name = rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest
        return (url[..<separator.upperBound] + name).lowercased()
    }

    /// Removes the credentials for the server from the row. SQLite overwrites the bytes in the database file (`secure_delete`).
    /// ``Ledger/checkpointLog()`` removes the credentials from the write-ahead log.
    package mutating func forgetSecrets() {
        upload?.s3?.forgetKeys()
        headers.removeAll { !RedirectRule.isHarmless($0.name) }
        url = PublicAddress.of(url)
        if let answered = head?.url { head?.url = PublicAddress.of(answered) }
        // The address of an unfinished upload on the server may contain a key.
        uploadState = nil
    }

    /// The progress of an upload, or `nil` if no value is stored or the value cannot be decoded.
    package var uploadMemory: UploadMemory? {
        get { uploadState.flatMap { try? JSONDecoder().decode(UploadMemory.self, from: Data($0.utf8)) } }
        set { uploadState = newValue.flatMap { try? JSONEncoder().encode($0) }.map { String(decoding: $0, as: UTF8.self) } }
    }
}

extension TransferRecord: RowCodable {
    package static let databaseTableName = "transfer"
}

extension TransferRecord {
    /// Replaces a header of the request, or removes the header if the value is `nil`. The case of letters in the name is ignored.
    package mutating func setHeader(_ name: String, _ value: String?) {
        headers.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { headers.append(HeaderField(name, value)) }
    }
}

extension LedgerTransaction {
    /// The number of ended transfers that are always kept, so that the command `transfers` can show them. All other ended
    /// transfers are deleted with their files after ``endedTransferAge`` seconds.
    static let endedTransferLimit = 2_000
    static let endedTransferAge: Double = 30 * 86_400
    /// The maximum number of ended transfers at any age, because the ledger must not grow without limit.
    static let mostEndedTransfers = 50_000

    package func insert(_ transfer: TransferRecord) throws -> TransferRecord {
        var transfer = transfer
        if transfer.taskIdentifier == 0 { transfer.taskIdentifier = try reserveTaskIdentifiers(1) }
        transfer.id = try transfer.insertRow(database)
        return transfer
    }

    /// Reserves `count` unused task identifiers and returns the first of these identifiers.
    package func reserveTaskIdentifiers(_ count: Int) throws -> Int {
        let last = try fact(.lastTaskIdentifier) ?? 0
        try setFact(.lastTaskIdentifier, last + count)
        return last + 1
    }

    func update(_ transfer: TransferRecord) throws { try transfer.updateRow(transfer.id, database) }

    // MARK: Writing

    /// Writes the values that only the agent changes: the progress, the server's response and the next step. ``handle(_:_:now:)``
    /// writes the columns of ``TransferRecord/life``.
    package func record(_ transfer: TransferRecord) throws { try update(transfer) }

    /// Writes an awaited transfer that a task of the app adopts, with the values that the app set. If the transfer has already
    /// ended, adds the event that reports this to the app.
    package func adopt(_ transfer: TransferRecord, now: Date) throws {
        try update(transfer)
        if transfer.state.isTerminal { try addEvent(for: transfer, now: now) }
    }

    /// Writes the values that the app can change while the task has not ended.
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

    /// Writes new credentials that the user supplied for the server of an upload.
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

    /// Records that a check found the uploaded file on the server.
    ///
    /// - Parameter proof: the new proof that the uploaded file is on the server, or `nil` if the proof has not changed.
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

    /// Returns the given transfers that the agent is running and that were stopped by another process. The query reads no
    /// complete rows, because it runs in every pass.
    package func stoppedTransfers(among running: some Sequence<Int64>) throws -> Set<Int64> {
        let statement = try database.cachedStatement(
            sql: "SELECT EXISTS (SELECT 1 FROM transfer WHERE id = ? AND state = 'running' AND isSuspended = 0)")
        return Set(try running.filter { try Bool.fetchOne(statement, arguments: [$0]) != true })
    }

    /// Returns all transfers, oldest first.
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

    /// Returns the transfer that a new await shares if the key of its request is `key`. The returned transfer is unfinished, or
    /// has ended and can still be adopted by a task.
    ///
    /// If half of the maximum duration of a transfer is over, a new await does not share the transfer. The transfer may soon
    /// fail, or its response may be old. This limit does not apply to POST and PATCH requests, because these requests must not be
    /// sent twice.
    ///
    /// - Parameter isInUse: A closure that returns whether a caller in a running process uses a transfer. A POST or PATCH request
    ///   that is in use is not shared, because each caller wants a separate request to be sent.
    package func joinableTransfer(
        session: String, key: String, now: Date, isInUse: (Int64) throws -> Bool
    ) throws -> TransferRecord? {
        let candidates = try TransferRecord.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE session = ?1 AND key = ?2
                    AND ((state IN ('queued', 'running', 'waiting', 'paused')
                          AND (lateAt IS NULL OR lateAt - ?3 > patience / 2 OR method IN ('POST', 'PATCH')))
                         OR (state = 'completed' AND isAdopted = 0 AND adoptableUntil > ?3))
                    ORDER BY id DESC
                    """), arguments: [session, key, now.timeIntervalSince1970])
        return try candidates.first { transfer in
            guard ["POST", "PATCH"].contains(transfer.method), let id = transfer.id else { return true }
            return try !isInUse(id)
        }
    }

    /// Returns the transfer that a new task adopts if the key of its request is `key`. Either no task has adopted the transfer
    /// yet, or the process of the task has cancelled an await of the transfer.
    package func adoptableTransfer(
        session: String, key: String, cancelledAwaits: Set<Int64>, now: Date, isInUse: (Int64) throws -> Bool
    ) throws -> TransferRecord? {
        guard let transfer = try joinableTransfer(session: session, key: key, now: now, isInUse: isInUse),
            let id = transfer.id, !transfer.isAdopted || cancelledAwaits.contains(id)
        else { return nil }
        return transfer
    }

    /// Returns the newest upload whose request has this key. The upload is unfinished or has succeeded.
    package func repeatableUpload(session: String, key: String) throws -> TransferRecord? {
        try TransferRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM transfer WHERE session = ? AND key = ? AND kind = 'upload' AND state NOT IN ('failed', 'cancelled')
                    ORDER BY id DESC LIMIT 1
                    """), arguments: [session, key])
    }
}
