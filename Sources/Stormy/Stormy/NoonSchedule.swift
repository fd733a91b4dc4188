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

    /// The check as it was chosen last: off and at noon if it was never turned on.
    package var check: DailyCheck { get throws { try store.dailyCheck() ?? DailyCheck() } }

    package var isEnabled: Bool { get throws { try check.isOn } }

    /// The check that is pending: for when, when this installation wakes for it, and how many seconds that is later. `nil`: none is.
    /// One that makes up for a launch by hand is for no time of its own: for now.
    package var pending: (next: Date?, wakeAt: Date?, spread: Double)? {
        get throws {
            try BGTaskScheduler.shared.pendingTaskRequest(withIdentifier: Self.identifier)
                .map { ($0.occurrence ?? $0.earliestBeginDate, $0.earliestBeginDate, $0.recurrenceDelay) }
        }
    }

    /// Turns the daily check on. What is said of the schedule afterwards is what was accepted.
    ///
    /// - Parameter wakesSystem: `nil`: as last chosen.
    package func turnOn(at chosen: WallClockTime?, exact: Bool, wakesSystem: Bool? = nil) throws {
        // The row is written before the request. A check that begins now plans the next check by the row. A check that ends because the row
        // was off reads the row again after it removed the request. A process that dies in between has the request restored.
        let change = try store.changeDailyCheck { check in
            check.isOn = true
            check.isExact = exact || (chosen == nil && check.isExact)
            if let chosen { check.time = chosen }
            if let wakesSystem { check.wakesSystem = wakesSystem }
        }
        do {
            try submit(change.after)
        } catch {
            try store.takeBack(change)
            throw error
        }
    }

    package static func setEnabled(_ isEnabled: Bool, in store: StormyStore) throws {
        try store.changeDailyCheck { $0.isOn = isEnabled }
    }

    /// - Throws: when the request could not be removed: then the check is still on.
    package func turnOff() throws {
        // Off before the request goes: whoever looks in between would plan it again, as one that was lost.
        let change = try store.changeDailyCheck { $0.isOn = false }
        do {
            try BGTaskScheduler.shared.removeTaskRequest(withIdentifier: Self.identifier)
        } catch {
            try store.takeBack(change)
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
    func submitNext() throws { try submit(check) }

    private func submit(_ check: DailyCheck) throws {
        let request = BGAppRefreshTaskRequest(identifier: Self.identifier)
        request.recurrence = .daily(check.time)
        request.recurrenceDelay = check.delay(within: settings.spreadSeconds)
        request.missedOccurrences = settings.skipsMissedChecks ? .skip : .once
        // One small answer a day: a storm is worth it on the last of the battery too.
        request.runsInLowPowerMode = true
        request.wakesSystem = check.wakesSystem
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
            guard let check = try store.dailyCheck() else {
                StormyTrouble.tell(
                    "store", "Stormy's places are gone",
                    "\(settings.dataFolder.path) holds no places any more, so nothing was checked. Put the folder back, or: stormy place add"
                )
                return BGTaskScheduler.shared.abandonCurrentLaunch("no places: \(settings.dataFolder.path) was made anew")
            }
            // Turned off while this launch was on its way.
            guard check.isOn else { return try schedule.removeLeftover() }
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
