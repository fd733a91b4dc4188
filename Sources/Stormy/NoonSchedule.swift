import BackgroundTasks
import Foundation

/// The daily check: a wall-clock rule, right on the days clocks change.
public struct NoonSchedule: Sendable {
    public static let identifier = "StormyNoon"

    let store: StormyStore
    let settings: StormySettings

    public init(store: StormyStore, settings: StormySettings = .current) {
        self.store = store
        self.settings = settings
    }

    /// The time of day, as last chosen.
    public var time: WallClockTime {
        get throws { try store.setting("at").flatMap(WallClockTime.init(parsing:)) ?? .noon }
    }

    public var isEnabled: Bool { get throws { try store.setting("enabled") == "true" } }

    /// Seconds this installation wakes after the time: stable, so that not everybody asks a public service at noon sharp.
    public var spread: Double {
        get throws {
            if try store.setting("exact") == "true" { return 0 }
            if let known = try store.setting("spread").flatMap(Double.init) { return known * settings.spreadSeconds }
            let drawn = Double.random(in: 0..<1)
            try store.set("spread", String(drawn))
            return drawn * settings.spreadSeconds
        }
    }

    /// Turns the daily check on.
    public func turnOn(at time: WallClockTime?, exact: Bool) throws {
        if let time { try store.set("at", time.description) }
        if time != nil || exact { try store.set("exact", exact ? "true" : "false") }
        try Self.setEnabled(true, in: store)
        try submit()
    }

    public static func setEnabled(_ isEnabled: Bool, in store: StormyStore) throws {
        try store.set("enabled", isEnabled ? "true" : "false")
    }

    public func turnOff() throws {
        try Self.setEnabled(false, in: store)
        BGTaskScheduler.shared.cancel(taskRequestWithIdentifier: Self.identifier)
    }

    /// Asks for the next one: strictly after now and after the one being served.
    func submit() throws {
        let request = BGAppRefreshTaskRequest(identifier: Self.identifier)
        request.recurrence = .daily(try time)
        request.recurrenceDelay = try spread
        request.missedOccurrences = settings.skipsMissedChecks ? .skip : .once
        try BGTaskScheduler.shared.submit(request)
    }
}

/// What happens at noon.
struct NoonCheck {
    let store: StormyStore
    let settings: StormySettings

    func run() async {
        // The following day first: whatever happens below, tomorrow's check stands.
        do {
            let schedule = NoonSchedule(store: store, settings: settings)
            if try schedule.isEnabled { try schedule.submit() }
        } catch {
            complain("tomorrow's check could not be scheduled: \(error.localizedDescription)")
        }
        let question = StormQuestion(store: store, settings: settings)
        let places = (try? store.places()) ?? []
        // Side by side: a place whose service stalls holds back no other.
        await withTaskGroup(of: Void.self) { group in
            for place in places {
                group.addTask {
                    if await question.isStormy(at: place) == true { StormTeller(store: store).tell(place) }
                }
            }
        }
    }
}
