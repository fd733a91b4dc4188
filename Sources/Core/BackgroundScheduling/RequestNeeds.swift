import Foundation

/// What a request needs of the desktop before it may be launched. Requests with equal needs form a class: a class is open
/// or shut as a whole, so that who is due can be found without looking at every request.
package struct RequestNeeds: OptionSet, Sendable, Hashable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let network = RequestNeeds(rawValue: 1)
    package static let externalPower = RequestNeeds(rawValue: 2)
    /// Waits while the person saves power.
    package static let normalPower = RequestNeeds(rawValue: 4)
    /// Waits, for a moment after the machine woke, until the network is back.
    package static let settledNetwork = RequestNeeds(rawValue: 8)

    /// Needs that the desktop meets now.
    ///
    /// - Parameter isSettling: the machine woke a moment ago.
    package init(metBy conditions: DesktopConditions, isSettling: Bool) {
        self = []
        if conditions.isNetworkAvailable { insert(.network) }
        if conditions.isOnExternalPower { insert(.externalPower) }
        if !conditions.isSavingPower { insert(.normalPower) }
        if conditions.isNetworkAvailable || !isSettling { insert(.settledNetwork) }
    }

    /// The needs of one request.
    package init(of kind: LaunchKind, network: Bool, externalPower: Bool, runsInLowPowerMode: Bool) {
        self = []
        if network { insert(.network) }
        if externalPower { insert(.externalPower) }
        if !runsInLowPowerMode { insert(.normalPower) }
        if kind == .appRefresh { insert(.settledNetwork) }
    }

    /// Every class whose needs are among these.
    package var openClasses: [RequestNeeds] {
        (0..<16).map(RequestNeeds.init(rawValue:)).filter { isSuperset(of: $0) }
    }
}

/// Several requests that are due at once begin one after the other: a resume is not a stampede.
package enum LaunchStagger {
    /// When the next launch may begin. A last start in the future means that the clock was set back: it does not count.
    package static func nextStart(lastStart: Date?, spacing: Double, now: Date) -> Date {
        guard let lastStart, lastStart <= now else { return now }
        return max(now, lastStart.addingTimeInterval(spacing))
    }
}

/// After a resume the desktop says "connected" before it is, or nothing at all: a moment of patience.
package enum NetworkSettling {
    /// Seconds that app refreshes wait for a network after the machine woke; then they run without.
    package static let patience: Double = 30

    /// Until when to wait; `nil`: no longer.
    package static func until(resumedAt: Date?, conditions: DesktopConditions, now: Date) -> Date? {
        guard let resumedAt, !conditions.isNetworkAvailable else { return nil }
        let end = resumedAt.addingTimeInterval(patience)
        // From the future: the clock was set back since.
        return now < end && resumedAt <= now ? end : nil
    }
}
