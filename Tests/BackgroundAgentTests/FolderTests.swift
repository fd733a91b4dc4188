@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundAgent

/// Tests of requests that are launched when a folder changes.
@Suite struct FolderTests {
    private let bench: Bench
    private let folder = WatchedFolder(path: "/camera", isRecursive: true)

    init() throws {
        bench = try Bench()
        try bench.submit(daily: true)
        let folders = [folder]
        try bench.ledger.write { try $0.setWatchedFolders(folders, of: "noon") }
        try bench.turn()
    }

    private func examine(_ content: String, isReported: Bool = true, folders: [String]? = ["/camera"]) throws {
        let finding = FolderSignature.Finding(signature: content, isReported: isReported, folders: folders)
        try bench.hear(.folderExamined(folder, finding))
        // A second launch waits for a moment after the first launch.
        try bench.pass(10)
    }

    /// Ends the running launch with success.
    private func complete() throws { try bench.end(bench.onlyLive(), .completed) }

    @Test func `a change of the folder launches the request, and an unchanged folder does not`() throws {
        #expect(try bench.live().isEmpty)
        try examine("a")
        #expect(try bench.launch(bench.onlyLive()).woke == WakeCause.folder.rawValue)
        let next = try #require(try bench.request()?.occurrence)
        try complete()
        #expect(try bench.request()?.occurrence == next, "the launch does not replace the daily launch")
        try examine("a")
        #expect(try bench.live().isEmpty)
        try examine("b")
        try complete()
        try bench.pass(next.timeIntervalSince(bench.now))
        #expect(try bench.launch(bench.onlyLive()).servedOccurrence == next)
    }

    @Test func `a change during a launch is handled after the launch`() throws {
        try examine("a")
        try examine("b")
        try complete()
        try bench.pass(10)
        try complete()
        try bench.pass(10)
        #expect(try bench.live().isEmpty)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func `a change while no agent runs is found by the next agent`() throws {
        try examine("a")
        try complete()
        try bench.startAgent()
        try examine("a")
        #expect(try bench.live().isEmpty)
        try bench.startAgent()
        try examine("b")
        #expect(try bench.live().count == 1)
    }

    @Test func `a launch that crashed is repeated`() throws {
        try bench.settings { $0.backoffBase = 5 }
        try examine("a")
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        try bench.pass(6)
        #expect(try bench.launch(bench.onlyLive()).generation == 2)
    }

    @Test(arguments: [-7_200.0, 7_200, -34_560_000]) func `a change of the clock before the launch does not lose the change`(
        _ step: Double
    ) throws {
        try examine("a")
        try complete()
        // The request waits for power while the clock is set.
        let power = RequestRecord(
            identifier: "noon", kind: .processing, recurrence: .daily(.noon), requiresExternalPower: true, submittedAt: bench.now)
        let (now, zone) = (bench.now, bench.zone)
        try bench.ledger.write { try $0.submit(power, now: now, zone: zone) }
        bench.conditions.set { $0.isOnExternalPower = false }
        try bench.hear(.conditions(bench.conditions.current))
        try examine("b")
        #expect(try bench.live().isEmpty)
        try bench.step(step)
        try bench.startAgent(knowing: false)
        bench.conditions.set { $0.isOnExternalPower = true }
        try bench.hear(.conditions(bench.conditions.current))
        try bench.pass(60)
        #expect(try bench.live().count == 1)
    }

    @Test func `folders that stay in the list keep their state, and removed folders launch nothing`() throws {
        try examine("a")
        try complete()
        let other = WatchedFolder(path: "/other", isRecursive: false)
        let folders = [folder, other]
        try bench.ledger.write { try $0.setWatchedFolders(folders, of: "noon") }
        try bench.turn()
        #expect(bench.agent.watchedFolders == Set(folders))
        try examine("a")
        #expect(try bench.live().isEmpty)
        try bench.ledger.write { _ = try $0.deleteRequest("noon") }
        try examine("b")
        #expect(try bench.live().isEmpty && bench.agent.watchedFolders.isEmpty)
    }

    @Test func `a folder that is given twice is watched with the folders inside`() throws {
        let folders = [WatchedFolder(path: "/camera", isRecursive: false), folder]
        for order in [folders, folders.reversed()] {
            try bench.ledger.write { try $0.setWatchedFolders(order, of: "noon") }
            try bench.turn()
            #expect(bench.agent.watchedFolders == [folder])
        }
    }

    @Test func `the agent exits only if another program watches the folders`() throws {
        let activator = FakeActivator()
        bench.activator = activator
        try bench.startAgent()
        try bench.pass(60)
        #expect(!bench.host.hasFinished, "the folder was not examined yet")
        try examine("a", isReported: false)
        try complete()
        try bench.pass(60)
        #expect(!bench.host.hasFinished, "nothing reports the changes of a network folder")
        try examine("a", folders: nil)
        try bench.pass(60)
        #expect(!bench.host.hasFinished, "the folder is missing, or has too many folders")
        try examine("a")
        try bench.hear(.folderChanging)
        try bench.pass(60)
        #expect(!bench.host.hasFinished, "the folder is changing")
        try examine("a")
        try bench.pass(60)
        #expect(bench.host.hasFinished && bench.agent.armActivation() && activator.folders == [["/camera"]])
    }
}

/// Tests the text that depends on the content of a folder.
@Suite struct FolderSignatureTests {
    private let root: URL

    init() throws {
        root = FileManager.default.temporaryDirectory.appendingPathComponent("signature-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: root.appendingPathComponent("sub"), withIntermediateDirectories: true)
        try Data("1".utf8).write(to: root.appendingPathComponent("a.jpg"))
    }

    private func signature(_ isRecursive: Bool = true) -> String {
        FolderSignature.compute(WatchedFolder(path: root.path, isRecursive: isRecursive)).signature
    }

    @Test func `each change of a file changes the text, and hidden files do not`() throws {
        var seen: Set<String> = [signature()]
        func expectChange(_ what: String, _ change: () throws -> Void) rethrows {
            try change()
            #expect(seen.insert(signature()).inserted, "\(what)")
        }
        let file = root.appendingPathComponent("a.jpg")
        try expectChange("added") { try Data("2".utf8).write(to: root.appendingPathComponent("sub/b.jpg")) }
        try expectChange("longer") {
            let handle = try FileHandle(forWritingTo: file)
            try handle.seekToEnd()
            try handle.write(contentsOf: Data("3".utf8))
            try handle.close()
        }
        try expectChange("renamed") { try FileManager.default.moveItem(at: file, to: root.appendingPathComponent("c.jpg")) }
        try expectChange("moved") {
            try FileManager.default.moveItem(
                at: root.appendingPathComponent("c.jpg"), to: root.appendingPathComponent("sub/c.jpg"))
        }
        try expectChange("removed") { try FileManager.default.removeItem(at: root.appendingPathComponent("sub/b.jpg")) }
        let last = signature()
        try Data("4".utf8).write(to: root.appendingPathComponent(".hidden.jpg"))
        #expect(signature() == last)
        try FileManager.default.createSymbolicLink(at: root.appendingPathComponent("sub/loop"), withDestinationURL: root)
        #expect(signature() != last, "a link is an entry, and a circle of links ends")
        try FileManager.default.removeItem(at: root)
        #expect(signature() == FolderSignature.missing)
    }

    @Test func `only a recursive watch depends on the folders inside`() throws {
        let (flat, deep) = (signature(false), signature())
        try Data("2".utf8).write(to: root.appendingPathComponent("sub/b.jpg"))
        #expect(signature(false) == flat && signature() != deep)
    }

    @Test func `the kernel does not report where a link leads`() throws {
        let link = root.appendingPathComponent("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: root.appendingPathComponent("sub"))
        #expect(!FolderSignature.compute(WatchedFolder(path: link.path, isRecursive: false)).isReported)
    }

    @Test func `a missing folder is watched through the nearest folder above it`() {
        var watched: [String] = []
        let missing = WatchedFolder(path: root.path + "/none/deeper", isRecursive: true)
        let finding = FolderSignature.compute(missing) {
            watched.append($0)
            return FileManager.default.fileExists(atPath: $0)
        }
        #expect(finding.folders == nil && finding.isReported && watched.last == root.path)
    }
}
