import Foundation

// This file declares the ports of sleep: an alarm that ends a sleep, and the service that manages sleep.

/// An alarm that wakes the machine.
package protocol WakeClock: Sendable {
    /// Sets the alarm and replaces the previous alarm. The alarm is removed when this process ends.
    ///
    /// - Parameter instant: A date on the current wall clock, or `nil` to remove the alarm.
    /// - Throws: An error with the reason why no alarm is set.
    func arm(at instant: Date?) throws(WakeRefusal)
}

/// The reason why no alarm can be set.
package struct WakeRefusal: Error, Equatable, CustomStringConvertible, Sendable {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The service that suspends the machine, for example logind. The calls return without waiting, and responses arrive as
/// ``SleepEvent`` values.
package protocol SleepManager: Sendable {
    /// Requests the state of the machine. The response is ``SleepEvent/machineState(_:)``.
    func query()
    /// Takes the lock that delays a sleep. The response is ``SleepEvent/delayed`` or ``SleepEvent/notDelayed(isUnderWay:)``.
    func delaySleep()
    /// Releases the lock that delays a sleep, even if the response to ``delaySleep()`` has not arrived yet.
    func allowSleep()
    /// Requests that the machine sleeps. The response is ``SleepEvent/falling``, or ``SleepEvent/notSuspended(_:)``.
    func suspend()
}

/// An event that a ``SleepManager`` reports.
package enum SleepEvent: Sendable, Equatable {
    /// The machine is about to sleep. The sleep begins when every lock is released, or after a limit of some seconds.
    case falling
    /// The state of the machine. `nil` if no service of this machine manages sleep.
    case machineState(MachineState?)
    /// This process now holds the lock that delays a sleep.
    case delayed
    /// The lock that delays a sleep was not taken. `isUnderWay` is `true` if a sleep has not ended yet. The lock is then
    /// available after this sleep.
    case notDelayed(isUnderWay: Bool)
    case notSuspended(String)
}

/// The state that decides whether the machine can be woken and suspended again: the power supply, and whether a user is present.
package struct MachineState: Sendable, Equatable, Codable {
    /// `true` if the lid is closed and the machine is not docked, so that no user can see the screen.
    package var isLidClosed: Bool
    /// `true` if no session has received input from a keyboard or a pointer for some time.
    package var isIdle: Bool
    package var isLocked: Bool
    package var isOnBattery: Bool
    /// `nil` if the machine has no battery, or if the level is unknown.
    package var batteryPercent: Double?

    package init(
        isLidClosed: Bool = false, isIdle: Bool = false, isLocked: Bool = false, isOnBattery: Bool = false,
        batteryPercent: Double? = nil
    ) {
        (self.isLidClosed, self.isIdle, self.isLocked) = (isLidClosed, isIdle, isLocked)
        (self.isOnBattery, self.batteryPercent) = (isOnBattery, batteryPercent)
    }

    /// The minimum battery level in percent. Below this level, the machine is not woken and is not kept awake.
    package static let leastBattery: Double = 30

    package var isBatteryLow: Bool { isOnBattery && batteryPercent.map { $0 < Self.leastBattery } ?? false }

    /// Returns whether a user began to use the machine after `before`. If the presence of a user is uncertain, the result is
    /// `true`. A machine that stays awake does less harm than a machine that is suspended while a user works.
    package func showsSomebody(since before: MachineState?) -> Bool {
        if isLidClosed { return false }
        if let before {
            if before.isLidClosed || before.isIdle && !isIdle || before.isLocked && !isLocked { return true }
        }
        return !isIdle && !isLocked
    }
}

/// The reason why the machine cannot be woken for a request with `wakesSystem`.
package enum WakeObstacle: Sendable, Equatable, Codable {
    /// The system refused to set the alarm.
    case noAlarm(String)
    /// No service can suspend the machine again.
    case noSleepManager
    case lowBattery

    package var words: String {
        switch self {
        case .noAlarm(let why): why
        case .noSleepManager: "logind, which sends the machine back to sleep, does not respond"
        case .lowBattery: "the machine runs on battery with less than \(Int(MachineState.leastBattery)) % charge"
        }
    }
}
