import Foundation
import GRDB

/// A record in the format of the ledger's rows. Dates are stored as seconds since 1970 (sortable, exact to the microsecond), and
/// lists as JSON text.
package protocol LedgerRecord: Codable, FetchableRecord, MutablePersistableRecord, Sendable {}

extension LedgerRecord {
    package static func databaseDateEncodingStrategy(for column: String) -> DatabaseDateEncodingStrategy {
        .timeIntervalSince1970
    }
    package static func databaseDateDecodingStrategy(for column: String) -> DatabaseDateDecodingStrategy {
        .timeIntervalSince1970
    }
}

/// Queries whose result is usually empty. First, another query checks whether a row exists. This check saves time, because GRDB
/// reads the names of all columns before the first row, which takes ten times as long as the query. The agent makes about thirty
/// such queries in every pass.
extension FetchableRecord {
    static func fetchRare(_ statement: Statement, arguments: StatementArguments = StatementArguments()) throws -> [Self] {
        guard try DatabaseValue.fetchOne(statement, arguments: arguments) != nil else { return [] }
        return try fetchAll(statement, arguments: arguments)
    }

    /// Returns the rows that can be decoded. Other programs may have written rows that cannot be decoded.
    static func fetchReadable(_ statement: Statement, arguments: StatementArguments = StatementArguments()) throws -> [Self] {
        guard try DatabaseValue.fetchOne(statement, arguments: arguments) != nil else { return [] }
        return try Row.fetchAll(statement, arguments: arguments).compactMap { try? Self(row: $0) }
    }

    static func fetchRareOne(_ statement: Statement, arguments: StatementArguments) throws -> Self? {
        guard try DatabaseValue.fetchOne(statement, arguments: arguments) != nil else { return nil }
        return try fetchOne(statement, arguments: arguments)
    }
}

extension Row {
    static func fetchRare(_ statement: Statement, arguments: StatementArguments = StatementArguments()) throws -> [Row] {
        guard try DatabaseValue.fetchOne(statement, arguments: arguments) != nil else { return [] }
        return try fetchAll(statement, arguments: arguments)
    }
}

extension Database {
    /// Executes a statement. The statement is prepared only at the first call.
    func run(sql: String, arguments: StatementArguments = StatementArguments()) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }
}

/// A cache for the results of queries in one transaction. A result is valid until a row changes. The cache is useful, because
/// several steps of an agent's pass make equal queries.
final class TransactionMemo {
    private var changes = 0
    private var rows: [String: Any] = [:]

    func rows<Record>(_ name: String, _ database: Database, _ fetch: () throws -> [Record]) rethrows -> [Record] {
        if database.totalChangesCount != changes { (changes, rows) = (database.totalChangesCount, [:]) }
        if let known = rows[name] as? [Record] { return known }
        let found = try fetch()
        rows[name] = found
        return found
    }
}
