import Foundation
import Spool
import Testing
import TransferMachines

@testable import BackgroundAgent
@testable import BackgroundLedger

/// Tests of 404 responses. A proxy responds with 404 to all requests while its server restarts.
@Suite struct NotFoundTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func answer(_ id: Int64, _ status: Int, sent: Int64 = 0) throws {
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: status, headers: [], url: attempt.request.url)
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: sent, bytesReceived: 0))))
    }

    @Test func `an upload that is answered 404 is tried again`() throws {
        let id = try bench.upload()
        try answer(id, 404)
        #expect(try bench.attempt(id).request.method == "PUT")
        try answer(id, 404, sent: 5)
        #expect(try bench.transfer(id).state == .waiting)
        #expect(try bench.transfer(id).errorMessage == "The folder does not exist on the server.")
        try bench.pass(20)
        try answer(id, 404)
        #expect(try bench.attempt(id).request.method == "PUT")
        try answer(id, 201, sent: 5)
        #expect(try bench.attempt(id).request.method == "HEAD")
    }

    @Test func `an upload that is always answered 404 fails`() throws {
        let id = try bench.upload()
        for _ in 0..<30 where try bench.transfer(id).state != .failed {
            try bench.pass(100)
            try answer(id, 404, sent: try bench.attempt(id).request.method == "PUT" ? 5 : 0)
        }
        #expect(try bench.transfer(id).state == .failed)
        #expect(bench.transport.started.count { $0.request.method == "PUT" } == RetryPolicy.maximumNotFound)
    }

    /// Go's WebDAV server returns 405 if the disk is full, so the agent does not give up the upload immediately.
    @Test func `a WebDAV upload whose PUT is answered 405 is tried again for some hours`() throws {
        let id = try bench.upload(.webdav)
        try answer(id, 404)
        #expect(try bench.attempt(id).request.method == "PUT")
        try answer(id, 405, sent: 5)
        #expect(try bench.transfer(id).state == .waiting)
        try bench.pass(1_700)
        #expect(try bench.transfer(id).state == .waiting)
        for _ in 0..<20 where try bench.transfer(id).state != .failed {
            try bench.pass(4_000)
            let isPut = try bench.attempt(id).request.method == "PUT"
            try answer(id, isPut ? 405 : 404, sent: isPut ? 5 : 0)
        }
        #expect(try bench.transfer(id).state == .failed)
        #expect(bench.transport.started.count { $0.request.method == "PUT" } == RetryPolicy.maximumNotFound)
    }
}
