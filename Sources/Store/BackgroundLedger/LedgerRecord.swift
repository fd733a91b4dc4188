import Foundation
import GRDB

/// How rows look on disk: dates as seconds since 1970 (sortable, exact to the microsecond), lists as JSON text.
package protocol LedgerRecord: Codable, FetchableRecord, MutablePersistableRecord, Sendable {}

extension LedgerRecord {
    package static func databaseDateEncodingStrategy(for column: String) -> DatabaseDateEncodingStrategy {
        .timeIntervalSince1970
    }
    package static func databaseDateDecodingStrategy(for column: String) -> DatabaseDateDecodingStrategy {
        .timeIntervalSince1970
    }
}

/// Questions whose answer is mostly "none". Before its first row GRDB learns the names of all columns of a statement, and that
/// costs ten times what finding no row does: so it is looked first whether there is one. The agent asks some thirty such
/// questions in every turn.
extension FetchableRecord {
    static func fetchRare(_ statement: Statement, arguments: StatementArguments = StatementArguments()) throws -> [Self] {
        guard try DatabaseValue.fetchOne(statement, arguments: arguments) != nil else { return [] }
        return try fetchAll(statement, arguments: arguments)
    }

    /// The same without rows that nobody can read, as somebody else has written them.
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
    /// Executes a statement that was prepared before, if it was.
    func run(sql: String, arguments: StatementArguments = StatementArguments()) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }
}

/// What one transaction has read and nobody changed since: the steps of a turn of the agent ask for the same.
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
