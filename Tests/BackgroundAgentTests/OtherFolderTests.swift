@testable import BackgroundLedger
import Foundation
@testable import ProcessSupport
import Spool
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of downloads that a process with other mounts queued, for example a process in a container.
@Suite struct OtherFolderTests {
    private let bench: Bench
    private let files = FileManager.default
    private var folder: URL { bench.folder.appendingPathComponent("drive") }
    private var place: URL { folder.appendingPathComponent("file") }

    init() throws {
        bench = try Bench()
        try files.createDirectory(at: folder, withIntermediateDirectories: false)
    }

    /// Returns the recorded identity of the destination folder, as a process with other mounts sees it.
    private func seenElsewhere() throws -> String {
        SeenFolder(view: "1:2:3", folder: try #require(SeenFolder(folder.path)).folder).text
    }

    private func replaceFolder() throws {
        try files.moveItem(at: folder, to: bench.folder.appendingPathComponent("away"))
        try files.createDirectory(at: folder, withIntermediateDirectories: false)
        try Data("precious".utf8).write(to: place)
    }

    private func restoreFolder() throws {
        try files.removeItem(at: folder)
        try files.moveItem(at: bench.folder.appendingPathComponent("away"), to: folder)
    }

    private func expectWaiting(_ id: Int64) throws {
        let transfer = try bench.transfer(id)
        #expect(transfer.state == .waiting)
        #expect(
            transfer.errorMessage?.contains("\(folder.path): the agent cannot access the folder that was chosen") == true)
        #expect(try files.contentsOfDirectory(atPath: folder.path) == ["file"])
        #expect(try String(contentsOf: place, encoding: .utf8) == "precious")
    }

    private func expectComplete(_ id: Int64) throws {
        #expect(try bench.transfer(id).state == .completed)
        #expect(try files.contentsOfDirectory(atPath: folder.path) == ["file"])
        #expect(try String(contentsOf: place, encoding: .utf8) == "sunny")
    }

    @Test func `a download waits while the agent sees another folder and continues in its own`() throws {
        let seen = try seenElsewhere()
        try replaceFolder()
        let id = try bench.download {
            ($0.destination, $0.destinationFolder, $0.mayReplace) = (place.path, seen, true)
        }
        try bench.turn()
        try expectWaiting(id)
        try bench.pass(61)
        try expectWaiting(id)
        #expect(bench.transport.started.isEmpty)
        try restoreFolder()
        try bench.pass(61)
        try bench.answer(id)
        try expectComplete(id)
    }

    /// The folder that the agent sees can change, for example when a drive is connected.
    @Test func `a complete file waits if another folder appears while it arrives`() throws {
        let seen = try seenElsewhere()
        let id = try bench.download {
            ($0.destination, $0.destinationFolder, $0.mayReplace) = (place.path, seen, true)
        }
        try bench.turn()
        let attempt = try bench.attempt(id)
        let head = ResponseHead(status: 200, headers: [], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        #expect(Array("sunny".utf8).withUnsafeBytes { attempt.sink.write($0) })
        try replaceFolder()
        // The files are copied into the other folder, as if a backup program had restored them.
        let part = try #require(try bench.transfer(id).partFile(in: bench.ledger.directories.spool)).lastPathComponent
        try files.copyItem(
            at: bench.folder.appendingPathComponent("away/" + part), to: folder.appendingPathComponent(part))
        try bench.hear(
            .transport(.ended(attempt.id, WireEnd(head: head, failure: nil, bytesSent: 0, bytesReceived: 5))))
        try files.removeItem(at: folder.appendingPathComponent(part))
        try expectWaiting(id)
        // A new agent that searches for the file of an earlier agent does not use the copied file.
        try bench.startAgent()
        try bench.pass(61)
        try expectWaiting(id)
        try restoreFolder()
        try bench.pass(61)
        try expectComplete(id)
    }

    /// If the agent did not check whether the drive is connected, it would store the file in the empty folder at the mount
    /// point.
    @Test func `a download waits while its drive is not connected`() throws {
        let own = try #require(SeenFolder(folder.path))
        let seen = SeenFolder(view: own.view, folder: own.folder, mount: folder.path).text
        let id = try bench.download { ($0.destination, $0.destinationFolder) = (place.path, seen) }
        try bench.turn()
        #expect(bench.transport.started.isEmpty)
        let transfer = try bench.transfer(id)
        #expect(transfer.state == .waiting)
        #expect(transfer.errorMessage?.contains("the drive of \(folder.path) is not connected") == true)
        #expect(try files.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `a folder that was replaced receives the file if the mounts are the same`() throws {
        let seen = try #require(SeenFolder(folder.path)).text
        try replaceFolder()
        let id = try bench.download {
            ($0.destination, $0.destinationFolder, $0.mayReplace) = (place.path, seen, true)
        }
        try bench.turn()
        try bench.answer(id)
        try expectComplete(id)
    }

    @Test func `a download of an earlier version has any folder of its path`() throws {
        let id = try bench.download { $0.destination = place.path }
        try bench.turn()
        try bench.answer(id)
        try expectComplete(id)
    }
}
