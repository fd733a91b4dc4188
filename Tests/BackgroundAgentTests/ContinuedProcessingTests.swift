import ProcessSupport
@testable import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundAgent

/// Tests of continued processing, which the user starts. The number of launches for continued processing is limited. The desktop
/// shows the progress of each launch and a Cancel button. The agent stops a launch that makes no progress.
@Suite struct ContinuedProcessingTests {
    private let bench: Bench
    private let host = ProcessIdentity(pid: 4_000_001, start: 1)

    init() throws { bench = try Bench() }

    private func running() throws -> LaunchRecord {
        let live = try bench.live()
        return try #require(live.first { $0.kind == .continuedProcessing })
    }

    private func progress(_ done: Int64, _ id: Int64) throws {
        try bench.ledger.write { try $0.setProgress(done, of: 100, launch: id, now: bench.now) }
        try bench.turn()
    }

    private func finish(_ id: Int64, _ result: LaunchOutcome) throws {
        try bench.ledger.write { try $0.setResult(result, detail: nil, ofLaunch: id) }
        try bench.turn()
    }

    private var notices: [FakePresenter.Showing] { bench.presenter.shown }

    @Test func `continued processing runs in the process that requested it`() throws {
        try bench.begin("a.export.1", host: host)
        let launch = try running()
        #expect(launch.host == host)
        #expect(bench.launcher.started.isEmpty, "the agent starts no process for continued processing")
        #expect(bench.watched == [host])
        #expect(try bench.request("a.export.1") == nil, "consumed")
        #expect(notices.map(\.notice.title) == ["Export"])
        #expect(notices.first?.notice.body == "12 photos")
        #expect(notices.first?.notice.actions.map(\.key) == ["cancel"])
        #expect(notices.first?.notice.percent == nil, "the app has not reported a percentage yet")
    }

    @Test func `progress is shown at most once a second`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        for done in 1...50 {
            try progress(Int64(done), id)
            try bench.pass(0.1)
        }
        // In five seconds the notification is shown once and updated about five times. The last update shows the last progress.
        try bench.pass(1)
        #expect(notices.count == 6 || notices.count == 7)
        #expect(notices.last?.notice.percent == 50)
        #expect(notices.last?.notice.body == "12 photos\n50 %")
        #expect(notices.last?.replacing == 9)
        try finish(id, .completed)
        #expect(try bench.launch(id).outcome == .completed)
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
    }

    /// The agent connects to the session bus when it shows the first notification. Only later does the agent receive the event
    /// that a notification server is available. Plasma refuses a notification if the same text is sent again immediately.
    @Test func `progress is shown once by each notification server`() throws {
        try bench.begin("a", host: host)
        let name = "continued-processing-\(try #require(try running().id))"
        try bench.hear(
            .presenter(.serverIs("one")), .presenter(.presented(identifier: name, serverID: 9)), .presenter(.serverAppeared))
        #expect(notices.count == 1)
        // Another notification server now has the bus name.
        try bench.hear(.presenter(.serverIs("two")), .presenter(.serverAppeared))
        #expect(notices.count == 2 && notices.last?.replacing == nil)
        try bench.hear(.presenter(.failed(identifier: name, .noServer("gone"))))
        try bench.pass(10)
        #expect(notices.count == 2)
        try bench.hear(.presenter(.serverAppeared))
        #expect(notices.count == 3, "the new server had not shown the notification")
    }

    @Test func `a notification that is presented after the end of its launch is withdrawn`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try finish(id, .completed)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
    }

    @Test func `the Cancel button expires the launch`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(
            .presenter(
                .activated(identifier: "continued-processing-\(id)", serverID: 9, action: "cancel", activationToken: nil)))
        #expect(try bench.launch(id).stopReason == .cancelled)
        #expect(bench.launcher.warned.isEmpty, "a process that the user started receives no signal")
        try finish(id, .expired)
        #expect(try bench.launch(id).outcome == .expired)
        #expect(try bench.launch(id).detail == "the user pressed Cancel")
    }

    @Test func `a process that does not stop after Cancel is not killed`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(
            .presenter(
                .activated(identifier: "continued-processing-\(id)", serverID: 9, action: "cancel", activationToken: nil)))
        try bench.pass(5)
        #expect(try bench.launch(id).outcome == .failed)
        #expect(try bench.launch(id).detail == "the launch did not stop, and its process was not killed")
        #expect(bench.launcher.killed.isEmpty)
    }

    @Test func `a launch is stopped after 60 seconds without progress`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.pass(59)
        try progress(1, id)
        try bench.pass(59)
        #expect(try bench.launch(id).stopReason == nil)
        try bench.pass(1)
        #expect(try bench.launch(id).stopReason == .noProgress)
        try finish(id, .expired)
        #expect(try bench.launch(id).detail == "the task made no progress")
    }

    @Test func `a fifth launch waits until one of four launches ends`() throws {
        for number in 1...5 { try bench.begin("a\(number)", host: host) }
        #expect(try bench.live().map(\.identifier) == ["a1", "a2", "a3", "a4"])
        try finish(try #require(try bench.live().first?.id), .completed)
        #expect(try bench.live().map(\.identifier) == ["a2", "a3", "a4", "a5"])
    }

    @Test func `the end of a process ends its continued processing`() throws {
        for number in 1...5 { try bench.begin("a\(number)", host: host) }
        let other = ProcessIdentity(pid: 4_000_002, start: 1)
        try bench.begin("b", host: other)
        try bench.hear(.processEnded(host))
        #expect(try bench.live().map(\.identifier) == ["b"])
        #expect(try bench.history().filter { $0.outcome == .crashed }.count == 4)
        #expect(try bench.request("a5") == nil)
    }

    @Test func `continued processing of a process that already ended is recorded as crashed`() throws {
        bench.gone = [host]
        try bench.begin("a", host: host)
        #expect(try bench.live().isEmpty)
        #expect(try bench.history().map(\.outcome) == [.crashed])
    }

    @Test func `a new agent continues to show a running launch`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        try bench.startAgent()
        #expect(try running().id == id)
        #expect(notices.first?.replacing == 9)
        try finish(id, .completed)
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
    }

    @Test func `a new agent withdraws the notification of an ended launch once`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        try finish(id, .completed)
        // The agent requested the removal of the notification, but died before the server had removed it.
        try bench.startAgent()
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
        try bench.startAgent()
        #expect(bench.presenter.withdrawn.isEmpty, "once")
    }

    @Test func `a clock that is set back does not prolong the time without progress`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.pass(10)
        try progress(1, id)
        try bench.step(-3_600)
        try bench.pass(59)
        #expect(try bench.launch(id).stopReason == nil)
        try bench.pass(2)
        #expect(try bench.launch(id).stopReason == .noProgress)
    }

    @Test func `a launch of continued processing cannot be simulated`() throws {
        for number in 1...5 { try bench.begin("a\(number)", host: host) }
        let question = try bench.ledger.write { try $0.addControl(.simulateLaunch, "a5", now: bench.now) }
        try bench.turn()
        #expect(try bench.ledger.read { try $0.answer(to: question) }?.hasPrefix("error: a5 runs in the process") == true)
        #expect(bench.launcher.started.isEmpty)
    }

    @Test func `the stop of the agent stops continued processing`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.stopRequested)
        #expect(try bench.launch(id).stopReason == .quit)
        #expect(!bench.host.hasFinished)
        try finish(id, .expired)
        #expect(bench.host.hasFinished)
    }

    @Test func `a closed notification is not shown again and does not cancel the launch`() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(
            .presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)),
            .presenter(.closed(identifier: "continued-processing-\(id)", serverID: 9, .dismissed)))
        try progress(50, id)
        try bench.pass(10)
        #expect(notices.count == 1)
        #expect(try running().stopReason == nil, "a closed notification does not cancel the work")
    }
}

/// Tests of apps that request launches for new days, clock changes and time zone changes.
@Suite struct TimeChangeTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.ledger.write { try $0.setFact(.significantTime, SignificantTime(at: bench.now, in: bench.zone)) }
        try bench.turn()
    }

    @Test func `a new day launches the app once`() throws {
        // The local time in Berlin is 10:00.
        try bench.pass(14 * 3600 - 1)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(1)
        let id = try bench.onlyLive()
        #expect(try bench.launch(id).kind == .significantTimeChange)
        #expect(try bench.launch(id).reason == "a new day began")
        try bench.end(id, .completed)
        #expect(bench.launcher.started == [id], "once")
        try bench.pass(86_400)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func `a new time zone launches the app`() throws {
        bench.zone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        try bench.hear(.timeChanged)
        #expect(try bench.launch(bench.onlyLive()).reason == "the time zone changed from Europe/Berlin to Asia/Tokyo")
    }

    @Test func `a launch for a time change is repeated after a crash`() throws {
        try bench.pass(14 * 3600)
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        #expect(try bench.live().isEmpty)
        try bench.pass(5)
        #expect(try bench.launch(bench.onlyLive()).generation == 2)
        try bench.end(bench.onlyLive(), .completed)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func `the agent does not exit while an app wants time changes`() throws {
        #expect(try bench.ledger.read { try $0.hasUnfinishedWork() })
        try bench.pass(60)
        #expect(!bench.host.hasFinished)
        try bench.ledger.write { try $0.setFact(.significantTime, nil) }
        try bench.pass(60)
        #expect(bench.host.hasFinished)
    }

    @Test func `a time change during a launch is reported by the next launch`() throws {
        try bench.pass(14 * 3600)
        bench.zone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        try bench.hear(.timeChanged)
        try bench.end(bench.onlyLive(), .completed)
        #expect(try bench.launch(bench.onlyLive()).reason.hasPrefix("the time zone changed"))
    }

    @Test func `an app that does not want time changes is not launched`() throws {
        try bench.ledger.write { try $0.setFact(.significantTime, nil) }
        try bench.pass(2 * 86_400)
        #expect(bench.launcher.started.isEmpty)
    }
}
