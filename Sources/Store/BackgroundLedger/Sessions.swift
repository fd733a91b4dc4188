import BackgroundScheduling
import ProcessSupport
import Foundation
import GRDB

/// A waiter: the record of a process that awaits a transfer in an async call.
package struct WaiterRecord: Codable, Sendable, Equatable {
    package var id: Int64?
    package var transfer: Int64
    package var pid: Int32
    package var processStart: Int64

    package var process: ProcessIdentity { ProcessIdentity(pid: pid, start: processStart) }
}

extension WaiterRecord: LedgerRecord {
    package static let databaseTableName = "waiter"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

/// The event that reports the end of a transfer to the app. `deliveredAt` is `nil` until the app has received the event.
package struct SessionEventRecord: Codable, Sendable, Equatable {
    package var id: Int64?
    package var session: String
    package var transfer: Int64
    package var createdAt: Date
    package var deliveredAt: Date?
    /// The number of the process that delivers the event to a delegate.
    package var claimPID: Int32?
    package var claimStart: Int64?
    package var launchesApp = true
    /// `true` if the file of the transfer was removed.
    package var isSettled = false

    var claim: ProcessIdentity? { claimPID.flatMap { pid in claimStart.map { ProcessIdentity(pid: pid, start: $0) } } }
}

extension SessionEventRecord: LedgerRecord {
    package static let databaseTableName = "sessionEvent"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension LedgerTransaction {
    // MARK: Waiters

    package func addWaiter(to transfer: Int64, process: ProcessIdentity) throws -> Int64 {
        var record = WaiterRecord(id: nil, transfer: transfer, pid: process.pid, processStart: process.start)
        try record.insert(database)
        return record.id!
    }

    package func waiters() throws -> [WaiterRecord] {
        try memo.rows("waiters", database) {
            try WaiterRecord.fetchRare(database.cachedStatement(sql: "SELECT * FROM waiter"))
        }
    }

    /// Removes a waiter. If the transfer has no other waiter, a task can adopt the transfer for `grace` seconds.
    package func removeWaiter(_ id: Int64, grace: Double, now: Date) throws {
        guard let waiter = try WaiterRecord.fetchOne(database, key: id) else { return }
        try waiter.delete(database)
        let others = try WaiterRecord.filter(Column("transfer") == waiter.transfer).fetchCount(database)
        guard others == 0 else { return }
        try handle(.left(until: now.addingTimeInterval(grace)), transfer: waiter.transfer, now: now)
    }

    package func waiters(of transfer: Int64) throws -> [WaiterRecord] {
        try WaiterRecord.fetchAll(
            database.cachedStatement(sql: "SELECT * FROM waiter WHERE transfer = ?"), arguments: [transfer])
    }

    // MARK: Events

    /// Returns the events that the app has not received yet, oldest first.
    package func undeliveredEvents(session: String? = nil) throws -> [SessionEventRecord] {
        try SessionEventRecord.fetchRare(
            database.cachedStatement(
                sql: "SELECT * FROM sessionEvent WHERE deliveredAt IS NULL AND (session = ?1 OR ?1 IS NULL) ORDER BY id"),
            arguments: [session])
    }

    /// Returns the ended transfers of the session whose events the app has not received yet, oldest first. The result contains
    /// the number of each transfer's event.
    package func untakenEnds(session: String) throws -> [(event: Int64, transfer: TransferRecord)] {
        try undeliveredEvents(session: session).compactMap { event in
            guard let number = event.id, let ended = try transfer(event.transfer), ended.state.isTerminal else { return nil }
            return (number, ended)
        }
    }

    /// Returns `true` if an attempt at one of these transfers is running or can start now. Also returns `true` if the app has not
    /// received the event of one of these transfers.
    package func isUnderWay(_ transfers: Set<Int64>) throws -> Bool {
        let met = try fact(.conditions).map { TransferNeeds(metBy: $0.conditions) } ?? []
        return try transfers.contains { id in
            guard let found = try transfer(id) else { return false }
            switch found.state {
            case .running: return true
            case .queued: return !found.isSuspended && met.isSuperset(of: found.needs)
            case .waiting, .paused: return false
            case .completed, .failed, .cancelled:
                return try Bool.fetchOne(
                    database.cachedStatement(
                        sql: "SELECT EXISTS (SELECT 1 FROM sessionEvent WHERE transfer = ? AND deliveredAt IS NULL)"),
                    arguments: [id]) ?? false
            }
        }
    }

    /// Returns the sessions whose events need a launch, and the time of the oldest event of each session. An event needs no
    /// launch if a running process receives it.
    package func waitingSessions() throws -> [(session: String, oldest: Date)] {
        // The query steps from session to session in the index, so its cost does not depend on the number of events.
        let condition = """
            deliveredAt IS NULL AND launchesApp = 1
            AND NOT EXISTS (SELECT 1 FROM attachment WHERE attachment.transfer = sessionEvent.transfer)
            """
        return try Row.fetchRare(
            database.cachedStatement(
                sql: """
                    WITH RECURSIVE waiting (name) AS (
                        SELECT MIN(session) FROM sessionEvent WHERE \(condition)
                        UNION ALL
                        SELECT (SELECT MIN(session) FROM sessionEvent WHERE \(condition) AND session > name)
                        FROM waiting WHERE name IS NOT NULL)
                    SELECT name, (SELECT createdAt FROM sessionEvent WHERE \(condition) AND session = name ORDER BY id LIMIT 1)
                    FROM waiting WHERE name IS NOT NULL
                    """)
        ).map { ($0[0], Date(timeIntervalSince1970: $0[1])) }
    }

    /// Returns whether an event that needs a launch was not delivered yet. Events that a process has claimed are included.
    func hasEventsForTheApp() throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM sessionEvent WHERE deliveredAt IS NULL AND launchesApp = 1)")) ?? false
    }

    /// Returns whether the session has an event that this process can claim.
    package func hasEventsToReport(session: String, process: ProcessIdentity) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM \(Self.untold))"),
            arguments: [session, process.pid, process.start]) ?? false
    }

    /// A condition for the events of a session that this process has not claimed and that no other process awaits.
    private static let untold = """
        sessionEvent WHERE deliveredAt IS NULL AND session = ?1
        AND NOT (claimPID IS ?2 AND claimStart IS ?3)
        AND NOT EXISTS (SELECT 1 FROM attachment WHERE attachment.transfer = sessionEvent.transfer
            AND NOT (attachment.pid = ?2 AND attachment.processStart = ?3))
        """

    /// Returns events that this process can claim. Events that no process has claimed are first, and then events that other
    /// processes have claimed, beginning with the process that started first.
    private func untold(session: String, process: ProcessIdentity, skipping: Int, limit: Int) throws -> [SessionEventRecord] {
        try SessionEventRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM \(Self.untold) ORDER BY claimStart, id LIMIT ?4 OFFSET ?5"),
            arguments: [session, process.pid, process.start, limit, skipping])
    }

    /// Claims events for this process, which then has to deliver these events. Events that another running process has claimed or
    /// awaits are skipped.
    ///
    /// The oldest events are claimed first. If a process was killed during the delivery of an event, this event is claimed last
    /// and alone. For this reason, an event that crashes every process does not prevent the delivery of other events.
    ///
    /// - Parameter isOurs: a closure that returns whether the caller can deliver the event of a transfer.
    package func claimEvents(
        session: String, process: ProcessIdentity, limit: Int = 100, isOurs: (Int64) -> Bool = { _ in true },
        isAlive: (ProcessIdentity) -> Bool = \.isAlive
    ) throws -> [SessionEventRecord] {
        var claimed: [SessionEventRecord] = []
        var others = 0
        while claimed.count < limit {
            let candidates = try untold(session: session, process: process, skipping: others, limit: limit)
            if candidates.isEmpty { break }
            for var event in candidates where claimed.count < limit {
                let isAbandoned = event.claim != nil
                guard isOurs(event.transfer), event.claim.map({ !isAlive($0) }) ?? true else {
                    others += 1
                    continue
                }
                if isAbandoned, !claimed.isEmpty { return claimed }
                (event.claimPID, event.claimStart) = (process.pid, process.start)
                try database.cachedStatement(sql: "UPDATE sessionEvent SET claimPID = ?, claimStart = ? WHERE id = ?")
                    .execute(arguments: [process.pid, process.start, event.id])
                claimed.append(event)
                if isAbandoned { return claimed }
            }
        }
        return claimed
    }

    /// Claims all events, like repeated calls of ``claimEvents(session:process:limit:isOurs:isAlive:)``. Use this method only in
    /// a process that an event cannot crash.
    package func claimAllEvents(
        session: String, process: ProcessIdentity, isAlive: (ProcessIdentity) -> Bool
    ) throws -> [SessionEventRecord] {
        var all: [SessionEventRecord] = []
        while case let next = try claimEvents(session: session, process: process, isAlive: isAlive), !next.isEmpty { all += next }
        return all
    }

    /// Removes the claim of a process to an event, because the process does not deliver the event.
    package func releaseClaim(of event: Int64) throws {
        try database.cachedStatement(
            sql: "UPDATE sessionEvent SET claimPID = NULL, claimStart = NULL WHERE id = ? AND deliveredAt IS NULL"
        )
        .execute(arguments: [event])
    }

    /// A condition for events that the process of a launch claimed. Earlier versions recorded only the process number of the
    /// launch.
    private static let isClaimedByLaunch = "session = ?1 AND claimPID = ?2 AND claimStart = coalesce(?3, claimStart)"

    /// Returns whether the process of a launch has claimed an event and has not acknowledged the event.
    package func hasClaimedEvents(in launch: LaunchRecord) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM sessionEvent WHERE deliveredAt IS NULL AND \(Self.isClaimedByLaunch))"),
            arguments: [launch.identifier, launch.pid, launch.hostStart]) ?? false
    }

    /// Returns whether the process of a launch has delivered an event that was created at or before the date. Only the latest
    /// events are searched, because the launch has just ended.
    package func hasReported(in launch: LaunchRecord, until date: Date) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM (SELECT * FROM sessionEvent ORDER BY id DESC LIMIT 2000)
                        WHERE deliveredAt IS NOT NULL AND \(Self.isClaimedByLaunch) AND createdAt <= ?4)
                    """), arguments: [launch.identifier, launch.pid, launch.hostStart, date.timeIntervalSince1970]) ?? false
    }

    /// Returns the transfers whose events were delivered after the date.
    package func deliveredTransfers(session: String, since: Date) throws -> [TransferRecord] {
        try TransferRecord.fetchRare(
            database.cachedStatement(
                sql: """
                    SELECT transfer.* FROM transfer JOIN sessionEvent ON sessionEvent.transfer = transfer.id
                    WHERE sessionEvent.session = ? AND deliveredAt >= ? ORDER BY sessionEvent.id
                    """), arguments: [session, since.timeIntervalSince1970])
    }

    /// Adds the event of an ended transfer. If the event already exists, the method changes nothing.
    package func addEvent(for transfer: TransferRecord, now: Date) throws {
        let isKnown = try Bool.fetchOne(
            database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM sessionEvent WHERE transfer = ?)"),
            arguments: [transfer.id!])
        guard isKnown != true else { return }
        var record = SessionEventRecord(
            id: nil, session: transfer.session, transfer: transfer.id!, createdAt: now, deliveredAt: nil, claimPID: nil,
            claimStart: nil, launchesApp: transfer.launchesApp)
        try record.insert(database)
    }

    package func eventWasDelivered(_ id: Int64, now: Date) throws {
        try database.cachedStatement(sql: "UPDATE sessionEvent SET deliveredAt = ? WHERE id = ?")
            .execute(arguments: [now.timeIntervalSince1970, id])
        try database.run(
            sql: "DELETE FROM attachment WHERE transfer = (SELECT transfer FROM sessionEvent WHERE id = ?)", arguments: [id])
    }

    /// Deletes the events of a transfer that starts again. When the transfer ends again, a new event is added.
    package func forgetEvents(of transfer: Int64) throws {
        try database.run(sql: "DELETE FROM sessionEvent WHERE transfer = ?", arguments: [transfer])
    }

    // MARK: Attachments

    // An attachment records that a running process with a delegate receives the events of a session or of one transfer. While an
    // attachment exists, these events need no launch.

    /// Records that the process receives the events of a session.
    ///
    /// - Parameter transfer: the transfer, if the process receives only the event of this transfer. `nil` for all transfers of
    ///   the session.
    package func attach(session: String, transfer: Int64? = nil, process: ProcessIdentity) throws {
        try database.cachedStatement(
            sql: """
                INSERT INTO attachment (session, transfer, pid, processStart) SELECT ?1, ?2, ?3, ?4
                WHERE NOT EXISTS (
                    SELECT 1 FROM attachment WHERE session = ?1 AND transfer IS ?2 AND pid = ?3 AND processStart = ?4)
                """
        ).execute(arguments: [session, transfer, process.pid, process.start])
    }

    package func detach(session: String, process: ProcessIdentity) throws {
        try database.run(
            sql: "DELETE FROM attachment WHERE session = ? AND pid = ? AND processStart = ?",
            arguments: [session, process.pid, process.start])
    }

    /// Removes the attachments of a process that has ended.
    package func detach(_ process: ProcessIdentity) throws {
        try database.run(
            sql: "DELETE FROM attachment WHERE pid = ? AND processStart = ?", arguments: [process.pid, process.start])
    }

    /// Returns the sessions whose events a running process receives.
    package func attachedSessions() throws -> Set<String> {
        Set(
            try memo.rows("attachedSessions", database) {
                try String.fetchAll(
                    database.cachedStatement(sql: "SELECT DISTINCT session FROM attachment WHERE transfer IS NULL"))
            })
    }

    /// Returns whether a running process receives the event of this transfer.
    ///
    /// - Parameter process: the process, or `nil` for any process.
    package func isAwaited(_ transfer: Int64, by process: ProcessIdentity? = nil) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM attachment
                        WHERE transfer = ?1 AND (?2 IS NULL OR pid = ?2 AND processStart = ?3))
                    """), arguments: [transfer, process?.pid, process?.start]) ?? false
    }

    /// Returns the processes that are attached to a session or to a transfer.
    package func attachedProcesses() throws -> Set<ProcessIdentity> {
        Set(
            try memo.rows("attachedProcesses", database) {
                try Row.fetchRare(database.cachedStatement(sql: "SELECT DISTINCT pid, processStart FROM attachment"))
                    .map { ProcessIdentity(pid: $0[0], start: $0[1]) }
            })
    }
}
