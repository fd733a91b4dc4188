import BackgroundTasks
import Foundation
import GRDB

/// A photo on its way, or a storm's wish for one.
package struct PhotoRecord: Codable, Sendable, Equatable, Identifiable {
    package enum State: String, Codable, Sendable {
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

    package var id: Int64?
    package var storm: Int64?
    package var state: State
    package var path: String?
    /// Number of its transfer with the agent.
    package var transfer: Int64?
    package var message: String?
    /// SHA-256 of what was queued, hex.
    package var digest: String?
    /// Under which it is submitted: never used twice, also when this store is made anew and its numbers begin again.
    package var key: String?
    package var createdAt: Date
    package var changedAt: Date
    /// The destination it is for: its name and its address, as one of them may be given another meaning.
    package var destination: String?
    /// Where the server has it.
    package var remoteURL: String?
    /// A notification says how it ended, unless a terminal that waits for it does.
    package var tells = false
    /// Given to be sent at a good moment (``HeldUploads``). Its transfer says whether it still waits for one.
    package var isForLater = false
    /// The choice of the option with which the photo was given. `nil` if no option was given.
    package var keepsLocation: Bool?
    /// The processes that are about to queue the photo. `nil` after it was queued, and in a record of an earlier version.
    package var holders: PhotoHolders?

    /// Returns whether the destination with this name gets the photo. `nil` if that was not written down.
    package func goesTo(_ name: String) -> Bool? { destination.map { $0.hasPrefix(name + " ") } }

    /// Nothing is left to do: it is there, or on its way. What this process just changed is not.
    func isKnown(_ before: PhotoRecord?) -> Bool {
        before == self && (state == .completed || state == .queued && transfer != nil)
    }
}

extension PhotoRecord: StoreRecord {
    package static let databaseTableName = "photo"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension StormyStore {
    package func photos() throws -> [PhotoRecord] {
        try queue.read { try PhotoRecord.fetchAll($0, sql: "SELECT * FROM photo ORDER BY id") }
    }

    /// The record of a photo that is about to be queued or held: a held one of the same file, the job it fills (that of
    /// `storm`, or the oldest that waits), or a new one. One transaction: two uploads at once never fill one job.
    ///
    /// The same photo given to the same storm again is the same record: a pressed button is told again when its app died.
    ///
    /// - Returns: the record, and what it was before; `nil`: new.
    func beginPhoto(
        path: String, digest: String, storm: Int64?, destination: String? = nil, tells: Bool = false,
        as state: PhotoRecord.State, message: String?, isPhoto: Bool = true
    ) throws -> Begun {
        try queue.write { database in
            try Self.begin(
                NewPhoto(path: path, digest: digest, storm: storm, destination: destination, tells: tells, isPhoto: isPhoto),
                as: state, message: message, in: database)
        }
    }

    typealias Begun = (photo: PhotoRecord, before: PhotoRecord?)

    /// Begins photos that are queued, in one transaction. Two commands at once never get one presigned address.
    ///
    /// - Returns: `nil` for a photo whose address is for one file, if another photo went there.
    func beginPhotos(_ photos: [NewPhoto]) throws -> [Begun?] {
        try queue.write { database in
            try photos.map { new in
                if new.isForOneFile, try Self.isTaken(new.destination, by: new.digest, in: database) { return nil }
                if new.isAgain { try Self.forgetArrivals(of: new, in: database) }
                return try Self.begin(new, as: .queued, message: nil, in: database)
            }
        }
    }

    /// Another photo than this went to the destination, or will.
    private static func isTaken(_ destination: String?, by digest: String?, in database: Database) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM photo WHERE state IN ('queued', 'completed') AND destination IS ? AND digest <> ?)
                    """), arguments: [destination, digest]) ?? false
    }

    /// A photo that is given now.
    struct NewPhoto {
        var path: String
        var digest: String
        var storm: Int64?
        var destination: String?
        var tells = false
        var isForLater = false
        /// A file of another kind fulfils no request.
        var isPhoto = true
        var keepsLocation: Bool?
        /// The destination takes one file (``PhotoDestination/isForOneFile``).
        var isForOneFile = false
        /// An earlier arrival does not count.
        var isAgain = false
    }

    private static func begin(
        _ new: NewPhoto, as state: PhotoRecord.State, message: String?, in database: Database
    ) throws -> Begun {
        let (path, digest, storm, destination) = (new.path, new.digest, new.storm, new.destination)
        // Queued twice is one upload; so is one that is there already. A storm's own wish for it is then fulfilled.
        let again = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM photo WHERE digest = ?1 AND state IN ('queued', 'completed')
                    AND destination IS ?3 AND (?3 IS NOT NULL OR storm IS ?2 AND ?2 IS NOT NULL)
                    ORDER BY state, id LIMIT 1
                    """), arguments: [digest, storm, destination])
        // A photo that was sent with its location is not held as well.
        if let again, state != .queued, again.isKnown(again) { return (again, again) }
        if var again, state == .queued {
            try closeHeld(path, destination, in: database)
            let stored = again
            // Wanted at once by now, or by somebody with a desktop.
            again.isForLater = again.isForLater && new.isForLater
            again.tells = again.tells || new.tells
            // This process begins the transfer as well, under the same key. Each of the processes may be stopped before it begins it.
            if again.state == .queued, again.transfer == nil { again.holders = again.holders?.addingThisProcess ?? .thisProcess }
            if again != stored { try again.update(database) }
            if let storm, again.storm != storm, new.isPhoto { try closeJob(of: storm, in: database) }
            return (again, again)
        }
        let held = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: "SELECT * FROM photo WHERE state = 'held' AND path = ? AND destination IS ? ORDER BY id LIMIT 1"),
            arguments: [path, destination])
        let job = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: "SELECT * FROM photo WHERE state = 'awaitingPhoto' AND (storm = ?1 OR ?1 IS NULL) ORDER BY id LIMIT 1"),
            arguments: [storm])
        // From a command that was killed before it queued the photo.
        let abandoned = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM photo WHERE digest = ? AND state = 'cancelled' AND "transfer" IS NULL AND storm IS NULL
                    AND path = ? AND destination IS ? ORDER BY id LIMIT 1
                    """), arguments: [digest, path, destination])
        let before = held ?? (new.isPhoto ? job : nil) ?? abandoned
        if let abandoned, before?.id != abandoned.id { try abandoned.delete(database) }
        let now = BGTaskScheduler.now
        var photo =
            before
            ?? PhotoRecord(
                id: nil, storm: storm, state: state, path: path, transfer: nil, message: nil, digest: nil, key: nil,
                createdAt: now, changedAt: now, destination: nil, remoteURL: nil)
        photo.state = state
        photo.path = path
        photo.digest = digest
        photo.destination = destination
        photo.storm = photo.storm ?? storm
        photo.tells = new.tells
        photo.isForLater = new.isForLater
        photo.keepsLocation = new.keepsLocation
        photo.holders = state == .queued ? .thisProcess : nil
        photo.key = UUID().uuidString
        photo.message = message
        photo.changedAt = now
        try photo.save(database)
        return (photo, before)
    }

    /// The file was held before, and is known now: nothing of it is left to do.
    static func closeHeld(_ path: String, _ destination: String?, in database: Database) throws {
        try database.execute(
            sql: """
                UPDATE photo SET state = CASE WHEN storm IS NULL THEN 'cancelled' ELSE 'completed' END,
                    message = 'the photo is there already'
                WHERE state = 'held' AND path = ? AND destination IS ?
                """, arguments: [path, destination])
    }

    /// The photo that a storm waited for is there already.
    static func closeJob(of storm: Int64, in database: Database) throws {
        try database.execute(
            sql: """
                UPDATE photo SET state = 'completed', message = 'the photo is there already' WHERE id = (
                    SELECT id FROM photo WHERE state = 'awaitingPhoto' AND storm = ? ORDER BY id LIMIT 1)
                """, arguments: [storm])
    }

    /// It could not be queued after all: it is what it was.
    func giveBack(_ photo: PhotoRecord, before: PhotoRecord?) throws {
        try queue.write { database in
            if let before { try before.update(database) } else { try photo.delete(database) }
        }
    }

    func setTransfers(_ transfers: [(photo: Int64?, transfer: Int64)]) throws {
        try queue.write { database in
            let statement = try database.cachedStatement(sql: "UPDATE photo SET transfer = ?, holders = NULL WHERE id = ?")
            for (photo, transfer) in transfers { try statement.execute(arguments: [transfer, photo]) }
        }
    }

    /// Photos that are said to be with the agent.
    func queuedPhotos() throws -> [PhotoRecord] {
        try queue.read {
            try PhotoRecord.fetchAll($0, sql: "SELECT * FROM photo WHERE state = 'queued' AND transfer IS NOT NULL ORDER BY id")
        }
    }

    /// The agent knows nothing of it: it may be given again, and this is what became of it if nobody does.
    func photoIsUnknown(_ photo: PhotoRecord, message: String) throws {
        try queue.write { database in
            var photo = photo
            (photo.state, photo.transfer, photo.message) = (.failed, nil, message)
            try photo.update(database)
        }
    }

    /// It is about to be queued again, under its own record.
    func forgetTransfer(of photo: PhotoRecord) throws {
        try queue.write { database in
            var photo = photo
            (photo.transfer, photo.changedAt) = (nil, BGTaskScheduler.now)
            photo.holders = .thisProcess
            try photo.update(database)
        }
    }

    func removePhoto(_ id: Int64) throws { _ = try queue.write { try PhotoRecord.deleteOne($0, key: id) } }

    /// The agent has a photo that this store knows nothing of: it was made anew, or comes from a backup.
    func adoptPhoto(_ photo: PhotoRecord) throws {
        try queue.write { database in
            var photo = photo
            guard try PhotoRecord.filter(Column("transfer") == photo.transfer).fetchCount(database) == 0 else { return }
            try photo.insert(database)
        }
    }

    /// The greatest number of a transfer that this store knows.
    func newestTransfer() throws -> Int64? { try queue.read { try Int64.fetchOne($0, sql: "SELECT MAX(transfer) FROM photo") } }

    /// This store knows what became of it there.
    func knowsPhoto(_ digest: String?, at destination: String) throws -> Bool {
        try queue.read { database in
            try Bool.fetchOne(
                database, sql: "SELECT EXISTS (SELECT 1 FROM photo WHERE digest = ? AND destination = ?)",
                arguments: [digest, destination]) ?? false
        }
    }

    /// Why a transfer is not tried again.
    package enum RetryObstacle: Sendable, Equatable, CustomStringConvertible {
        case photoWasGivenAgain
        case addressIsTaken

        package var description: String {
            switch self {
            case .photoWasGivenAgain: "the same photo was given again and is there, or on its way"
            case .addressIsTaken: "its presigned address is for one file, and another photo went there"
            }
        }
    }

    /// A failed transfer is tried again: so is its photo, unless it was given again meanwhile.
    ///
    /// - Parameters:
    ///   - digests: of what the transfer carries.
    ///   - isForOneFile: whether the destination with this identity takes one file.
    /// - Returns: why it may not be: sent now, it would be there twice, or replace another.
    package func retryPhoto(
        _ id: Int64, transfer: Int64, digests: [String], isForOneFile: (String?) -> Bool = { _ in false }
    ) throws -> RetryObstacle? {
        try queue.write { database in
            guard var photo = try PhotoRecord.fetchOne(database, key: id) else { return nil }
            guard photo.transfer == transfer else {
                // Given again before this store heard of the transfer: the same photo has another by now.
                let isSame = photo.digest.map(digests.contains) ?? false
                return isSame && (photo.state == .queued || photo.state == .completed) ? .photoWasGivenAgain : nil
            }
            let isElsewhere = try Bool.fetchOne(
                database,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM photo WHERE digest = ? AND destination IS ? AND id <> ?
                    AND state IN ('queued', 'completed'))
                    """, arguments: [photo.digest, photo.destination, id])
            if isElsewhere == true { return .photoWasGivenAgain }
            if isForOneFile(photo.destination), try Self.isTaken(photo.destination, by: photo.digest, in: database) {
                return .addressIsTaken
            }
            guard photo.state == .failed else { return nil }
            (photo.state, photo.message, photo.changedAt) = (.queued, nil, BGTaskScheduler.now)
            try photo.update(database)
            return nil
        }
    }

    /// The number of none.
    static let noTransfer: Int64 = 0

    /// A server no longer has it: it may be given again.
    package func photoWasLost(_ id: Int64, transfer: Int64, message: String) throws {
        try queue.write { database in
            guard var photo = try PhotoRecord.fetchOne(database, key: id), photo.transfer ?? transfer == transfer else { return }
            // No transfer's any more: the word of its end, which may come after this, changes nothing.
            (photo.state, photo.transfer, photo.message, photo.remoteURL) = (.failed, Self.noTransfer, message, nil)
            try photo.update(database)
        }
    }

    /// They count as not sent.
    private static func forgetArrivals(of new: NewPhoto, in database: Database) throws {
        try database.cachedStatement(
            sql: """
                UPDATE photo SET state = 'failed', "transfer" = ?, message = 'to be sent again', remoteURL = NULL
                WHERE digest = ? AND destination = ? AND state = 'completed'
                """
        ).execute(arguments: [noTransfer, new.digest, new.destination])
    }

    /// Takes a held photo or a waiting job off the list.
    package func cancelPhoto(_ id: Int64) throws -> Bool {
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
