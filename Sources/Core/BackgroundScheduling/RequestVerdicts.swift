import Foundation

/// The verdict on one condition of a request: whether the condition is met, and the details. The command `why` prints `name`.
package struct ConditionVerdict: Sendable, Equatable, Codable {
    package enum Name: String, Sendable, Codable {
        case earliestBeginDate
        case networkConnectivity
        case externalPower
        case lowPowerMode
        case networkAfterSleep
        case backoff
        case notRunning
        case turn
        case room
        /// The machine is woken from sleep for the request. This condition never delays the request.
        case systemWake
    }

    package var name: Name
    package var met: Bool
    package var detail: String
    /// The date at which the condition is met if no other event occurs first.
    package var metAt: Date?

    package init(name: Name, met: Bool, detail: String, metAt: Date?) {
        (self.name, self.met, self.detail, self.metAt) = (name, met, detail, metAt)
    }
}

/// The facts outside the request on which the verdicts depend.
package struct PlanningWorld: Sendable, Equatable {
    package var conditions: DesktopConditions
    /// The date at which the machine last woke from sleep.
    package var resumedAt: Date?
    /// The date at which the last launch for a request began. Launches of due requests begin one after the other.
    package var lastStart: Date?
    /// The minimum number of seconds between two launches.
    package var spacing: Double

    package init(conditions: DesktopConditions, resumedAt: Date? = nil, lastStart: Date? = nil, spacing: Double = 0) {
        (self.conditions, self.resumedAt) = (conditions, resumedAt)
        (self.lastStart, self.spacing) = (lastStart, spacing)
    }

    /// The classes whose requests can be launched now.
    package func openClasses(now: Date) -> [RequestNeeds] {
        let settling = NetworkWakeDelay.until(resumedAt: resumedAt, conditions: conditions, now: now)
        return RequestNeeds(metBy: conditions, isSettling: settling != nil).openClasses
    }

    package func nextStart(now: Date) -> Date { LaunchStagger.nextStart(lastStart: lastStart, spacing: spacing, now: now) }
}

extension RequestLife {
    /// Returns the date at which the request can begin if no event occurs first. Returns `nil` if the request waits for an event.
    package func nextAttempt(in world: PlanningWorld, now: Date) -> Date? {
        let unmet = verdicts(in: world, now: now).filter { !$0.met }
        // The latest date is used, because another condition is unmet at each earlier date.
        return unmet.allSatisfy { $0.metAt != nil } ? unmet.compactMap(\.metAt).max() : nil
    }

    /// Returns the verdicts on all conditions of the request, in the order in which a user would search for the cause.
    ///
    /// The agent does not use this method to find the first due request, but searches an index of the ledger. A test compares the
    /// result of the search with these verdicts.
    package func verdicts(in world: PlanningWorld, now: Date) -> [ConditionVerdict] {
        guard terms.kind != .continuedProcessing else {
            let detail = "\(ContinuedProcessing.room) tasks run already, or a task with the same identifier runs"
            return [ConditionVerdict(name: .room, met: false, detail: detail, metAt: nil)]
        }
        let conditions = world.conditions
        var verdicts: [ConditionVerdict] = []
        func add(_ name: ConditionVerdict.Name, met: Bool = false, _ details: String..., metAt: Date? = nil) {
            verdicts.append(ConditionVerdict(name: name, met: met, detail: details[met ? 1 : 0], metAt: met ? nil : metAt))
        }
        if let earliestBegin {
            add(.earliestBeginDate, met: earliestBegin <= now, "not yet due", "the request is due", metAt: earliestBegin)
        }
        if terms.needs.contains(.network) {
            add(.networkConnectivity, met: conditions.isNetworkAvailable, "no network is available", "a network is available")
        }
        if terms.needs.contains(.externalPower) {
            add(.externalPower, met: conditions.isOnExternalPower, "running on battery", "on external power")
        } else if terms.needs.contains(.normalPower) {
            // On external power, the power-saver profile delays no request. So a request that needs external power waits only for
            // external power.
            add(.lowPowerMode, met: !conditions.isSavingPower, "the power-saver profile is on", "power saving is off")
        }
        // A request that needs a network already waits for the network. So the additional wait for a network after a sleep is not
        // listed.
        if terms.needs.contains(.settledNetwork), !terms.needs.contains(.network),
            let until = NetworkWakeDelay.until(resumedAt: world.resumedAt, conditions: conditions, now: now)
        {
            add(.networkAfterSleep, "the machine woke, and its network is not connected yet", metAt: until)
        }
        if let delay {
            let reason =
                switch delay.reason {
                case .failures: "the next launch is delayed, because the last launch did not finish"
                case .discretion:
                    "a launch submitted the request without a date, so the pause before the next launch grows with each launch"
                }
            add(.backoff, met: delay.until <= now, reason, "the delay after the last attempt has passed", metAt: delay.until)
        }
        if case .serving = phase { add(.notRunning, "the launch runs now") }
        let turn = world.nextStart(now: now)
        if turn > now, verdicts.allSatisfy(\.met) {
            add(.turn, "the launch waits a moment, because another launch has just begun", metAt: turn)
        }
        return verdicts
    }
}
