import ProcessSupport
@testable import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundAgent

/// Work that a person began: room, progress on the desktop, Cancel, and an end when nothing moves.
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

    @Test func itRunsInTheProcessThatAsked() throws {
        try bench.begin("a.export.1", host: host)
        let launch = try running()
        #expect(launch.host == host)
        #expect(bench.launcher.started.isEmpty, "no process is started for it")
        #expect(bench.watched == [host])
        #expect(try bench.request("a.export.1") == nil, "consumed")
        #expect(notices.map(\.notice.title) == ["Export"])
        #expect(notices.first?.notice.body == "12 photos")
        #expect(notices.first?.notice.actions.map(\.key) == ["cancel"])
        #expect(notices.first?.notice.percent == nil, "nobody knows yet")
    }

    @Test func progressIsShownOnceASecond() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        for done in 1...50 {
            try progress(Int64(done), id)
            try bench.pass(0.1)
        }
        // Five seconds: the first showing and five updates, the last with the last word.
        try bench.pass(1)
        #expect(notices.count == 6 || notices.count == 7)
        #expect(notices.last?.notice.percent == 50)
        #expect(notices.last?.notice.body == "12 photos\n50 %")
        #expect(notices.last?.replacing == 9)
        try finish(id, .completed)
        #expect(try bench.launch(id).outcome == .completed)
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
    }

    /// The first showing finds the bus: that a server is there is told behind it, and Plasma refuses the same words again at once.
    @Test func theFirstShowingIsOne() throws {
        try bench.begin("a", host: host)
        let name = "continued-processing-\(try #require(try running().id))"
        try bench.hear(
            .presenter(.serverIs("one")), .presenter(.presented(identifier: name, serverID: 9)), .presenter(.serverAppeared))
        #expect(notices.count == 1)
        // Another one has taken its name, which something else was told of first.
        try bench.hear(.presenter(.serverIs("two")), .presenter(.serverAppeared))
        #expect(notices.count == 2 && notices.last?.replacing == nil)
        try bench.hear(.presenter(.failed(identifier: name, .noServer("gone"))))
        try bench.pass(10)
        #expect(notices.count == 2)
        try bench.hear(.presenter(.serverAppeared))
        #expect(notices.count == 3, "nobody had shown it")
    }

    @Test func whatEndsWhileItIsShownIsTakenBack() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try finish(id, .completed)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
    }

    @Test func cancelIsAnExpiration() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(
            .presenter(
                .activated(identifier: "continued-processing-\(id)", serverID: 9, action: "cancel", activationToken: nil)))
        #expect(try bench.launch(id).stopReason == .cancelled)
        #expect(bench.launcher.warned.isEmpty, "a process that a person started is not signalled")
        try finish(id, .expired)
        #expect(try bench.launch(id).outcome == .expired)
        #expect(try bench.launch(id).detail == "a person pressed Cancel")
    }

    @Test func oneThatDoesNotStopIsLeftAlone() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(
            .presenter(
                .activated(identifier: "continued-processing-\(id)", serverID: 9, action: "cancel", activationToken: nil)))
        try bench.pass(5)
        #expect(try bench.launch(id).outcome == .failed)
        #expect(try bench.launch(id).detail == "did not stop; its process was left alone")
        #expect(bench.launcher.killed.isEmpty)
    }

    @Test func withoutProgressItsTimeEnds() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.pass(59)
        try progress(1, id)
        try bench.pass(59)
        #expect(try bench.launch(id).stopReason == nil)
        try bench.pass(1)
        #expect(try bench.launch(id).stopReason == .noProgress)
        try finish(id, .expired)
        #expect(try bench.launch(id).detail == "it made no progress")
    }

    @Test func aFifthWaitsForRoom() throws {
        for number in 1...5 { try bench.begin("a\(number)", host: host) }
        #expect(try bench.live().map(\.identifier) == ["a1", "a2", "a3", "a4"])
        try finish(try #require(try bench.live().first?.id), .completed)
        #expect(try bench.live().map(\.identifier) == ["a2", "a3", "a4", "a5"])
    }

    @Test func aProcessThatLeavesTakesItsWorkWithIt() throws {
        for number in 1...5 { try bench.begin("a\(number)", host: host) }
        let other = ProcessIdentity(pid: 4_000_002, start: 1)
        try bench.begin("b", host: other)
        try bench.hear(.processEnded(host))
        #expect(try bench.live().map(\.identifier) == ["b"])
        #expect(try bench.history().filter { $0.outcome == .crashed }.count == 4)
        #expect(try bench.request("a5") == nil)
    }

    @Test func aProcessGoneBeforeTheAgentLookedIsNoticed() throws {
        bench.gone = [host]
        try bench.begin("a", host: host)
        #expect(try bench.live().isEmpty)
        #expect(try bench.history().map(\.outcome) == [.crashed])
    }

    @Test func anotherAgentGoesOnWithIt() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        try bench.startAgent()
        #expect(try running().id == id)
        #expect(notices.first?.replacing == 9)
        try finish(id, .completed)
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
    }

    @Test func whatAnAgentLeftOnTheScreenIsTakenOffByTheNext() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)))
        try finish(id, .completed)
        // Withdrawn, but this agent died before the server had done it.
        try bench.startAgent()
        #expect(bench.presenter.withdrawn == ["continued-processing-\(id) 9"])
        try bench.startAgent()
        #expect(bench.presenter.withdrawn.isEmpty, "once")
    }

    @Test func aClockSetBackDoesNotProlongIt() throws {
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

    @Test func itIsNotSimulated() throws {
        for number in 1...5 { try bench.begin("a\(number)", host: host) }
        let question = try bench.ledger.write { try $0.ask(.simulateLaunch, "a5", now: bench.now) }
        try bench.turn()
        #expect(try bench.ledger.read { try $0.answer(to: question) }?.hasPrefix("error: a5 runs in the process") == true)
        #expect(bench.launcher.started.isEmpty)
    }

    @Test func quittingStopsIt() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(.stopRequested)
        #expect(try bench.launch(id).stopReason == .quit)
        #expect(!bench.host.hasFinished)
        try finish(id, .expired)
        #expect(bench.host.hasFinished)
    }

    @Test func aClosedNotificationIsNotShownAgain() throws {
        try bench.begin("a", host: host)
        let id = try #require(try running().id)
        try bench.hear(
            .presenter(.presented(identifier: "continued-processing-\(id)", serverID: 9)),
            .presenter(.closed(identifier: "continued-processing-\(id)", serverID: 9, .dismissed)))
        try progress(50, id)
        try bench.pass(10)
        #expect(notices.count == 1)
        #expect(try running().stopReason == nil, "closing is not cancelling")
    }
}

/// Apps that want to know of days, clocks and zones.
@Suite struct TimeChangeTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.ledger.write { try $0.setFact(.significantTime, SignificantTime(at: bench.now, in: bench.zone)) }
        try bench.turn()
    }

    @Test func midnightIsTold() throws {
        // 10:00 in Berlin.
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

    @Test func anotherZoneIsTold() throws {
        bench.zone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        try bench.hear(.timeChanged)
        #expect(try bench.launch(bench.onlyLive()).reason == "the time zone changed from Europe/Berlin to Asia/Tokyo")
    }

    @Test func oneThatDiesIsToldAgain() throws {
        try bench.pass(14 * 3600)
        try bench.end(bench.onlyLive(), nil, .signalled(9))
        #expect(try bench.live().isEmpty)
        try bench.pass(5)
        #expect(try bench.launch(bench.onlyLive()).generation == 2)
        try bench.end(bench.onlyLive(), .completed)
        try bench.pass(3_600)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func whoWantsToBeToldHasAnAgent() throws {
        #expect(try bench.ledger.read { try $0.hasUnfinishedWork() })
        try bench.pass(60)
        #expect(!bench.host.hasFinished)
        try bench.ledger.write { try $0.setFact(.significantTime, nil) }
        try bench.pass(60)
        #expect(bench.host.hasFinished)
    }

    @Test func whatChangesWhileItIsToldIsToldNext() throws {
        try bench.pass(14 * 3600)
        bench.zone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        try bench.hear(.timeChanged)
        try bench.end(bench.onlyLive(), .completed)
        #expect(try bench.launch(bench.onlyLive()).reason.hasPrefix("the time zone changed"))
    }

    @Test func nobodyElseIsTold() throws {
        try bench.ledger.write { try $0.setFact(.significantTime, nil) }
        try bench.pass(2 * 86_400)
        #expect(bench.launcher.started.isEmpty)
    }
}
