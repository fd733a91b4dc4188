import Foundation
import GRDB

/// A photo on its way, or a storm's wish for one.
public struct PhotoRecord: Codable, Sendable, Equatable, Identifiable {
    public enum State: String, Codable, Sendable {
        /// A storm was told; nobody gave its photo yet.
        case awaitingPhoto
        /// Kept here because it says where it was taken.
        case held
        /// The agent's: its transfer says more.
        case queued
        case completed
        case failed
        case cancelled
    }

    public var id: Int64?
    public var storm: Int64?
    public var state: State
    public var path: String?
    /// Number of its transfer with the agent.
    public var transfer: Int64?
    public var message: String?
    public var createdAt: Date
}

extension PhotoRecord: StoreRecord {
    public static let databaseTableName = "photo"

    public mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension StormyStore {
    public func photos() throws -> [PhotoRecord] {
        try queue.read { try PhotoRecord.fetchAll($0, sql: "SELECT * FROM photo ORDER BY id") }
    }

    func save(_ photo: PhotoRecord) throws -> PhotoRecord {
        try queue.write { database in
            var photo = photo
            try photo.save(database)
            return photo
        }
    }

    /// The job a new photo fills: that of the given storm, or the oldest that waits.
    func waitingJob(storm: Int64?) throws -> PhotoRecord? {
        try queue.read {
            try PhotoRecord.fetchOne(
                $0, sql: "SELECT * FROM photo WHERE state = 'awaitingPhoto' AND (storm = ?1 OR ?1 IS NULL) ORDER BY id LIMIT 1",
                arguments: [storm])
        }
    }

    /// A photo of this file that is held back: giving it again takes its place.
    func heldPhoto(path: String) throws -> PhotoRecord? {
        try queue.read {
            try PhotoRecord.filter(Column("state") == "held" && Column("path") == path).fetchOne($0)
        }
    }

    func photo(transfer: Int64) throws -> PhotoRecord? {
        try queue.read { try PhotoRecord.filter(Column("transfer") == transfer).fetchOne($0) }
    }

    /// Takes a held photo or a waiting job off the list.
    public func cancelPhoto(_ id: Int64) throws -> Bool {
        try queue.write { database in
            guard var photo = try PhotoRecord.fetchOne(database, key: id),
                photo.state == .awaitingPhoto || photo.state == .held
            else { return false }
            photo.state = .cancelled
            try photo.update(database)
            return true
        }
    }
}
