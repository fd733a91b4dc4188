import BackgroundLedger
import BackgroundRuntime
import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

@testable import Stormy

/// Tests the times, the notifications and the retries of the daily check.
@Suite(.timeLimit(.minutes(30))) struct DailyCheckTests {
    /// The configuration of a check with a time limit of two seconds and a grace time of two seconds.
    private static let shortTime = "[background]\nrefresh_budget_seconds = 2\ngrace_seconds = 2\n"
    private static let loginPage = ResponseScript.status(
        200, headers: ["Content-Type": "text/html"], body: "<html>Log in</html>")

    /// Runs a test with one place. The forecast of this place has a storm in four hours.
    private func play(_ configuration: String = "", _ body: @Sendable (VirtualHome) async throws -> Void) async throws {
        try await VirtualHome.play(configuration) { home in
            home.serveForecast()
            #expect(try await home.stormy("place", "add", "Here", "1,1", "--no-sync").status == 0)
            try await body(home)
        }
    }

    // MARK: Times

    @Test func `the check runs at its second and alerts once`() async throws {
        try await play { home in
            let due = Date(timeIntervalSince1970: 1_749_544_215)  // 10:30:15 in Berlin
            #expect(try await home.stormy("schedule", "--at", "10:30:15", "--exact").status == 0)
            let check = try await home.nextCheck()
            #expect(check.outcome == .completed)
            #expect(abs(check.startedAt.timeIntervalSince(due)) < 0.001)
            try await home.driver.advance(by: .seconds(60))
            #expect(try await home.history() == ["appRefresh completed"])
            #expect(home.shown == ["Storm expected in Here"])
            #expect(try await home.status("schedule", "next") as? String == "2025-06-11T10:30:15+02:00")
            #expect(try await home.rows("why").first?["identifier"] as? String == "StormyNoon")
        }
    }

    @Test func `a missed check runs once`() async throws {
        try await play { home in
            await home.setStartsAgents(false)
            try await home.stormy("schedule")
            #expect(try await home.status("agent", "running") as? Bool == false)
            try await home.driver.advance(by: .seconds(3 * 86_400))
            #expect(try await home.history() == [])
            home.serveForecast()
            try await home.driver.startAgent()
            #expect(try await home.nextCheck().outcome == .completed)
            try await home.driver.advance(by: .seconds(60))
            #expect(try await home.history() == ["appRefresh completed"])
            #expect(home.shown == ["Storm expected in Here"])
        }
    }

    @Test func `a missed check is skipped if the configuration requests it`() async throws {
        try await play("[schedule]\nmissed = \"skip\"\n") { home in
            await home.setStartsAgents(false)
            try await home.stormy("schedule")
            try await home.driver.advance(by: .seconds(3 * 86_400))
            try await home.driver.startAgent()
            try await home.driver.advance(by: .seconds(60))
            #expect(try await home.history() == ["appRefresh skipped"])
            #expect(try await home.status("schedule", "next") as? String == "2025-06-13T12:00:00+02:00")
        }
    }

    /// The check cannot be submitted. An app can have only one app refresh request, and another app refresh request already
    /// exists.
    @Test func `a check that cannot be submitted keeps its settings`() async throws {
        try await play { home in
            await home.setStartsAgents(false)
            try await home.stormy("schedule", "--at", "09:00", "--exact", "--wake")
            let before = try await home.command { try NoonSchedule(store: StormyStore.open()).check }
            try await home.command {
                try AppRuntime.shared.ledger().write { transaction in
                    let now = AppRuntime.shared.now
                    try transaction.save(RequestRecord(identifier: "other", kind: .appRefresh, submittedAt: now))
                }
            }
            let result = try await home.stormy("schedule", "--at", "10:00", "--no-wake")
            #expect(result.status != 0 && result.errors.contains("1 appRefresh requests are pending"), "\(result)")
            let after = try await home.command { try NoonSchedule(store: StormyStore.open()).check }
            #expect(after == before && after.isOn && after.isExact && after.wakesSystem)
        }
    }

    // MARK: Notifications

    @Test func `a calm day shows no notification`() async throws {
        try await play { home in
            home.serveCalm()
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            try await home.driver.advance(by: .seconds(60))
            #expect(home.shown == [])
            #expect(try await home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.isEmpty)
        }
    }

    @Test func `a notification waits for a notification server`() async throws {
        try await play { home in
            home.driver.notifications.vanish()
            try await home.stormy("schedule")
            try await home.check()
            #expect(home.notification("storm-1")?.trouble != nil)
            #expect(try await home.status("notifications", "pending") as? Int == 1)
            let trouble = try await home.status("notifications", "trouble") as? String
            #expect(trouble?.isEmpty == false)
            #expect(home.shown == [])
            home.driver.notifications.appear()
            try await home.driver.advance(by: .seconds(5))
            #expect(home.shown == ["Storm expected in Here"])
            #expect(home.notification("storm-1")?.state == .delivered)
        }
    }

    /// No notification server was available until the storm had ended.
    @Test(arguments: [false, true])
    func `a storm is not shown after its end or without its place`(_ isPlaceRemoved: Bool) async throws {
        try await play { home in
            home.driver.notifications.vanish()
            try await home.stormy("schedule")
            try await home.check()
            #expect(home.notification("storm-1")?.state == .pending)
            if isPlaceRemoved {
                #expect(try await home.stormy("place", "remove", "Here").status == 0)
            } else {
                try Self.moveStormsToYesterday(home)
                home.serveCalm()
                try await home.check()
            }
            #expect(home.notification("storm-1")?.state == .withdrawn)
            home.driver.notifications.appear()
            try await home.driver.advance(by: .seconds(5))
            #expect(home.shown == [])
        }
    }

    private static func moveStormsToYesterday(_ home: VirtualHome) throws {
        let store = try StormyStore(folder: home.directories.data)
        try store.queue.write { database in
            try database.execute(sql: "UPDATE storm SET begins = begins - 86400, ends = ends - 86400")
        }
    }

    // MARK: Missing responses

    /// The download of the forecast continues in the agent and is retried. Until the download succeeds, `status` shows the reason
    /// why the weather is unknown.
    @Test(arguments: [0, 503, 429])
    func `a service that does not respond is shown for each place`(_ status: Int) async throws {
        try await VirtualHome.play(Self.shortTime) { home in
            if status == 0 { home.driver.network.takeAway(VirtualHome.origin) } else { home.serve(.status(status)) }
            // Some transfers wait for other transfers to the same service. The waiting transfers have no separate error.
            let places = (1...5).map { "Place \($0)" }
            for (number, name) in places.enumerated() {
                #expect(try await home.stormy("place", "add", name, "\(number),1", "--no-sync").status == 0)
            }
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .expired)
            try await home.driver.advance(by: .seconds(5))
            #expect(home.shown == places.map { _ in "The weather is unknown" })
            let checks = try await home.status()["checks"] as? [[String: Any]] ?? []
            let troubles = checks.compactMap { $0["trouble"] as? String }
            #expect(
                troubles.count == places.count && troubles.allSatisfy { $0.hasSuffix("The request is tried again.") },
                "\(troubles)")
        }
    }

    /// The server accepts the connection and sends nothing. After the first check of a new place, the response may still arrive,
    /// so no problem is shown.
    @Test func `a silent service is shown after the second check`() async throws {
        try await play(Self.shortTime) { home in
            home.serve(ResponseScript([.stall]))
            try await home.stormy("schedule")
            for _ in 0..<2 { #expect(try await home.check().outcome == .expired) }
            #expect(home.shown == ["The weather is unknown"])
            let status = try await home.stormy("status").output
            #expect(status.contains("no response arrived within the time limit"), "\(status)")
        }
    }

    /// The storm is known, because the forecast was received when the place was added.
    @Test func `a known storm is shown although the service fails`() async throws {
        try await VirtualHome.play { home in
            home.serveForecast()
            #expect(try await home.stormy("place", "add", "Here", "1,1").output.contains("stormy"))
            try await home.stormy("schedule")
            home.serve(.status(404, body: "gone"))
            #expect(try await home.nextCheck().outcome == .crashed)
            #expect(home.shown == ["Storm expected in Here"])
        }
    }

    // MARK: Unusable responses

    /// The user is notified of the failure only if no forecast was received for a day.
    @Test(arguments: [false, true])
    func `a check that meets a captive portal is retried`(_ isOverdue: Bool) async throws {
        try await VirtualHome.play { home in
            home.serveCalm()
            let added = try await home.stormy(["place", "add", "Here", "1,1"] + (isOverdue ? ["--no-sync"] : []))
            #expect(added.status == 0)
            try await home.stormy("schedule")
            home.serve(Self.loginPage)
            let failed = try await home.nextCheck()
            #expect(failed.outcome == .crashed)
            #expect(failed.detail?.hasPrefix("Here: ") == true && failed.detail?.contains("login page") == true, "\(failed)")
            #expect(try await home.nextCheck().outcome == .crashed)
            if isOverdue { #expect(home.notification("trouble-weather-1")?.state == .delivered) }
            home.serveForecast()
            #expect(try await home.nextCheck().outcome == .completed)
            #expect(home.shown == (isOverdue ? ["The weather is unknown"] : []) + ["Storm expected in Here"])
            #expect(home.notification("trouble-weather-1")?.state != .delivered)
        }
    }

    /// A server with outdated data sends valid responses about past days.
    @Test func `a check that receives an outdated forecast is retried`() async throws {
        try await play { home in
            try await home.stormy("schedule")
            home.serve(.json(Weather.forecast(from: home.now.addingTimeInterval(-5 * 86_400))))
            try await home.check()
            #expect(home.notification("trouble-weather-1")?.state == .delivered)
            #expect(try await home.history().first == "appRefresh crashed")
            home.serveForecast()
            #expect(try await home.nextCheck().outcome == .completed)
            #expect(home.shown == ["The weather is unknown", "Storm expected in Here"])
        }
    }

    @Test func `a removed place is not checked and its notification is withdrawn`() async throws {
        try await play { home in
            home.serve(Self.loginPage)
            try await home.stormy("schedule")
            try await home.check()
            #expect(home.notification("trouble-weather-1")?.state == .delivered)
            let status = try await home.stormy("status").output
            #expect(status.contains("daily at 12:00") && !status.contains("not scheduled"), "\(status)")
            #expect(try await home.stormy("place", "remove", "Here").status == 0)
            #expect(home.notification("trouble-weather-1")?.state != .delivered)
            let requests = home.server.requests().count
            #expect(try await home.nextCheck().outcome == .completed)
            #expect(home.server.requests().count == requests)
        }
    }
}
