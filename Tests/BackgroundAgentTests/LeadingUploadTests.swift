@testable import BackgroundLedger
import Foundation
import Spool
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests uploads that begin after another upload, which is their leader.
@Suite struct LeadingUploadTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// Adds a photo and its sidecar to the queue. The sidecar was queued first.
    ///
    /// - Parameter isKnown: `true` if the photo has the key of the sidecar.
    private func queueBoth(isKnown: Bool = true) throws -> (photo: Int64, sidecar: Int64) {
        try Data("photo".utf8).write(to: bench.ledger.directories.spooled("upload-1"))
        func add(_ name: String, _ company: UploadCompany) throws -> Int64 {
            try bench.download("photos/") {
                ($0.kind, $0.method, $0.bodyFile, $0.key) = (.upload, "PUT", "upload-1", name)
                ($0.bytesTotal, $0.sourceSHA256) = (5, FileDigest.sha256(of: Data("photo".utf8)))
                $0.upload = UploadOrder(method: .webdav, fileName: name, byteCount: 5, token: name)
                $0.upload?.company = company
            }
        }
        let sidecar = try add("a.jpg.xmp", UploadCompany(leader: "a.jpg"))
        let photo = try add("a.jpg", UploadCompany(followers: isKnown ? ["a.jpg.xmp"] : []))
        try bench.turn()
        return (photo, sidecar)
    }

    private func isStarted(_ id: Int64) -> Bool { bench.transport.started.contains { $0.id.transfer == id } }

    private func end(_ id: Int64, as outcome: TransferLife.Outcome, storedAt url: String? = nil) throws {
        try bench.ledger.write { transaction in
            var transfer = try #require(try transaction.transfer(id))
            transfer.receipt = url.map {
                UploadReceipt(url: $0, byteCount: 5, sha256: "", storedAt: bench.now, proof: .digest, checkedAt: nil)
            }
            try transaction.handle(.ended(outcome, nil, now: bench.now), &transfer, now: bench.now)
        }
    }

    @Test(arguments: [true, false]) func `a follower begins after its leader, and gets the stored name of the leader`(
        _ isKnown: Bool
    ) throws {
        let (photo, sidecar) = try queueBoth(isKnown: isKnown)
        #expect(isStarted(photo) && !isStarted(sidecar))
        #expect(try bench.transfer(sidecar).note == "begins after the upload of a.jpg")
        #expect(try bench.transfer(sidecar).errorMessage == nil)
        try end(photo, as: .completed, storedAt: "https://host.test/photos/a-1.jpg")
        try bench.turn()
        #expect(isStarted(sidecar))
        #expect(try bench.transfer(sidecar).upload?.fileName == "a-1.jpg.xmp")
        #expect(try bench.transfer(sidecar).upload?.company?.leader == nil)
    }

    @Test(arguments: [TransferLife.Outcome.failed, .cancelled]) func `a follower fails if its leader did not arrive`(
        _ outcome: TransferLife.Outcome
    ) throws {
        let (photo, sidecar) = try queueBoth()
        try end(photo, as: outcome)
        try bench.turn()
        let failed = try bench.transfer(sidecar)
        #expect(failed.state == .failed && !isStarted(sidecar))
        #expect(failed.errorMessage == "a.jpg was not uploaded, and this file belongs to it.")
    }

    @Test func `a follower waits for a paused leader, also if the clock is set back by a year`() throws {
        let (photo, sidecar) = try queueBoth()
        try bench.ledger.write { _ = try $0.handle(.paused, transfer: photo, now: bench.now) }
        try bench.step(-365 * 86_400)
        try bench.pass(30 * 86_400)
        #expect(try bench.transfer(sidecar).state == .waiting && !isStarted(sidecar))
        try end(photo, as: .completed, storedAt: "https://host.test/photos/a.jpg")
        try bench.turn()
        #expect(isStarted(sidecar))
    }

    @Test(arguments: [true, false], [-7_200.0, -86_400, -31_536_000])
    func `a follower begins after its leader although the clock was set back`(_ isAgentRunning: Bool, _ step: Double) throws {
        let (photo, sidecar) = try queueBoth()
        try bench.ledger.write { _ = try $0.handle(.paused, transfer: photo, now: bench.now) }
        try bench.pass(2 * 86_400)
        try end(photo, as: .completed, storedAt: "https://host.test/photos/a.jpg")
        if isAgentRunning {
            try bench.step(step)
        } else {
            try bench.stepUnseen(step)
            try bench.startAgent()
        }
        try bench.pass(60)
        #expect(isStarted(sidecar))
    }

    @Test func `a retry of the leader also retries its followers`() throws {
        let (photo, sidecar) = try queueBoth()
        try end(photo, as: .failed)
        try bench.turn()
        #expect(try bench.transfer(sidecar).state == .failed)
        try bench.ledger.write { _ = try $0.handle(.retried(now: bench.now), transfer: photo, now: bench.now) }
        try bench.turn()
        #expect(try bench.transfer(sidecar).state == .waiting)
        try end(photo, as: .completed, storedAt: "https://host.test/photos/a.jpg")
        try bench.turn()
        #expect(isStarted(sidecar))
    }

    @Test func `a follower whose leader is not in the ledger begins`() throws {
        let (photo, sidecar) = try queueBoth()
        try bench.ledger.write { _ = try TransferRecord.deleteOne($0.database, key: photo) }
        try bench.pass(90_000)
        #expect(isStarted(sidecar))
        #expect(try bench.transfer(sidecar).upload?.fileName == "a.jpg.xmp")
    }

    @Test func `a follower of a leader that was completed while no agent ran begins`() throws {
        let (photo, sidecar) = try queueBoth()
        try end(photo, as: .completed, storedAt: "https://host.test/photos/a.jpg")
        try bench.startAgent()
        #expect(isStarted(sidecar))
    }

    @Test(arguments: [
        ("a.jpg.xmp", "a-1.jpg", "a-1.jpg.xmp"), ("a.mov", "a-1.jpg", "a-1.mov"), ("a.xmp", "a.jpg", "a.xmp"),
        ("other.mov", "a-1.jpg", "other.mov"), ("ab.mov", "a-1.jpg", "ab.mov"),
    ]) func `the name follows the stored name of the leader`(_ name: String, _ stored: String, _ expected: String) {
        #expect(UploadOrder.name(name, of: "a.jpg", storedAs: stored) == expected)
    }
}
