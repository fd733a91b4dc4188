import Foundation

/// The needs that the desktop has to meet before a request can be launched. Requests with equal needs form a class. At each time,
/// all requests of a class can be launched, or all have to wait. So the agent finds the due request without a check of every
/// request.
package struct RequestNeeds: OptionSet, Sendable, Hashable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let network = RequestNeeds(rawValue: 1)
    package static let externalPower = RequestNeeds(rawValue: 2)
    /// The request waits while the machine is in the power-saver profile on battery.
    package static let normalPower = RequestNeeds(rawValue: 4)
    /// The request waits for the network only for a short time after the machine woke, and then runs without a network.
    package static let settledNetwork = RequestNeeds(rawValue: 8)

    /// Creates the needs that the desktop meets now.
    ///
    /// - Parameter isSettling: `true` if the machine woke recently and its network may not be connected yet.
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

    /// All classes whose requests can be launched if these needs are met: the subsets of these needs.
    package var openClasses: [RequestNeeds] {
        (0..<16).map(RequestNeeds.init(rawValue:)).filter { isSuperset(of: $0) }
    }
}

/// If several requests are due at the same time, starts their launches one after the other. Otherwise all these requests would
/// begin together after a sleep.
package enum LaunchStagger {
    /// Returns the date at which the next launch can begin. If the last start is in the future, the clock was set back, and the
    /// last start is ignored.
    package static func nextStart(lastStart: Date?, spacing: Double, now: Date) -> Date {
        guard let lastStart, lastStart <= now else { return now }
        return max(now, lastStart.addingTimeInterval(spacing))
    }
}

/// The wait for a network after the machine woke. The wait is necessary because the desktop may report the network late.
package enum NetworkWakeDelay {
    /// The number of seconds that app refreshes wait for a network after the machine woke. After this time, the app refreshes run
    /// without a network.
    package static let patience: Double = 30

    /// Returns the end of the wait, or `nil` if the request does not have to wait.
    package static func until(resumedAt: Date?, conditions: DesktopConditions, now: Date) -> Date? {
        guard let resumedAt, !conditions.isNetworkAvailable else { return nil }
        let end = resumedAt.addingTimeInterval(patience)
        // If the date of the wake is in the future, the clock was set back.
        return now < end && resumedAt <= now ? end : nil
    }
}
