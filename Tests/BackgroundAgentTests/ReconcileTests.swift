import Spool
import ProcessSupport
@testable import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import GRDB
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of a new agent that continues or removes the work of an agent that died.
@Suite struct ReconcileTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    @Test func `a new agent adopts a running launch`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.pass(20)
        try bench.startAgent()
        #expect(bench.launcher.adopted == [id])
        #expect(bench.launcher.started == [id], "the request is not launched a second time")
        try bench.pass(10)
        #expect(bench.launcher.warned == [id], "the budget runs from the launch's start")
        try bench.end(id, .expired)
        #expect(try bench.request() == nil)
    }

    /// A simulation found that the recorded start of the launch was in the future, so the launch would have ended an hour late.
    @Test func `a clock that is set back while no agent runs does not prolong a launch`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.step(-3_600)
        try bench.startAgent()
        try bench.pass(29)
        #expect(bench.launcher.warned == [])
        try bench.pass(1)
        #expect(bench.launcher.warned == [id])
    }

    @Test func `a launch that crashed while no agent ran is repeated`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        bench.launcher.living = []
        try bench.startAgent()
        #expect(try bench.launch(id).outcome == .crashed)
        try bench.pass(5)
        #expect(try bench.launch(bench.onlyLive()).generation == 2)
    }

    @Test func `a launch that completed while no agent ran is complete`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.ledger.write { try $0.setResult(.completed, detail: nil, ofLaunch: id) }
        bench.launcher.living = []
        try bench.startAgent()
        #expect(try bench.launch(id).outcome == .completed)
        #expect(try bench.request() == nil)
    }

    /// The agent died between the commit of the launch and the start of the process. The app did not fail, so the next launch is
    /// not delayed.
    @Test func `a launch whose process was never started is launched again at once`() throws {
        try bench.submit()
        let orphan = try bench.ledger.write { transaction -> Int64 in
            let request = try #require(try transaction.request("noon"))
            let record = LaunchRecord(
                kind: .appRefresh, identifier: "noon", requestToken: request.token, generation: 1, reason: "due",
                simulated: false, servedOccurrence: nil, startedAt: bench.now)
            return try #require(try transaction.insert(record).id)
        }
        try bench.startAgent()
        #expect(try bench.launch(orphan).outcome == .neverBegan)
        #expect(try bench.launch(bench.onlyLive()).generation == 2)
        #expect(bench.launcher.started.count == 1)
    }

    /// A stress test found an error: crashes of the agent were counted as crashes of the app. The next launch of the app was then
    /// delayed by six hours.
    @Test func `crashes of agents do not count as crashes of the app`() throws {
        try bench.submit()
        try bench.turn()
        for _ in 0..<40 {
            let id = try bench.onlyLive()
            try bench.alter(launch: id, "pid = NULL")
            bench.launcher.living.remove(id)
            try bench.startAgent()
        }
        #expect(try bench.launch(bench.onlyLive()).generation == 41)
        try bench.end(bench.onlyLive(), nil, .signalled(11))
        #expect(try bench.request()?.backoffUntil == bench.now + 5, "its first crash")
        try bench.pass(5)
        try bench.end(bench.onlyLive(), nil, .signalled(11))
        #expect(try bench.request()?.backoffUntil == bench.now + 10, "its second")
    }

    /// A test of the command `why` found an error: launches of earlier requests had caused a delay, and a new agent shortened
    /// this delay.
    @Test func `a new agent does not change the delay of a request`() throws {
        for _ in 0..<6 {
            try bench.submit()
            try bench.pass(20)
            try bench.end(bench.onlyLive(), nil, .signalled(11))
        }
        let until = bench.now + 160
        #expect(try bench.request()?.backoffUntil == until)
        try bench.startAgent()
        #expect(try bench.request()?.backoffUntil == until)
    }

    /// The process was started, but the agent died before it committed the PID. The process itself then records the PID.
    @Test func `a launch whose process is recorded late is adopted`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.alter(launch: id, "pid = NULL")
        try bench.startAgent()
        #expect(bench.launcher.adopted.isEmpty)
        #expect(try bench.onlyLive() == id)
        try bench.ledger.write { try $0.launchDidBegin(id, ProcessIdentity(pid: 42, start: 1)) }
        try bench.turn()
        #expect(bench.launcher.adopted == [id])
    }

    @Test func `a launch whose process is never recorded is launched again`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.alter(launch: id, "pid = NULL")
        try bench.startAgent()
        bench.launcher.living = []
        try bench.pass(1)
        #expect(try bench.launch(id).outcome == .neverBegan)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func `a launch in another PID namespace is not signalled and ends when its lock is free`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        bench.launcher.outOfReach = [id]
        try bench.startAgent()
        try bench.pass(60)
        #expect(bench.launcher.warned.isEmpty && bench.launcher.killed.isEmpty)
        #expect(try bench.onlyLive() == id)
        #expect(try bench.launch(id).stopReason == nil)
        bench.launcher.living = []
        try bench.pass(1)
        #expect(try bench.launch(id).outcome == .crashed)
    }

    @Test func `an agent that stops does not wait for a launch in another PID namespace`() throws {
        try bench.submit()
        try bench.turn()
        bench.launcher.outOfReach = [try bench.onlyLive()]
        try bench.startAgent()
        try bench.hear(.stopRequested)
        #expect(bench.agent.lifetime.hasEnded)
        #expect(try bench.live().count == 1)
    }

    /// The launch reached its time limit before the agent died. Later the next agent is stopped, but the ledger keeps the first
    /// reason for the stop of the launch.
    @Test func `the first reason to stop a launch is kept`() throws {
        try bench.submit()
        try bench.pass(30)
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).stopReason == .expired)
        try bench.startAgent(turning: false)
        try bench.hear(.stopRequested)
        #expect(try bench.launch(id).stopReason == .expired)
        #expect(bench.launcher.warned == [id, id])
    }

    /// The agent commits the reason for the stop before it sends the signal to the process. A new agent cannot determine
    /// whether the signal was sent.
    @Test func `a new agent warns a warned launch again and repeats its grace time`() throws {
        try bench.submit()
        try bench.pass(30)
        let id = try bench.onlyLive()
        #expect(bench.launcher.warned == [id])
        try bench.pass(4)
        try bench.startAgent()
        #expect(bench.launcher.warned == [id, id])
        try bench.pass(4.9)
        #expect(bench.launcher.killed.isEmpty)
        try bench.pass(0.2)
        #expect(bench.launcher.killed == [id])
    }

    @Test func `a new agent starts running transfers again`() throws {
        let id = try bench.download()
        try bench.turn()
        try bench.startAgent()
        #expect(bench.transport.started.map(\.id) == [AttemptID(transfer: id, number: 2)])
        try bench.answer(id)
        #expect(try bench.transfer(id).state == .completed)
    }

    @Test func `a new agent shows a notification again that has no response`() throws {
        let content = NotificationContent(
            title: "t", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
            interruptionLevel: 1, badge: nil)
        try bench.ledger.write { try $0.addNotification("n", content, dueAt: nil, now: bench.now) }
        try bench.turn()
        #expect(bench.presenter.shown.count == 1)
        try bench.startAgent()
        #expect(bench.presenter.shown.count == 1, "the presenter of the new agent shows the notification once")
        try bench.hear(.presenter(.presented(identifier: "n", serverID: 9)))
        try bench.startAgent()
        #expect(bench.presenter.shown.isEmpty, "a notification on the screen is not shown again")
    }

    @Test func `a new agent detects that a waiting process has ended`() throws {
        let id = try bench.download(awaitedBy: Bench.waiter)
        try bench.turn()
        bench.gone = [Bench.waiter]
        try bench.startAgent()
        #expect(try bench.transfer(id).adoptableUntil == bench.now + 5)
        try bench.pass(5)
        #expect(try bench.transfer(id).state == .cancelled)
    }

    /// The command `quit` found launches of a dead agent. The command started this agent to end these launches.
    @Test func `a new agent obeys a quit command that a process waits for`() throws {
        try bench.submit()
        try bench.turn()
        let id = try bench.onlyLive()
        let question = try bench.ledger.write { try $0.addControl(.quit, now: bench.now) }
        try bench.startAgent()
        #expect(bench.agent.lifetime.isQuitting)
        #expect(bench.launcher.warned == [id])
        #expect(try bench.ledger.read { try $0.answer(to: question) } == "stopping")
    }

    @Test func `a quit command of an ended process does not stop a new agent`() throws {
        try bench.submit(after: 3_600)
        let question = try bench.ledger.write { try $0.addControl(.quit, now: bench.now) }
        // The process of the command has also ended.
        try DatabaseQueue(path: bench.ledger.directories.ledger.path).write {
            try $0.execute(sql: "UPDATE control SET askerPID = 4000001, askerStart = 1")
        }
        try bench.startAgent()
        #expect(!bench.agent.lifetime.isQuitting)
        #expect(
            try bench.ledger.read { try $0.answer(to: question) } == "error: the process that waited for the response has ended")
    }

    /// If a process has ended, its files are removed immediately. The age of the files does not matter, because a clock may be
    /// wrong.
    @Test func `files without an owner in the spool are removed at any age`() throws {
        let spool = bench.ledger.directories.spool
        for (name, age) in [("old", 86_400.0), ("young", 0), ("of-tomorrow", -86_400)] {
            let path = spool.appendingPathComponent(name)
            try Data("x".utf8).write(to: path)
            try FileManager.default.setAttributes([.modificationDate: bench.now - age], ofItemAtPath: path.path)
        }
        try bench.startAgent()
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.path) == [])
    }

    /// A copy in the spool belongs to the process that made the copy, until the process records the copy in the ledger. The age
    /// of the copy does not matter, because a clock may be wrong.
    @Test(arguments: [false, true]) func `a copy in the spool is kept while its process holds it`(_ isKept: Bool) throws {
        let (directories, spool) = (bench.ledger.directories, bench.ledger.directories.spool)
        try bench.submit(after: 2 * 86_400)
        let left = spool.appendingPathComponent("upload-left")
        try Data("bytes".utf8).write(to: left)
        let copy = try Snapshot.store(Data("photo".utf8), in: directories)
        try bench.startAgent()
        try bench.pass(86_400)
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.path).sorted() == ["upload-left", copy.name].sorted())
        // The process keeps or discards the copy, but no row of the ledger names the copy. After that, the copy has no owner.
        if isKept { copy.keep() } else { copy.discard() }
        try bench.pass(3_601)
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.path) == [])
    }

    /// An agent may run for months, so the agent checks the spool at the end of each launch.
    @Test func `files that a process left in the spool are removed when a launch ends`() throws {
        try bench.submit(after: 10)
        try bench.startAgent()
        try bench.pass(11)
        let left = bench.ledger.directories.spool.appendingPathComponent("upload-left")
        try Data("bytes".utf8).write(to: left)
        try bench.pass(1)
        #expect(FileManager.default.fileExists(atPath: left.path))
        try bench.end(bench.onlyLive(), .completed)
        #expect(!FileManager.default.fileExists(atPath: left.path))
    }

    /// The agent moves copies without an owner to a separate folder. In this test, a file blocks the path of this folder. The
    /// copy stays in the spool until the file is removed.
    @Test func `a copy that cannot be moved aside stays in the spool`() throws {
        let (directories, spool) = (bench.ledger.directories, bench.ledger.directories.spool)
        try bench.submit(after: 2 * 86_400)
        try Data("no folder".utf8).write(to: directories.leftCopies)
        let copy = spool.appendingPathComponent(AppDirectories.copyPrefix + "1")
        try Data("photo".utf8).write(to: copy)
        try bench.startAgent()
        #expect(try Data(contentsOf: copy) == Data("photo".utf8))
        try FileManager.default.removeItem(at: directories.leftCopies)
        try bench.pass(3_601)
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.path) == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directories.leftCopies.path) == [copy.lastPathComponent])
    }

    @Test func `an agent that exits removes files without an owner from the spool`() throws {
        let (directories, spool) = (bench.ledger.directories, bench.ledger.directories.spool)
        let copy = try Snapshot.store(Data("photo".utf8), in: directories)
        try bench.startAgent()
        copy.keep()
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.path) == [copy.name])
        try bench.pass(Lifetime.linger + 1)
        #expect(bench.host.hasFinished)
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool.path) == [])
    }

    /// The copy is not removed early if the clock is temporarily a year ahead.
    @Test func `a copy that was moved aside is removed a week after it was found to be a month old`() throws {
        let (directories, day) = (bench.ledger.directories, 86_400)
        try FileManager.default.createDirectory(at: directories.leftCopies, withIntermediateDirectories: true)
        let copy = directories.leftCopies.appendingPathComponent("upload-1").path
        #expect(FileManager.default.createFile(atPath: copy, contents: Data("photo".utf8)))
        let begin = 1_750_000_000
        let times = [timespec(tv_sec: begin, tv_nsec: 0), timespec(tv_sec: begin, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, copy, times, 0) == 0)
        func isThere(after days: Int) -> Bool {
            directories.removeOldCopies(now: begin + days * day)
            return FileManager.default.fileExists(atPath: copy)
        }
        #expect(isThere(after: 29))
        #expect(isThere(after: 365), "ahead")
        #expect(isThere(after: 366))
        #expect(isThere(after: 2), "right again")
        #expect(isThere(after: 32), "a month is over")
        #expect(isThere(after: 38))
        #expect(!isThere(after: 40))
    }

    /// The configuration may be a symbolic link, for example into a repository of configuration files. A change of the link's
    /// target counts as a change of the configuration.
    @Test func `a file behind a symbolic link is watched`() throws {
        let (behind, links) = (bench.folder.appendingPathComponent("dotfiles"), bench.folder.appendingPathComponent("links"))
        for folder in [behind, links] { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
        let (file, link) = (behind.appendingPathComponent("config.toml"), links.appendingPathComponent("config.toml"))
        try Data("old".utf8).write(to: file)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let watch = try FileWatch([link.path])
        var bytes = [UInt8](repeating: 0, count: 4_096)
        #expect(read(watch.descriptor, &bytes, bytes.count) < 0)
        try Data("new".utf8).write(to: file)
        #expect(read(watch.descriptor, &bytes, bytes.count) > 0)
        try FileManager.default.removeItem(at: link)
        #expect(read(watch.descriptor, &bytes, bytes.count) > 0)
    }

    /// The settings folder is moved away, and another folder is created at its path.
    @Test func `a folder that is replaced is watched`() throws {
        let files = FileManager.default
        let (folder, aside) = (bench.folder.appendingPathComponent("settings/app"), bench.folder.appendingPathComponent("aside"))
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appendingPathComponent("config.toml")
        let watch = try FileWatch([file.path])
        func rang() throws -> Bool {
            defer { withExtendedLifetime(watch) {} }
            let rang = ChangeListener.drain(watch.descriptor)
            try FileWatch.arm(watch.descriptor, [file.path])
            return rang
        }
        #expect(try !rang())
        try files.moveItem(at: folder, to: aside)
        #expect(try rang())
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        #expect(try rang())
        try Data("new".utf8).write(to: file)
        #expect(try rang())
        // The parent folder is also replaced.
        try files.removeItem(at: folder.deletingLastPathComponent())
        #expect(try rang())
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        #expect(try rang())
        try Data("new".utf8).write(to: file)
        #expect(try rang())
    }
}
