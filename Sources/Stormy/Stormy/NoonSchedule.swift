import BackgroundTasks
import Foundation

/// The schedule of the daily check. The schedule is a rule in wall-clock time, so the check runs at the correct time also on days
/// on which the clocks change.
package struct NoonSchedule: Sendable {
    package static let identifier = "StormyNoon"

    let store: StormyStore
    let settings: StormySettings

    package init(store: StormyStore, settings: StormySettings = .current) {
        self.store = store
        self.settings = settings
    }

    /// The user's last settings of the daily check. If the check was never turned on, the check is off, and the time of the check
    /// is noon.
    package var check: DailyCheck { get throws { try store.dailyCheck() ?? DailyCheck() } }

    package var isEnabled: Bool { get throws { try check.isOn } }

    /// The pending check: its scheduled time, the time at which this installation begins the check, and the delay between the two
    /// times in seconds. `nil` if no check is pending. If a manual launch is retried, the retry has no scheduled time, so its
    /// earliest begin time is used.
    package var pending: (next: Date?, wakeAt: Date?, spread: Double)? {
        get throws {
            try BGTaskScheduler.shared.pendingTaskRequest(withIdentifier: Self.identifier)
                .map { ($0.occurrence ?? $0.earliestBeginDate, $0.earliestBeginDate, $0.recurrenceDelay) }
        }
    }

    /// Turns the daily check on. Print messages about the schedule after this call, so that the messages show the accepted
    /// request.
    ///
    /// - Parameter wakesSystem: `true` if a sleeping machine is woken for the check. `nil` to keep the last setting.
    package func turnOn(at chosen: WallClockTime?, exact: Bool, wakesSystem: Bool? = nil) throws {
        // The row is written before the request is submitted, because a check that begins at this moment reads the row to
        // schedule the next check. If such a check reads the row before this change, it removes the request and then reads the
        // row again. If this process is killed before the request is submitted, `restoreIfLost()` submits the request later.
        let change = try store.changeDailyCheck { check in
            check.isOn = true
            check.isExact = exact || (chosen == nil && check.isExact)
            if let chosen { check.time = chosen }
            if let wakesSystem { check.wakesSystem = wakesSystem }
        }
        do {
            try submit(change.after)
        } catch {
            try store.retract(change)
            throw error
        }
    }

    package static func setEnabled(_ isEnabled: Bool, in store: StormyStore) throws {
        try store.changeDailyCheck { $0.isOn = isEnabled }
    }

    /// - Throws: an error if the request could not be removed. After such an error, the check is still on.
    package func turnOff() throws {
        // The check is turned off before the request is removed. If the request were removed first, another process could submit
        // the request again, because the check would still be on.
        let change = try store.changeDailyCheck { $0.isOn = false }
        do {
            try BGTaskScheduler.shared.removeTaskRequest(withIdentifier: Self.identifier)
        } catch {
            try store.retract(change)
            throw error
        }
    }

    /// Removes the request of a check that was turned off while a launch was starting, or while another process scheduled the
    /// check again.
    func removeLeftover() throws {
        try BGTaskScheduler.shared.removeTaskRequest(withIdentifier: Self.identifier)
        // The user may have turned the check on again. If the user did so, this method may have removed the request of the new
        // check.
        if try isEnabled { try submitNext() }
    }

    /// Schedules the check again if the check is on and the ledger has no request. This is necessary, for example, after the
    /// ledger was moved to another folder or restored from a backup.
    ///
    /// - Returns: `true` if the ledger did not contain the request.
    package func restoreIfLost() throws -> Bool {
        guard try isEnabled, try pending == nil else { return false }
        try submitNext()
        if try !isEnabled { try removeLeftover() }
        return true
    }

    /// Submits the request for the next check. The next check begins later than now, and later than the check that is running.
    func submitNext() throws { try submit(check) }

    private func submit(_ check: DailyCheck) throws {
        let request = BGAppRefreshTaskRequest(identifier: Self.identifier)
        request.recurrence = .daily(check.time)
        request.recurrenceDelay = check.delay(within: settings.spreadSeconds)
        request.missedOccurrences = settings.skipsMissedChecks ? .skip : .once
        // The check also runs on low battery, because it sends few requests, once a day, and may find a storm.
        request.runsInLowPowerMode = true
        request.wakesSystem = check.wakesSystem
        try BGTaskScheduler.shared.submit(request)
    }
}

/// The work of the daily check.
struct NoonCheck {
    /// The maximum time for all warning feeds. Because of this limit, a slow feed delays the end of the check only a little.
    private static let feedTime: Duration = .seconds(15)

    let store: StormyStore
    let settings: StormySettings

    /// Runs the daily check. If the weather is unknown, the launch is abandoned and retried, with increasing pauses.
    ///
    /// - Throws: an error of the store. After such an error, some places were not checked.
    func run() async throws {
        let schedule = NoonSchedule(store: store, settings: settings)
        do {
            // If the store has no row although the agent launched the check, the store was lost or moved away.
            guard let check = try store.dailyCheck() else {
                StormyTrouble.show(
                    "store", "Stormy's places are missing",
                    "\(settings.dataFolder.path) contains no places any more, so no weather was checked. "
                        + "Restore the folder, or run: stormy place add"
                )
                return BGTaskScheduler.shared.abandonCurrentLaunch(
                    "there are no places, because the database in \(settings.dataFolder.path) is new")
            }
            // The check was turned off while this launch was starting.
            guard check.isOn else { return try schedule.removeLeftover() }
            // Tomorrow's check is scheduled first, so that a later failure cannot prevent tomorrow's check.
            try schedule.submitNext()
        } catch {
            // The launch continues after this error, because the recurrence rule of the request also schedules tomorrow's check.
            logError("tomorrow's check could not be scheduled: \(error.localizedDescription)")
        }
        if let outcome = logged("the photos", { try PhotoReconciliation(store: store, settings: settings).run() }) {
            for sentence in outcome.sentences { logError(sentence) }
        }
        let question = StormQuery(store: store, settings: settings)
        let places = try store.places()
        let (trouble, unknown) = (FirstError(), FirstError())
        let feeds = FeedWarnings(store: store, settings: settings)
        let (askedPlaces, asked) = AsyncStream.makeStream(of: Void.self)
        // The feeds are requested while the places are checked, so that a stalled server of a feed does not delay the places.
        let notRequested = await withTaskGroup(of: Int.self) { group in
            group.addTask {
                do {
                    guard feeds.areNeeded(for: places) else {
                        try feeds.endUncounted(at: places)
                        return 0
                    }
                    let left = try await feeds.refresh(within: Self.feedTime)
                    for place in places { try StormNotifier(store: store).show(place, .warnedOf) }
                    return left
                } catch {
                    trouble.record(error)
                    return 0
                }
            }
            group.addTask {
                // The loop waits until the official services of all places were requested. After the loop, each country's feed is
                // requested once for all places without a response.
                var left = places.count
                for await _ in askedPlaces {
                    left -= 1
                    if left == 0 { break }
                }
                do {
                    let substitutes = try await feeds.refreshSubstitutes(for: places, within: Self.feedTime)
                    for place in substitutes { try StormNotifier(store: store).show(place, .warnedOf) }
                } catch {
                    trouble.record(error)
                }
                return 0
            }
            group.addTask {
                await Lanes().forEach(of: places) { place in
                    do {
                        let seen = try await question.assessment(at: place) { asked.yield() }
                        // Even if the forecast is calm or no forecast arrived, storms that come from warnings are announced, or
                        // marked as no longer expected.
                        try StormNotifier(store: store).show(place, seen == nil ? .warnedOf : .all)
                    } catch let error as WeatherUnknown {
                        unknown.record(error)
                        // The storms are shown again, because an earlier check may have found a storm and ended before it showed
                        // the notification.
                        trouble.recordingErrors { try StormNotifier(store: store).show(place) }
                    } catch {
                        trouble.record(error)
                    }
                }
                asked.finish()
                return 0
            }
            return await group.reduce(0, +)
        }
        try trouble.check()
        try StormNotifier(store: store).withdrawPast()
        await logged("the removal of old records") { try store.prune(now: BGTaskScheduler.now) }
        do {
            try unknown.check()
        } catch let error as WeatherUnknown {
            return BGTaskScheduler.shared.abandonCurrentLaunch("\(error.place.name): \(error.reason)")
        }
        // The warnings that were downloaded are stored. The launch is repeated soon, and then downloads only the remaining
        // warnings.
        if notRequested > 0 {
            BGTaskScheduler.shared.abandonCurrentLaunch(
                "\(notRequested) weather warning\(notRequested == 1 ? " was" : "s were") not downloaded yet")
        }
    }
}
