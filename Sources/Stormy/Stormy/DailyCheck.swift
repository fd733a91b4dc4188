import BackgroundTasks
import Foundation
import GRDB

/// The user's last choice about the daily check. The store has at most one row with this choice.
package struct DailyCheck: Codable, Sendable, Equatable {
    private var id = 1
    package internal(set) var isOn = false
    /// The text of ``time``.
    private var at = WallClockTime.noon.description
    /// `true` if the check begins exactly at ``time``, without the delay of this installation.
    package internal(set) var isExact = false
    /// `true` if a sleeping machine is woken for the check.
    package internal(set) var wakesSystem = false
    /// The delay of this installation, as a fraction of the configured spread. The value is random and does not change. Because
    /// of the random value, not all installations send requests to a public service exactly at noon.
    private var spread = Double.random(in: 0..<1)

    /// The time of day of the check.
    package internal(set) var time: WallClockTime {
        get { WallClockTime(parsing: at) ?? .noon }
        set { at = newValue.description }
    }

    /// Returns the number of seconds between ``time`` and the beginning of the check.
    func delay(within spreadSeconds: Double) -> Double { isExact ? 0 : spread * spreadSeconds }
}

extension DailyCheck: StoreRecord {
    package static let databaseTableName = "dailyCheck"

    /// The names of the settings in which earlier versions stored this choice. The settings are rows of the table `setting`.
    private static let earlierSettings = ["at", "exact", "wake", "spread", "enabled"]

    /// Creates the table, and replaces the settings of earlier versions with one row. If the setting `enabled` does not exist,
    /// the user never turned the check on or off, and no row is inserted.
    static func migrate(_ database: Database) throws {
        try database.create(table: "dailyCheck") { table in
            table.primaryKey("id", .integer).check { $0 == 1 }
            for flag in ["isOn", "isExact", "wakesSystem"] { table.column(flag, .boolean).notNull() }
            table.column("at", .text).notNull()
            table.column("spread", .double).notNull()
        }
        var settings: [String: String] = [:]
        for name in earlierSettings {
            settings[name] = try String.fetchOne(database, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name])
            try database.execute(sql: "DELETE FROM setting WHERE name = ?", arguments: [name])
        }
        guard let enabled = settings["enabled"] else { return }
        try database.execute(
            sql: "INSERT INTO dailyCheck (id, isOn, isExact, wakesSystem, at, spread) VALUES (1, ?, ?, ?, ?, ?)",
            arguments: [
                enabled == "true", settings["exact"] == "true", settings["wake"] == "true", settings["at"] ?? "12:00",
                settings["spread"].flatMap(Double.init) ?? Double.random(in: 0..<1),
            ])
    }
}

extension StormyStore {
    /// `nil` if the check was never turned on or off in this store.
    func dailyCheck() throws -> DailyCheck? { try queue.read { try DailyCheck.fetchOne($0) } }

    /// Changes the row of the daily check in one transaction. If the row does not exist, inserts the row.
    ///
    /// - Returns: The row before the change, and the row after the change.
    @discardableResult
    func changeDailyCheck(_ change: (inout DailyCheck) -> Void) throws -> (before: DailyCheck?, after: DailyCheck) {
        try queue.write { database in
            let before = try DailyCheck.fetchOne(database)
            var after = before ?? DailyCheck()
            change(&after)
            try after.save(database)
            return (before, after)
        }
    }

    /// Undoes a change of the row, unless another process changed the row after this change.
    func retract(_ change: (before: DailyCheck?, after: DailyCheck)) throws {
        try queue.write { database in
            guard try DailyCheck.fetchOne(database) == change.after else { return }
            if var before = change.before { try before.save(database) } else { try change.after.delete(database) }
        }
    }
}
