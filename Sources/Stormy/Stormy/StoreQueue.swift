import Foundation
import GRDB

/// The connection to the database of a store. An SQLite error is interpreted immediately after the failed call, because the
/// reason for a failed read is not available later. If the error were interpreted later, a temporary error of the disk would be
/// reported as a damaged store.
struct StoreQueue: Sendable {
    let database: DatabaseQueue

    init(_ database: DatabaseQueue) { self.database = database }

    /// The path of the database file.
    var path: String { database.path }

    func read<Value>(_ body: (Database) throws -> Value) throws -> Value { try explained { try database.read(body) } }

    func write<Value>(_ body: (Database) throws -> Value) throws -> Value { try explained { try database.write(body) } }

    private func explained<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as DatabaseError { throw StormyStoreError(error, path) }
    }
}
