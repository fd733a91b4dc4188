import Foundation
import GRDB
import StormyWeather

/// The row of a storm in the store. Only ``StormLife`` changes the content of the row.
package struct StormRecord: Codable, Sendable, Equatable, Identifiable {
    /// The parts of the storm's state machine (``StormLife``) that are not stored in separate columns.
    struct Parts: Codable, Sendable, Equatable {
        var outlook: StormLife.Outlook
        var memory: StormLife.Memory
    }

    package var id: Int64?
    package var place: Int64
    package private(set) var begins: Date
    package private(set) var ends: Date
    package private(set) var reasons: [StormReason]
    /// The remaining parts of the state machine, which are stored as JSON.
    private var parts: Parts

    init(place: Int64, _ life: StormLife) {
        (begins, ends, reasons) = (life.window.from, life.window.until, life.reasons)
        self.place = place
        parts = Parts(outlook: life.outlook, memory: life.memory)
    }

    package var life: StormLife {
        get {
            StormLife(
                window: StormWindow(from: begins, until: ends), reasons: reasons, outlook: parts.outlook, memory: parts.memory)
        }
        set {
            var new = StormRecord(place: place, newValue)
            new.id = id
            self = new
        }
    }

    /// `true` if Stormy assumed the time in ``ends``, because the warning has no end time.
    package var hasOpenEnd: Bool { parts.outlook == .expected && reasons.contains { $0.hasOpenEnd == true && $0.until >= ends } }
}

extension StormRecord: StoreRecord {
    package static let databaseTableName = "storm"
    private enum CodingKeys: String, CodingKey {
        case id, place, begins, ends, reasons
        case parts = "life"
    }

    /// The SQL condition for storms that are still expected. Damaged rows are left out.
    static let isOpen = """
        CASE WHEN json_valid(life) THEN json_type(life, '$.memory.phase.over') IS NULL
            AND json_extract(life, '$.outlook') IN ('expected', 'weaker') END
        """

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }

    /// Converts the rows of earlier versions, in which flags contain the state of a storm. If an earlier version has already
    /// shown an alert for a storm, no second alert is shown.
    static func migrate(_ database: Database) throws {
        try database.alter(table: "storm") { $0.add(column: "life", .text).notNull().defaults(to: "") }
        for row in try Row.fetchAll(database, sql: "SELECT id, begins, ends, isTold, isClosed, isCancelled FROM storm") {
            let text: String? = try String.fetchOne(
                database, sql: "SELECT reasons FROM storm WHERE id = ?", arguments: [row["id"]])
            let decoder = StormRecord.databaseJSONDecoder(for: "reasons")
            let reasons = text.flatMap { try? decoder.decode([StormReason].self, from: Data($0.utf8)) } ?? []
            let memory = StormLife.Memory(
                earlierVersionOf: reasons, begins: Date(timeIntervalSince1970: row["begins"]),
                ends: Date(timeIntervalSince1970: row["ends"]), isShown: row["isTold"], isClosed: row["isClosed"],
                isCancelled: row["isCancelled"])
            let parts = Parts(outlook: row["isCancelled"] ? .notExpected : .expected, memory: memory)
            let life = try StormRecord.databaseJSONEncoder(for: "life").encode(parts)
            try database.execute(
                sql: "UPDATE storm SET life = ? WHERE id = ?", arguments: [String(decoding: life, as: UTF8.self), row["id"]])
        }
        for flag in ["isTold", "isClosed", "isCancelled"] { try database.execute(sql: "ALTER TABLE storm DROP COLUMN \(flag)") }
    }
}

extension StormyStore {
    /// Returns all storms, the newest storm last.
    package func storms() throws -> [StormRecord] {
        try queue.read { try StormRecord.order(Column("id")).fetchReadable($0) }
    }

    /// Returns the storms that are not over, and the storms that ended recently. A check compares these storms with new data.
    ///
    /// - Parameter place: `nil` for all places.
    func recentStorms(of place: Int64? = nil, now: Date) throws -> [StormRecord] {
        try queue.read { try Self.recentStorms(of: place, now: now, $0) }
    }

    /// Storms that ended recently are included, because a storm that begins again after a short gap is the same storm.
    private static func recentStorms(of place: Int64?, now: Date, _ database: Database) throws -> [StormRecord] {
        let request = StormRecord.filter(
            sql: "(ends > ? OR CASE WHEN json_valid(life) THEN json_type(life, '$.memory.phase.over') IS NULL END)",
            arguments: [now.timeIntervalSince1970 - 2 * StormWindow.mergeGap])
        let ofPlace = place.map { request.filter(Column("place") == $0) } ?? request
        return try ofPlace.order(Column("id")).fetchReadable(database)
    }

    /// Updates the storms of a place after new data was judged.
    static func follow(_ look: StormCheckData, place: Int64, _ database: Database) throws {
        let known = try recentStorms(of: place, now: look.now, database).filter {
            $0.ends > look.now - 2 * StormWindow.mergeGap
        }
        for change in StormLife.follow(known.map { ($0.id!, $0.life) }, look) {
            switch change {
            case .open(let life):
                var storm = StormRecord(place: place, life)
                try storm.insert(database)
            case .change(let id, let life):
                guard var storm = known.first(where: { $0.id == id }) else { continue }
                storm.life = life
                try storm.update(database)
            }
        }
    }

    /// Stores the information which notification of a storm was shown. If another process has stored newer data of the storm, the
    /// newer data is kept.
    func save(_ memory: StormLife.Memory, of storm: StormRecord) throws {
        try queue.write { database in
            guard var stored = try StormRecord.fetchOne(database, key: storm.id) else { return }
            let life = stored.life
            stored.life = StormLife(window: life.window, reasons: life.reasons, outlook: life.outlook, memory: memory)
            try stored.update(database)
        }
    }

    /// Returns whether the user added a photo for a storm.
    func hasPhoto(of storm: StormRecord) throws -> Bool {
        try queue.read {
            try PhotoRecord.filter(Column("storm") == storm.id && !["awaitingPhoto", "cancelled"].contains(Column("state")))
                .fetchCount($0) > 0
        }
    }

    /// Opens a photo request for a storm, unless the storm already has a photo request.
    func openPhotoRequest(of storm: StormRecord, now: Date) throws {
        try queue.write { database in
            let open = try PhotoRecord.filter(Column("storm") == storm.id && Column("state") != "cancelled").fetchCount(database)
            guard open == 0 else { return }
            var request = PhotoRecord(storm: storm.id, state: .awaitingPhoto, createdAt: now, changedAt: now)
            try request.insert(database)
        }
    }

    /// Closes the photo request of a storm, if the user added no photo for the storm.
    func closePhotoRequest(of storm: StormRecord, _ message: String) throws {
        try queue.write {
            try $0.execute(
                sql: "UPDATE photo SET state = 'cancelled', message = ? WHERE storm = ? AND state = 'awaitingPhoto'",
                arguments: [message, storm.id])
        }
    }
}
