import BackgroundLedger
import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// What a person sees of notifications when servers and agents come and go.
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

        /// Pressed, it is answered and gone, also from a server that lets it stand.
        private func snooze() throws {
            try desktop.press("Snooze")
            try home.waitForEnded("notificationResponse")
            try home.wait("the snooze") { try $0.notification("storm-1-snoozed") }
            #expect(try home.history().last == "notificationResponse completed")
            try desktop.waitForEmptyScreen()
        }

        @Test func aPressedOneLeavesTheScreen() throws {
            #expect(try displayed() == "1")
            try snooze()
            #expect(desktop.titles.count == 1)
        }

        /// As after a crash, or in another desktop: with live buttons, and nobody is alerted.
        @Test func theNextServerShowsItAgain() throws {
            try desktop.restartServer()
            #expect(desktop.listen(for: 2).count == 2)
            try home.wait("there again") { try $0.notification("storm-1").flatMap { $0.state == .delivered ? $0 : nil } }
            #expect(try displayed() == "1")
            try snooze()
            // And what was closed is not shown again.
            try desktop.restartServer()
            #expect(try desktop.heardSoFar().count == 2)
            #expect(try displayed() == "0")
        }

        /// Its buttons belonged to a process that was killed.
        @Test func theNextAgentHasLiveButtons() throws {
            try home.killAgent()
            #expect(try displayed() == "1", "dunst keeps what a sender that is gone has shown")
            try home.stormy("status")
            #expect(desktop.listenForShownAgain(), "dunst tells the sender alone: shown again, in its place")
            try home.wait("there again") { try $0.notification("storm-1").flatMap { $0.state == .delivered ? $0 : nil } }
            #expect(desktop.titles.count == 1)
            #expect(try displayed() == "1")
            try snooze()
        }

        /// The forecast has other hours by now: in its place, without an alert, and not where the person has closed it.
        @Test func aStormThatMovesIsChangedInItsPlace() throws {
            let before = try home.wait("its words") { try $0.notification("storm-1")?.content.body }
            Weather.serve(.json(Weather.forecast(thunder: [4, 5, 6, 7, 8])), on: server)
            try home.stormy("check", "--fresh")
            #expect(desktop.titles.count == 1, "a check that tells nobody")
            try home.stormy("check", "--fresh", "--notify")
            #expect(desktop.listenForShownAgain())
            try home.wait("there again") { try $0.notification("storm-1").flatMap { $0.state == .delivered ? $0 : nil } }
            #expect(try displayed() == "1" && desktop.titles.count == 1)
            #expect(try home.wait("its words") { try $0.notification("storm-1")?.content.body } != before)
            try desktop.dunstctl("close")
            try home.wait("closed") { try $0.notification("storm-1").flatMap { $0.state == .closed ? $0 : nil } }
            Weather.serve(.json(Weather.forecast(thunder: [4, 5, 6, 7, 8, 9, 10])), on: server)
            try home.stormy("check", "--fresh", "--notify")
            _ = try desktop.heardSoFar()
            #expect(try displayed() == "0" && desktop.titles.count == 1 && desktop.shownAgain == 1)
        }

        /// The app died before it could write down that it had told; by now the person has dismissed it, and the forecast has other hours.
        @Test func aStormThatWasToldIsKnownByItsNotification() throws {
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
            _ = try desktop.heardSoFar()
            #expect(try displayed() == "0" && desktop.titles.count == 1)
        }

        /// Its strength changes and its hours do not.
        @Test func aStormThatGrowsIsChangedInItsPlace() throws {
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

        /// A storm that was snoozed, or that the person has closed, becomes extreme: that is told, and it stays until it is over.
        @Test(arguments: ["Snooze", nil]) func oneThatGrowsExtremeIsToldAgain(_ button: String?) throws {
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
            try home.wait("no snooze waits") { try $0.notification("storm-1-snoozed")?.life.isUntold == true ? nil : true }
            // Told: the same again alerts nobody.
            try home.stormy("check", "--fresh", "--notify")
            #expect(try desktop.heardSoFar().count == 2)
        }

        /// Its hours are over: nobody has to close it, and no app has to run for that.
        @Test func aStormThatIsOverLeavesTheScreen() throws {
            let record = try home.wait("its words") { try $0.notification("storm-1") }
            let sql = "UPDATE notification SET content = json_set(content, '$.until', \(Date().timeIntervalSince1970 + 2))"
            let ledger = home.directories.ledger.path
            #expect(try Child.run("sqlite3", [ledger, sql], environment: home.environment).status == 0)
            #expect(record.until != nil)
            try home.stormy("status")
            try desktop.waitForEmptyScreen()
            try home.wait("over") { try $0.notification("storm-1").flatMap { $0.state == .over ? $0 : nil } }
        }

        /// Rows that somebody else has written, in every column.
        @Test func rowsThatNobodyCanReadEndNoAgent() throws {
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
            #expect(home.log.contains("nobody can read what the ledger has of a notification: removed notification=odd"))
            #expect(desktop.listenForShownAgain(), "the good one is shown again all the same")
            try snooze()
        }

        /// No server, and a person at a terminal: every verb says so, until `status` has listed it there.
        @Test func whatNobodyCouldShowIsSaidInTheTerminal() throws {
            let bare = try Home(server: server)
            try bare.stormy("place", "add", "Here", "1,1", "--no-sync")
            try bare.stormy("check", "--notify")
            try bare.wait("the trouble") { try $0.notification("storm-1")?.trouble }
            func atTerminal(_ verb: String) throws -> String {
                let command = "\(Home.product("stormy")) \(verb)"
                return try Child.run("script", ["-qec", command, "/dev/null"], environment: bare.environment).output
            }
            let first = try atTerminal("place list")
            #expect(first.contains("stormy: not shown yet: Storm expected in Here: "), "\(first)")
            #expect(first.contains("`stormy status` lists all."))
            #expect(try !bare.stormy("place", "list").errors.contains("not shown yet"), "no terminal, nobody to tell")
            #expect(try bare.stormy("status").output.contains("Not shown   Storm expected in Here: "))
            #expect(try atTerminal("place list").contains("not shown yet"), "nobody has read that")
            #expect(try atTerminal("status").contains("Not shown   Storm expected in Here: "))
            #expect(try !atTerminal("place list").contains("not shown yet"))
            #expect(try atTerminal("status").contains("Not shown   Storm expected in Here: "), "it is so, all the same")
        }

        /// More than a person reads: a handful by themselves, the rest in one summary.
        @Test func aBurstIsAHandful() throws {
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
            // The storm of this test's home stands there, too.
            try desktop.wait(forDisplayed: alone + 2)
        }

        /// The server takes it off by itself: told, and perhaps seen by nobody.
        @Test func whatExpiredIsUnseen() throws {
            let brief = try Desktop(lowTimeout: 1)
            defer { withExtendedLifetime(brief) {} }
            let app = try ProvingHome(desktop: brief)
            try app.run("notify", "n", "title=Short", "level=0")
            try app.home.wait("expired") { try $0.notification("n").flatMap { $0.state == .expired ? $0 : nil } }
            #expect(try app.run("notifications").output == "delivered n\n")
            #expect(try app.run("background", "status").output.contains("Unseen      Short, left the screen"))
            try app.run("take-off", "n")
            #expect(try app.run("notifications").output.isEmpty)
        }

        /// A delegate of an app that a person runs: asked, and obeyed; and where it does not answer, or the process ends, all of it is shown.
        @Test(arguments: [
            ("24", true, true), ("16", true, true), ("0", false, true), ("silence", true, true), ("0", true, false),
        ])
        func aDelegateInFrontIsAsked(_ wish: String, _ isShown: Bool, _ waits: Bool) throws {
            let app = try ProvingHome(desktop: desktop)
            app.home.environment["PROVING_PRESENT"] = wish
            if !waits {
                (app.home.environment["PROVING_LEAVES"], app.home.environment["PROVING_PRESENT"]) = ("1", "silence")
            }
            #expect(try app.run("notify", "n", "title=Asked").status == 0)
            if isShown {
                #expect(desktop.listen(for: 2).last == "Asked")
            } else {
                try app.home.wait("taken back") { try $0.notification("n").flatMap { $0.life.isTakenBack ? $0 : nil } }
                #expect(try desktop.heardSoFar().count == 1)
            }
        }

        /// It comes by a trigger while a person runs the app: asked, and obeyed; also where the process dies over the question.
        @Test(arguments: [("0", false), ("24", true), ("silence", true), ("silence", false)])
        func aDelegateInFrontIsAskedWhenItsTimeComes(_ wish: String, _ goesOn: Bool) throws {
            let app = try ProvingHome(desktop: desktop)
            app.home.environment["PROVING_PRESENT"] = wish
            let child = try Child(
                Home.product("proving-ground"), ["notify", "n", "title=Asked", "seconds=3", "stays=300"],
                environment: app.home.environment)
            try app.waitForLine("asked n")
            #expect(try app.home.wait("it") { try $0.notification("n") }.isHeld(now: Date()) || wish != "silence")
            if !goesOn, wish == "silence" { child.end(SIGKILL) }
            if wish == "0" {
                try app.home.wait("taken back") { try $0.notification("n").flatMap { $0.life.isTakenBack ? $0 : nil } }
                #expect(try desktop.heardSoFar().count == 1)
            } else {
                #expect(desktop.listen(for: 2).last == "Asked")
            }
            child.end()
        }

        /// It has what it was given, and shows that when it goes on: said at once, and taken off by the next agent.
        @Test func quitWhileTheServerHangsIsSaid() throws {
            let app = try ProvingHome(desktop: desktop)
            #expect(try app.run("notify", "first", "title=First").status == 0)
            try desktop.wait(forDisplayed: 2)
            let server = try #require(desktop.serverPID)
            kill(server, SIGSTOP)
            #expect(try app.run("notify", "n", "title=Frozen").status == 0)
            try app.home.wait("given to it") { try $0.notification("n").flatMap { $0.state == .presenting ? $0 : nil } }
            // An agent that is still there would take it off as soon as the server goes on.
            let quit = try app.home.waitForAgentsEnd { try app.run("background", "quit") }
            #expect(quit.output.contains("does not answer: 2 notifications may stand there"), "\(quit)")
            kill(server, SIGCONT)
            // The first is still there if the agent already knew, when it was told to leave, that the server does not answer.
            try app.run("notify", "later", "seconds=3600")
            try desktop.wait(forDisplayed: 1)
        }

        /// The whole chain with a person in it, who presses, or closes it, or is not there.
        @Test func theChainIsProved() throws {
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
            #expect(none.status == 69 && none.errors.contains("nobody shows them on this desktop"), "\(none)")
        }

        /// Removed by a command while no agent lives, it leaves the screen with the next one.
        @Test func aRemovedPlaceTakesItsNotificationAlong() throws {
            try home.killAgent()
            try home.stormy("place", "remove", "Here")
            try desktop.waitForEmptyScreen()
        }
    }
}
