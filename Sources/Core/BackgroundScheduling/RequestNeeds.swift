import Foundation

/// The needs that the desktop has to meet before a request can be launched. Requests with equal needs form a class. Either every
/// request of a class can be launched, or no request of the class. So the due request is found without a check of every request.
package struct RequestNeeds: OptionSet, Sendable, Hashable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let network = RequestNeeds(rawValue: 1)
    package static let externalPower = RequestNeeds(rawValue: 2)
    /// The request waits while the machine is in the power-saver profile on battery.
    package static let normalPower = RequestNeeds(rawValue: 4)
    /// The request waits until the network is available, but only for a short time after the machine woke.
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

    /// All classes that can be launched if these needs are met: the subsets of these needs.
    package var openClasses: [RequestNeeds] {
        (0..<16).map(RequestNeeds.init(rawValue:)).filter { isSuperset(of: $0) }
    }
}

/// Spreads the starts of requests that are due at the same time, so that they do not all begin at once after a sleep.
package enum LaunchStagger {
    /// Returns the date at which the next launch can begin. A last start in the future is ignored, because the clock was set back
    /// after that start.
    package static func nextStart(lastStart: Date?, spacing: Double, now: Date) -> Date {
        guard let lastStart, lastStart <= now else { return now }
        return max(now, lastStart.addingTimeInterval(spacing))
    }
}

/// The wait for a network after the machine woke, because the desktop may report the network late.
package enum NetworkWakeDelay {
    /// The number of seconds that app refreshes wait for a network after the machine woke. After this time, app refreshes run
    /// without a network.
    package static let patience: Double = 30

    /// Returns the end of the wait, or `nil` if the request does not have to wait.
    package static func until(resumedAt: Date?, conditions: DesktopConditions, now: Date) -> Date? {
        guard let resumedAt, !conditions.isNetworkAvailable else { return nil }
        let end = resumedAt.addingTimeInterval(patience)
        // If the time of the resume is in the future, the clock was set back.
        return now < end && resumedAt <= now ? end : nil
    }
}
