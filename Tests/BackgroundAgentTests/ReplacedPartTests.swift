@testable import BackgroundLedger
import Foundation
import ProcessSupport
import Spool
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of downloads whose partial file is replaced or changed by another program. Only the received file may get the final
/// name.
@Suite struct ReplacedPartTests {
    /// A change that another program makes to a partial file.
    enum Change: CaseIterable {
        case replaced, replacedByLink, replacedBySecondName, replacedBySameLength, replacedByFolder, removed
    }

    private let bench: Bench
    private let files = FileManager.default
    private var place: URL { bench.folder.appendingPathComponent("file.bin") }
    private var victim: URL { bench.folder.appendingPathComponent("victim") }

    init() throws { bench = try Bench() }

    private func begin(isInSpool: Bool = false, change: (inout TransferRecord) -> Void = { _ in }) throws -> Int64 {
        let id = try bench.download {
            if !isInSpool { $0.destination = place.path }
            change(&$0)
        }
        try bench.turn()
        let attempt = try bench.attempt(id)
        #expect(attempt.sink.receive(head: head(attempt)))
        return id
    }

    /// Starts a download that may replace the file "earlier".
    private func beginReplacingDownload() throws -> Int64 {
        try Data("earlier".utf8).write(to: place)
        let identity = FileIdentity(place.path)?.text
        return try begin {
            $0.mayReplace = true
            $0.replacedFile = identity
        }
    }

    private func head(_ attempt: FakeTransport.Attempt) -> ResponseHead {
        let headers = [HeaderField("ETag", "\"v1\""), HeaderField("Content-Length", "5")]
        return ResponseHead(status: 200, headers: headers, url: attempt.request.url)
    }

    private func write(_ id: Int64, _ text: String) throws -> Bool {
        let sink = try bench.attempt(id).sink
        return Array(text.utf8).withUnsafeBytes { sink.write($0) }
    }

    private func end(_ id: Int64, _ failure: WireFailure? = nil) throws {
        let attempt = try bench.attempt(id)
        let end = WireEnd(head: head(attempt), failure: failure, bytesSent: 0, bytesReceived: failure == nil ? 5 : 0)
        try bench.hear(.transport(.ended(attempt.id, end)))
    }

    private func part(_ id: Int64) throws -> URL {
        try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
    }

    /// Expects that the download is complete. The file is a regular file with the content that was sent.
    private func expectComplete(_ id: Int64, attempts: Int) throws {
        let transfer = try bench.transfer(id)
        #expect(transfer.state == .completed, "\(transfer.errorMessage ?? "")")
        #expect(bench.transport.started.count == attempts)
        let whole = try #require(transfer.wholeFile(in: bench.ledger.directories.spool))
        #expect(try String(contentsOf: whole, encoding: .utf8) == "sunny")
        #expect(try files.attributesOfItem(atPath: whole.path)[.type] as? FileAttributeType == .typeRegular)
    }

    private func apply(_ change: Change, to part: URL) throws {
        try files.removeItem(at: part)
        switch change {
        case .removed: break
        case .replaced: try Data("EVIL".utf8).write(to: part)
        case .replacedBySameLength: try Data("rainy".utf8).write(to: part)
        case .replacedByFolder: try files.createDirectory(at: part, withIntermediateDirectories: false)
        case .replacedByLink: try files.createSymbolicLink(at: part, withDestinationURL: victim)
        case .replacedBySecondName: try files.linkItem(at: victim, to: part)
        }
    }

    @Test(arguments: Change.allCases.filter { $0 != .replacedByFolder }, [true, false])
    func `a part that was replaced is fetched again`(_ change: Change, _ isInSpool: Bool) throws {
        try Data("notes of the user".utf8).write(to: victim)
        let id = try begin(isInSpool: isInSpool)
        #expect(try write(id, "sun"))
        try apply(change, to: part(id))
        #expect(try write(id, "ny"))
        try end(id)
        #expect(try bench.transfer(id).state == .running)
        try bench.answer(id)
        try expectComplete(id, attempts: 2)
        #expect(try String(contentsOf: victim, encoding: .utf8) == "notes of the user")
    }

    /// Another program created a folder at the path of the partial file. The agent does not remove this folder.
    @Test func `a download with a folder in the place of its part fails with the reason`() throws {
        let id = try begin()
        #expect(try write(id, "sunny"))
        try apply(.replacedByFolder, to: part(id))
        try end(id)
        let attempt = try bench.attempt(id)
        #expect(!attempt.sink.receive(head: head(attempt)))
        try end(id, .stoppedByOwner)
        #expect(try bench.transfer(id).state == .failed)
        #expect(try bench.transfer(id).errorMessage?.contains(part(id).path) == true)
    }

    /// For example, a program copies the folder of the partial file, and then replaces the folder by its copy.
    @Test(arguments: [true, false]) func `a part that was replaced by a complete copy gets the name`(_ isInSpool: Bool) throws {
        let id = try begin(isInSpool: isInSpool)
        #expect(try write(id, "sunny"))
        let part = try part(id)
        try files.removeItem(at: part)
        try Data("sunny".utf8).write(to: part)
        try end(id)
        try expectComplete(id, attempts: 1)
    }

    @Test func `a file that was there before does not count as the download`() throws {
        let id = try beginReplacingDownload()
        #expect(try write(id, "sunny"))
        try files.removeItem(at: part(id))
        try end(id)
        #expect(try String(contentsOf: place, encoding: .utf8) == "earlier")
        try bench.answer(id)
        try expectComplete(id, attempts: 2)
    }

    /// The agent died after it had verified the file, and before the file got its final name.
    @Test func `another agent does not take the file that was there before for the download`() throws {
        let id = try beginReplacingDownload()
        #expect(try write(id, "sun"))
        try files.removeItem(at: part(id))
        try bench.change(id) {
            $0.isFinishing = true
            $0.bytesTotal = 5
            $0.sha256 = FileDigest.sha256(of: Data("sunny".utf8))
        }
        try bench.startAgent()
        #expect(bench.transport.started.map(\.id.transfer) == [id])
        try bench.answer(id)
        try expectComplete(id, attempts: 1)
    }

    // MARK: Changes in place

    /// Another program made the partial file shorter or longer. If the agent continued, a shorter file would get a hole, and a
    /// longer file would keep wrong bytes at its end.
    @Test(arguments: [0, 1, 9], [true, false])
    func `a part whose length was changed is fetched again`(_ length: off_t, _ isAtTheEnd: Bool) throws {
        let id = try begin()
        #expect(try write(id, isAtTheEnd ? "sunny" : "sun"))
        #expect(try truncate(part(id).path, length) == 0)
        if isAtTheEnd {
            try end(id)
        } else {
            #expect(try !write(id, "ny"))
            try end(id, .stoppedByOwner)
        }
        #expect(try bench.transfer(id).state == .waiting)
        #expect(try bench.transfer(id).errorMessage?.contains("another program changed the file") == true)
        // The pause after a full disk is longer than five seconds.
        try bench.pass(5)
        try bench.answer(id)
        try expectComplete(id, attempts: 2)
    }

    /// Overwrites the beginning of the partial file. The modification time is also set, because two changes can get equal times.
    private func overwrite(_ part: URL, _ text: String) throws {
        let file = try FileHandle(forUpdating: part)
        try file.write(contentsOf: Data(text.utf8))
        try file.close()
        try files.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_000_000)], ofItemAtPath: part.path)
    }

    @Test(arguments: [true, false]) func `a part whose bytes were changed is fetched again`(_ isAtTheEnd: Bool) throws {
        let id = try begin()
        #expect(try write(id, isAtTheEnd ? "sunny" : "sun"))
        bench.disk.catchUp()
        try overwrite(part(id), "fog")
        if !isAtTheEnd { #expect(try write(id, "ny")) }
        try end(id)
        #expect(try bench.transfer(id).state == .waiting)
        try bench.pass(5)
        try bench.answer(id)
        try expectComplete(id, attempts: 2)
    }

    @Test func `a part whose bytes were changed is not continued after a broken connection`() throws {
        let id = try begin()
        #expect(try write(id, "sun"))
        bench.disk.catchUp()
        try overwrite(part(id), "fog")
        try end(id, .connectionLost)
        try bench.pass(61)
        #expect(try bench.attempt(id).request.headers.allSatisfy { $0.name.lowercased() != "range" })
        try bench.answer(id)
        try expectComplete(id, attempts: 2)
    }

    /// For example, a backup program or a virus scanner changes the times of the file, but not its bytes.
    @Test(arguments: [true, false]) func `a part that was only touched is complete`(_ isAtTheEnd: Bool) throws {
        let id = try begin()
        #expect(try write(id, isAtTheEnd ? "sunny" : "sun"))
        bench.disk.catchUp()
        try overwrite(part(id), "sun")
        try chmod(part(id).path, 0o600)
        if !isAtTheEnd { #expect(try write(id, "ny")) }
        try end(id)
        try expectComplete(id, attempts: 1)
    }

    /// The transfer has an expected digest. Another program changed the file of the first attempt, so the digest of this file
    /// does not match.
    @Test func `a changed part does not refute the digest that is expected`() throws {
        let digest = FileDigest.sha256(of: Data("sunny".utf8))
        let id = try begin { $0.expectedSHA256 = digest }
        #expect(try write(id, "sun"))
        #expect(try truncate(part(id).path, 0) == 0)
        #expect(try !write(id, "ny"))
        try end(id, .stoppedByOwner)
        try bench.pass(5)
        try bench.answer(id)
        try expectComplete(id, attempts: 2)
        #expect(try bench.transfer(id).sha256 == digest)
    }
}
