import Foundation
import GRDB
import Testing

@testable import Stormy

/// Tests which photo completes which request. Also tests the records of a process that died before it queued a photo.
@Suite final class PhotoRecordTests {
    private let folder: URL
    private let store: StormyStore

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        store = try StormyStore(folder: folder)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    @discardableResult
    private func begin(
        _ path: String = "/a.jpg", digest: String = "aa", storm: Int64? = nil, at destination: String? = nil,
        as state: PhotoRecord.State = .queued
    ) throws -> StormyStore.BegunPhoto {
        try store.beginPhoto(
            .init(path: path, digest: digest, storm: storm, destination: destination), as: state,
            message: state == .held ? "x" : nil)
    }

    /// Stores how the transfer of a photo ended.
    @discardableResult
    private func end(_ photo: PhotoRecord, as end: PhotoRecord.State = .completed, url: String? = nil) throws -> PhotoRecord? {
        let end = PhotoEnd(
            submission: try #require(photo.submission), state: end, message: end == .completed ? nil : "no", remoteURL: url)
        return try store.endPhotos([end])[0]
    }

    /// Stores the photo request of a storm.
    @discardableResult
    private func job(_ storm: Int64) throws -> Int64 {
        try store.queue.write { database in
            var photo = PhotoRecord(storm: storm, state: .awaitingPhoto, createdAt: Date(), changedAt: Date())
            try photo.insert(database)
            return try #require(photo.id)
        }
    }

    private func photo(_ id: Int64?) throws -> PhotoRecord { try #require(try store.photos().first { $0.id == id }) }

    @Test func `a photo fulfils the oldest open request`() throws {
        let (first, second) = (try job(1), try job(2))
        #expect(try begin().photo.id == first)
        #expect(try begin("/b.jpg", digest: "bb").photo.id == second)
        #expect(try begin("/c.jpg", digest: "cc").before == nil, "no photo request is left, so the photo has a separate row")
    }

    @Test func `a photo for a storm fulfils the request of that storm`() throws {
        let (first, second) = (try job(1), try job(2))
        #expect(try begin(storm: 2).photo.id == second)
        #expect(try photo(first).state == .awaitingPhoto)
    }

    /// The user pressed the button, and then the app died. The next launch of the app receives the button press again.
    @Test func `the same photo for the same storm is one record`() throws {
        let mine = try job(1)
        try job(2)
        let once = try begin(storm: 1).photo
        let again = try begin("/moved/a.jpg", storm: 1).photo
        #expect(once.id == mine)
        #expect(again.id == mine)
        #expect(again.path == "/a.jpg")
        #expect(try store.photos().count == 2)
        #expect(once.submission != nil && again.submission == once.submission)
        try end(once)
        // A ledger from a backup does not contain the completed upload. The agent's copy of the completed photo is also missing.
        #expect(try end(once, as: .failed) == nil)
        #expect(try begin(storm: 1).photo.state == .completed)
        #expect(try begin(storm: 1).photo.submission == once.submission)
    }

    @Test func `another photo for the same storm is another record`() throws {
        try job(1)
        let once = try begin(storm: 1).photo
        #expect(try begin("/b.jpg", digest: "bb", storm: 1).photo.id != once.id)
    }

    @Test(arguments: [PhotoRecord.State.failed, .cancelled])
    func `a failed or cancelled photo may be given again`(_ end: PhotoRecord.State) throws {
        try job(1)
        let once = try begin(storm: 1).photo
        try self.end(once, as: end)
        let again = try begin(storm: 1).photo
        #expect(again.id != once.id && again.submission != once.submission)
    }

    @Test func `a held photo that is given again is the same record and is queued`() throws {
        let held = try begin(as: .held).photo
        #expect(held.submission == nil)
        let sent = try begin()
        #expect(sent.photo.id == held.id)
        #expect(sent.before?.state == .held)
        #expect(sent.photo.state == .queued && sent.photo.submission != nil)
    }

    @Test func `a photo that is known closes the record of its file that was held`() throws {
        let known = try begin(at: "home")
        try end(known.photo)
        let held = try begin(digest: "located", at: "home", as: .held)
        let other = try begin("/b.jpg", digest: "bb", at: "home", as: .held)
        let again = try begin(at: "home")
        #expect(again.photo.id == known.photo.id)
        #expect(try photo(held.photo.id).message == "the photo is already uploaded")
        #expect(try photo(other.photo.id).state == .held)
    }

    @Test func `a photo that is known is not held as well`() throws {
        let known = try begin(at: "home")
        try end(known.photo)
        let held = try begin(at: "home", as: .held)
        #expect(held.photo.id == known.photo.id && held.isKnown)
        #expect(try store.photos().count == 1)
    }

    @Test func `the records are restored if a photo cannot be queued`() throws {
        let mine = try job(1)
        let filled = try begin()
        try store.revert(filled)
        #expect(try photo(mine).state == .awaitingPhoto)
        #expect(try photo(mine).path == nil)
        let own = try begin(storm: 9)
        try store.revert(own)
        #expect(try store.photos().count == 1)
    }

    // MARK: Ends

    /// The user retried the transfer. After that, another process stored the earlier failure.
    @Test func `a photo arrives after its failure was stored`() throws {
        let mine = try begin().photo
        try end(mine, as: .failed)
        #expect(try end(mine, url: "u")?.state == .completed)
        #expect(try photo(mine.id).state == .completed && photo(mine.id).remoteURL == "u" && photo(mine.id).message == nil)
    }

    @Test func `the end of a transfer does not count after the server lost its photo`() throws {
        let mine = try begin(at: "home").photo
        try store.photoWasLost(mine.submission, message: "gone")
        #expect(try end(mine) == nil)
        #expect(try photo(mine.id).state == .lost)
        #expect(try begin(at: "home").photo.id != mine.id)
    }

    @Test func `an end that the ledger has is stored once`() throws {
        var mine = try begin().photo
        (mine.state, mine.remoteURL) = (.completed, "u")
        try store.change([mine], from: .queued)
        #expect(try photo(mine.id).state == .completed && photo(mine.id).remoteURL == "u")
        mine.state = .failed
        try store.change([mine], from: .queued)
        #expect(try photo(mine.id).state == .completed)
        // The record now belongs to another transfer.
        let other = try begin("/b.jpg", digest: "bb").photo
        var late = other
        (late.state, late.submission) = (.failed, "key:other")
        try store.change([late], from: .queued)
        #expect(try photo(other.id).state == .queued)
        // A photo that waits for a good time has no transfer.
        late = other
        late.state = .held
        try store.change([late], from: .queued)
        #expect(try photo(other.id).state == .held && photo(other.id).submission == nil)
    }

    @Test func `the transfer of an unknown photo gets a record`() throws {
        let unknown = PhotoRecord(
            state: .queued, path: "/z.jpg", submission: "key:zz", digest: "zz", createdAt: Date(), changedAt: Date())
        #expect(try end(unknown) == nil)
        try store.adoptPhotos([unknown, unknown])
        #expect(try end(unknown)?.id != nil)
        #expect(try store.photos().map(\.state) == [.completed])
    }

    @Test func `a photo that the user cancelled has one record when it is given again`() throws {
        let mine = try begin(as: .held).photo
        #expect(try store.cancelPhoto(try #require(mine.id)))
        #expect(try photo(mine.id).state == .cancelled)
        let again = try begin()
        #expect(again.photo.id == mine.id && again.photo.state == .queued)
        // The photo of a storm has a separate record.
        try store.revert(again)
        let filled = try job(1)
        #expect(try begin().photo.id == filled)
        #expect(try store.photos().map(\.id) == [filled])
    }

    // MARK: Addresses for one file

    private func beginAtOneAddress(_ digest: String, isAgain: Bool = false) throws -> PhotoRecord? {
        try store.beginPhotos([
            StormyStore.NewPhoto(
                path: "/\(digest).jpg", digest: digest, destination: "home", isForOneFile: true, isAgain: isAgain)
        ])[0]?.photo
    }

    @Test func `an address for one file is taken by the record of the first photo`() throws {
        let first = try #require(try beginAtOneAddress("aa"))
        #expect(try beginAtOneAddress("bb") == nil)
        #expect(try beginAtOneAddress("aa")?.id == first.id)
        let together = try store.beginPhotos(
            ["cc", "dd", "cc"].map { .init(path: "/x.jpg", digest: $0, destination: "other", isForOneFile: true) })
        #expect(together.map { $0?.photo.digest } == ["cc", nil, "cc"])
        try end(first)
        #expect(try beginAtOneAddress("bb", isAgain: true) == nil)
        #expect(try beginAtOneAddress("aa", isAgain: true)?.id != first.id)
    }

    @Test func `a failed photo is not retried if its address for one file has another photo`() throws {
        let first = try #require(try beginAtOneAddress("aa"))
        try end(first, as: .failed)
        #expect(try beginAtOneAddress("bb") != nil)
        #expect(try store.retryPhoto(first.submission) { $0 == "home" } == .addressIsTaken)
        #expect(try photo(first.id).state == .failed)
        #expect(try store.retryPhoto(first.submission) == nil)
        #expect(try photo(first.id).state == .queued)
    }

    // MARK: Known photos

    @Test func `an uploaded photo fulfils only the request of the storm that it is given for`() throws {
        let there = try begin(at: "home")
        try end(there.photo)
        let (first, second) = (try job(1), try job(2))
        func again(_ storm: Int64?) throws {
            let known = try begin(storm: storm, at: "home")
            #expect(known.photo.id == there.photo.id && known.isKnown)
        }
        try again(nil)
        #expect(try [first, second].map { try photo($0).state } == [.awaitingPhoto, .awaitingPhoto])
        try again(2)
        #expect(try [first, second].map { try photo($0).state } == [.awaitingPhoto, .completed])
        // At another destination, the photo counts as a new photo.
        #expect(try begin(at: "work").photo.id != there.photo.id)
    }

    // MARK: Upgrade

    @Test func `a store of the first version is migrated`() throws {
        let old = folder.appendingPathComponent("old")
        do {
            let store = try StormyStore(folder: old)
            try store.queue.write { database in
                for index in ["photoDigest", "photoState"] { try database.execute(sql: "DROP INDEX \(index)") }
                for column in ["changedAt", "digest", "key", "destination", "remoteURL", "tells"] {
                    try database.execute(sql: "ALTER TABLE photo DROP COLUMN \(column)")
                }
                try database.execute(sql: "DELETE FROM grdb_migrations WHERE identifier LIKE '2:%' OR identifier LIKE '3:%'")
                try database.execute(sql: "INSERT INTO photo (storm, state, createdAt) VALUES (3, 'awaitingPhoto', 1000)")
            }
        }
        let store = try StormyStore(folder: old)
        #expect(try store.photos().first?.changedAt == Date(timeIntervalSince1970: 1_000))
        let filled = try store.beginPhoto(.init(path: "/a.jpg", digest: "aa", storm: 3))
        #expect(filled.before?.state == .awaitingPhoto)
        #expect(filled.photo.submission != nil)
    }
}
