@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import GRDB
import Testing
import TransferMachines

/// Tests that transfers are written to and read from the same columns as with GRDB's coding.
@Suite struct RowCodingTests {
    private static let now = Date(timeIntervalSince1970: 1_796_000_000.123_456)

    private static func record(isFilled: Bool) -> TransferRecord {
        var record = TransferRecord(
            session: "s", key: "k", kind: .upload, method: "PUT", url: "http://127.0.0.1/ü\"'", headers: [], now: now)
        guard isFilled else { return record }
        record.id = 7
        record.headers = [HeaderField("X", "1"), HeaderField("Y", "ä")]
        record.upload = UploadOrder(method: .webdav, fileName: "a.jpg", byteCount: 9, token: "t")
        record.partial = PartialFile(durableBytes: 1, validator: nil, totalBytes: 9, url: "http://127.0.0.1/")
        record.head = ResponseHead(status: 201, headers: [HeaderField("Location", "/1")], url: "http://127.0.0.1/1")
        record.receipt = UploadReceipt(
            url: "http://127.0.0.1/1", byteCount: 9, sha256: "00", storedAt: now, proof: .answer, checkedAt: now)
        (record.state, record.needs, record.priority) = (.waiting, TransferNeeds(rawValue: 5), 0.25)
        (record.nextAttemptAt, record.finishedAt, record.adoptableUntil) = (now, now, now)
        (record.errorCode, record.errorMessage, record.isSuspended) = (-1_001, "late", true)
        (record.bytesTotal, record.patience, record.bytesDone) = (.max, 1e-3, .min)
        return record
    }

    private func database() throws -> DatabaseQueue {
        let queue = try DatabaseQueue()
        try LedgerSchema.migrator.migrate(queue)
        return queue
    }

    @Test(arguments: [false, true])
    func `a record has the same columns and values as with the coding of GRDB`(_ isFilled: Bool) throws {
        let record = Self.record(isFilled: isFilled)
        let (names, values) = try record.columns()
        let expected = try record.databaseDictionary
        #expect(names.count == expected.count)
        for (name, value) in zip(names, values) { #expect(expected[name] == value, "\(name)") }
    }

    @Test(arguments: [false, true]) func `a record is read as it was written`(_ isFilled: Bool) throws {
        var record = Self.record(isFilled: isFilled)
        try database().write { database in
            record.id = try record.insertRow(database)
            #expect(try TransferRecord.fetchOne(database, key: record.id) == record)
            record.note = "changed"
            try record.updateRow(record.id, database)
            #expect(try TransferRecord.fetchAll(database) == [record])
            // A query may return other columns before and after the columns of the transfer.
            let joined = "SELECT 1 AS other, t.*, 2 AS another FROM transfer t"
            #expect(try TransferRecord.fetchOne(database, sql: joined) == record)
        }
    }

    /// If a column contains a text and GRDB requests a number, SQLite returns 0.
    @Test func `a text where a number is expected is 0`() throws {
        let record = Self.record(isFilled: true)
        try database().write { database in
            _ = try record.insertRow(database)
            try database.execute(sql: "UPDATE transfer SET bytesDone = 'many', isSuspended = 'yes', patience = 'long'")
            let read = try #require(try TransferRecord.fetchOne(database, key: 7))
            #expect(read.bytesDone == 0 && !read.isSuspended && read.patience == 0)
        }
    }

    @Test func `an update of a row that is gone fails`() throws {
        let record = Self.record(isFilled: true)
        _ = try database().write { database in
            #expect(throws: RecordError.self) { try record.updateRow(record.id, database) }
        }
    }

    @Test(arguments: [
        "state = 'bogus'", "upload = '{'", "createdAt = 'today'", "headers = x'00'", "needs = 'all'",
    ])
    func `a value of another type causes an error`(_ change: String) throws {
        let record = Self.record(isFilled: true)
        try database().write { database in
            _ = try record.insertRow(database)
            try database.execute(sql: "UPDATE transfer SET \(change)")
            #expect(throws: (any Error).self) { try TransferRecord.fetchOne(database, key: 7) }
        }
    }
}
