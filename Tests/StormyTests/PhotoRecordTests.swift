import Foundation
import GRDB
import ProcessSupport
import Testing

@testable import Stormy

/// Which photo fills which job, and what becomes of it when its process dies half-way.
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
        _ path: String = "/a.jpg", digest: String = "aa", storm: Int64? = nil, as state: PhotoRecord.State = .queued
    ) throws -> (photo: PhotoRecord, before: PhotoRecord?) {
        try store.beginPhoto(path: path, digest: digest, storm: storm, as: state, message: nil)
    }

    /// A storm's wish for a photo.
    @discardableResult
    private func job(_ storm: Int64) throws -> Int64 {
        try store.queue.write { database in
            var photo = PhotoRecord(
                id: nil, storm: storm, state: .awaitingPhoto, path: nil, transfer: nil, message: nil, digest: nil,
                key: nil, createdAt: Date(), changedAt: Date())
            try photo.insert(database)
            return try #require(photo.id)
        }
    }

    private func photo(_ id: Int64?) throws -> PhotoRecord { try #require(try store.photos().first { $0.id == id }) }

    @Test func aPhotoFillsTheOldestJob() throws {
        let (first, second) = (try job(1), try job(2))
        #expect(try begin().photo.id == first)
        #expect(try begin("/b.jpg", digest: "bb").photo.id == second)
        #expect(try begin("/c.jpg", digest: "cc").before == nil, "no job is left: a photo of its own")
    }

    @Test func aButtonFillsItsOwnStormsJob() throws {
        let (first, second) = (try job(1), try job(2))
        #expect(try begin(storm: 2).photo.id == second)
        #expect(try photo(first).state == .awaitingPhoto)
    }

    /// The app died behind the button and was told of the press again.
    @Test func theSamePhotoForTheSameStormIsTheSameRecord() throws {
        let mine = try job(1)
        try job(2)
        let once = try begin(storm: 1).photo
        let again = try begin("/moved/a.jpg", storm: 1).photo
        #expect(once.id == mine)
        #expect(again.id == mine)
        #expect(again.path == "/a.jpg")
        #expect(try store.photos().count == 2)
        _ = try store.endPhoto(mine, transfer: 7, as: .completed, message: nil)
        // A ledger from a backup knows nothing of that, and its copy is gone.
        #expect(try store.endPhoto(mine, transfer: 7, as: .failed, message: "its copy is gone") == nil)
        #expect(try begin(storm: 1).photo.state == .completed)
        #expect(try begin(storm: 1).photo.transfer == 7)
    }

    @Test func anotherPhotoForTheSameStormIsAnother() throws {
        try job(1)
        let once = try begin(storm: 1).photo
        #expect(try begin("/b.jpg", digest: "bb", storm: 1).photo.id != once.id)
    }

    @Test(arguments: [PhotoRecord.State.failed, .cancelled])
    func aPhotoThatDidNotArriveMayBeGivenAgain(_ end: PhotoRecord.State) throws {
        try job(1)
        let once = try begin(storm: 1).photo
        _ = try store.endPhoto(try #require(once.id), transfer: 7, as: end, message: "no")
        #expect(try begin(storm: 1).photo.id != once.id)
    }

    @Test func aHeldPhotoIsFoundAgainByItsFile() throws {
        let held = try begin(as: .held).photo
        let sent = try begin()
        #expect(sent.photo.id == held.id)
        #expect(sent.before?.state == .held)
        #expect(sent.photo.state == .queued)
    }

    @Test func `a photo that is known closes the record of its file that was held`() throws {
        let known = try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: nil, destination: "home", as: .queued, message: nil)
        _ = try store.endPhoto(try #require(known.photo.id), transfer: 1, as: .completed, message: nil)
        let held = try store.beginPhoto(
            path: "/a.jpg", digest: "located", storm: nil, destination: "home", as: .held, message: "x")
        let other = try store.beginPhoto(path: "/b.jpg", digest: "bb", storm: nil, destination: "home", as: .held, message: "x")
        let again = try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: nil, destination: "home", as: .queued, message: nil)
        #expect(again.photo.id == known.photo.id)
        #expect(try photo(held.photo.id).state == .cancelled)
        #expect(try photo(other.photo.id).state == .held)
    }

    @Test func `a photo that is known is not held as well`() throws {
        let known = try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: nil, destination: "home", as: .queued, message: nil)
        _ = try store.endPhoto(try #require(known.photo.id), transfer: 1, as: .completed, message: nil)
        let held = try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: nil, destination: "home", as: .held, message: "x")
        #expect(held.photo.id == known.photo.id && held.photo.isKnown(held.before))
        #expect(try store.photos().count == 1)
    }

    @Test func whatCouldNotBeQueuedIsWhatItWas() throws {
        let mine = try job(1)
        let filled = try begin()
        try store.giveBack(filled.photo, before: filled.before)
        #expect(try photo(mine).state == .awaitingPhoto)
        #expect(try photo(mine).path == nil)
        let own = try begin(storm: 9)
        try store.giveBack(own.photo, before: own.before)
        #expect(try store.photos().count == 1)
    }

    // MARK: The process died between the record and the queue

    private func recover(transfers: [Int64: Int64], isAlive: (ProcessIdentity) -> Bool = { _ in false }) throws {
        try store.recoverPhotos(store.lostPhotos(isAlive: isAlive), transfers: transfers)
    }

    @Test func aLostPhotoIsFoundByItsTransfersLabel() throws {
        let mine = try begin().photo
        try recover(transfers: [try #require(mine.id): 42])
        #expect(try photo(mine.id).transfer == 42)
        #expect(try photo(mine.id).state == .queued)
    }

    @Test func aLostPhotoWithoutATransferIsGivenBack() throws {
        let filled = try job(1)
        try begin(storm: 1)
        let own = try begin("/b.jpg", digest: "bb").photo
        try recover(transfers: [:])
        #expect(try photo(filled).state == .awaitingPhoto)
        #expect(try photo(filled).path == nil)
        #expect(try photo(own.id).state == .cancelled)
    }

    @Test func `a photo of a killed command has one record when it is given again`() throws {
        let mine = try begin().photo
        try recover(transfers: [:])
        #expect(try photo(mine.id).state == .cancelled)
        let again = try begin()
        #expect(again.photo.id == mine.id && again.photo.state == .queued)
        try recover(transfers: [:])
        // The photo of a storm has its own record.
        let filled = try job(1)
        #expect(try begin().photo.id == filled)
        #expect(try store.photos().map(\.id) == [filled])
    }

    /// A computer may sleep between the record and the queue, and its clock may be set.
    @Test func `a photo that a living process queues is left alone at any age`() throws {
        let mine = try begin().photo
        #expect(try store.lostPhotos(now: Date(timeIntervalSinceNow: 30 * 86_400)).isEmpty)
        #expect(try store.lostPhotos(isAlive: { _ in false }).map(\.id) == [mine.id])
    }

    @Test func `a photo that two processes queue is lost when both have ended`() throws {
        let (first, second) = (ProcessIdentity(pid: 7, start: 1), ProcessIdentity(pid: 8, start: 1 << 40))
        func begin() throws -> PhotoRecord {
            try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: nil, destination: "home", as: .queued, message: nil).photo
        }
        let mine = try begin()
        try store.queue.write { database in
            var photo = mine
            photo.holders = PhotoHolders([first, second])
            try photo.update(database)
        }
        #expect(try store.lostPhotos(isAlive: { $0 == first }).isEmpty)
        #expect(try store.lostPhotos(isAlive: { $0 == second }).isEmpty)
        // A third one begins the same photo.
        #expect(try begin().id == mine.id)
        #expect(try photo(mine.id).holders?.processes.count == 3)
        #expect(try store.lostPhotos(isAlive: { $0 != first && $0 != second }).isEmpty)
        let lost = try store.lostPhotos { _ in false }
        #expect(lost.count == 1)
        // It was queued after all.
        try store.setTransfers([(mine.id, 9)])
        try store.recoverPhotos(lost, transfers: [:])
        #expect(try photo(mine.id).transfer == 9 && photo(mine.id).state == .queued && photo(mine.id).holders == nil)
    }

    @Test(arguments: [(30, false), (61, true)])
    func `a photo of an earlier version is lost after a minute`(_ age: Int, _ isLost: Bool) throws {
        let mine = try begin().photo
        try store.queue.write { try $0.execute(sql: "UPDATE photo SET holders = NULL") }
        let later = Date(timeIntervalSinceNow: Double(age))
        #expect(try store.lostPhotos(now: later).map(\.id) == (isLost ? [mine.id] : []))
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
        _ = try store.endPhoto(try #require(first.id), transfer: 1, as: .completed, message: nil)
        #expect(try beginAtOneAddress("bb", isAgain: true) == nil)
        #expect(try beginAtOneAddress("aa", isAgain: true)?.id != first.id)
    }

    @Test func `a failed photo is not retried if its address for one file has another photo`() throws {
        let first = try #require(try beginAtOneAddress("aa")?.id)
        _ = try store.endPhoto(first, transfer: 1, as: .failed, message: "403")
        #expect(try beginAtOneAddress("bb") != nil)
        #expect(try store.retryPhoto(first, transfer: 1, digests: ["aa"]) { $0 == "home" } == .addressIsTaken)
        #expect(try photo(first).state == .failed)
        #expect(try store.retryPhoto(first, transfer: 1, digests: ["aa"]) == nil)
        #expect(try photo(first).state == .queued)
    }

    // MARK: Known photos

    @Test func aPhotoThatIsThereFulfilsOnlyTheStormItIsGivenTo() throws {
        let there = try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: nil, destination: "home", as: .queued, message: nil)
        _ = try store.endPhoto(try #require(there.photo.id), transfer: 1, as: .completed, message: nil)
        let (first, second) = (try job(1), try job(2))
        func again(_ storm: Int64?) throws {
            let known = try store.beginPhoto(
                path: "/a.jpg", digest: "aa", storm: storm, destination: "home", as: .queued, message: nil)
            #expect(known.photo.id == there.photo.id && known.photo.isKnown(known.before))
        }
        try again(nil)
        #expect(try [first, second].map { try photo($0).state } == [.awaitingPhoto, .awaitingPhoto])
        try again(2)
        #expect(try [first, second].map { try photo($0).state } == [.awaitingPhoto, .completed])
        // Somewhere else it is not there.
        let other = try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: nil, destination: "work", as: .queued, message: nil)
        #expect(other.photo.id != there.photo.id)
    }

    // MARK: Upgrade

    @Test func aStoreOfTheFirstVersionIsBroughtUp() throws {
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
        let filled = try store.beginPhoto(path: "/a.jpg", digest: "aa", storm: 3, as: .queued, message: nil)
        #expect(filled.before?.state == .awaitingPhoto)
        #expect(filled.photo.key != nil)
    }

    @Test func labelsAreReadBack() throws {
        for tells in [true, false] {
            let label = PhotoUploads.Label(photo: 12, tells: tells)
            let read = try #require(PhotoUploads.Label(parsing: label.text))
            #expect(read.photo == 12)
            #expect(read.tells == tells)
        }
        for text in [nil, "", "photo", "photo-", "photo-x", "video-1", "12"] { #expect(PhotoUploads.Label(parsing: text) == nil) }
    }
}
