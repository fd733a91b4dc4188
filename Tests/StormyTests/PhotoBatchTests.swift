import Foundation
import Synchronization
import Testing

@testable import Stormy

@Suite final class PhotoBatchTests {
    private let photos = Atomic<Int64>(0)

    private func photo(_ name: String, _ state: PhotoRecord.State, _ message: String? = nil, url: String? = nil) -> PhotoRecord {
        PhotoRecord(
            id: photos.add(1, ordering: .relaxed).newValue, state: state, path: "/p/\(name)", message: message, createdAt: Date(),
            changedAt: Date(), remoteURL: url)
    }

    private func words(_ photos: [PhotoRecord], left: Int) -> [String]? {
        var batch = PhotoBatch()
        for photo in photos { batch.add(photo) }
        return batch.words(left: left).map { [$0.title, $0.body] }
    }

    @Test func `the notification counts the photos, and then shows their results`() {
        let one = photo("a.jpg", .completed, url: "https://h/a.jpg")
        let two = photo("b.jpg", .completed, url: "https://h/b.jpg")
        let bad = photo("c.jpg", .failed, "The server is full.")
        #expect(words([one], left: 19) == ["Uploading photos", "1 of 20"])
        #expect(words([one, bad], left: 1) == ["Uploading photos", "2 of 3\nc.jpg: The server is full."])
        #expect(words([one], left: 0) == ["Photo uploaded", "a.jpg\nhttps://h/a.jpg"])
        #expect(words([one, two], left: 0) == ["2 photos uploaded", "a.jpg, b.jpg\nhttps://h/b.jpg"])
        #expect(words([bad], left: 0) == ["Photo not uploaded", "c.jpg: The server is full."])
        #expect(words([one, bad], left: 0) == ["1 photo uploaded, 1 not", "a.jpg\nc.jpg: The server is full.\nhttps://h/a.jpg"])
        let worse = photo("e.jpg", .failed, "No.")
        #expect(words([bad, worse], left: 0) == ["2 photos not uploaded", "c.jpg: The server is full. (and 1 more)"])
        let many = (0..<20).map { _ in photo("a.jpg", .completed, url: "https://h/a.jpg") }
        #expect(words(many, left: 0)?[1].hasPrefix("a.jpg, a.jpg, a.jpg and 17 more") == true)
        #expect(words([photo("d.jpg", .cancelled)], left: 0) == nil)
    }

    @Test func `the history names what happened to the photos of a launch`() {
        func sent(_ state: PhotoRecord.State, to destination: String?, _ name: String = "a.jpg", _ message: String? = nil)
            -> PhotoRecord
        {
            var photo = photo(name, state, message)
            photo.destination = destination
            return photo
        }
        let home = sent(.completed, to: "home https://h/")
        #expect(PhotoDelivery.summary(of: []) == nil)
        #expect(PhotoDelivery.summary(of: [sent(.lost, to: nil)]) == nil)
        #expect(PhotoDelivery.summary(of: [home]) == "1 photo uploaded to home")
        #expect(PhotoDelivery.summary(of: [sent(.completed, to: nil)]) == "1 photo uploaded")
        #expect(
            PhotoDelivery.summary(of: [sent(.completed, to: "my home https://h/ webdav as me")]) == "1 photo uploaded to my home")
        #expect(
            PhotoDelivery.summary(
                of: Array(repeating: home, count: 66) + [sent(.completed, to: "nas dav://n"), sent(.cancelled, to: nil)])
                == "66 photos uploaded to home; 1 photo uploaded to nas; 1 photo cancelled")
        let failed = (1...5).map { sent(.failed, to: "home https://h/", "\($0).jpg", $0 == 1 ? "The server is full." : nil) }
        #expect(
            PhotoDelivery.summary(of: failed)
                == "1.jpg not uploaded: The server is full.; 2.jpg not uploaded; 3.jpg not uploaded; 2 more not uploaded")
    }

    @Test func `a batch is stored for later processes and closed once`() throws {
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try StormyStore(folder: folder)
        func begin(_ name: String) throws -> String {
            try #require(try store.beginPhoto(.init(path: "/\(name)", digest: name, tells: true)).photo.submission)
        }
        let ids = try ["a", "b"].map(begin)
        func end(_ id: String, as state: PhotoRecord.State = .completed) throws -> (batch: PhotoBatch, left: Int) {
            _ = try store.endPhotos([PhotoEnd(submission: id, state: state)], isInBatch: { _ in true })
            return try StormyStore(folder: folder).photoBatch()
        }
        #expect(try end(ids[0]).left == 1)
        let both = try end(ids[1])
        #expect(both.left == 0 && both.batch.uploaded == ["a", "b"])
        // If the process died during the first delivery, the end of the upload is delivered again.
        #expect(try end(ids[1]).batch == both.batch)
        // The next photo belongs to the same batch, because the user was not yet notified of the result of the batch.
        let next = try begin("c")
        #expect(try end(next, as: .failed).batch.failures.map(\.name) == ["c"])
        #expect(try !store.closePhotoBatch(both.batch))
        // The photo was retried, and the server has received it.
        let all = try end(next)
        #expect(all.batch.failures.isEmpty && all.batch.uploaded == ["a", "b", "c"])
        #expect(try store.closePhotoBatch(all.batch))
        #expect(try store.photoBatch().batch == PhotoBatch())
        // The user has not seen the notification. No other upload has ended since then, so the notification is not changed.
        let said = try #require(try store.closedPhotoBatch())
        try store.reopenPhotoBatch(said)
        #expect(try store.photoBatch().batch == PhotoBatch() && store.closedPhotoBatch() == all.batch)
        // The upload of another photo has ended, so one notification lists all photos.
        let last = try begin("d")
        _ = try end(last, as: .failed)
        try store.reopenPhotoBatch(said)
        let joined = try store.photoBatch().batch
        #expect(joined.uploaded == ["a", "b", "c"] && joined.failures.map(\.name) == ["d"] && joined.mark == said.mark)
        // The user retries the failed photo before the notification was seen. The next notification lists the other photos and
        // the result of the retry.
        #expect(try store.closePhotoBatch(joined))
        try store.reopenPhotoBatch(joined, isOpened: true) { $0.failures = [] }
        let rest = try store.photoBatch().batch
        #expect(rest.uploaded == ["a", "b", "c"] && rest.failures.isEmpty)
    }

    /// The session may deliver the end of an upload after the notification of the batch. No later call would report the end of
    /// this upload.
    @Test func `a photo that ends after the batch notification leads to another notification`() async throws {
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let told = Mutex(0)
        let delivery = PhotoDelivery(try StormyStore(folder: folder)) { _ in told.withLock { $0 += 1 } }
        delivery.photosEnded([.init(photo: photo("a.jpg", .completed), transfer: 1)])
        #expect(told.withLock { $0 } == 0)
        try await delivery.show()
        #expect(told.withLock { $0 } == 1)
        let late = photo("b.jpg", .completed)
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                delivery.photosEnded([.init(photo: late, transfer: 2)])
                continuation.resume()
            }
        }
        // The call `noted` returns when the notification was accepted. Until then, the end of the upload does not count as
        // reported.
        #expect(told.withLock { $0 } == 2)
    }
}
