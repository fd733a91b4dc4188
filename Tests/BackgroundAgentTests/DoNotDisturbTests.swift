@testable import BackgroundLedger
import BackgroundNotices
import Foundation
import Testing

@testable import BackgroundAgent

/// A server in do-not-disturb mode accepts notifications but does not show them.
@Suite struct DoNotDisturbTests {
    private let bench: Bench

    init() throws {
        bench = try Bench()
        try bench.hear(.presenter(.serverIs("one")))
    }

    private func add(_ title: String = "Storm", level: Int = 3) throws {
        let content = NotificationContent(
            title: title, subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: "bell",
            interruptionLevel: level, badge: nil)
        try bench.ledger.write { try $0.addNotification("n", content, dueAt: nil, now: bench.now) }
        try bench.turn()
    }

    private func record() throws -> NotificationRecord { try #require(try bench.ledger.read { try $0.notification("n") }) }

    private func presented(_ serverID: UInt32) throws {
        try bench.hear(.presenter(.presented(identifier: "n", serverID: serverID)))
    }

    private func doNotDisturb(_ isOn: Bool) throws { try bench.hear(.presenter(.doNotDisturb(isOn))) }

    @Test(arguments: [2, 3]) func `a hidden notification that stays until the user answers is shown when do-not-disturb ends`(
        _ level: Int
    ) throws {
        try doNotDisturb(true)
        try add(level: level)
        try presented(7)
        #expect(try record().life.isHidden)
        #expect(try record().trouble == "do not disturb is on")
        try bench.pass(3_600)
        #expect(bench.presenter.shown.count == 1 && !bench.host.hasFinished)
        try doNotDisturb(false)
        #expect(bench.presenter.shown.count == 2)
        #expect(bench.presenter.shown.last?.replacing == 7)
        #expect(bench.presenter.shown.last?.notice.alerts == true && bench.presenter.shown.last?.notice.isQuiet == false)
        try presented(8)
        #expect(try record().deliveredAt == bench.now)
        #expect(try record().trouble == nil)
        try doNotDisturb(true)
        try doNotDisturb(false)
        #expect(bench.presenter.shown.count == 2, "a notification that was shown is not shown again")
    }

    @Test func `a hidden notification that does not stay on the screen is not shown again`() throws {
        try doNotDisturb(true)
        try add(level: 1)
        try presented(7)
        try doNotDisturb(false)
        #expect(try record().deliveredAt != nil)
        #expect(bench.presenter.shown.count == 1)
    }

    @Test func `a hidden notification that the user answered in the history is not shown again`() throws {
        try doNotDisturb(true)
        try add()
        try presented(7)
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 7, .dismissed)))
        try doNotDisturb(false)
        #expect(try record().state == .closed)
        #expect(bench.presenter.shown.count == 1)
    }

    @Test func `a silent change of a notification that was shown stays silent`() throws {
        try add()
        try presented(7)
        try doNotDisturb(true)
        var later = try record().content
        later.title = "Storm, later"
        #expect(try bench.ledger.write { try $0.changeNotification("n", later) })
        try bench.turn()
        try presented(7)
        try doNotDisturb(false)
        #expect(bench.presenter.shown.count == 2 && bench.presenter.shown.last?.notice.isQuiet == true)
    }

    @Test func `the next agent shows what do-not-disturb hid`() throws {
        try doNotDisturb(true)
        try add()
        try presented(7)
        try bench.startAgent()
        #expect(bench.presenter.adoptedNotifications == ["n 7"] && bench.presenter.shown.isEmpty)
        try bench.hear(.presenter(.serverIs("one")), .presenter(.doNotDisturb(false)))
        #expect(bench.presenter.shown.count == 1 && bench.presenter.shown.last?.notice.alerts == true)
    }

    @Test(arguments: [PresenterEvent.serverVanished, .busLost])
    func `the next server shows what do-not-disturb hid with an alert`(_ end: PresenterEvent) throws {
        try doNotDisturb(true)
        try add()
        try presented(7)
        try bench.hear(.presenter(end), .presenter(.serverAppeared))
        #expect(bench.presenter.shown.last?.notice.isQuiet == false)
        try presented(1)
        #expect(try record().deliveredAt != nil)
    }
}
