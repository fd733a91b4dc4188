import Foundation

/// The needs that the desktop has to meet before a request may be launched. Requests with equal needs form a class. A class is open or
/// closed as a unit, so the due request can be found without a look at every request.
package struct RequestNeeds: OptionSet, Sendable, Hashable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let network = RequestNeeds(rawValue: 1)
    package static let externalPower = RequestNeeds(rawValue: 2)
    /// Waits while the user saves power.
    package static let normalPower = RequestNeeds(rawValue: 4)
    /// Waits until the network is available, but only for a short time after the machine woke.
    package static let settledNetwork = RequestNeeds(rawValue: 8)

    /// Creates the needs that the desktop meets now.
    ///
    /// - Parameter isSettling: `true` if the machine woke a moment ago.
    package init(metBy conditions: DesktopConditions, isSettling: Bool) {
        self = []
        if conditions.isNetworkAvailable { insert(.network) }
        if conditions.isOnExternalPower { insert(.externalPower) }
        if !conditions.isSavingPower { insert(.normalPower) }
        if conditions.isNetworkAvailable || !isSettling { insert(.settledNetwork) }
    }

    /// Creates the needs of one request.
    package init(of kind: LaunchKind, network: Bool, externalPower: Bool, runsInLowPowerMode: Bool) {
        self = []
        if network { insert(.network) }
        if externalPower { insert(.externalPower) }
        if !runsInLowPowerMode { insert(.normalPower) }
        if kind == .appRefresh { insert(.settledNetwork) }
    }

    /// All classes whose needs are a subset of these needs.
    package var openClasses: [RequestNeeds] {
        (0..<16).map(RequestNeeds.init(rawValue:)).filter { isSuperset(of: $0) }
    }
}

/// Starts requests that are due at the same time one after the other, so that a resume does not start all of them at once.
package enum LaunchStagger {
    /// Returns when the next launch may begin. A last start in the future means that the clock was set back, and does not count.
    package static func nextStart(lastStart: Date?, spacing: Double, now: Date) -> Date {
        guard let lastStart, lastStart <= now else { return now }
        return max(now, lastStart.addingTimeInterval(spacing))
    }
}

/// The wait for a network after the machine woke, because the desktop may report the network late.
package enum NetworkWakeDelay {
    /// Seconds that app refreshes wait for a network after the machine woke. After that, they run without a network.
    package static let patience: Double = 30

    /// Returns until when to wait; `nil` if the wait is over.
    package static func until(resumedAt: Date?, conditions: DesktopConditions, now: Date) -> Date? {
        guard let resumedAt, !conditions.isNetworkAvailable else { return nil }
        let end = resumedAt.addingTimeInterval(patience)
        // If the time of the resume is in the future, the clock was set back.
        return now < end && resumedAt <= now ? end : nil
    }
}
