import BackgroundCommands
import BackgroundLedger
import BackgroundScheduling
import Foundation

// The machine of the scenario, with a controlled clock and time zone.
extension Rehearsal {
    static let zone = "Europe/Berlin"

    /// Sets the clock. Every scenario begins at a fixed hour of its simulated clock, so that the real time of day has no effect.
    func setClock(toHour hour: Int) throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: Self.zone) ?? .gmt
        guard let time = calendar.date(bySettingHour: hour, minute: 0, second: 0, of: Date()) else {
            throw Stuck(description: "the time \(hour):00 does not exist today")
        }
        try control.set { ($0.zone, $0.clockOffset) = (Self.zone, time.timeIntervalSinceNow) }
    }

    /// Plans the noon check. Set the clock before this call, because the hours of the forecast are hours of this clock.
    func beginSchedule() throws {
        serveWholeForecast(on: server)
        try verb("place", "add", "Storm Bay", "-43.1,147.5", "--no-sync")
        try verb("schedule")
        try sync()
    }

    /// Waits until the agent has handled all events that it received.
    func sync() throws {
        let question = try home.ledger().write { try $0.addControl(.simulateExpire, "nothing", now: control.now) }
        _ = try wait("the agent's answer") { try $0.answer(to: question) }
    }

    /// Waits until an agent has handled all pending work. If the agent exited after its last work, the command that this
    /// method runs starts another agent.
    func waitForAgent() throws {
        // No launch has the name "nothing", so the command fails. The agent sends the response together with its other decisions.
        // When the response arrives, the agent has therefore made these decisions.
        try verb("simulate", "expire", "nothing", ending: .notFound)
    }

    func waitForCheck(_ outcome: LaunchOutcome = .completed) throws {
        _ = try wait("the end of a check") { try $0.history(limit: 10).first { $0.kind == .appRefresh && $0.outcome == outcome } }
    }

    /// Moves the clock to another day for which the service has a forecast, and waits for a check on this day.
    func moveToForecastDay(in seconds: Double, _ travel: (Rehearsal) throws -> Void) throws {
        let forecast = DemoServers.stormyForecast(now: control.now + seconds)
        serveForecast(.json(String(decoding: forecast, as: UTF8.self)))
        try travel(self)
        try waitForCheck()
    }

    /// Makes a mistake in the configuration, like a user.
    ///
    /// - Returns: A function that corrects the mistake.
    func spoilConfiguration() throws -> () throws -> Void {
        let file = home.directories.configuration.appendingPathComponent("config.toml")
        let right = try Data(contentsOf: file)
        try (right + Data("[weather\n".utf8)).write(to: file)
        return { try right.write(to: file) }
    }

    func waitForTrouble() throws {
        _ = try wait("the notification about the mistake") {
            try $0.notifications().first { $0.identifier.hasPrefix("trouble-") && $0.state == .delivered }
        }
    }

    /// Returns the number of notifications that the user received about the mistake.
    func seenOfTrouble() throws -> String {
        let count = try ledger { try $0.notifications().filter { $0.identifier.hasPrefix("trouble-") }.count }
        return count == 1 ? "the user was notified of the mistake once" : "the user was notified of the mistake \(count) TIMES"
    }

    /// Returns the launches and the time of the next noon check.
    func seenOfSchedule() throws -> String {
        // If no work is pending, the agent exits and would not respond.
        if try ledger({ try $0.hasRequests() }) { try sync() }
        let checks = try seenOfCheck()
        let next = try ledger { try $0.requests().first { $0.recurrence != nil } }
        var words = "no check is scheduled"
        if let occurrence = next?.occurrence {
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = TimeZone(identifier: control.zone) ?? .gmt
            let days = calendar.dateComponents(
                [.day], from: calendar.startOfDay(for: control.now), to: calendar.startOfDay(for: occurrence)
            ).day
            let day = days == 0 ? "today" : days == 1 ? "tomorrow" : "in \(days ?? -1) days"
            let time = calendar.dateComponents([.hour, .minute], from: occurrence)
            words = "the next check is \(day) at " + String(format: "%02d:%02d", time.hour ?? 0, time.minute ?? 0)
        }
        return checks + "; " + words
    }

    /// Waits for a storm notification in this state.
    func waitForNotice(_ state: NotificationRecord.State) throws {
        _ = try wait("a notification that is \(state.rawValue)") { transaction in
            try transaction.notifications().first { $0.identifier.hasPrefix("storm-") && $0.state == state }
        }
    }
}
