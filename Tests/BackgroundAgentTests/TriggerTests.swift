@testable import BackgroundLedger
import BackgroundNotices
import Foundation
import Testing

@testable import BackgroundAgent

/// Tests of notifications with triggers. The notifications are shown at their times, repeat, and follow changes of the time zone
/// and the clock.
@Suite struct TriggerTests {
    private let bench: Bench
    private let content = NotificationContent(
        title: "Storm", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
        interruptionLevel: 1, badge: nil)

    init() throws { bench = try Bench() }

    private func add(_ trigger: NoticeTrigger) throws {
        let schedule = try #require(NoticeSchedule(trigger, now: bench.now, zone: bench.zone))
        try bench.ledger.write { try $0.addNotification("n", content, dueAt: nil, schedule: schedule, now: bench.now) }
        try bench.turn()
    }

    private func record() throws -> NotificationRecord { try #require(try bench.ledger.read { try $0.notification("n") }) }

    private func write(_ body: (LedgerTransaction, NotificationRecord) throws -> Void) throws {
        let record = try record()
        try bench.ledger.write { try body($0, record) }
        try bench.turn()
    }

    private func presented() throws { try bench.hear(.presenter(.presented(identifier: "n", serverID: 7))) }

    private var showings: Int { bench.presenter.shown.count }

    @Test func `an hourly notification is shown each hour`() throws {
        try add(.interval(3_600, repeats: true))
        #expect(try showings == 0 && record().willBeShown)
        for hour in 1...3 {
            try bench.pass(3_599)
            #expect(showings == hour - 1)
            try bench.pass(1)
            #expect(showings == hour)
            try presented()
            #expect(try record().state == .delivered && record().willBeShown)
        }
        #expect(bench.presenter.shown.last?.replacing == 7, "the notification replaces the last notification")
        #expect(bench.presenter.shown.last?.notice.isQuiet == false, "the notification alerts")
        // A notification that was closed or removed from the screen is shown again at its next date.
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 7, .dismissed)))
        try bench.pass(3_600)
        #expect(showings == 4)
        try presented()
        try write { try $0.removeFromScreen([$1], now: bench.now) }
        try bench.turn()
        #expect(bench.presenter.withdrawn == ["n 7"])
        try bench.pass(3_600)
        #expect(showings == 5)
        try presented()
        // The app cancelled the repetitions. The notification stays on the screen until the user closes it, and is not shown
        // again.
        try write { try $0.cancelComing([$1], now: bench.now) }
        try bench.pass(86_400)
        #expect(try showings == 5 && record().state == .delivered)
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 7, .dismissed)))
        try bench.pass(Lifetime.linger)
        #expect(bench.host.hasFinished)
    }

    @Test func `the agent does not exit while a notification repeats`() throws {
        try add(.interval(3_600, repeats: true))
        try bench.pass(3_600)
        try presented()
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 7, .dismissed)))
        try bench.pass(60)
        #expect(!bench.host.hasFinished)
    }

    /// If a notification could not be shown, the agent keeps its date, and shows the notification later. The next date of the
    /// trigger does not replace this date.
    @Test func `a notification that could not be shown is shown when a server appears`() throws {
        try add(.interval(3_600, repeats: true))
        try bench.pass(3_600)
        try bench.hear(.presenter(.failed(identifier: "n", .noServer("none"))))
        try bench.pass(600)
        #expect(showings == 1)
        try bench.hear(.presenter(.serverAppeared))
        #expect(showings == 2)
        try presented()
        try bench.pass(3_000)
        #expect(showings == 3, "the repeated notification keeps its interval")
    }

    @Test func `a calendar trigger follows the time zone of the user`() throws {
        var noon = DateComponents()
        noon.hour = 12
        try add(.calendar(noon, repeats: true))
        let there = try #require(try record().dueAt)
        bench.zone = try #require(TimeZone(identifier: "Asia/Tokyo"))
        try bench.hear(.zoneChanged)
        let here = try #require(try record().dueAt)
        #expect(here != there)
        try bench.pass(here.timeIntervalSince(bench.now) - 1)
        #expect(showings == 0)
        try bench.pass(1)
        #expect(showings == 1)
        try presented()
        #expect(try record().schedule?.next == here + 86_400)
    }

    /// The notification was added while the clock was a year ahead.
    @Test func `a notification that was added with a clock ahead is not delayed`() throws {
        try bench.step(365 * 86_400)
        try add(.interval(60, repeats: false))
        try bench.step(-365 * 86_400)
        try bench.pass(61)
        #expect(showings == 1)
        try presented()
        #expect(try !record().willBeShown)
    }
}
