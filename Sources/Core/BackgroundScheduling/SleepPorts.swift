import Foundation

// The ports of sleep: an alarm that ends it, and the service that manages it.

/// An alarm that wakes the machine.
package protocol WakeClock: Sendable {
    /// Sets the alarm, in place of the one before. It dies with this process.
    ///
    /// - Parameter instant: on the wall clock, as it goes now; `nil`: no alarm.
    /// - Throws: why there is none.
    func arm(at instant: Date?) throws(WakeRefusal)
}

/// Why no alarm can be set.
package struct WakeRefusal: Error, Equatable, CustomStringConvertible, Sendable {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The service that lets the machine sleep, logind for one. Nothing here waits: answers come as ``SleepEvent``s.
package protocol SleepManager: Sendable {
    /// Answered by ``SleepEvent/looked(_:)``.
    func look()
    /// Takes the lock that delays a sleep. Answered by ``SleepEvent/delayed`` or ``SleepEvent/notDelayed(isUnderWay:)``.
    func delaySleep()
    /// Lets go of that lock, also of one that is still to come.
    func allowSleep()
    /// Asks for sleep. Answered by ``SleepEvent/falling``, or ``SleepEvent/notSuspended(_:)``.
    func suspend()
}

/// What is heard of sleep.
package enum SleepEvent: Sendable, Equatable {
    /// The machine is about to sleep. It does once every lock is let go of, and in any case some seconds later.
    case falling
    /// `nil`: no service manages sleep here.
    case looked(MachineLook?)
    /// The lock is held.
    case delayed
    /// - isUnderWay: a sleep has not come to its end yet; after it the lock can be had.
    case notDelayed(isUnderWay: Bool)
    case notSuspended(String)
}

/// What a wake depends on: power, and signs of a person.
package struct MachineLook: Sendable, Equatable, Codable {
    /// Shut, and not on a dock: nobody looks at this machine.
    package var isLidClosed: Bool
    /// No session has seen a key or a pointer for a while.
    package var isIdle: Bool
    package var isLocked: Bool
    package var isOnBattery: Bool
    /// `nil`: there is no battery, or nobody knows.
    package var batteryPercent: Double?

    package init(
        isLidClosed: Bool = false, isIdle: Bool = false, isLocked: Bool = false, isOnBattery: Bool = false,
        batteryPercent: Double? = nil
    ) {
        (self.isLidClosed, self.isIdle, self.isLocked) = (isLidClosed, isIdle, isLocked)
        (self.isOnBattery, self.batteryPercent) = (isOnBattery, batteryPercent)
    }

    /// Below this share of its battery no machine is woken, and none kept awake.
    package static let leastBattery: Double = 30

    package var isBatteryLow: Bool { isOnBattery && batteryPercent.map { $0 < Self.leastBattery } ?? false }

    /// Whether somebody came since `before`. Where nothing speaks for it, and nothing for the contrary, somebody did: a machine that
    /// stays awake does less harm than one that falls asleep under a person's hands.
    package func showsSomebody(since before: MachineLook?) -> Bool {
        if isLidClosed { return false }
        if let before {
            if before.isLidClosed || before.isIdle && !isIdle || before.isLocked && !isLocked { return true }
        }
        return !isIdle && !isLocked
    }
}

/// What keeps the machine from being woken for a request that wants it.
package enum WakeObstacle: Sendable, Equatable, Codable {
    /// The alarm was refused.
    case noAlarm(String)
    /// Nobody could send it back to sleep.
    case noSleepManager
    case lowBattery

    package var words: String {
        switch self {
        case .noAlarm(let why): why
        case .noSleepManager: "no logind answers that could send the machine back to sleep"
        case .lowBattery: "on battery, and less than \(Int(MachineLook.leastBattery)) % of it are left"
        }
    }
}
