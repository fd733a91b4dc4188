@testable import BackgroundLedger
import Foundation
import Spool
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of uploads whose copy in the spool was changed on the disk.
@Suite struct DamagedCopyTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// Reads the complete body of the upload, and sends a response.
    private func answer(_ id: Int64, _ status: Int, _ headers: [HeaderField] = []) throws {
        let attempt = try bench.attempt(id)
        let sent = attempt.drainBody()
        let head = ResponseHead(status: status, headers: headers, url: attempt.request.url)
        let end = WireEnd(head: head, failure: nil, bytesSent: sent, bytesReceived: 0)
        try bench.hear(.transport(.ended(attempt.id, end)))
    }

    private func requests() -> [String] {
        bench.transport.started.map { "\($0.request.method) \($0.request.url.split(separator: "/").last ?? "")" }
    }

    private func expectFailure(_ id: Int64) throws {
        let transfer = try bench.transfer(id)
        #expect(transfer.state == .failed)
        #expect(
            transfer.errorMessage
                == "The sent bytes differ from the file because the queued copy is damaged. Upload the file again.")
    }

    @Test func `a damaged copy gets no final name and leaves no temporary file`() throws {
        let id = try bench.upload(.webdav, copy: "phot0")
        try answer(id, 404)
        try answer(id, 201)
        try expectFailure(id)
        #expect(requests() == ["HEAD a.jpg", "PUT .t.part", "DELETE .t.part"])
        try answer(id, 204)
        try expectFailure(id)
    }

    @Test func `a damaged copy is removed from a server without rename`() throws {
        let id = try bench.upload(.put, copy: "phot0")
        try answer(id, 404)
        try answer(id, 201, [HeaderField("ETag", "\"v1\"")])
        try expectFailure(id)
        #expect(requests() == ["HEAD a.jpg", "PUT a.jpg", "DELETE a.jpg"])
        #expect(bench.transport.started.last?.request.headers.contains(HeaderField("If-Match", "\"v1\"")) == true)
    }

    /// The status 204 shows that the server may have replaced an existing file.
    @Test func `a file that another computer may have stored is not removed`() throws {
        let id = try bench.upload(.put, copy: "phot0")
        try answer(id, 404)
        try answer(id, 204)
        try expectFailure(id)
        #expect(requests() == ["HEAD a.jpg", "PUT a.jpg"])
    }

    @Test(arguments: [412, 503]) func `a damaged copy is not sent again`(_ status: Int) throws {
        let id = try bench.upload(.put, copy: "phot0")
        try answer(id, 404)
        try answer(id, status)
        try expectFailure(id)
        try bench.pass(3_600)
        #expect(requests() == ["HEAD a.jpg", "PUT a.jpg"])
    }

    /// The part of the file that the last request sends is not damaged.
    @Test(arguments: [nil, 0, 2]) func `damage in a part that was sent before is found`(_ damaged: Int?) throws {
        var copy = Array("photo")
        if let damaged { copy[damaged] = "x" }
        let id = try bench.upload(.tus, copy: String(copy))
        try answer(id, 200, [HeaderField("Tus-Version", "1.0.0"), HeaderField("Tus-Extension", "creation,termination")])
        try answer(id, 201, [HeaderField("Location", "/files/1")])
        try bench.fail(id, .connectionLost)
        let next = try #require(try bench.transfer(id).nextAttemptAt)
        try bench.pass(next.timeIntervalSince(bench.now))
        try answer(id, 200, [HeaderField("Upload-Offset", "3"), HeaderField("Upload-Length", "5")])
        try answer(id, 204, [HeaderField("Upload-Offset", "5")])
        if damaged == nil {
            #expect(try bench.attempt(id).request.method == "HEAD")
            #expect(try bench.transfer(id).state == .running)
        } else {
            try expectFailure(id)
            #expect(requests().suffix(3) == ["HEAD 1", "PATCH 1", "DELETE 1"])
        }
    }
}
