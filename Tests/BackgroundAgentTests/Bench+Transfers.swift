import ProcessSupport
@testable import BackgroundLedger
import Foundation
import Spool
import Testing
import TransferMachines

@testable import BackgroundAgent

// Methods for transfers: the actions of the app, and the events of the transport.
extension Bench {
    static let waiter = ProcessIdentity(pid: 6_000_001, start: 1)

    /// Adds a download. If `process` is `nil`, a task of the app has adopted the download. Otherwise `process` awaits the
    /// download.
    @discardableResult
    func download(
        _ key: String = "k", session: String = "isStormy", awaitedBy process: ProcessIdentity? = nil,
        change: (inout TransferRecord) -> Void = { _ in }
    ) throws -> Int64 {
        try ledger.write { transaction in
            var record = TransferRecord(
                session: session, key: key, kind: .download, method: "GET", url: "http://127.0.0.1/\(key)", headers: [],
                now: now)
            record.isAdopted = process == nil
            change(&record)
            let id = try #require(try transaction.insert(record).id)
            if let process { _ = try transaction.addWaiter(to: id, process: process) }
            return id
        }
    }

    /// Adds an upload of "photo" to the queue, and starts its first attempt.
    ///
    /// - Parameter copy: The content of the queued copy in the spool.
    func upload(_ method: UploadKind = .put, copy: String = "photo") throws -> Int64 {
        let photo = Data("photo".utf8)
        try Data(copy.utf8).write(to: ledger.directories.spooled("upload-1"))
        let id = try download("photos/") {
            ($0.kind, $0.method, $0.bodyFile) = (.upload, "PUT", "upload-1")
            $0.bytesTotal = Int64(photo.count)
            $0.sourceSHA256 = FileDigest.sha256(of: photo)
            $0.upload = UploadOrder(method: method, fileName: "a.jpg", byteCount: Int64(photo.count), token: "t")
        }
        try turn()
        return id
    }

    func change(_ id: Int64, _ body: (inout TransferRecord) -> Void) throws {
        try ledger.write { transaction in
            var record = try #require(try transaction.transfer(id))
            body(&record)
            try transaction.update(record)
        }
    }

    /// Returns the latest attempt of a transfer.
    func attempt(_ id: Int64) throws -> FakeTransport.Attempt {
        try #require(transport.started.last { $0.id.transfer == id }, "transfer \(id) was not started")
    }

    /// Delivers a complete response to the latest attempt.
    func answer(_ id: Int64, _ text: String = "sunny", status: Int = 200) throws {
        let attempt = try attempt(id)
        let sent = attempt.drainBody()
        let head = ResponseHead(status: status, headers: [], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        let bytes = Array(text.utf8)
        #expect(bytes.withUnsafeBytes { attempt.sink.write($0) })
        try hear(
            .transport(
                .ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: sent, bytesReceived: Int64(bytes.count)))))
    }

    /// Ends the latest attempt with a failure.
    func fail(_ id: Int64, _ failure: WireFailure) throws {
        let attempt = try attempt(id)
        try hear(.transport(.ended(attempt.id, WireEnd(head: nil, failure: failure, bytesSent: 0, bytesReceived: 0))))
    }

    func spooled(_ id: Int64) throws -> String? {
        try transfer(id).file.flatMap {
            try? String(contentsOf: ledger.directories.spool.appendingPathComponent($0), encoding: .utf8)
        }
    }

    func deliver(_ session: String = "isStormy") throws {
        try ledger.write { transaction in
            for event in try transaction.undeliveredEvents(session: session) {
                try transaction.eventWasDelivered(try #require(event.id), now: now)
            }
        }
    }
}
