import Foundation
import GRDB
import StormyWeather

/// A storm at a place. Windows that overlap or lie within six hours are the same storm, told once.
package struct StormRecord: Codable, Sendable, Equatable, Identifiable {
    package var id: Int64?
    package var place: Int64
    package var begins: Date
    package var ends: Date
    package var isTold: Bool
    package var isClosed: Bool
    package var reasons: [StormReason]
    /// The warnings that alone told of it were cancelled.
    package var isCancelled = false

    /// A warning that names no end reaches to ``ends``, which is assumed.
    package var hasOpenEnd: Bool { !isClosed && reasons.contains { $0.hasOpenEnd == true && $0.until >= ends } }
}

extension StormRecord: StoreRecord {
    package static let databaseTableName = "storm"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension StormyStore {
    /// Newest last.
    package func storms() throws -> [StormRecord] {
        try queue.read { try StormRecord.order(Column("id")).fetchReadable($0) }
    }

    /// Brings the storms of a place in line with what was just judged. Nothing known is a reason to change nothing.
    static func follow(_ assessment: Assessment, place: Int64, now: Date, _ database: Database) throws {
        // Lately closed ones too: a storm that comes back within the gap is the same one.
        let known = try StormRecord.filter(
            Column("place") == place && Column("ends") > now.timeIntervalSince1970 - 2 * StormWindow.mergeGap
        ).order(Column("id")).fetchReadable(database)
        let decision = StormTracker.decide(
            existing: known.map { storm in
                KnownStorm(
                    id: storm.id!, window: StormWindow(from: storm.begins, until: storm.ends), told: storm.isTold,
                    isClosed: storm.isClosed, messages: Set(storm.reasons.flatMap { $0.messages ?? [] }),
                    isWarnedOfOnly: storm.reasons.allSatisfy(\.hangsOnWarnings))
            }, seen: assessment, now: now)
        for change in decision.changes {
            switch change {
            case .open(let window):
                var storm = StormRecord(
                    id: nil, place: place, begins: window.from, ends: window.until, isTold: false, isClosed: false,
                    reasons: reasons(of: assessment, in: window))
                try storm.insert(database)
            case .extend(let id, let window):
                guard var storm = try StormRecord.fetchOne(database, key: id) else { continue }
                storm.begins = window.from
                storm.ends = window.until
                storm.isClosed = false
                storm.isCancelled = false
                storm.reasons = reasons(of: assessment, in: window)
                try storm.update(database)
            }
        }
        try rewriteReasons(of: known, assessment, database)
        for id in decision.close { try close(id, database) }
        for id in decision.withdraw {
            try database.execute(sql: "UPDATE storm SET isCancelled = 1 WHERE id = ?", arguments: [id])
        }
        // Storms whose time is over, also of places nobody asked about lately.
        for id in try Int64.fetchAll(
            database, sql: "SELECT id FROM storm WHERE isClosed = 0 AND ends <= ?", arguments: [now.timeIntervalSince1970])
        { try close(id, database) }
    }

    /// Gusts grow while the hours stay: what is told of a storm is what is known now.
    private static func rewriteReasons(of known: [StormRecord], _ assessment: Assessment, _ database: Database) throws {
        for id in known.compactMap(\.id) {
            guard var storm = try StormRecord.fetchOne(database, key: id), !storm.isClosed, !storm.isCancelled else { continue }
            let new = reasons(of: assessment, in: StormWindow(from: storm.begins, until: storm.ends))
            guard !new.isEmpty, new != storm.reasons else { continue }
            storm.reasons = new
            try storm.update(database)
        }
    }

    private static func reasons(of assessment: Assessment, in window: StormWindow) -> [StormReason] {
        assessment.reasons.filter { $0.until > window.from && $0.from < window.until }
    }

    /// The storm is over: a photo job that got no photo is closed with it.
    private static func close(_ id: Int64, _ database: Database) throws {
        try database.execute(sql: "UPDATE storm SET isClosed = 1 WHERE id = ?", arguments: [id])
        try database.execute(
            sql:
                "UPDATE photo SET state = 'cancelled', message = 'the storm is over' WHERE storm = ? AND state = 'awaitingPhoto'",
            arguments: [id])
    }

    /// Storms of a place that the person was not told of.
    func untoldStorms(of place: Place, now: Date) throws -> [StormRecord] {
        try queue.read {
            try StormRecord.filter(
                Column("place") == place.id && Column("isTold") == false && Column("isClosed") == false
                    && Column("ends") > now.timeIntervalSince1970
            ).order(Column("id")).fetchReadable($0)
        }
    }

    /// Storms of a place that the person was told of, and that are still to come.
    func toldStorms(of place: Place, now: Date) throws -> [StormRecord] {
        try queue.read {
            try StormRecord.filter(
                Column("place") == place.id && Column("isTold") == true && Column("isClosed") == false
                    && Column("isCancelled") == false && Column("ends") > now.timeIntervalSince1970
            ).order(Column("id")).fetchReadable($0)
        }
    }

    /// Storms of a place that the person was told of, and that were cancelled since.
    func cancelledStorms(of place: Place) throws -> [StormRecord] {
        try queue.read {
            try StormRecord.filter(Column("place") == place.id && Column("isCancelled") == true && Column("isTold") == true)
                .order(Column("id")).fetchReadable($0)
        }
    }

    /// The notification was taken back before anybody saw it: the next check tells of those that are not over.
    package func markUntold(_ storms: [StormRecord]) throws {
        try queue.write { database in
            for storm in storms {
                try database.execute(sql: "UPDATE storm SET isTold = 0 WHERE id = ?", arguments: [storm.id])
            }
        }
    }

    /// Told: and the storm has a photo job from now on, exactly one.
    func markTold(_ storm: StormRecord, now: Date) throws {
        try queue.write { database in
            try database.execute(sql: "UPDATE storm SET isTold = 1 WHERE id = ?", arguments: [storm.id])
            // One that was called off, and is expected again, may have its photo again.
            let jobs = try PhotoRecord.filter(Column("storm") == storm.id && Column("state") != "cancelled").fetchCount(database)
            guard jobs == 0 else { return }
            var job = PhotoRecord(
                id: nil, storm: storm.id, state: .awaitingPhoto, path: nil, transfer: nil, message: nil, createdAt: now,
                changedAt: now)
            try job.insert(database)
        }
    }
}
