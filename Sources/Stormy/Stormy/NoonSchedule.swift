import BackgroundTasks
import Foundation

/// The daily check: a wall-clock rule, right on the days clocks change.
package struct NoonSchedule: Sendable {
    package static let identifier = "StormyNoon"

    let store: StormyStore
    let settings: StormySettings

    package init(store: StormyStore, settings: StormySettings = .current) {
        self.store = store
        self.settings = settings
    }

    /// The time of day, as last chosen.
    package var time: WallClockTime {
        get throws { try store.setting("at").flatMap(WallClockTime.init(parsing:)) ?? .noon }
    }

    package var isEnabled: Bool { get throws { try store.setting("enabled") == "true" } }

    /// The check that is pending: for when, when this installation wakes for it, and how many seconds that is later. `nil`: none is.
    /// One that makes up for a launch by hand is for no time of its own: for now.
    package var pending: (next: Date?, wakeAt: Date?, spread: Double)? {
        get throws {
            try BGTaskScheduler.shared.pendingTaskRequest(withIdentifier: Self.identifier)
                .map { ($0.occurrence ?? $0.earliestBeginDate, $0.earliestBeginDate, $0.recurrenceDelay) }
        }
    }

    private var isExact: Bool { get throws { try store.setting("exact") == "true" } }

    /// A machine that sleeps is woken for it.
    package var wakesSystem: Bool { get throws { try store.setting("wake") == "true" } }

    /// Seconds this installation wakes after the time: stable, so that not everybody asks a public service at noon sharp.
    private var offset: Double {
        get throws {
            if let known = try store.setting("spread").flatMap(Double.init) { return known * settings.spreadSeconds }
            let drawn = Double.random(in: 0..<1)
            try store.set("spread", String(drawn))
            return drawn * settings.spreadSeconds
        }
    }

    /// Turns the daily check on. What is said of the schedule afterwards is what was accepted.
    ///
    /// - Parameter wakesSystem: `nil`: as last chosen.
    package func turnOn(at chosen: WallClockTime?, exact: Bool, wakesSystem: Bool? = nil) throws {
        let time = try chosen ?? self.time
        let isExact = try exact || (chosen == nil && self.isExact)
        let before = (isEnabled: try isEnabled, time: try self.time, isExact: try self.isExact, wakes: try self.wakesSystem)
        // Known before the request is there: a check that begins just now plans the next one by it, and one that ends because it was off
        // looks again after it took its request away.
        try note(time, isExact: isExact, wakesSystem: wakesSystem ?? before.wakes)
        try Self.setEnabled(true, in: store)
        do {
            try submit(time, spread: isExact ? 0 : offset)
        } catch {
            try Self.setEnabled(before.isEnabled, in: store)
            try note(before.time, isExact: before.isExact, wakesSystem: before.wakes)
            throw error
        }
    }

    private func note(_ time: WallClockTime, isExact: Bool, wakesSystem: Bool) throws {
        try store.set("at", time.description)
        try store.set("exact", isExact ? "true" : "false")
        try store.set("wake", wakesSystem ? "true" : "false")
    }

    package static func setEnabled(_ isEnabled: Bool, in store: StormyStore) throws {
        try store.set("enabled", isEnabled ? "true" : "false")
    }

    /// - Throws: when the request could not be removed: then the check is still on.
    package func turnOff() throws {
        let wasEnabled = try isEnabled
        // Off before the request goes: whoever looks in between would plan it again, as one that was lost.
        try Self.setEnabled(false, in: store)
        do {
            try BGTaskScheduler.shared.removeTaskRequest(withIdentifier: Self.identifier)
        } catch {
            try Self.setEnabled(wasEnabled, in: store)
            throw error
        }
    }

    /// The check was turned off while a launch was on its way, or while somebody planned it again.
    func removeLeftover() throws {
        try BGTaskScheduler.shared.removeTaskRequest(withIdentifier: Self.identifier)
        // Turned on again meanwhile: what was just removed may have been the new one.
        if try isEnabled { try submitNext() }
    }

    /// Plans the check again where it is on and the ledger does not know of it: that was moved away, or comes from a backup.
    ///
    /// - Returns: whether it had to.
    package func restoreIfLost() throws -> Bool {
        guard try isEnabled, try pending == nil else { return false }
        try submitNext()
        if try !isEnabled { try removeLeftover() }
        return true
    }

    /// Asks for the next one: strictly after now and after the one being served.
    func submitNext() throws { try submit(time, spread: isExact ? 0 : offset) }

    private func submit(_ time: WallClockTime, spread: Double) throws {
        let request = BGAppRefreshTaskRequest(identifier: Self.identifier)
        request.recurrence = .daily(time)
        request.recurrenceDelay = spread
        request.missedOccurrences = settings.skipsMissedChecks ? .skip : .once
        // One small answer a day: a storm is worth it on the last of the battery too.
        request.runsInLowPowerMode = true
        request.wakesSystem = try wakesSystem
        try BGTaskScheduler.shared.submit(request)
    }
}

/// What happens at noon.
struct NoonCheck {
    /// Seconds for all feeds of warnings: a slow one keeps no check from its end.
    private static let feedTime: Duration = .seconds(15)

    let store: StormyStore
    let settings: StormySettings

    /// Where the weather stays unknown the launch is abandoned: it is made up for, with pauses that grow.
    ///
    /// - Throws: what the store says when it could not be asked, or cannot keep an answer: then not everything was checked.
    func run() async throws {
        let schedule = NoonSchedule(store: store, settings: settings)
        do {
            // A check was planned, and this store has never heard of one: it was lost, or moved away.
            guard try store.setting("enabled") != nil else {
                StormyTrouble.tell(
                    "store", "Stormy's places are gone",
                    "\(settings.dataFolder.path) holds no places any more, so nothing was checked. Put the folder back, or: stormy place add"
                )
                return BGTaskScheduler.shared.abandonCurrentLaunch("no places: \(settings.dataFolder.path) was made anew")
            }
            // Turned off while this launch was on its way.
            guard try schedule.isEnabled else { return try schedule.removeLeftover() }
            // The following day first: whatever happens below, tomorrow's check stands.
            try schedule.submitNext()
        } catch {
            // The rule in the request brings tomorrow's check all the same.
            logError("tomorrow's check could not be scheduled: \(error.localizedDescription)")
        }
        if let outcome = logged("the photos", { try PhotoReconciliation(store: store, settings: settings).run() }) {
            for sentence in outcome.sentences { logError(sentence) }
        }
        let question = StormQuestion(store: store, settings: settings)
        let places = try store.places()
        let (trouble, unknown) = (FirstError(), FirstError())
        let feeds = FeedWarnings(store: store, settings: settings)
        let (askedPlaces, asked) = AsyncStream.makeStream(of: Void.self)
        // The feeds beside the places: whatever stalls holds back nothing else.
        let notRequested = await withTaskGroup(of: Int.self) { group in
            group.addTask {
                do {
                    guard feeds.areNeeded(for: places) else {
                        try feeds.endUncounted(at: places)
                        return 0
                    }
                    let left = try await feeds.refresh(within: Self.feedTime)
                    for place in places { try StormTeller(store: store).tell(place, .warnedOf) }
                    return left
                } catch {
                    trouble.note(error)
                    return 0
                }
            }
            group.addTask {
                // One request of a country's feed is for all its places whose own service failed.
                var left = places.count
                for await _ in askedPlaces {
                    left -= 1
                    if left == 0 { break }
                }
                do {
                    let standIns = try await feeds.refreshStandIns(for: places, within: Self.feedTime)
                    for place in standIns { try StormTeller(store: store).tell(place, .warnedOf) }
                } catch {
                    trouble.note(error)
                }
                return 0
            }
            group.addTask {
                await Lanes().forEach(of: places) { place in
                    do {
                        let seen = try await question.assessment(at: place) { asked.yield() }
                        // Where the forecast is calm, or waited for: of a storm that is warned of, or is cancelled.
                        try StormTeller(store: store).tell(place, seen == nil ? .warnedOf : .all)
                    } catch let error as WeatherUnknown {
                        unknown.note(error)
                        // Storms that an earlier check found may not have been shown.
                        trouble.noting { try StormTeller(store: store).tell(place) }
                    } catch {
                        trouble.note(error)
                    }
                }
                asked.finish()
                return 0
            }
            return await group.reduce(0, +)
        }
        try trouble.check()
        try StormTeller(store: store).withdrawPast()
        await logged("what is long over") { try store.prune(now: BGTaskScheduler.now) }
        do {
            try unknown.check()
        } catch let error as WeatherUnknown {
            return BGTaskScheduler.shared.abandonCurrentLaunch("\(error.place.name): \(error.reason)")
        }
        // Documents that were read are stored, so the launch that follows soon requests the others.
        if notRequested > 0 {
            BGTaskScheduler.shared.abandonCurrentLaunch("\(notRequested) documents of warnings were not requested yet")
        }
    }
}
