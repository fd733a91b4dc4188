@testable import BackgroundLedger
import BackgroundNotices
import Foundation
import Synchronization
import Testing

@testable import BackgroundAgent

/// Tests of summaries. The user sees only a few of many notifications, and one summary after quiet hours.
@Suite struct SummaryTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func content(_ title: String, level: Int = 1, thread: String = "", category: String = "") -> NotificationContent {
        NotificationContent(
            title: title, subtitle: "", body: "", categoryIdentifier: category, threadIdentifier: thread, userInfo: "{}",
            sound: "message", interruptionLevel: level, badge: nil)
    }

    private func add(_ count: Int, from first: Int = 1, level: Int = 1, thread: String = "", category: String = "") throws {
        try bench.ledger.write { transaction in
            for number in first..<first + count {
                try transaction.addNotification(
                    "n\(number)", content("No. \(number)", level: level, thread: thread, category: category), dueAt: nil,
                    now: bench.now + Double(number) / 1_000)
            }
        }
        try bench.turn()
    }

    private func record(_ id: String) throws -> NotificationRecord {
        try #require(try bench.ledger.read { try $0.notification(id) })
    }

    private var last: Notice? { bench.presenter.shown.last?.notice }

    private func presentAll() throws {
        for (number, shown) in bench.presenter.shown.enumerated()
        where try record(shown.notice.identifier).state == .presenting {
            try bench.hear(.presenter(.presented(identifier: shown.notice.identifier, serverID: UInt32(100 + number))))
        }
    }

    @Test func `a thousand notifications appear as five notifications and one summary`() throws {
        try add(1_000)
        try bench.turn()
        #expect(bench.presenter.shown.count == 6)
        #expect(last?.title == "995 notifications of App")
        #expect(last?.body == "No. 1000\nNo. 999\nNo. 998\nNo. 997\nNo. 996\nand 990 more")
        #expect(last?.actions.map(\.key) == ["default", "show"])
        try presentAll()
        #expect(try record("n700").state == .gathered)
        // One more notification is added to the summary. The summary is updated without an alert.
        try add(1, from: 1_001)
        #expect(bench.presenter.shown.count == 7)
        #expect(last?.title == "996 notifications of App" && last?.isQuiet == true)
        #expect(try bench.ledger.read { try $0.hasUnfinishedWork() })
    }

    /// One run of the agent's loop has two passes. The second pass finds the new notification, so only a third pass can send the
    /// changed summary to the server.
    @Test func `a notification that comes between two looks changes the summary at once`() throws {
        try add(20)
        try bench.turn()
        try presentAll()
        #expect(last?.title == "15 notifications of App")
        let (looks, other, now, late) = (Counter(), try Ledger(bench.ledger.directories), bench.now, content("Late"))
        bench.conditions.onEachRead {
            guard looks.next() == 2 else { return }
            _ = try? other.write { try $0.addNotification("late", late, dueAt: nil, now: now) }
        }
        try bench.hear(.presenter(.doNotDisturb(true)))
        #expect(last?.title == "16 notifications of App")
    }

    @Test func `a press on the summary shows the newest notifications individually`() throws {
        try add(20)
        try bench.turn()
        try presentAll()
        let summary = try #require(last?.identifier)
        let number = try #require(try record(summary).serverID)
        try bench.hear(.presenter(.activated(identifier: summary, serverID: number, action: "show", activationToken: nil)))
        try bench.turn()
        let shown = bench.presenter.shown.dropFirst(6).map(\.notice)
        #expect(Set(shown.map(\.title)) == ["No. 20", "No. 19", "No. 18", "No. 17", "No. 16", "10 notifications of App"])
        let loud = shown.filter { !$0.isQuiet }.map(\.title)
        #expect(loud == ["10 notifications of App"])
        #expect(shown.first { $0.title == "10 notifications of App" }?.soundName == nil)
        #expect(bench.presenter.withdrawn == ["\(summary) \(number)"])
        #expect(try bench.ledger.read { try $0.liveLaunches() }.isEmpty, "a summary launches no app")
    }

    @Test func `closing a summary closes its notifications`() throws {
        try add(20)
        try bench.turn()
        try presentAll()
        let summary = try #require(last?.identifier)
        let number = try #require(try record(summary).serverID)
        try bench.hear(.presenter(.closed(identifier: summary, serverID: number, .dismissed)))
        #expect(try record("n20").state == .closed)
        #expect(try record("n1").state == .delivered)
        // The next notifications are added to a new summary, which alerts the user.
        try add(10, from: 30)
        try bench.turn()
        #expect(last?.title == "10 notifications of App" && last?.isQuiet == false)
    }

    @Test func `a removed notification leaves the summary`() throws {
        try add(8)
        try bench.turn()
        try presentAll()
        #expect(last?.title == "3 notifications of App")
        try bench.ledger.write { try $0.withdrawMatching(now: bench.now) { $0.identifier == "n8" } }
        try bench.turn()
        #expect(last?.title == "2 notifications of App")
        try presentAll()
        try bench.ledger.write { try $0.withdrawMatching(now: bench.now) { !$0.isAgents } }
        try bench.turn()
        #expect(bench.presenter.withdrawn.count == 6)
        for text in bench.presenter.withdrawn {
            let parts = text.split(separator: " ").map(String.init)
            try bench.hear(.presenter(.withdrawn(identifier: parts[0], serverID: UInt32(parts[1]) ?? 0)))
        }
        #expect(try bench.ledger.read { try !$0.hasUnfinishedWork() })
    }

    /// The local time in Berlin is 10:00.
    @Test func `quiet hours end with one summary`() throws {
        try bench.settings { $0.quietHours = "09:00-11:00" }
        try add(3)
        try add(1, from: 4, level: 3)
        #expect(bench.presenter.shown.map(\.notice.title) == ["No. 4"], "the most severe notification is shown at once")
        try bench.pass(3_600)
        #expect(bench.presenter.shown.count == 2)
        #expect(last?.title == "During quiet hours: 3 notifications of App")
        #expect(last?.body == "No. 3\nNo. 2\nNo. 1")
    }

    /// Two of the notifications are allowed to appear during quiet hours. These notifications are shown individually, with their
    /// buttons. If a notification is added again after quiet hours, it is shown immediately.
    @Test func `notifications that pass quiet hours are not summarized`() throws {
        try bench.settings { ($0.quietHours, $0.loudLevel) = ("09:00-11:00", 2) }
        try add(2, level: 2)
        #expect(bench.presenter.shown.map(\.notice.title) == ["No. 1", "No. 2"])
        try presentAll()
        try bench.pass(2 * 3_600)
        try add(2, level: 1)
        #expect(bench.presenter.shown.count == 4 && last?.title == "No. 2")
    }

    @Test func `a single notification of quiet hours is shown without a summary`() throws {
        try bench.settings { $0.quietHours = "09:00-11:00" }
        try add(1)
        try bench.pass(3_600)
        #expect(bench.presenter.shown.map(\.notice.title) == ["No. 1"])
    }

    /// The user presses the summary during quiet hours to see its notifications. The notifications are therefore shown during
    /// quiet hours.
    @Test func `notifications of a pressed summary are shown during quiet hours`() throws {
        try add(20)
        try bench.turn()
        try presentAll()
        let (summary, before) = (try #require(last?.identifier), bench.presenter.shown.count)
        try bench.settings { $0.quietHours = "09:00-11:00" }
        let number = try #require(try record(summary).serverID)
        try bench.hear(.presenter(.activated(identifier: summary, serverID: number, action: "show", activationToken: nil)))
        #expect(bench.presenter.shown.dropFirst(before).map(\.notice.title).contains("No. 20"))
    }

    /// The summary of the last night is still on the screen. The summary of the next night replaces it and alerts again.
    @Test func `the summary of another night alerts again`() throws {
        try bench.settings { $0.quietHours = "09:00-11:00" }
        try add(3)
        try bench.pass(3_600 * 2)
        try presentAll()
        let first = try #require(last)
        #expect(first.title == "During quiet hours: 3 notifications of App" && !first.isQuiet)
        try bench.pass(3_600 * 22)
        try add(2, from: 4)
        #expect(bench.presenter.shown.count == 1)
        try bench.pass(3_600 * 2)
        #expect(bench.presenter.shown.count == 2 && last?.isQuiet == false && last?.identifier == first.identifier)
        #expect(last?.title == "During quiet hours: 5 notifications of App")
    }

    /// If the user enables the category later, the notifications of a week must not appear all together. The agent also does
    /// not keep running because of these notifications.
    @Test func `a notification of a disabled category is kept for a day`() throws {
        try bench.settings { $0.silencedCategories = ["photos"] }
        try add(1, category: "photos")
        try bench.pass(86_000)
        #expect(try record("n1").life.isWaiting)
        try bench.pass(500)
        #expect(try record("n1").life.isWithdrawn)
        #expect(try bench.ledger.read { try !$0.hasUnfinishedWork() })
        try bench.settings { $0.silencedCategories = [] }
        try bench.turn()
        #expect(bench.presenter.shown.isEmpty)
    }

    @Test func `a notification of a disabled category is shown when the category is enabled`() throws {
        try bench.settings { $0.silencedCategories = ["photos"] }
        try add(1, level: 3, category: "photos")
        try add(1, from: 2, category: "storms")
        #expect(bench.presenter.shown.map(\.notice.title) == ["No. 2"])
        try bench.settings { $0.silencedCategories = [] }
        try bench.turn()
        #expect(bench.presenter.shown.map(\.notice.title) == ["No. 2", "No. 1"])
    }

    /// The agent that created the summary is killed.
    @Test func `a new agent shows the notifications of an earlier agent quietly`() throws {
        try bench.hear(.presenter(.serverIs("one")))
        try add(20)
        try bench.turn()
        try presentAll()
        let summary = try #require(last?.identifier)
        try bench.startAgent()
        #expect(bench.presenter.adoptedNotifications.contains { $0.hasPrefix(summary) })
        try bench.hear(.presenter(.serverIs("two")))
        let loud = bench.presenter.shown.filter { !$0.notice.isQuiet }.count
        #expect(bench.presenter.shown.count == 6 && loud == 0)
    }

    // MARK: Withdrawal

    /// The agent decides to remove a notification. Before the server confirms the removal, the agent is killed, or no server is
    /// available. The next agent requests the removal of the notification again.
    @Test func `a new agent repeats a withdrawal that was not confirmed`() throws {
        try bench.hear(.presenter(.serverIs("one")))
        try add(1)
        try presentAll()
        try bench.hear(.presenter(.activated(identifier: "n1", serverID: 100, action: "default", activationToken: nil)))
        #expect(bench.presenter.withdrawn == ["n1 100"])
        try bench.startAgent()
        #expect(bench.presenter.withdrawn == ["n1 100"])
        try bench.hear(.presenter(.serverAppeared))
        #expect(
            bench.presenter.withdrawn == ["n1 100", "n1 100"],
            "the request is repeated, because the earlier server did not receive it")
        try bench.hear(.presenter(.withdrawn(identifier: "n1", serverID: 100)), .presenter(.serverAppeared))
        #expect(bench.presenter.withdrawn.count == 2)
        #expect(try record("n1").leavingID == nil)
    }

    /// The agent is killed after it has shown the notification, and before it has recorded the notification's number. The app
    /// removes the notification while no agent is running.
    @Test func `a removed notification with an unknown number is withdrawn`() throws {
        try add(1)
        #expect(try record("n1").state == .presenting)
        try bench.ledger.write { try $0.withdrawMatching(now: bench.now) { $0.identifier == "n1" } }
        try bench.startAgent()
        #expect(
            bench.presenter.shown.count == 1 && last?.isQuiet == true,
            "a server that replaces notifications by tag reports the number")
        try bench.hear(.presenter(.presented(identifier: "n1", serverID: 4)))
        #expect(bench.presenter.withdrawn == ["n1 4"])
        #expect(try record("n1").state == .withdrawn)
    }

    @Test func `a removed notification is not searched for without a server`() throws {
        try add(1)
        try bench.startAgent(turning: false)
        try bench.ledger.write { try $0.withdrawMatching(now: bench.now) { $0.identifier == "n1" } }
        try bench.turn()
        try bench.hear(.presenter(.failed(identifier: "n1", .noServer("nobody"))))
        #expect(try record("n1").state == .withdrawn)
        #expect(bench.presenter.shown.count == 1 && bench.presenter.withdrawn.isEmpty)
    }

    // MARK: Expiration date

    private func add(until seconds: Double) throws {
        var content = content("Storm")
        content.until = (bench.now + seconds).timeIntervalSince1970
        try bench.ledger.write { try $0.addNotification("storm", content, dueAt: nil, now: bench.now) }
        try bench.turn()
    }

    @Test func `a notification is withdrawn when its time is over`() throws {
        try add(until: 600)
        try presentAll()
        try bench.pass(599)
        #expect(bench.presenter.withdrawn.isEmpty)
        try bench.pass(1)
        #expect(bench.presenter.withdrawn == ["storm 100"])
        #expect(try record("storm").state == .over)
    }

    /// For example, another storm follows on the same evening. The first notification is no longer on the screen, so the second
    /// notification alerts.
    @Test func `a notification whose time is over alerts again with a new time`() throws {
        try add(until: 600)
        try presentAll()
        try bench.pass(600)
        var later = content("Storm, later")
        later.until = (bench.now + 7_200).timeIntervalSince1970
        #expect(try bench.ledger.write { try $0.changeNotification("storm", later) })
        try bench.turn()
        #expect(last?.title == "Storm, later" && last?.isQuiet == false)
    }

    /// A stopping agent waits at most 5 seconds for the server to confirm that a notification is removed. An agent that makes way
    /// for a newer version also waits at most 5 seconds.
    @Test func `an agent that stops waits at most 5 seconds for a withdrawal`() throws {
        try add(1)
        try presentAll()
        bench.agent.receive(.stopRequested)
        try bench.ledger.write { try $0.withdrawMatching(now: bench.now) { _ in true } }
        try bench.turn()
        try bench.pass(4.9)
        #expect(!bench.host.hasFinished)
        try bench.pass(0.2)
        #expect(bench.host.hasFinished)
        #expect(try record("n1").leavingID != nil, "the next agent's")
    }

    @Test func `a notification whose time is over before a server appears is not shown`() throws {
        try add(until: 600)
        try bench.hear(.presenter(.failed(identifier: "storm", .noServer("nobody"))))
        try bench.pass(600)
        try bench.hear(.presenter(.serverAppeared))
        #expect(bench.presenter.shown.count == 1)
        #expect(try record("storm").state == .over)
    }

    /// The clock was a day ahead, so the agent removed the notification too early. After the clock is corrected, the notification
    /// is shown again.
    @Test func `a notification that a wrong clock withdrew is shown again quietly`() throws {
        try add(until: 600)
        try presentAll()
        try bench.step(86_400)
        #expect(bench.presenter.withdrawn == ["storm 100"])
        try bench.step(-86_400)
        #expect(bench.presenter.shown.count == 2 && last?.isQuiet == true)
    }
}

private final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
