@testable import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundAgent

/// Tests that notifications are shown once when they are due, and that their buttons launch the app.
@Suite struct NoticeTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func add(
        _ title: String = "Storm", id: String = "n", after seconds: Double? = nil, level: Int = 1, category: String = "",
        once: Bool = false
    ) throws {
        let content = NotificationContent(
            title: title, subtitle: "sub", body: "body", categoryIdentifier: category, threadIdentifier: "", userInfo: "{}",
            sound: nil, interruptionLevel: level, badge: nil)
        try bench.ledger.write {
            try $0.addNotification(
                id, content, dueAt: seconds.map { bench.now + $0 }, oncePerContent: once, now: bench.now)
        }
        try bench.turn()
    }

    private func record(_ id: String = "n") throws -> NotificationRecord {
        try #require(try bench.ledger.read { try $0.notification(id) })
    }

    private func presented(_ serverID: UInt32 = 7, id: String = "n") throws {
        try bench.hear(.presenter(.presented(identifier: id, serverID: serverID)))
    }

    @Test func `a notification with equal content is shown again unless the app opts out`() throws {
        try bench.ledger.write {
            try $0.setCategory("storm", actions: [NoticeAction(key: "photo", label: "Add a photo")])
        }
        try add(category: "storm")
        let notice = try #require(bench.presenter.shown.first?.notice)
        #expect(notice.title == "Storm")
        #expect(notice.body == "sub\nbody")
        #expect(notice.appName == "App")
        #expect(notice.actions.map(\.key) == ["default", "photo"])
        #expect(try record().state == .presenting)
        try presented()
        #expect(try record().state == .delivered)
        #expect(try record().serverID == 7)
        try add(category: "storm", once: true)
        #expect(bench.presenter.shown.count == 1, "equal content does not alert again")
        try add(category: "storm")
        #expect(bench.presenter.shown.count == 2, "a notification that is added again alerts again")
    }

    @Test(arguments: [(0, NoticeUrgency.low, false), (1, .normal, false), (2, .normal, true), (3, .critical, true)])
    func `the interruption level sets the urgency and the persistence`(
        _ level: Int, _ urgency: NoticeUrgency, _ isPersistent: Bool
    ) throws {
        try add(level: level)
        #expect(bench.presenter.shown.first?.notice.urgency == urgency)
        #expect(bench.presenter.shown.first?.notice.isPersistent == isPersistent)
    }

    @Test func `a notification is not shown before its time`() throws {
        try add(after: 60)
        try bench.pass(59)
        #expect(bench.presenter.shown.isEmpty)
        try bench.pass(1)
        #expect(bench.presenter.shown.count == 1)
    }

    @Test func `a notification in quiet hours is shown at their end`() throws {
        try bench.settings { $0.quietHours = "09:00-11:00" }
        try add()
        #expect(bench.presenter.shown.isEmpty, "the time in Berlin is 10:00, which is in the quiet hours")
        try bench.pass(3_600)
        #expect(bench.presenter.shown.count == 1)
    }

    @Test func `a notification stays pending while notifications are disabled`() throws {
        try bench.settings { $0.notificationsEnabled = false }
        try add()
        try bench.pass(3_600)
        #expect(bench.presenter.shown.isEmpty)
        #expect(try record().state == .pending)
    }

    @Test func `a notification waits for a notification server`() throws {
        try add()
        try bench.hear(.presenter(.failed(identifier: "n", .noServer("nobody"))))
        #expect(try record().state == .pending)
        #expect(try record().trouble?.contains("no notification server") == true)
        try bench.pass(3_600)
        #expect(bench.presenter.shown.count == 1, "the agent does not try again before the desktop changes")
        try bench.hear(.presenter(.serverAppeared))
        #expect(bench.presenter.shown.count == 2)
        try presented()
        #expect(try record().state == .delivered)
        #expect(try record().trouble == nil)
        #expect(try bench.ledger.read { try $0.fact(.presenterTrouble) } == nil)
    }

    /// Servers refuse too many notifications in a short time, and accept notifications again after some seconds.
    @Test func `a refused notification is retried with growing pauses`() throws {
        try add()
        for (count, pause) in [5.0, 10, 20, 40].enumerated() {
            #expect(bench.presenter.shown.count == count + 1)
            try bench.hear(.presenter(.failed(identifier: "n", .refused("ExcessNotificationGeneration"))))
            #expect(try record().state == .pending)
            try bench.pass(pause - 1)
            #expect(bench.presenter.shown.count == count + 1)
            try bench.pass(1)
        }
        try presented()
        #expect(try record().state == .delivered)
        try bench.pass(86_400)
        #expect(bench.presenter.shown.count == 5, "told once")
    }

    /// The pause started while the clock was wrong. After the clock is corrected, a pause of some seconds must not become a pause
    /// of a year.
    @Test(arguments: [-365.0, -1, 1, 365])
    func `a clock change does not prolong the pause before a retry`(_ days: Double) throws {
        try add()
        try bench.hear(.presenter(.failed(identifier: "n", .refused("ExcessNotificationGeneration"))))
        try bench.step(days * 86_400)
        #expect(bench.presenter.shown.count == 1)
        try bench.pass(5)
        #expect(bench.presenter.shown.count == 2)
        try presented()
        try bench.pass(86_400)
        #expect(bench.presenter.shown.count == 2, "told once")
    }

    /// If the server never accepts the notification, the agent tries four times an hour.
    @Test func `the pause between two retries is at most 15 minutes`() throws {
        try add()
        for _ in 0..<20 {
            try bench.hear(.presenter(.failed(identifier: "n", .unresponsive("timeout"))))
            try bench.pass(900)
        }
        #expect(bench.presenter.shown.count == 21)
    }

    /// The server has the notification in its queue, and shows it when the server runs again. A second call would show the
    /// notification twice.
    @Test func `a notification that a frozen server may still show is not sent again`() throws {
        try add()
        try bench.hear(.presenter(.failed(identifier: "n", .unanswered("timeout"))))
        #expect(try record().trouble?.contains("does not respond") == true)
        try bench.pass(86_400)
        try bench.hear(.presenter(.serverAppeared))
        #expect(bench.presenter.shown.count == 1)
        try presented(4)
        #expect(try record().state == .delivered)
        #expect(try record().serverID == 4)
    }

    /// The server accepted the call but lost the notification. No other notification is sent to this server. The agent checks
    /// whether the server responds, and then sends the notification once more.
    @Test func `a notification that the server lost is shown again after the server responds`() throws {
        try add()
        try bench.hear(.presenter(.failed(identifier: "n", .unanswered("nothing for 25 s"))))
        try bench.pass(59)
        #expect(bench.presenter.asked == 0)
        try bench.pass(2)
        #expect(bench.presenter.asked == 1)
        try bench.pass(61)
        #expect(bench.presenter.asked == 2, "the agent tries again, because the server may respond again")
        #expect(bench.presenter.shown.count == 1)
        try bench.hear(.presenter(.serverAnswers))
        try bench.pass(29)
        #expect(bench.presenter.shown.count == 1, "the late response of the server may still come")
        try bench.pass(2)
        #expect(bench.presenter.shown.count == 2)
        try presented()
        #expect(try record().state == .delivered)
        try bench.pass(600)
        #expect(bench.presenter.asked == 2 && bench.presenter.shown.count == 2)
    }

    /// The server ended while no agent was running, for example at a logout. The notification numbers of the earlier server are
    /// not valid for the next server.
    @Test func `a new server does not get the notification numbers of an earlier server`() throws {
        try bench.hear(.presenter(.serverIs("one")))
        try add()
        try presented(7)
        try bench.startAgent(turning: false)
        // The agent has not yet received the name of the new notification server.
        try add("Storm, later")
        #expect(bench.presenter.shown.last?.replacing == 7)
        #expect(bench.presenter.shown.last?.server == "one", "another server ignores the number")
        try bench.hear(.presenter(.serverIs("two")))
        try presented(1)
        #expect(try record().serverID == 1)
        try bench.startAgent()
        try bench.hear(.presenter(.serverIs("two")))
        #expect(try record().state == .delivered, "the same server still shows the notification")
        try bench.hear(.presenter(.serverIs("three")))
        #expect(bench.presenter.shown.count == 1, "the next server shows the notification, because the earlier server ended")
        #expect(bench.presenter.shown.last?.replacing == nil)
        #expect(bench.presenter.shown.last?.notice.isQuiet == true, "the user has already seen the notification")
        try presented(5)
        #expect(try record().serverID == 5)
        try add("Storm again")
        #expect(bench.presenter.shown.last?.replacing == 5)
        #expect(bench.presenter.shown.last?.notice.isQuiet == false)
    }

    /// An app can query whether buttons are available. The capabilities of a server that has ended do not apply to the next
    /// server.
    @Test(arguments: [PresenterEvent.serverVanished, .busLost, .serverIs("two")])
    func `the ledger records whether the server has buttons`(_ end: PresenterEvent) throws {
        func known() throws -> Bool? { try bench.ledger.read { try $0.fact(.serverHasButtons) } }
        try bench.hear(.presenter(.serverIs("one")))
        #expect(try known() == nil)
        for hasButtons in [true, false] {
            try bench.hear(.presenter(.serverHasButtons(hasButtons, label: "A 1")))
            #expect(try known() == hasButtons)
        }
        try bench.hear(.presenter(end))
        #expect(try known() == nil)
    }

    @Test func `a server that draws no buttons is remembered by its name and version`() throws {
        func known() throws -> Bool? { try bench.ledger.read { try $0.fact(.serverHasButtons) } }
        for (areDrawn, remembered) in [(false, ["A 1"]), (true, [])] {
            try bench.ledger.write { try $0.recordButtons(areDrawn: areDrawn, byServer: "A 1") }
            #expect(try known() == areDrawn)
            for label in ["A 1", "A 2"] {
                try bench.hear(.presenter(.serverHasButtons(true, label: label)))
                #expect(try known() == (areDrawn || label == "A 2"))
            }
            try bench.hear(.presenter(.serverHasButtons(false, label: "A 2")))
            #expect(try known() == false)
            try add("Storm \(areDrawn)")
            try presented(7)
            #expect(bench.presenter.shown.last?.notice.serversWithoutButtons == remembered)
        }
        try bench.ledger.write { transaction in
            for number in 1...40 { try transaction.recordButtons(areDrawn: false, byServer: "B \(number)") }
        }
        #expect(try bench.ledger.read { try $0.fact(.serversWithoutButtons) } == (25...40).map { "B \($0)" })
    }

    @Test(arguments: [PresenterEvent.serverVanished, .busLost])
    func `a notification is shown again after a frozen server has ended`(_ end: PresenterEvent) throws {
        try add()
        try bench.hear(.presenter(.failed(identifier: "n", .unanswered("timeout"))))
        try bench.hear(.presenter(end), .presenter(.serverAppeared))
        #expect(bench.presenter.shown.count == 2)
        try presented()
        #expect(try record().state == .delivered)
    }

    @Test func `new content replaces the shown notification`() throws {
        try add()
        try presented(7)
        try add("Worse")
        #expect(bench.presenter.shown.last?.replacing == 7)
        try presented(7)
        #expect(try record().state == .delivered)
    }

    /// The app sets new content before the server has responded to the call that shows the earlier content. After the response,
    /// the agent replaces the earlier content by the new content.
    @Test func `new content is shown after the response for the earlier content`() throws {
        try add()
        let worse = NotificationContent(
            title: "Worse", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
            interruptionLevel: 1, badge: nil)
        try bench.ledger.write { try $0.addNotification("n", worse, dueAt: nil, now: bench.now) }
        try presented(7)
        #expect(bench.presenter.shown.map(\.notice.title) == ["Storm", "Worse"])
        #expect(bench.presenter.shown.last?.replacing == 7)
        #expect(try record().state == .presenting)
        try presented(7)
        #expect(try record().state == .delivered)
    }

    /// The server ended while it was processing the earlier content. The agent makes only one call per notification at a time,
    /// because after two calls the next server would show the notification twice.
    @Test(arguments: [PresenterEvent.serverVanished, .busLost])
    func `new content is shown once after the server has ended`(_ end: PresenterEvent) throws {
        try add("1 of 3")
        try add("2 of 3")
        try add("3 of 3")
        #expect(bench.presenter.shown.map(\.notice.title) == ["1 of 3"])
        let gone = PresenterFailure.noServer("disconnected without replying")
        try bench.hear(.presenter(.failed(identifier: "n", gone)), .presenter(end), .presenter(.serverAppeared))
        #expect(bench.presenter.shown.map(\.notice.title) == ["1 of 3", "3 of 3"])
        try presented()
        try bench.pass(3_600)
        #expect(bench.presenter.shown.count == 2)
        #expect(try record().state == .delivered)
    }

    /// The server froze with the earlier content in its queue. The new content replaces the earlier content, so that no second
    /// notification appears.
    @Test func `new content waits for the response of a frozen server`() throws {
        try add("1 of 3")
        try bench.hear(.presenter(.failed(identifier: "n", .unanswered("timeout"))))
        try add("2 of 3")
        try add("3 of 3")
        #expect(bench.presenter.shown.count == 1)
        try presented(4)
        #expect(bench.presenter.shown.map(\.notice.title) == ["1 of 3", "3 of 3"])
        #expect(bench.presenter.shown.last?.replacing == 4)
    }

    /// The app set the new content before the call with the earlier content failed.
    @Test func `new content that waits for a frozen server is shown by the next server`() throws {
        try add("1 of 3")
        try add("3 of 3")
        try bench.hear(.presenter(.failed(identifier: "n", .unanswered("timeout"))))
        try bench.pass(899)
        #expect(bench.presenter.shown.count == 1)
        try bench.hear(.presenter(.serverVanished), .presenter(.serverAppeared))
        #expect(bench.presenter.shown.map(\.notice.title) == ["1 of 3", "3 of 3"])
        #expect(bench.presenter.shown.last?.replacing == nil)
    }

    /// The server did not respond for one notification, but responds for other notifications. The notification was lost, so the
    /// agent sends it once more.
    @Test func `a notification that a running server lost is shown again once`() throws {
        try add("Storm")
        try bench.hear(.presenter(.failed(identifier: "n", .unanswered("timeout"))))
        try bench.pass(600)
        try add("Photo", id: "other")
        try presented(9, id: "other")
        try bench.pass(29)
        #expect(bench.presenter.shown.map(\.notice.title) == ["Storm", "Photo"])
        try bench.pass(1)
        #expect(bench.presenter.shown.map(\.notice.title) == ["Storm", "Photo", "Storm"])
        try presented(10)
        try bench.pass(3_600)
        #expect(try record().state == .delivered)
        #expect(bench.presenter.shown.count == 3)
    }

    /// The server responds again, also for notifications that it received while it was frozen. Each notification is shown once.
    @Test func `responses of a server may arrive in any order`() throws {
        try add("Storm")
        try bench.hear(.presenter(.failed(identifier: "n", .unanswered("timeout"))))
        try add("Photo", id: "other")
        try presented(9, id: "other")
        try bench.pass(10)
        try presented(8)
        try bench.pass(3_600)
        #expect(bench.presenter.shown.map(\.notice.title) == ["Storm", "Photo"])
    }

    /// If a presenter or server never responds, new content waits only for a limited time.
    @Test(arguments: [(nil, 60.0), (PresenterFailure.unanswered("timeout"), 900)])
    func `new content is shown after a time limit without a response`(_ failure: PresenterFailure?, _ seconds: Double) throws {
        try add("1 of 3")
        if let failure { try bench.hear(.presenter(.failed(identifier: "n", failure))) }
        try add("3 of 3")
        try bench.pass(seconds - 1)
        #expect(bench.presenter.shown.count == 1)
        try bench.pass(1)
        #expect(bench.presenter.shown.map(\.notice.title) == ["1 of 3", "3 of 3"])
    }

    @Test func `a notification that the app removes is withdrawn`() throws {
        try add()
        try presented(7)
        try retract()
        #expect(bench.presenter.withdrawn == ["n 7"])
        #expect(try record().state == .withdrawn)
    }

    /// The app removes the notification after the agent passed it to the presenter, and before the server responded. The
    /// notification is already on the screen.
    @Test func `a notification that the app removes before the response is withdrawn after it`() throws {
        try add()
        try retract()
        try presented(7)
        #expect(bench.presenter.withdrawn == ["n 7"])
        #expect(try record().state == .withdrawn)
    }

    /// All work is ended before the server has responded. The agent waits for the response, so that it can remove the
    /// notification.
    @Test func `an agent that stops waits until a removed notification is withdrawn`() throws {
        try add()
        bench.agent.receive(.stopRequested)
        try retract()
        #expect(!bench.host.hasFinished)
        try presented(7)
        #expect(bench.presenter.withdrawn == ["n 7"])
        #expect(
            !bench.host.hasFinished,
            "the agent does not exit, because otherwise the next agent would have to remove the notification")
        try bench.hear(.presenter(.withdrawn(identifier: "n", serverID: 7)))
        #expect(bench.host.hasFinished)
    }

    @Test func `an agent that stops waits at most 5 seconds for the server`() throws {
        try add()
        bench.agent.receive(.stopRequested)
        try retract()
        try bench.pass(4.9)
        #expect(!bench.host.hasFinished)
        try bench.pass(0.1)
        #expect(bench.host.hasFinished)
    }

    private func retract() throws {
        var taken = try record()
        taken.state = .withdrawing
        try bench.ledger.write { try $0.save(taken) }
        try bench.turn()
    }

    @Test func `a close signal closes only the notification with its number`() throws {
        try add()
        try presented(7)
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 3, .expired)))
        #expect(try record().state == .delivered, "another one's number")
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 7, .dismissed)))
        #expect(try record().state == .closed)
        try bench.pass(Lifetime.linger)
        #expect(bench.host.hasFinished, "the agent owns no notification any more")
    }

    /// If a notification was on the screen, the next server shows it again without an alert. If the user closed a notification,
    /// it is not shown again.
    @Test func `a notification of an ended server is shown quietly by the next server`() throws {
        try add()
        try presented(7)
        try bench.hear(.presenter(.serverVanished))
        #expect(try record().serverID == nil)
        let gone = PresenterFailure.noServer("nobody is there")
        try bench.hear(.presenter(.failed(identifier: "n", gone)))
        let tries = bench.presenter.shown.count
        try bench.pass(3_600)
        #expect(bench.presenter.shown.count == tries, "the agent does not try again and again")
        #expect(try record().life.isStillShown && !bench.host.hasFinished)
        try bench.hear(.presenter(.serverAppeared))
        #expect(bench.presenter.shown.last?.notice.isQuiet == true)
        try presented(1)
        #expect(try record().state == .delivered)
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 1, .dismissed)))
        let shown = bench.presenter.shown.count
        try bench.hear(.presenter(.serverVanished), .presenter(.serverAppeared))
        #expect(bench.presenter.shown.count == shown)
    }

    /// The agent was killed. A button press reaches the app only if the next agent listens for it, or shows the notification
    /// again.
    @Test func `a new agent receives button presses of an earlier notification`() throws {
        try bench.hear(.presenter(.serverIs("one")))
        try add()
        try presented(7)
        try bench.startAgent()
        #expect(bench.presenter.adoptedNotifications == ["n 7"])
        #expect(bench.presenter.shown.isEmpty, "the notification is on the screen, so the agent does not show it again")
        try bench.hear(.presenter(.serverIs("one")), .presenter(.unheard(identifier: "n", serverID: 7)))
        #expect(bench.presenter.shown.count == 1)
        #expect(bench.presenter.shown.last?.replacing == 7)
        #expect(bench.presenter.shown.last?.notice.isQuiet == true)
        try presented(7)
        try bench.hear(.presenter(.activated(identifier: "n", serverID: 7, action: "photo", activationToken: "raise")))
        #expect(try bench.ledger.read { try $0.undeliveredResponses().first?.activationToken } == "raise")
        #expect(try bench.launch(bench.onlyLive()).kind == .notificationResponse)
    }

    /// The app changes the text before the server has responded to the call. The new text follows without an alert.
    @Test func `text that changes before the response is shown quietly after it`() throws {
        try add("Storm")
        var worse = try record().content
        worse.title = "Storm, later"
        #expect(try bench.ledger.write { try $0.changeNotification("n", worse) })
        try bench.turn()
        #expect(bench.presenter.shown.count == 1, "the agent waits for the response to the first call")
        try presented(7)
        #expect(bench.presenter.shown.map(\.notice.title) == ["Storm", "Storm, later"])
        #expect(bench.presenter.shown.last?.replacing == 7 && bench.presenter.shown.last?.notice.isQuiet == true)
        try presented(7)
        try bench.pass(60)
        #expect(try record().state == .delivered && bench.presenter.shown.count == 2)
    }

    @Test func `an added notification alerts, and a changed one does not`() throws {
        try add()
        try presented(7)
        try add("Severe storm")
        try presented(7)
        var later = try record().content
        later.title = "Severe storm, later"
        #expect(try bench.ledger.write { try $0.changeNotification("n", later) })
        try bench.turn()
        #expect(bench.presenter.shown.map(\.notice.alerts) == [true, true, false])
        #expect(bench.presenter.shown.last?.replacing == 7)
    }

    /// Some servers keep a pressed notification on the screen, so that the user can press it again.
    @Test func `a pressed notification is withdrawn and has one response`() throws {
        try add()
        try presented(7)
        let press = PresenterEvent.activated(identifier: "n", serverID: 7, action: "details", activationToken: nil)
        try bench.hear(.presenter(press), .presenter(press))
        #expect(bench.presenter.withdrawn == ["n 7"])
        #expect(try bench.ledger.read { try $0.undeliveredResponses() }.count == 1)
        try bench.hear(.presenter(press), .presenter(.closed(identifier: "n", serverID: 7, .closedByCall)))
        #expect(try bench.ledger.read { try $0.undeliveredResponses() }.count == 1)
        #expect(try record().state == .closed)
    }

    @Test func `the agent does not exit while a notification is on the screen`() throws {
        try add()
        try presented()
        try bench.pass(3_600)
        #expect(!bench.host.hasFinished)
    }

    // MARK: Buttons

    @Test func `a button launches the app`() throws {
        try add()
        try presented(7)
        try bench.hear(.presenter(.activated(identifier: "n", serverID: 7, action: "photo", activationToken: nil)))
        let launch = try bench.launch(bench.onlyLive())
        #expect(launch.kind == .notificationResponse)
        #expect(launch.identifier == "n")
        let response = try #require(try bench.ledger.read { try $0.undeliveredResponses() }.first)
        #expect(response.action == "photo")
        try bench.ledger.write { try $0.responseWasDelivered(try #require(response.id), now: bench.now) }
        try bench.end(bench.onlyLive(), .completed)
        #expect(bench.launcher.started.count == 1)
    }

    /// The user presses a notification, but the app has no delegate. The app is launched, but its code does not receive the
    /// response.
    @Test func `a press that the app does not handle is complete after one launch`() throws {
        try add()
        try presented(7)
        try bench.hear(.presenter(.activated(identifier: "n", serverID: 7, action: "photo", activationToken: nil)))
        try bench.end(bench.onlyLive(), .completed)
        try bench.pass(86_400)
        #expect(bench.launcher.started.count == 1)
        #expect(try bench.ledger.read { try $0.undeliveredResponses() }.isEmpty)
    }

    @Test func `a press whose handler fails is delivered again with growing pauses`() throws {
        try bench.settings { $0.backoffBase = 10 }
        try add()
        try presented(7)
        try bench.hear(.presenter(.activated(identifier: "n", serverID: 7, action: "photo", activationToken: nil)))
        try bench.hear(.presenter(.withdrawn(identifier: "n", serverID: 7)))
        var pauses: [Double] = []
        for _ in 0..<4 {
            try bench.end(bench.onlyLive(), .failed)
            let ended = bench.now
            pauses.append(try #require(try bench.turn()).timeIntervalSince(ended))
            try bench.pass(try #require(pauses.last))
        }
        #expect(pauses == [10, 20, 40, 80])
    }

    @Test func `a click has the default action identifier of Apple`() throws {
        try add()
        try presented(7)
        try bench.hear(.presenter(.activated(identifier: "n", serverID: 7, action: "default", activationToken: nil)))
        #expect(
            try bench.ledger.read { try $0.undeliveredResponses() }.map(\.action)
                == ["com.apple.UNNotificationDefaultActionIdentifier"])
    }

    @Test func `a button of an unknown notification is ignored`() throws {
        try bench.hear(.presenter(.activated(identifier: "ghost", serverID: 7, action: "photo", activationToken: nil)))
        #expect(bench.launcher.started.isEmpty)
    }
}
