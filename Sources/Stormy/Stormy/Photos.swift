import BackgroundTasks
import BackgroundTransfer
import Foundation
import GRDB
import ProcessSupport

/// A photo that is uploaded, or a storm's request for a photo.
package struct PhotoRecord: Codable, Sendable, Equatable, Identifiable {
    package enum State: String, Codable, Sendable {
        /// A storm was shown, and the user has not added a photo of the storm yet.
        case awaitingPhoto
        /// The photo is not sent, because it contains a location.
        case held
        /// The photo was queued. The ledger contains the state of the photo's transfer. The key of the transfer is
        /// ``PhotoRecord/submission``.
        case queued
        case completed
        case failed
        case cancelled
        /// The photo was uploaded, but the server does not have it any more, or the photo is sent again.
        case lost
    }

    package var id: Int64?
    package var storm: Int64?
    package var state: State
    package var path: String?
    /// The stored submission key of the photo's transfer. Each photo has a different key, even after the store was created again.
    /// `nil` if the photo was never queued, or if an earlier version queued the photo and the key is not known yet.
    package var submission: String?
    package var message: String?
    /// The SHA-256 of the queued copy, as hexadecimal digits.
    package var digest: String?
    package var createdAt: Date
    package var changedAt: Date
    /// The name and the address of the destination. The record contains the name and the address, because each of them can
    /// change.
    package var destination: String?
    /// The address of the photo on the server.
    package var remoteURL: String?
    /// `true` if a notification reports the result of the upload. If a command in a terminal reports the result, no notification
    /// is shown.
    package var tells = false
    /// `true` if the photo waited for external power and an unmetered network (``HeldUploads``). The state of the photo's
    /// transfer shows whether the photo still waits.
    package var isForLater = false
    /// The value of the command's option that keeps or removes the location. `nil` if the command had no such option.
    package var keepsLocation: Bool?
    /// The path of the photo that the file belongs to, if the file is a sidecar or the video of a Live Photo. `nil` for a photo.
    package var owner: String?
    /// The digest of this photo.
    var ownerDigest: String?
    /// The file is a sidecar. Two photos can have sidecars with equal content, and both sidecars are sent.
    var isSidecar = false

    /// The relation of the file to a photo.
    var role: PhotoFile.Role { owner.map { isSidecar ? .sidecar(of: $0) : .video(of: $0) } ?? .photo }

    /// Returns whether the photo is for the destination with this name. `nil` if the destination was not recorded.
    package func isForDestination(_ name: String) -> Bool? { destination.map { PhotoDestination.parts($0).name == name } }

    /// The name of the file, for the user.
    var fileName: String { path.map { URL(fileURLWithPath: $0).lastPathComponent } ?? "a photo" }

    /// Returns a text such as "1 photo" or "66 photos".
    package static func count(_ number: Int) -> String { number == 1 ? "1 photo" : "\(number) photos" }
}

extension PhotoRecord: StoreRecord {
    package static let databaseTableName = "photo"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension [PhotoRecord] {
    /// The photos that were queued. The keys of the dictionary are the submission keys.
    package var bySubmission: [String: PhotoRecord] {
        Dictionary(compactMap { photo in photo.submission.map { ($0, photo) } }) { one, _ in one }
    }
}

extension StormyStore {
    package func photos() throws -> [PhotoRecord] {
        try queue.read { try PhotoRecord.fetchAll($0, sql: "SELECT * FROM photo ORDER BY id") }
    }

    /// Returns the photos of storms, including requests without a photo. The number of these photos is small compared with all
    /// photos.
    package func photosOfStorms() throws -> [PhotoRecord] {
        try queue.read { try PhotoRecord.fetchAll($0, sql: "SELECT * FROM photo WHERE storm IS NOT NULL ORDER BY id") }
    }

    package func photo(submittedAs submission: String) throws -> PhotoRecord? {
        try queue.read { try Self.photo(submittedAs: submission, in: $0) }
    }

    static func photo(submittedAs submission: String?, in database: Database) throws -> PhotoRecord? {
        try PhotoRecord.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM photo WHERE submission = ?"), arguments: [submission])
    }

    /// Returns the photos whose upload is not complete, or whose result was not recorded.
    func queuedPhotos() throws -> [PhotoRecord] {
        try queue.read { try PhotoRecord.fetchAll($0, sql: "SELECT * FROM photo WHERE state = 'queued' ORDER BY id") }
    }

    /// The record of a photo that the user adds now.
    struct BegunPhoto {
        var photo: PhotoRecord
        /// The record before this call. `nil` if the record is new.
        var before: PhotoRecord?
        /// `true` if the user added the photo before, and the photo was uploaded or is queued.
        var isKnown: Bool { photo == before }
    }

    /// Returns the record of a photo that is about to be queued or held back. The result is an earlier record of the file with
    /// the state `held`, the photo request that the photo fulfils, or a new record. The photo request is the request of the
    /// photo's storm, or the oldest request. All changes are in one transaction, so that two uploads never fulfil the same
    /// request.
    ///
    /// If a photo is added again for its storm, the existing record is used. For example, the user's response to a notification
    /// is delivered again if the app was killed.
    func beginPhoto(_ photo: NewPhoto, as state: PhotoRecord.State = .queued, message: String? = nil) throws -> BegunPhoto {
        try queue.write { try Self.begin(photo, as: state, message: message, in: $0) }
    }

    /// Creates the records of photos that are about to be queued, in one transaction. Because of the transaction, two commands at
    /// the same time do not use the same presigned address.
    ///
    /// - Returns: `nil` for a photo whose address accepts only one file, if another photo was sent to this address.
    func beginPhotos(_ photos: [NewPhoto]) throws -> [BegunPhoto?] {
        if photos.isEmpty { return [] }
        return try queue.write { database in
            try photos.map { new in
                if new.isForOneFile, try Self.isTaken(new.destination, by: new.digest, in: database) { return nil }
                if new.isAgain { try Self.forgetArrivals(of: new, in: database) }
                return try Self.begin(new, as: .queued, message: nil, in: database)
            }
        }
    }

    /// Returns whether another photo was sent or is queued to the destination.
    private static func isTaken(_ destination: String?, by digest: String?, in database: Database) throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM photo WHERE state IN ('queued', 'completed') AND destination IS ? AND digest <> ?)
                    """), arguments: [destination, digest]) ?? false
    }

    /// A photo that the user adds now.
    struct NewPhoto {
        var path: String
        var digest: String
        var storm: Int64?
        var destination: String?
        var tells = false
        var isForLater = false
        /// `true` if the file is a photo. Other files do not fulfil a photo request.
        var isPhoto = true
        var keepsLocation: Bool?
        /// `true` if the destination accepts only one file (``PhotoDestination/isForOneFile``).
        var isForOneFile = false
        /// `true` if the photo is sent even if it was uploaded earlier.
        var isAgain = false
        /// The path of the photo that the file belongs to.
        var owner: String?
        var ownerDigest: String?
        var isSidecar = false
    }

    /// Returns the newest upload of a file that was not cancelled and did not fail.
    ///
    /// - Parameter digest: The digest of the copy. If the digest is known, the file may have had another path.
    func upload(ofFile path: String, digest: String? = nil, to destination: String) throws -> PhotoRecord? {
        try queue.read { database in
            let (column, value) = digest.map { ("digest", $0) } ?? ("path", path)
            return try PhotoRecord.fetchOne(
                database.cachedStatement(
                    sql: """
                        SELECT * FROM photo WHERE \(column) = ? AND destination = ? AND state IN ('queued', 'completed')
                        ORDER BY id DESC LIMIT 1
                        """), arguments: [value, destination])
        }
    }

    private static func begin(
        _ new: NewPhoto, as state: PhotoRecord.State, message: String?, in database: Database
    ) throws -> BegunPhoto {
        let (path, digest, storm, destination) = (new.path, new.digest, new.storm, new.destination)
        // If the photo is queued or was uploaded before, its record and its upload are kept. The photo also fulfils the request
        // of another storm.
        let again = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM photo WHERE digest = ?1 AND state IN ('queued', 'completed')
                    AND destination IS ?3 AND (?3 IS NOT NULL OR storm IS ?2 AND ?2 IS NOT NULL)
                    AND isSidecar = ?4 AND (NOT isSidecar OR ownerDigest IS ?5)
                    ORDER BY state, id LIMIT 1
                    """), arguments: [digest, storm, destination, new.isSidecar, new.ownerDigest])
        if var again {
            // If the photo was queued or sent with its location, no record with the state `held` is added.
            guard state == .queued else { return BegunPhoto(photo: again, before: again) }
            try closeHeld(path, destination, in: database)
            let stored = again
            // The user may have added the photo again without the option to wait for external power, or from a session with a
            // desktop.
            again.isForLater = again.isForLater && new.isForLater
            again.tells = again.tells || new.tells
            // A photo may have no submission key, because the ledger was lost before an upgrade. A photo without a submission key
            // gets a new key.
            again.submission = again.submission ?? newSubmission()
            if again != stored { try again.update(database) }
            if let storm, again.storm != storm, new.isPhoto { try closeJob(of: storm, in: database) }
            return BegunPhoto(photo: again, before: again)
        }
        let held = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: "SELECT * FROM photo WHERE state = 'held' AND path = ? AND destination IS ? ORDER BY id LIMIT 1"),
            arguments: [path, destination])
        let job = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: "SELECT * FROM photo WHERE state = 'awaitingPhoto' AND (storm = ?1 OR ?1 IS NULL) ORDER BY id LIMIT 1"),
            arguments: [storm])
        // The photo may have an earlier record that had the state `held` and that the user cancelled. A cancelled record of the
        // photo is used again.
        let abandoned = try PhotoRecord.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT * FROM photo WHERE digest = ? AND state = 'cancelled' AND submission IS NULL AND storm IS NULL
                    AND path = ? AND destination IS ? AND owner IS ? ORDER BY id LIMIT 1
                    """), arguments: [digest, path, destination, new.owner])
        let before = held ?? (new.isPhoto ? job : nil) ?? abandoned
        if let abandoned, before?.id != abandoned.id { try abandoned.delete(database) }
        let now = BGTaskScheduler.now
        var photo = before ?? PhotoRecord(storm: storm, state: state, createdAt: now, changedAt: now)
        (photo.state, photo.path, photo.digest, photo.destination) = (state, path, digest, destination)
        photo.storm = photo.storm ?? storm
        (photo.tells, photo.isForLater, photo.keepsLocation) = (new.tells, new.isForLater, new.keepsLocation)
        photo.submission = state == .queued ? newSubmission() : nil
        (photo.message, photo.changedAt) = (message, now)
        (photo.owner, photo.ownerDigest, photo.isSidecar) = (new.owner, new.ownerDigest, new.isSidecar)
        try photo.save(database)
        return BegunPhoto(photo: photo, before: before)
    }

    private static func newSubmission() -> String { BackgroundTransfers.stored(submissionKey: UUID.random().uuidString) }

    /// If the file of a photo was sent, closes the photo's earlier record that has the state `held`. The user does not have to
    /// decide about the file any more.
    static func closeHeld(_ path: String, _ destination: String?, in database: Database) throws {
        try database.execute(
            sql: """
                UPDATE photo SET state = CASE WHEN storm IS NULL THEN 'cancelled' ELSE 'completed' END,
                    message = 'the photo is already uploaded'
                WHERE state = 'held' AND path = ? AND destination IS ?
                """, arguments: [path, destination])
    }

    /// Closes the photo request of a storm whose photo was sent before.
    static func closeJob(of storm: Int64, in database: Database) throws {
        try database.execute(
            sql: """
                UPDATE photo SET state = 'completed', message = 'the photo is already uploaded' WHERE id = (
                    SELECT id FROM photo WHERE state = 'awaitingPhoto' AND storm = ? ORDER BY id LIMIT 1)
                """, arguments: [storm])
    }

    /// Undoes the changes of ``beginPhoto(_:as:message:)`` for a photo that could not be queued. If the photo was recorded before
    /// that call, the record is kept, because the record belongs to another command.
    func revert(_ begun: BegunPhoto) throws {
        if begun.isKnown { return }
        try queue.write { database in
            if let before = begun.before { try before.update(database) } else { try begun.photo.delete(database) }
        }
    }

    func removePhoto(_ id: Int64) throws { _ = try queue.write { try PhotoRecord.deleteOne($0, key: id) } }

    /// Adds photos that are in the ledger but not in this store, because the store was created again or restored from a backup.
    func adoptPhotos(_ photos: [PhotoRecord]) throws {
        try queue.write { database in
            for var photo in photos where try Self.photo(submittedAs: photo.submission, in: database) == nil {
                try photo.insert(database)
            }
        }
    }

    /// The reason why a transfer must not be retried.
    package enum RetryObstacle: Sendable, Equatable, CustomStringConvertible {
        case photoWasGivenAgain
        case addressIsTaken

        package var description: String {
            switch self {
            case .photoWasGivenAgain: "the same photo was added again, and is uploaded or queued"
            case .addressIsTaken: "the presigned address was already used for another photo"
            }
        }
    }

    /// Queues a photo again because its failed transfer is retried, unless the user has added the photo again.
    ///
    /// - Parameters:
    ///   - submission: The stored submission key of the transfer.
    ///   - isForOneFile: A closure that returns whether the destination with this identity accepts only one file.
    /// - Returns: the reason why the transfer must not be retried (the photo would be sent twice, or would replace another
    ///   photo), or `nil`.
    package func retryPhoto(_ submission: String?, isForOneFile: (String?) -> Bool = { _ in false }) throws -> RetryObstacle? {
        try queue.write { database in
            guard var photo = try Self.photo(submittedAs: submission, in: database) else { return nil }
            let isElsewhere = try Bool.fetchOne(
                database,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM photo WHERE digest = ? AND destination IS ? AND id <> ?
                    AND state IN ('queued', 'completed') AND isSidecar = ? AND (NOT isSidecar OR ownerDigest IS ?))
                    """, arguments: [photo.digest, photo.destination, photo.id, photo.isSidecar, photo.ownerDigest])
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

    /// Marks a photo as lost, because the server does not have it any more. The user can then add the photo again. If the agent
    /// reports the end of the photo's transfer later, Stormy ignores the report.
    package func photoWasLost(_ submission: String?, message: String) throws {
        try queue.write { database in
            guard var photo = try Self.photo(submittedAs: submission, in: database) else { return }
            (photo.state, photo.message, photo.remoteURL) = (.lost, message, nil)
            try photo.update(database)
        }
    }

    /// Marks earlier uploads of a photo as lost, because the photo is sent again.
    private static func forgetArrivals(of new: NewPhoto, in database: Database) throws {
        try database.cachedStatement(
            sql: """
                UPDATE photo SET state = 'lost', message = 'to be sent again', remoteURL = NULL
                WHERE digest = ? AND destination = ? AND state = 'completed'
                """
        ).execute(arguments: [new.digest, new.destination])
    }

    /// Cancels a photo request, or a photo that is held back because of its location.
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
