import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

@testable import Stormy

/// Tests one storm over several checks: alerts, messages that the storm is called off, reactions of the user, and restarts.
@Suite(.timeLimit(.minutes(30))) struct StormLifeCommandTests {
    private func play(_ body: @Sendable (VirtualHome) async throws -> Void) async throws {
        try await VirtualHome.play("[storm]\nthunderstorm = false\n") { home in
            home.server.route(nil, "*", .status(404))
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.noWarning)
            home.serveCalm()
            #expect(try await home.stormy("place", "add", "Here", "52.52,13.4", "--no-sync").status == 0)
            try await home.stormy("schedule")
            try await body(home)
        }
    }

    private static let noWarning = ResponseScript.json(BrightSkyAnswer.noWarnings)

    private static func warn(_ home: VirtualHome) {
        home.server.route("GET", BrightSkyAnswer.warningsPath, .json(BrightSkyAnswer.warning("severe", id: "w", now: home.now)))
    }

    private static func serve(gusts: Double, at hours: Set<Int> = [4, 5, 6], _ home: VirtualHome) {
        home.serve(.json(Weather.forecast(thunder: hours, gusts: gusts, from: home.now)))
    }

    /// Returns the number of notifications that appeared. A notification that replaced another notification is not counted.
    private static func alerts(_ home: VirtualHome) -> Int { home.driver.notifications.history.filter { $0.showings == 1 }.count }

    private static func check(_ home: VirtualHome, gusts: Double? = nil) async throws {
        if let gusts { serve(gusts: gusts, home) }
        #expect(try await home.check().outcome == .completed)
        try await home.driver.settle()
    }

    private static func storms(_ home: VirtualHome) async throws -> [[String: Any]] {
        try await home.status()["storms"] as? [[String: Any]] ?? []
    }

    private static func openPhotoRequests(_ home: VirtualHome) async throws -> Int {
        try await home.rows("transfers").filter { $0["state"] as? String == "awaitingPhoto" }.count
    }

    // MARK: Row 2

    @Test(arguments: [0, 2]) func `a severe official warning alerts after a dismissed severe gust forecast`(_ calmChecks: Int)
        async throws
    {
        try await play { home in
            try await Self.check(home, gusts: 110)
            #expect(home.onScreen == ["Severe storm expected in Here"])
            home.driver.notifications.dismiss("storm-1")
            try await home.driver.settle()
            for _ in 0..<calmChecks { try await Self.check(home, gusts: 20) }
            #expect(home.onScreen == [], "no notification calls off a storm that the user dismissed")
            Self.warn(home)
            try await Self.check(home)
            #expect(home.onScreen == ["Severe storm expected in Here"])
            #expect(Self.alerts(home) == 2)
        }
    }

    @Test(arguments: [true, false]) func `a severe warning of another hazard alerts once after an answered one`(_ isSnoozed: Bool)
        async throws
    {
        try await play { home in
            func serve(_ events: [String]) {
                let alerts = events.map { event in
                    let answer = BrightSkyAnswer.warning("severe", id: event, now: home.now).replacing(
                        "severe thunderstorm", with: event
                    )
                    .replacing("SCHWERES GEWITTER", with: event)
                    return answer.drop { $0 != "[" }.dropFirst().prefix { $0 != "]" }
                }
                home.server.route("GET", BrightSkyAnswer.warningsPath, .json("{\"alerts\":[\(alerts.joined(separator: ","))]}"))
            }
            serve(["flood"])
            try await Self.check(home)
            #expect(Self.alerts(home) == 1)
            if isSnoozed {
                #expect(home.driver.notifications.press("snooze", on: "storm-1"))
            } else {
                home.driver.notifications.dismiss("storm-1")
            }
            try await home.driver.settle()
            for _ in 0..<2 {
                serve(["flood", "tornado"])
                try await Self.check(home)
                #expect(home.onScreen == ["Severe storm expected in Here"])
                #expect(Self.alerts(home) == 2)
            }
            home.driver.notifications.dismiss("storm-1")
            serve(["flood", "tornado"])
            try await Self.check(home)
            #expect(home.onScreen == [] && Self.alerts(home) == 2)
        }
    }

    @Test func `a warning that the user dismissed is not called off in words`() async throws {
        try await play { home in
            Self.warn(home)
            try await Self.check(home)
            home.driver.notifications.dismiss("storm-1")
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.noWarning)
            try await Self.check(home)
            #expect(home.onScreen == [] && Self.alerts(home) == 1)
            #expect(try await Self.storms(home).isEmpty)
        }
    }

    @Test func `a warning that no server could show is not called off in words`() async throws {
        try await play { home in
            home.driver.notifications.vanish()
            Self.warn(home)
            try await Self.check(home)
            home.server.route("GET", BrightSkyAnswer.warningsPath, Self.noWarning)
            try await Self.check(home)
            home.driver.notifications.appear()
            try await home.driver.advance(by: .seconds(60))
            #expect(home.shown == [])
        }
    }

    // MARK: Row 13

    @Test(arguments: [110.0, 150]) func `a storm that do-not-disturb hides is not seen in status and is shown at the end`(
        _ gusts: Double
    ) async throws {
        try await play { home in
            home.driver.notifications.setDoNotDisturb(true)
            try await Self.check(home, gusts: gusts)
            try await Self.check(home)
            #expect(home.onScreen == [])
            let said = try await home.stormy("status").output
            let hidden = ", the notification is hidden, because do not disturb is on"
            #expect(said.contains("Storm at Here") && said.contains(hidden), "\(said)")
            #expect(try await Self.storms(home).first?["told"] as? Bool == false)
            home.driver.notifications.setDoNotDisturb(false)
            try await home.driver.settle()
            #expect(home.onScreen == [gusts > 140 ? "Extreme storm expected in Here" : "Severe storm expected in Here"])
            #expect(home.driver.notifications.shown.first?.sound != nil)
            #expect(try await Self.storms(home).first?["told"] as? Bool == true)
            try await Self.check(home)
            #expect(Self.alerts(home) == 1)
        }
    }

    @Test func `a storm that do-not-disturb hid is not called off in words`() async throws {
        try await play { home in
            home.driver.notifications.setDoNotDisturb(true)
            try await Self.check(home, gusts: 150)
            try await Self.check(home, gusts: 20)
            home.driver.notifications.setDoNotDisturb(false)
            try await home.driver.settle()
            #expect(home.shown == [])
            #expect(try await Self.storms(home).isEmpty)
        }
    }

    // MARK: Row 3

    @Test func `a forecast storm is called off and status agrees`() async throws {
        try await play { home in
            try await Self.check(home, gusts: 90)
            #expect(home.onScreen == ["Storm expected in Here"])
            #expect(try await Self.openPhotoRequests(home) == 1)
            try await Self.check(home, gusts: 65)
            #expect(home.onScreen == ["Storm expected in Here"], "between 80 % and 100 % of the limit")
            #expect(home.driver.notifications.shown.first?.body.contains("65 km/h") == true)
            try await Self.check(home, gusts: 20)
            #expect(home.onScreen == ["No longer expected: storm in Here"])
            #expect(Self.alerts(home) == 1)
            #expect(home.driver.notifications.shown.first?.sound == nil)
            #expect(try await Self.storms(home).isEmpty)
            #expect(try await Self.openPhotoRequests(home) == 0)
            let said = try await home.stormy("status").output
            #expect(said.contains("Here        calm") && !said.contains("Storm at Here"), "\(said)")
        }
    }

    @Test func `a snoozed storm is withdrawn when it is called off`() async throws {
        try await play { home in
            try await Self.check(home, gusts: 90)
            #expect(home.driver.notifications.press("snooze", on: "storm-1"))
            try await home.driver.advance(by: .seconds(60))
            #expect(home.notification("storm-1-snoozed")?.state == .pending)
            try await Self.check(home, gusts: 20)
            try await home.driver.advance(by: .seconds(4000))
            #expect(home.onScreen == [] && Self.alerts(home) == 1)
        }
    }

    @Test func `a storm that was snoozed twice is withdrawn`() async throws {
        try await play { home in
            Self.serve(gusts: 90, at: [10, 11], home)
            try await Self.check(home)
            #expect(home.driver.notifications.press("snooze", on: "storm-1"))
            try await home.driver.advance(by: .seconds(3700))
            #expect(home.driver.notifications.press("snooze", on: "storm-1-snoozed"))
            try await home.driver.advance(by: .seconds(60))
            home.serveCalm()
            try await Self.check(home)
            try await home.driver.advance(by: .seconds(4000))
            #expect(home.onScreen == [])
        }
    }

    @Test func `a service that fails or knows no gusts calls nothing off`() async throws {
        try await play { home in
            try await Self.check(home, gusts: 90)
            home.serve(.json(Weather.forecast(thunder: [], from: home.now).replacing("wind_gusts_10m", with: "other")))
            try await Self.check(home)
            #expect(home.onScreen == ["Storm expected in Here"])
            home.serve(.status(503))
            _ = try await home.stormy("check", "--notify")
            #expect(home.onScreen == ["Storm expected in Here"])
            #expect(try await Self.storms(home).count == 1)
        }
    }

    // MARK: Returns, restarts, earlier versions

    @Test func `a storm that returns alerts three times in a day and then silently`() async throws {
        try await play { home in
            var alerts: [String?] = []
            for _ in 0..<5 {
                try await Self.check(home, gusts: 90)
                alerts.append(home.driver.notifications.shown.first?.sound)
                try await Self.check(home, gusts: 20)
            }
            #expect(alerts.map { $0 != nil } == [true, true, true, true, false])
            #expect(home.onScreen == ["No longer expected: storm in Here"])
        }
    }

    @Test func `a command without --notify calls off and alerts nothing`() async throws {
        try await play { home in
            try await Self.check(home, gusts: 90)
            Self.serve(gusts: 150, home)
            try await home.stormy("check")
            #expect(home.onScreen == ["Storm expected in Here"])
            home.serveCalm()
            try await home.stormy("check")
            try await home.driver.settle()
            #expect(home.onScreen == ["No longer expected: storm in Here"])
        }
    }

    @Test func `a storm that a process showed before it died does not alert again`() async throws {
        try await play { home in
            try await Self.check(home, gusts: 90)
            home.driver.notifications.dismiss("storm-1")
            try await home.driver.settle()
            let store = try StormyStore(folder: home.directories.data)
            try store.queue.write { database in
                try database.execute(
                    sql: "UPDATE storm SET life = json_set(life, '$.memory', json('{\"step\":0,\"phase\":{\"unshown\":{}}}'))")
            }
            try await Self.check(home, gusts: 95)
            #expect(home.onScreen == [] && Self.alerts(home) == 1)
            #expect(try store.storms().first?.life.isShown == true)
        }
    }

    @Test func `a storm that quit withdrew before it was seen alerts at the next check`() async throws {
        try await play { home in
            home.driver.notifications.vanish()
            try await Self.check(home, gusts: 90)
            try await home.stormy("quit")
            home.driver.notifications.appear()
            try await home.stormy("schedule")
            try await Self.check(home, gusts: 90)
            #expect(home.onScreen == ["Storm expected in Here"])
        }
    }
}
