import Foundation
import GRDB
import Testing
import TransferMachines

@testable import BackgroundLedger

/// Tests that the life of a transfer is stored in the columns of its row.
@Suite struct TransferLifeRowTests {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)

    private struct Dice: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    private func event(at now: Date, _ isUpload: Bool, _ dice: inout Dice) -> TransferLife.Event {
        let reason = TransferLife.Reason(code: -1005, message: "trouble")
        let later = now + Double(Int.random(in: 0..<90, using: &dice))
        var events: [TransferLife.Event] = [
            .awaited(now: now), .left(until: later), .adopted(suspended: .random(using: &dice)), .suspended,
            .released(notBefore: nil, now: now), .paused, .unpaused(now: now), .resumed(now: now), .retried(now: now),
            .scheduled(for: later, now: now), .cancelled(message: "by hand", now: now), .began, .stopped, .progressed(now: now),
            .waits(until: later, reason), .proven, .disproven(now: now), .ended(.completed, nil, now: now),
            .ended(.failed, reason, now: now),
            .agentDied(now: now), .collected(now: now), .partTaken, .resumeDataMade(hasPart: .random(using: &dice), now: now),
        ]
        if !isUpload { events.append(.cancelledKeepingPart(token: "t", now: now)) }
        return events.randomElement(using: &dice)!
    }

    @Test func `a record handles every event like the life of its transfer`() throws {
        for seed in 0..<500 {
            var dice = Dice(state: UInt64(seed) &* 7_919 &+ 1)
            let isUpload = Bool.random(using: &dice)
            var record = TransferRecord(
                session: "s", key: "k", kind: isUpload ? .upload : .download, method: .random(using: &dice) ? "POST" : "GET",
                url: "http://a.test/", headers: [], now: Self.start)
            record.bodyFile = .random(using: &dice) ? "body" : nil
            for step in 0..<40 {
                let event = event(at: Self.start + Double(step), isUpload, &dice)
                var expected = record.life
                let facts = TransferLife.Facts(
                    isUpload: isUpload, mayBeRepeated: record.mayBeRepeated, mayBeCut: record.mayBeInterrupted,
                    hasBody: record.bodyFile != nil,
                    hasResumablePart: record.partial?.isResumable == true, hasAnswer: record.head != nil, newToken: "")
                let commands = expected.handle(event, facts)
                #expect(record.handle(event) == commands, "seed \(seed), step \(step): \(event)")
                #expect(record.life == expected, "seed \(seed), step \(step): \(event)")
            }
        }
    }

    @Test func `a row stores the life of a transfer`() throws {
        let test = try TestLedger()
        var record = TransferRecord(
            session: "s", key: "k", kind: .download, method: "GET", url: "http://a.test/", headers: [], now: Self.start)
        for event: TransferLife.Event in [
            .adopted(suspended: false), .began, .waits(until: Self.start + 60, .init(code: -1005, message: "broke")), .suspended,
        ] { _ = record.handle(event) }
        let written = record
        let read = try test.open().write { transaction in
            try transaction.transfer(try transaction.insert(written).id!)
        }
        #expect(read?.life == record.life)
        #expect(read?.life.phase == .held(by: .app, next: .waiting(until: Self.start + 60)))
    }

    /// An earlier version of Stormy wrote this JSON text. Agents and apps of different versions read each other's rows.
    @Test func `the order of an upload keeps its JSON form`() throws {
        let test = try TestLedger()
        let ledger = try test.open()
        let text = """
            {"byteCount":3,"contentType":"image\\/jpeg","field":"photo","fileName":"a.jpg","furthest":2,"method":"s3","modifiedAt":1750000000500,\
            "s3":{"accessKey":"a","bucket":"b","region":"r","secretKey":"s"},"server":{"name":"home","settings":"[upload]"},\
            "sha1":"cafe","token":"t"}
            """
        func stored(_ transaction: LedgerTransaction, _ id: Int64) throws -> String? {
            try String.fetchOne(transaction.database, sql: "SELECT upload FROM transfer WHERE id = ?", arguments: [id])
        }
        for text in [text, #"{"byteCount":3,"fileName":"a.jpg","method":"plain","token":"t"}"#] {
            try ledger.write { transaction throws -> Void in
                let new = TransferRecord(
                    session: "s", key: "k", kind: .upload, method: "PUT", url: "http://a.test/", headers: [], now: TestLedger.now)
                let id = try transaction.insert(new).id!
                try transaction.database.execute(sql: "UPDATE transfer SET upload = ? WHERE id = ?", arguments: [text, id])
                let row = try #require(try transaction.transfer(id))
                #expect(row.upload?.byteCount == 3)
                try transaction.record(row)
                #expect(try stored(transaction, id) == text)
            }
        }
    }

    /// Returns whether a secret of the two tests below is in the ledger's file or in its write-ahead log.
    private func isOnDisk(_ test: TestLedger) throws -> Bool {
        try ["", "-wal"].contains { side in
            let path = test.directories.ledger.path + side
            guard FileManager.default.fileExists(atPath: path) else { return false }
            let data = try Data(contentsOf: URL(fileURLWithPath: path))
            return ["Basic c2VjcmV0", "hunter2", "Signature"].contains { data.range(of: Data($0.utf8)) != nil }
        }
    }

    /// The secrets must be neither in the ledger's database file nor in its write-ahead log. Another user who can access the
    /// disk could read both files.
    @Test func `the secrets of a cancelled upload are removed from the disk`() throws {
        let test = try TestLedger()
        let ledger = try test.open()
        let now = TestLedger.now
        let id = try ledger.write { transaction -> Int64 in
            var upload = TransferRecord(
                session: "s", key: "k", kind: .upload, method: "PUT", url: "http://bob:hunter2@a.test/dav/?X-Signature=1",
                headers: [HeaderField("Authorization", "Basic c2VjcmV0"), HeaderField("Accept", "*/*")], now: now)
            upload.upload = UploadOrder(method: .webdav, fileName: "a.jpg", byteCount: 1, token: "t")
            upload.bodyFile = "copy"
            return try transaction.insert(upload).id!
        }
        ledger.checkpointLog()
        #expect(try isOnDisk(test), "the queued upload needs the credentials")
        try ledger.write { transaction in
            try transaction.handle(.cancelled(message: nil, now: now), transfer: id, now: now)
            // The agent removes the secrets after it has asked the server to delete the uploaded bytes.
            for var row in try transaction.collectableTransfers(now: now) {
                try transaction.handle(.collected(now: now), &row, now: now)
            }
        }
        #expect(try ledger.read { try $0.transfer(id)?.headers } == [HeaderField("Accept", "*/*")])
        #expect(try ledger.read { try $0.transfer(id)?.url } == "http://a.test/dav/")
        ledger.checkpointLog()
        #expect(try !isOnDisk(test))
    }

    @Test func `the query, user, password and response headers of a delivered download leave the disk`() throws {
        let test = try TestLedger()
        let ledger = try test.open()
        let now = TestLedger.now
        let address = "http://bob:hunter2@a.test/disk.img?Signature=1"
        let id = try ledger.write { transaction -> Int64 in
            var download = TransferRecord(
                session: "s", key: "k", kind: .download, method: "GET", url: address,
                headers: [HeaderField("Authorization", "Basic c2VjcmV0")], now: now)
            download.head = ResponseHead(status: 200, headers: [HeaderField("Set-Cookie", "id=hunter2")], url: address)
            _ = download.handle(.adopted(suspended: false))
            return try transaction.insert(download).id!
        }
        try ledger.write { try $0.handle(.ended(.completed, nil, now: now), transfer: id, now: now) }
        #expect(try ledger.read { try $0.transfer(id)?.url } == address, "the app has not received the end of the download")
        try ledger.write { transaction in
            for event in try transaction.undeliveredEvents() { try transaction.eventWasDelivered(event.id!, now: now) }
            for var row in try transaction.collectableTransfers(now: now) {
                try transaction.handle(.collected(now: now), &row, now: now)
            }
        }
        #expect(try ledger.read { try $0.transfer(id)?.url } == "http://a.test/disk.img")
        ledger.checkpointLog()
        #expect(try !isOnDisk(test))
    }
}
