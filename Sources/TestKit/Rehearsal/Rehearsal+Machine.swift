import BackgroundCommands
import BackgroundLedger
import BackgroundScheduling
import Foundation

// The host around the work: at an hour and in a zone of its own.
extension Rehearsal {
    static let zone = "Europe/Berlin"

    /// Somebody's real noon must not come into it: every scenario begins at the same hour, whenever it is played.
    func setClock(toHour hour: Int) throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: Self.zone) ?? .gmt
        guard let time = calendar.date(bySettingHour: hour, minute: 0, second: 0, of: Date()) else {
            throw Stuck(description: "today has no \(hour) o'clock")
        }
        try control.set { ($0.zone, $0.clockOffset) = (Self.zone, time.timeIntervalSinceNow) }
    }

    /// The noon check is planned; the clock has been set, and hours of the forecast are hours of that.
    func beginSchedule() throws {
        serveWholeForecast(on: server)
        try verb("place", "add", "Storm Bay", "-43.1,147.5", "--no-sync")
        try verb("schedule")
        try sync()
    }

    /// The agent has acted on everything that it heard of.
    func sync() throws {
        let question = try home.ledger().write { try $0.ask(.simulateExpire, "nothing", now: control.now) }
        _ = try wait("the agent's answer") { try $0.answer(to: question) }
    }

    /// Whatever agent there is, or comes now, has acted on everything that there is to do. For the time after the last work, when
    /// an agent may have left.
    func look() throws {
        // Nothing of that name runs: the answer is all that this is for, and it comes with the agent's decisions about the rest.
        try verb("simulate", "expire", "nothing", ending: .notFound)
    }

    func waitForCheck(_ outcome: LaunchOutcome = .completed) throws {
        _ = try wait("a check to end") { try $0.history(limit: 10).first { $0.kind == .appRefresh && $0.outcome == outcome } }
    }

    /// Another day, for which the service has a forecast; a check runs there.
    func comeTo(in seconds: Double, _ travel: (Rehearsal) throws -> Void) throws {
        let forecast = DemoServers.stormyForecast(now: control.now + seconds)
        serveForecast(.json(String(decoding: forecast, as: UTF8.self)))
        try travel(self)
        try waitForCheck()
    }

    /// The person mistypes the configuration.
    /// - Returns: puts it right again.
    func spoilConfiguration() throws -> () throws -> Void {
        let file = home.directories.configuration.appendingPathComponent("config.toml")
        let right = try Data(contentsOf: file)
        try (right + Data("[weather\n".utf8)).write(to: file)
        return { try right.write(to: file) }
    }

    func waitForTrouble() throws {
        _ = try wait("word of the mistake") {
            try $0.notifications().first { $0.identifier.hasPrefix("trouble-") && $0.state == .delivered }
        }
    }

    /// How often the person was told that something is to be mended.
    func seenOfTrouble() throws -> String {
        let count = try ledger { try $0.notifications().filter { $0.identifier.hasPrefix("trouble-") }.count }
        return count == 1 ? "told once of the mistake" : "told \(count) TIMES of the mistake"
    }

    /// Launches, and when the next noon is.
    func seenOfSchedule() throws -> String {
        // With nothing to wait for the agent leaves, and would not answer.
        if try ledger({ try $0.hasRequests() }) { try sync() }
        let checks = try seenOfCheck()
        let next = try ledger { try $0.requests().first { $0.recurrence != nil } }
        var words = "none is planned"
        if let occurrence = next?.occurrence {
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = TimeZone(identifier: control.zone) ?? .gmt
            let days = calendar.dateComponents(
                [.day], from: calendar.startOfDay(for: control.now), to: calendar.startOfDay(for: occurrence)
            ).day
            let day = days == 0 ? "today" : days == 1 ? "tomorrow" : "in \(days ?? -1) days"
            let time = calendar.dateComponents([.hour, .minute], from: occurrence)
            words = "next \(day) at " + String(format: "%02d:%02d", time.hour ?? 0, time.minute ?? 0)
        }
        return checks + "; " + words
    }

    /// A storm's notification got so far.
    func waitForNotice(_ state: NotificationRecord.State) throws {
        _ = try wait("a notification that is \(state.rawValue)") { transaction in
            try transaction.notifications().first { $0.identifier.hasPrefix("storm-") && $0.state == state }
        }
    }
}
