import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of notifications on the screen when notification servers and agents are replaced.
    @Suite final class Notifications {
        private let desktop: Desktop
        private let home: Home
        private let server: FaultyServer

        init() async throws {
            desktop = try Desktop()
            server = try await EndToEnd.stormyServer()
            home = try Home(server: server, desktop: desktop)
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            try home.stormy("simulate", "launch", "StormyNoon", "--wait")
            #expect(desktop.listen(for: 1) == ["Storm expected in Here"])
            try home.waitForQuiet()
        }

        private func displayed() throws -> String { try desktop.dunstctl("count", "displayed") }

        /// Presses "Snooze". The notification leaves the screen, even if the server does not remove a pressed notification.
        private func snooze() throws {
            try desktop.press("Snooze")
            try home.waitForEnded("notificationResponse")
            try home.wait("the snooze") { try $0.notification("storm-1-snoozed") }
            #expect(try home.history().last == "notificationResponse completed")
            try desktop.waitForEmptyScreen()
        }

        @Test func `a pressed notification leaves the screen`() throws {
            #expect(try displayed() == "1")
            try snooze()
            #expect(desktop.titles.count == 1)
        }

        /// The server is replaced, as after a crash or when the user changes to another desktop. The buttons work, and the
        /// user is not alerted a second time.
        @Test func `a new notification server shows the notification again`() throws {
            try desktop.restartServer()
            #expect(desktop.listen(for: 2).count == 2)
            try home.wait("there again") { try $0.notification("storm-1").flatMap { $0.state == .delivered ? $0 : nil } }
            #expect(try displayed() == "1")
            try snooze()
            // A closed notification is not shown again.
            try desktop.restartServer()
            #expect(try desktop.receivedTitles().count == 2)
            #expect(try displayed() == "0")
        }

        /// The process to which the buttons belonged was killed.
        @Test func `a new agent shows the notification again with working buttons`() throws {
            try home.killAgent()
            #expect(try displayed() == "1", "dunst keeps the notification of a sender that ended")
            try home.stormy("status")
            #expect(
                desktop.listenForShownAgain(),
                "the agent shows the notification again, because dunst reports presses only to the sender")
            try home.wait("there again") { try $0.notification("storm-1").flatMap { $0.state == .delivered ? $0 : nil } }
            #expect(desktop.titles.count == 1)
            #expect(try displayed() == "1")
            try snooze()
        }

        /// The notification is updated without an alert. If the user closed a notification, it is not shown again.
        @Test func `new hours of a storm update its notification in place`() throws {
            let before = try home.wait("its words") { try $0.notification("storm-1")?.content.body }
            Weather.serve(.json(Weather.forecast(thunder: [4, 5, 6, 7, 8])), on: server)
            try home.stormy("check", "--fresh")
            #expect(desktop.titles.count == 1, "a check without the option --notify shows no notification")
            try home.stormy("check", "--fresh", "--notify")
            #expect(desktop.listenForShownAgain())
            try home.wait("there again") { try $0.notification("storm-1").flatMap { $0.state == .delivered ? $0 : nil } }
            #expect(try displayed() == "1" && desktop.titles.count == 1)
            #expect(try home.wait("its words") { try $0.notification("storm-1")?.content.body } != before)
            try desktop.dunstctl("close")
            try home.wait("closed") { try $0.notification("storm-1").flatMap { $0.state == .closed ? $0 : nil } }
            Weather.serve(.json(Weather.forecast(thunder: [4, 5, 6, 7, 8, 9, 10])), on: server)
            try home.stormy("check", "--fresh", "--notify")
            _ = try desktop.receivedTitles()
            #expect(try displayed() == "0" && desktop.titles.count == 1 && desktop.shownAgain == 1)
        }

        /// The app was killed before it recorded that it had notified the user. The user has closed the notification, and the
        /// next forecast has different hours.
        @Test func `a notified storm is known by its notification if the app could not store it`() throws {
            try desktop.dunstctl("close")
            try home.wait("closed") { try $0.notification("storm-1").flatMap { $0.state == .closed ? $0 : nil } }
            let store = home.folder.appendingPathComponent("data/stormy/stormy.sqlite").path
            #expect(
                try Child.run(
                    "sqlite3",
                    [
                        store,
                        "UPDATE storm SET life = json_set(life, '$.memory.step', 0, '$.memory.phase', json('{\"unshown\":{}}'))",
                    ], environment: home.environment
                ).status == 0)
            Weather.serve(.json(Weather.forecast(thunder: [4, 5, 6, 7, 8])), on: server)
            try home.stormy("check", "--fresh", "--notify")
            _ = try desktop.receivedTitles()
            #expect(try displayed() == "0" && desktop.titles.count == 1)
        }

        /// The strength of the storm changes, but its hours do not.
        @Test func `a stronger storm updates its notification in place`() throws {
            for gusts in [95.0, 120] {
                Weather.serve(.json(Weather.forecast(gusts: gusts)), on: server)
                try home.stormy("check", "--fresh", "--notify")
                try home.wait("its words") { transaction in
                    try transaction.notification("storm-1").flatMap { record in
                        record.state == .delivered && record.content.body.contains("\(Int(gusts)) km/h") ? record : nil
                    }
                }
            }
            try desktop.wait(forDisplayed: 1)
            #expect(desktop.titles.count == 1)
        }

        /// The user snoozed the storm or closed its notification. The new notification stays on the screen until the storm is
        /// over.
        @Test(arguments: ["Snooze", nil]) func `a storm that becomes extreme is notified again`(_ button: String?) throws {
            if button == nil {
                try desktop.dunstctl("close")
                try home.wait("closed") { try $0.notification("storm-1").flatMap { $0.state == .closed ? $0 : nil } }
            } else {
                try snooze()
            }
            Weather.serve(.json(Weather.forecast(gusts: 150)), on: server)
            try home.stormy("check", "--fresh", "--notify")
            #expect(desktop.listen(for: 2).last == "Extreme storm expected in Here")
            let record = try home.wait("told") { try $0.notification("storm-1").flatMap { $0.state == .delivered ? $0 : nil } }
            #expect(record.content.interruptionLevel == 3 && record.until != nil)
            try home.wait("no snooze waits") { try $0.notification("storm-1-snoozed")?.life.isUnreported == true ? nil : true }
            // A second forecast with the same content causes no notification.
            try home.stormy("check", "--fresh", "--notify")
            #expect(try desktop.receivedTitles().count == 2)
        }

        /// When the storm is over, the agent removes the notification, without the user and without the app.
        @Test func `the notification of a past storm leaves the screen`() throws {
            let record = try home.wait("its words") { try $0.notification("storm-1") }
            let sql = "UPDATE notification SET content = json_set(content, '$.until', \(Date().timeIntervalSince1970 + 2))"
            let ledger = home.directories.ledger.path
            #expect(try Child.run("sqlite3", [ledger, sql], environment: home.environment).status == 0)
            #expect(record.until != nil)
            try home.stormy("status")
            try desktop.waitForEmptyScreen()
            try home.wait("over") { try $0.notification("storm-1").flatMap { $0.state == .over ? $0 : nil } }
        }

        /// Another program has written invalid values into several columns of the rows.
        @Test func `unreadable notification rows do not end the agent`() throws {
            try home.killAgent()
            let ledger = home.directories.ledger.path
            for change in [
                "content = 'no JSON'", "schedule = 'no JSON'", "state = 'nothing'", "content = '{}'", "summary = 'none'",
                "leavingID = -1", "revision = 'many'",
            ] {
                let sql = """
                    INSERT OR REPLACE INTO notification (identifier, content, state, createdAt, revision)
                        SELECT 'odd', content, 'closed', createdAt, 1 FROM notification WHERE identifier = 'storm-1';
                    UPDATE notification SET \(change) WHERE identifier = 'odd';
                    UPDATE notificationCategory SET actions = 'no JSON' WHERE identifier != 'stormy.storm';
                    """
                #expect(
                    try Child.run("sqlite3", ["-cmd", ".timeout 5000", ledger, sql], environment: home.environment).status == 0,
                    "\(change)")
                #expect(try home.stormy("status").status == 0, "\(change)")
            }
            try home.wait("it is gone") { try $0.notifications().contains { $0.identifier == "odd" } ? nil : true }
            #expect(home.log.contains("a damaged notification was removed from the ledger notification=odd"))
            #expect(desktop.listenForShownAgain(), "the undamaged notification is shown again")
            try snooze()
        }

        /// If no notification server is running, every command in a terminal prints the pending notification. The commands stop
        /// printing it when `status` has listed the notification in the terminal.
        @Test func `notifications that cannot be shown are printed in the terminal`() throws {
            let bare = try Home(server: server)
            try bare.stormy("place", "add", "Here", "1,1", "--no-sync")
            try bare.stormy("check", "--notify")
            try bare.wait("the trouble") { try $0.notification("storm-1")?.trouble }
            func atTerminal(_ verb: String) throws -> String {
                let command = "\(Home.product("stormy")) \(verb)"
                return try Child.run("script", ["-qec", command, "/dev/null"], environment: bare.environment).output
            }
            let first = try atTerminal("place list")
            #expect(first.contains("stormy: a notification was not shown yet: Storm expected in Here: "), "\(first)")
            #expect(first.contains("`stormy status` lists these notifications."))
            #expect(
                try !bare.stormy("place", "list").errors.contains("not shown yet"),
                "without a terminal the command prints no reminder")
            #expect(try bare.stormy("status").output.contains("Not shown   Storm expected in Here: "))
            #expect(try atTerminal("place list").contains("not shown yet"), "the user has not read the list yet")
            #expect(try atTerminal("status").contains("Not shown   Storm expected in Here: "))
            #expect(try !atTerminal("place list").contains("not shown yet"))
            #expect(
                try atTerminal("status").contains("Not shown   Storm expected in Here: "), "status still lists the notification")
        }

        /// Some notifications are shown one by one, and all others in one summary.
        @Test func `a burst of notifications is gathered in one summary`() throws {
            let app = try ProvingHome(desktop: desktop)
            try app.run("notify", "n", "count=200", "thread=t", "title=One of many")
            try app.home.wait("all are told") { transaction in
                let all = try transaction.notifications().filter { !$0.isAgents }
                return all.count == 200 && all.allSatisfy { $0.state == .delivered || $0.state == .gathered } ? true : nil
            }
            let summary = try app.home.wait("their summary") { transaction in
                try transaction.notifications(beginning: NotificationRecord.agentPrefix).first { $0.state == .delivered }
            }
            let alone = try app.home.wait("those alone") { try $0.notifications().filter { $0.state == .delivered }.count - 1 }
            #expect(summary.content.title == "\(200 - alone) notifications of Proving ground" && (5...15).contains(alone))
            // One more notification is on the screen. This notification belongs to the home that the suite creates for each test.
            try desktop.wait(forDisplayed: alone + 2)
        }

        /// The server removes the notification after its timeout. The user may not have seen it.
        @Test func `an expired notification counts as unseen`() throws {
            let brief = try Desktop(lowTimeout: 1)
            defer { withExtendedLifetime(brief) {} }
            let app = try ProvingHome(desktop: brief)
            try app.run("notify", "n", "title=Short", "level=0")
            try app.home.wait("expired") { try $0.notification("n").flatMap { $0.state == .expired ? $0 : nil } }
            #expect(try app.run("notifications").output == "delivered n\n")
            #expect(try app.run("background", "status").output.contains("Unseen      Short, removed from the screen"))
            try app.run("take-off", "n")
            #expect(try app.run("notifications").output.isEmpty)
        }

        /// The answer of the app's delegate determines how the notification is shown. If the delegate does not answer or the
        /// process ends, the notification is shown.
        @Test(arguments: [
            ("24", true, true), ("16", true, true), ("0", false, true), ("silence", true, true), ("0", true, false),
        ])
        func `the delegate of a running app decides what is shown`(_ wish: String, _ isShown: Bool, _ waits: Bool) throws {
            let app = try ProvingHome(desktop: desktop)
            app.home.environment["PROVING_PRESENT"] = wish
            if !waits {
                (app.home.environment["PROVING_LEAVES"], app.home.environment["PROVING_PRESENT"]) = ("1", "silence")
            }
            #expect(try app.run("notify", "n", "title=Asked").status == 0)
            if isShown {
                #expect(desktop.listen(for: 2).last == "Asked")
            } else {
                try app.home.wait("taken back") { try $0.notification("n").flatMap { $0.life.isWithdrawn ? $0 : nil } }
                #expect(try desktop.receivedTitles().count == 1)
            }
        }

        /// A trigger makes the notification due while the app is running. The process may end before its delegate answers.
        @Test(arguments: [("0", false), ("24", true), ("silence", true), ("silence", false)])
        func `the delegate of a running app decides about a triggered notification`(_ wish: String, _ shouldContinue: Bool) throws
        {
            let app = try ProvingHome(desktop: desktop)
            app.home.environment["PROVING_PRESENT"] = wish
            let child = try Child(
                Home.product("proving-ground"), ["notify", "n", "title=Asked", "seconds=3", "stays=300"],
                environment: app.home.environment)
            try app.waitForLine("asked n")
            #expect(try app.home.wait("it") { try $0.notification("n") }.isHeld(now: Date()) || wish != "silence")
            if !shouldContinue, wish == "silence" { child.end(SIGKILL) }
            if wish == "0" {
                try app.home.wait("taken back") { try $0.notification("n").flatMap { $0.life.isWithdrawn ? $0 : nil } }
                #expect(try desktop.receivedTitles().count == 1)
            } else {
                #expect(desktop.listen(for: 2).last == "Asked")
            }
            child.end()
        }

        /// When the stopped server continues, it shows the notifications that it received. The command `quit` reports this, and
        /// the next agent removes these notifications.
        @Test func `quit reports notifications that a stopped server may still show`() throws {
            let app = try ProvingHome(desktop: desktop)
            #expect(try app.run("notify", "first", "title=First").status == 0)
            try desktop.wait(forDisplayed: 2)
            let server = try #require(desktop.serverPID)
            kill(server, SIGSTOP)
            #expect(try app.run("notify", "n", "title=Frozen").status == 0)
            try app.home.wait("given to it") { try $0.notification("n").flatMap { $0.state == .presenting ? $0 : nil } }
            // If an agent were running, it would remove the notification as soon as the server continues.
            let quit = try app.home.waitForAgentsEnd { try app.run("background", "quit") }
            #expect(quit.output.contains("2 notifications may still be on the screen"), "\(quit)")
            kill(server, SIGCONT)
            // If the agent detected at `quit` that the server does not answer, the first notification is still on the screen. The
            // next agent removes the first notification.
            try app.run("notify", "later", "seconds=3600")
            try desktop.wait(forDisplayed: 1)
        }

        /// Tests the complete path from the notification to the app. The user presses the button, closes the notification, or
        /// does nothing.
        @Test func `notify --test reports whether its button was pressed`() throws {
            func prove(_ timeout: String) throws -> Child {
                let child = try Child(
                    Home.product("stormy"), ["notify", "--test", "--timeout", timeout], environment: home.environment)
                try home.wait("on the screen") {
                    try $0.notification("notification-test").flatMap { $0.state == .delivered ? $0 : nil }
                }
                return child
            }
            let pressed = try prove("60")
            try desktop.press("It works")
            #expect(pressed.waitForEnd() == 0)
            #expect(try home.history().last == "notificationResponse completed")
            func withoutButtons() throws -> Int {
                try Ledger(home.directories).read { try $0.fact(.serversWithoutButtons) ?? [] }.count
            }
            #expect(try withoutButtons() == 0)
            try desktop.wait(forDisplayed: 1)
            let closed = try prove("60")
            try desktop.dunstctl("close-all")
            #expect(closed.waitForEnd() == 75)
            #expect(try withoutButtons() == 1)
            #expect(try prove("1").waitForEnd() == 75)
            try home.wait("taken back") { try $0.notification("notification-test").flatMap { $0.state == .withdrawn ? $0 : nil } }
            try desktop.waitForEmptyScreen()
            desktop.endServer()
            let none = try home.stormy("notify", "--test")
            #expect(none.status == 69 && none.errors.contains("no notification server runs on this desktop"), "\(none)")
        }

        /// A command removes the place while no agent runs. The next agent removes the notification.
        @Test func `removing a place removes its notification`() throws {
            try home.killAgent()
            try home.stormy("place", "remove", "Here")
            try desktop.waitForEmptyScreen()
        }
    }
}
