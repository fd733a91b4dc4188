import Foundation
import GRDB
import TransferMachines

/// The data of a cancelled or failed upload that is still on its server.
package struct Leftover: Equatable, Sendable {
    package let id: Int64
    package let removal: ServerRemoval
    /// The number of requests so far.
    package let attempts: Int

    static func createTable(_ database: Database) throws {
        try database.create(table: "leftover") { table in
            table.autoIncrementedPrimaryKey("id")
            table.column("removal", .text).notNull()
            table.column("attempts", .integer).notNull()
            for date in ["createdAt", "nextAt"] { table.column(date, .double).notNull() }
        }
    }
}

extension LedgerTransaction {
    /// Records data that must be removed from a server. The first request is due now.
    package func addLeftover(_ removal: ServerRemoval, now: Date) throws {
        let text = String(decoding: try JSONEncoder().encode(removal), as: UTF8.self)
        try database.run(
            sql: "INSERT INTO leftover (removal, attempts, createdAt, nextAt) VALUES (?, 0, ?, ?)",
            arguments: [text, now.timeIntervalSince1970, now.timeIntervalSince1970])
    }

    /// Returns the data whose next request is due, and records that the request is sent now. Old data is not removed any more.
    package func takeDueLeftovers(now: Date) throws -> [Leftover] {
        guard try hasLeftovers() else { return [] }
        let seconds = now.timeIntervalSince1970
        try database.run(
            sql: "DELETE FROM leftover WHERE createdAt < ?", arguments: [seconds - ServerRemoval.patience])
        // The clock was set back after the date of the next request was computed.
        try database.run(
            sql: "UPDATE leftover SET nextAt = ?1 WHERE nextAt > ?1 + ?2", arguments: [seconds, ServerRemoval.pause(after: .max)])
        let rows = try Row.fetchAll(
            database, sql: "SELECT * FROM leftover WHERE nextAt <= ? ORDER BY id LIMIT 20", arguments: [seconds])
        return try rows.compactMap { row in
            let (id, attempts): (Int64, Int) = (row["id"], row["attempts"] + 1)
            guard let removal = try? JSONDecoder().decode(ServerRemoval.self, from: Data((row["removal"] as String).utf8)) else {
                try removeLeftover(id)
                return nil
            }
            try database.run(
                sql: "UPDATE leftover SET attempts = ?, nextAt = ? WHERE id = ?",
                arguments: [attempts, seconds + ServerRemoval.pause(after: attempts), id])
            return Leftover(id: id, removal: removal, attempts: attempts)
        }
    }

    package func removeLeftover(_ id: Int64) throws {
        try database.run(sql: "DELETE FROM leftover WHERE id = ?", arguments: [id])
    }

    /// Makes all requests due now, because the network changed.
    package func retryLeftovers(now: Date) throws {
        guard try hasLeftovers() else { return }
        try database.run(sql: "UPDATE leftover SET nextAt = ?", arguments: [now.timeIntervalSince1970])
    }

    package func hasLeftovers() throws -> Bool {
        try Bool.fetchOne(database.cachedStatement(sql: "SELECT EXISTS (SELECT 1 FROM leftover)")) ?? false
    }

    /// Returns the time of the next request.
    package func nextLeftover() throws -> Date? {
        try Double.fetchOne(database.cachedStatement(sql: "SELECT MIN(nextAt) FROM leftover"))
            .map(Date.init(timeIntervalSince1970:))
    }
}
