@testable import BackgroundLedger
import Foundation
import Spool
import ProcessSupport
import Synchronization
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of file operations that fail temporarily. A temporary failure does not end a transfer.
@Suite struct FileFaultTests {
    private static let numbers = [EMFILE, ENFILE, ENOMEM, EIO, EACCES]

    private let bench: Bench
    private var place: URL { bench.folder.appendingPathComponent("file") }
    private var copy: URL { bench.ledger.directories.spool.appendingPathComponent("upload-1") }

    init() throws { bench = try Bench() }

    /// Sends a response as a transport does. If the agent refuses the bytes, the attempt ends.
    private func answer(_ id: Int64) throws {
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: 200, headers: [], url: attempt.request.url)
        let bytes = Array("sunny".utf8)
        let isTaken = attempt.sink.receive(head: head) && bytes.withUnsafeBytes { attempt.sink.write($0) }
        let end = WireEnd(
            head: head, failure: isTaken ? nil : .stoppedByOwner, bytesSent: 0, bytesReceived: isTaken ? Int64(bytes.count) : 0)
        try bench.hear(.transport(.ended(attempt.id, end)))
    }

    /// Removes the fault, and lets the transfer continue after its pauses.
    private func recover(_ id: Int64) throws {
        bench.disk.calls.fail(by: nil)
        for _ in 0..<3 where try bench.transfer(id).state == .waiting {
            let before = bench.transport.started.count
            try bench.pass(61)
            if bench.transport.started.count > before { try answer(id) }
        }
    }

    @Test(arguments: FileCalls.Call.allCases, numbers)
    func `a download arrives after a call failed`(_ call: FileCalls.Call, _ number: Int32) throws {
        for destination in [nil, place.path] {
            let id = try bench.download(destination == nil ? "a" : "b") { $0.destination = destination }
            bench.disk.calls.fail { $0 == call ? number : nil }
            try bench.turn()
            try answer(id)
            let after = try bench.transfer(id)
            #expect(after.state == .waiting || after.state == .completed, "\(after.errorMessage ?? "")")
            try recover(id)
            #expect(try bench.transfer(id).state == .completed)
            if destination == nil { #expect(try bench.spooled(id) == "sunny") }
        }
        #expect(try String(contentsOf: place, encoding: .utf8) == "sunny")
    }

    /// An rclone mount does not support a rename that keeps existing files, and creating a hard link fails with EIO.
    @Test(arguments: [EIO, EPERM, EACCES, EOPNOTSUPP], [false, true])
    func `a file gets its name on a file system without second names`(_ number: Int32, _ isTaken: Bool) throws {
        if isTaken { try Data("precious".utf8).write(to: place) }
        let id = try bench.download { $0.destination = place.path }
        let names = Mutex([EINVAL, number])
        bench.disk.calls.fail { call in
            guard call == .name else { return nil }
            return names.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
        try bench.turn()
        try answer(id)
        #expect(try bench.transfer(id).state == .completed)
        let file = isTaken ? bench.folder.appendingPathComponent("file (1)") : place
        #expect(try String(contentsOf: file, encoding: .utf8) == "sunny")
        if isTaken { #expect(try String(contentsOf: place, encoding: .utf8) == "precious") }
    }

    /// Responds that the server has no file with the upload's name.
    private func answerThatTheNameIsFree(_ id: Int64) throws {
        let attempt = try bench.attempt(id)
        #expect(attempt.request.method == "HEAD")
        let head = ResponseHead(status: 404, headers: [], url: attempt.request.url)
        try bench.hear(.transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 0))))
    }

    @Test(arguments: [FileCalls.Call.open, .status], numbers + [EINVAL, ENOTDIR])
    func `an upload waits while its copy cannot be opened`(_ call: FileCalls.Call, _ number: Int32) throws {
        let id = try bench.upload()
        bench.disk.calls.fail { $0 == call ? number : nil }
        try answerThatTheNameIsFree(id)
        #expect(try bench.transfer(id).state == .waiting)
        #expect(try bench.transfer(id).errorMessage?.contains(String(cString: strerror(number))) == true)
        bench.disk.calls.fail(by: nil)
        try bench.pass(61)
        #expect(try bench.transfer(id).state == .running)
    }

    @Test(arguments: numbers + [EINVAL])
    func `an upload waits while its open copy cannot be read`(_ number: Int32) throws {
        _ = try bench.upload()
        let file = try UploadFile(copy, size: 5, calls: bench.disk.calls)
        bench.disk.calls.fail { $0 == .read ? number : nil }
        var bytes = [UInt8](repeating: 0, count: 5)
        #expect(bytes.withUnsafeMutableBytes { file.read(into: $0) } == nil)
        #expect(file.trouble?.isPassing == true)
    }

    @Test func `an upload whose copy was removed fails`() throws {
        let id = try bench.upload()
        try FileManager.default.removeItem(at: copy)
        try answerThatTheNameIsFree(id)
        #expect(try bench.transfer(id).state == .failed)
    }

    @Test func `uploads wait while the spool folder is missing`() throws {
        let (id, directories) = (try bench.upload(), bench.ledger.directories)
        let away = bench.folder.appendingPathComponent("away")
        try FileManager.default.moveItem(at: directories.spool, to: away)
        try directories.createStateFolders()
        try answerThatTheNameIsFree(id)
        #expect(try bench.transfer(id).state == .waiting)
        #expect(try bench.transfer(id).errorMessage?.contains("Put the folder with the queued copies back.") == true)
        try FileManager.default.removeItem(at: directories.spool)
        try FileManager.default.moveItem(at: away, to: directories.spool)
        try bench.pass(61)
        #expect(try bench.transfer(id).state == .running)
    }

    /// Another folder is at the path of the spool. The next command, a backup program or a mount may have created this folder.
    @Test(arguments: [true, false])
    func `uploads wait while another folder is in the place of the spool`(_ hasFiles: Bool) throws {
        let (id, directories) = (try bench.upload(), bench.ledger.directories)
        try FileManager.default.moveItem(at: directories.spool, to: bench.folder.appendingPathComponent("away"))
        try FileManager.default.createDirectory(at: directories.spool, withIntermediateDirectories: false)
        if hasFiles { try Data().write(to: directories.spool.appendingPathComponent("upload-of-another-ledger")) }
        // Every process that opens the ledger finds the new folder.
        _ = try Ledger(directories)
        try answerThatTheNameIsFree(id)
        #expect(try bench.transfer(id).state == .waiting)
        try bench.startAgent()
        try bench.pass(61)
        try answerThatTheNameIsFree(id)
        #expect(try bench.transfer(id).state == .waiting)
        try Data("photo".utf8).write(to: copy)
        try bench.pass(61)
        #expect(try bench.transfer(id).state == .running)
    }

    @Test(arguments: numbers)
    func `a file that got its name is not fetched again while it cannot be seen`(_ number: Int32) throws {
        try Data("sunny".utf8).write(to: place)
        let part = bench.folder.appendingPathComponent("part")
        let expectation = FileProof.Expectation(part: part, whole: place, mustMatch: false, byteCount: 5, sha256: "")
        let findings = Mutex<[FileProof.Finding]>([])
        let proof = FileProof(expectation, bench.disk.calls) { finding in findings.withLock { $0.append(finding) } }
        bench.disk.calls.fail { $0 == .status ? number : nil }
        _ = proof.work()
        let trouble = FileTrouble(why: "\(place.path): " + String(cString: strerror(number)), isPassing: true)
        #expect(findings.withLock { $0 } == [.unreadable(trouble)])
        bench.disk.calls.fail(by: nil)
        _ = proof.work()
        #expect(findings.withLock { $0.last } == .isPlaced)
    }

    /// The chosen folder was renamed, or is now on another drive. Another folder is at the old path, and contains a file with the
    /// name of the download.
    @Test(arguments: [true, false]) func `another file with the name counts only in the folder that was chosen`(_ isOther: Bool)
        throws
    {
        let folder = bench.folder.appendingPathComponent("chosen")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let seen = try #require(SeenFolder(folder.path))
        if isOther {
            try FileManager.default.moveItem(at: folder, to: bench.folder.appendingPathComponent("away"))
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        }
        let whole = folder.appendingPathComponent("z")
        try Data("OTHER".utf8).write(to: whole)
        let expectation = FileProof.Expectation(
            part: folder.appendingPathComponent("part"), whole: whole, mustMatch: false, folder: seen, byteCount: 5,
            sha256: FileDigest.sha256(of: Data("sunny".utf8)))
        let findings = Mutex<[FileProof.Finding]>([])
        let proof = FileProof(expectation, bench.disk.calls) { finding in findings.withLock { $0.append(finding) } }
        while findings.withLock({ $0.isEmpty }) { _ = proof.work() }
        #expect(findings.withLock { $0 } == [isOther ? .isGone : .isPlaced])
    }

    /// If the partial file cannot be opened, it is kept. In this test the partial file was removed, and the agent detects this
    /// only when the remaining bytes arrive.
    @Test func `a part that is gone when the rest arrives is fetched again`() throws {
        let id = try bench.download()
        try bench.turn()
        let first = try bench.attempt(id)
        let length = [HeaderField("ETag", "\"v1\""), HeaderField("Content-Length", "10")]
        #expect(first.sink.receive(head: ResponseHead(status: 200, headers: length, url: first.request.url)))
        #expect(Array("sunny".utf8).withUnsafeBytes { first.sink.write($0) })
        let head = ResponseHead(status: 200, headers: length, url: first.request.url)
        try bench.hear(
            .transport(.ended(first.id, WireEnd(head: head, failure: .connectionLost, bytesSent: 0, bytesReceived: 5))))
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool))
        try FileManager.default.removeItem(at: part)
        bench.disk.calls.fail { $0 == .open ? EMFILE : nil }
        let next = try #require(try bench.transfer(id).nextAttemptAt)
        try bench.pass(next.timeIntervalSince(bench.now))
        bench.disk.calls.fail(by: nil)
        let second = try bench.attempt(id)
        #expect(second.request.headers.contains { $0.name.lowercased() == "range" })
        let rest = [
            HeaderField("ETag", "\"v1\""), HeaderField("Content-Range", "bytes 5-9/10"), HeaderField("Content-Length", "5"),
        ]
        let restHead = ResponseHead(status: 206, headers: rest, url: second.request.url)
        #expect(!second.sink.receive(head: restHead))
        try bench.hear(
            .transport(.ended(second.id, WireEnd(head: restHead, failure: .stoppedByOwner, bytesSent: 0, bytesReceived: 0))))
        #expect(try bench.transfer(id).state == .waiting)
        try bench.pass(61)
        try answer(id)
        #expect(try bench.transfer(id).state == .completed)
        #expect(try bench.spooled(id) == "sunny")
    }

    /// The file already has its final name, but the folder cannot be opened for the sync.
    @Test(arguments: numbers)
    func `a folder that cannot be opened for a moment does not end a download`(_ number: Int32) throws {
        let id = try bench.download { $0.destination = place.path }
        try bench.turn()
        let path = place.path
        bench.disk.calls.fail { $0 == .open && FileManager.default.fileExists(atPath: path) ? number : nil }
        try answer(id)
        #expect(try bench.transfer(id).state == .waiting)
        #expect(try bench.transfer(id).errorMessage?.contains(String(cString: strerror(number))) == true)
        try recover(id)
        #expect(try bench.transfer(id).state == .completed)
        #expect(bench.transport.started.count == 1)
        let names = try FileManager.default.contentsOfDirectory(atPath: bench.folder.path).filter { $0.contains("file") }
        #expect(names == ["file"])
    }

    /// The folder is missing, for example because its drive was unplugged.
    @Test(arguments: [true, false]) func `a download waits while its folder is missing`(_ isAwayAtTheStart: Bool) throws {
        let (folder, away) = (bench.folder.appendingPathComponent("drive"), bench.folder.appendingPathComponent("away"))
        let files = FileManager.default
        try files.createDirectory(at: folder, withIntermediateDirectories: false)
        let id = try bench.download { $0.destination = folder.appendingPathComponent("file").path }
        try bench.turn()
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: 200, headers: [HeaderField("Content-Length", "5")], url: attempt.request.url)
        if isAwayAtTheStart { try files.moveItem(at: folder, to: away) }
        let isTaken = attempt.sink.receive(head: head) && Array("sunny".utf8).withUnsafeBytes { attempt.sink.write($0) }
        #expect(isTaken != isAwayAtTheStart)
        if !isAwayAtTheStart { try files.moveItem(at: folder, to: away) }
        let failure: WireFailure? = isTaken ? nil : .stoppedByOwner
        let end = WireEnd(head: head, failure: failure, bytesSent: 0, bytesReceived: isTaken ? 5 : 0)
        try bench.hear(.transport(.ended(attempt.id, end)))
        #expect(try bench.transfer(id).state == .waiting)
        #expect(try bench.transfer(id).errorMessage?.contains(folder.path) == true)
        try bench.pass(61)
        try answer(id)
        #expect(try bench.transfer(id).state == .waiting)
        try files.moveItem(at: away, to: folder)
        try recover(id)
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: folder.appendingPathComponent("file"), encoding: .utf8) == "sunny")
        #expect(try files.contentsOfDirectory(atPath: folder.path) == ["file"])
    }

    @Test(arguments: FileCalls.Call.allCases, [EINTR, EAGAIN])
    func `an interrupted call is made again at once`(_ call: FileCalls.Call, _ number: Int32) throws {
        let id = try bench.download { $0.destination = place.path }
        let count = Mutex(0)
        bench.disk.calls.fail { made in
            guard made == call else { return nil }
            return count.withLock { count in
                count += 1
                return count.isMultiple(of: 2) ? nil : number
            }
        }
        try bench.turn()
        try answer(id)
        #expect(try bench.transfer(id).state == .completed)
        #expect(try String(contentsOf: place, encoding: .utf8) == "sunny")
    }

    /// File systems in user space may not support sync.
    @Test(arguments: [EINVAL, ENOSYS])
    func `a download arrives on a disk that cannot sync`(_ number: Int32) throws {
        bench.disk.calls.fail { $0 == .sync ? number : nil }
        for destination in [nil, place.path] {
            let id = try bench.download(destination == nil ? "a" : "b") { $0.destination = destination }
            try bench.turn()
            try answer(id)
            #expect(try bench.transfer(id).state == .completed)
        }
    }
}
