/// The needs that the desktop has to meet before a transfer is allowed to move bytes. Transfers with equal needs form a class. At
/// each time, all transfers of a class can run, or all have to wait. So the agent finds the next transfer without a check of
/// every transfer.
///
/// The network is not a need, because hosts of the local network can be reached without a default route. If a transfer cannot
/// reach its host, the transfer waits, and the attempt does not count as an attempt without progress.
package struct TransferNeeds: OptionSet, Sendable, Hashable, Codable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The transfer does not use a connection that costs money per byte. If the desktop does not report the cost, the need is
    /// met.
    package static let unmetered = TransferNeeds(rawValue: 1)
    /// The transfer does not use a connection that the user marked as metered.
    package static let unconstrained = TransferNeeds(rawValue: 2)
    /// The transfer does not use a mobile-phone network.
    package static let notCellular = TransferNeeds(rawValue: 4)
    package static let externalPower = TransferNeeds(rawValue: 8)

    /// Creates the needs that the desktop meets now.
    package init(metBy conditions: DesktopConditions) {
        self = []
        if !conditions.isNetworkMetered { insert(.unmetered) }
        if !conditions.isNetworkConstrained { insert(.unconstrained) }
        if !conditions.isNetworkCellular { insert(.notCellular) }
        if conditions.isOnExternalPower { insert(.externalPower) }
    }

    /// All classes of transfers (sets of needs) that can run if these needs are met. These classes are the subsets of these
    /// needs.
    package var openClasses: [TransferNeeds] {
        (0..<16).map(TransferNeeds.init(rawValue:)).filter { isSuperset(of: $0) }
    }

    /// Returns a message about the first need that is not met, or `nil` if all needs are met.
    package func missing(from met: TransferNeeds) -> String? {
        let lacking = subtracting(met)
        if lacking.isEmpty { return nil }
        if lacking.contains(.notCellular) { return "The transfer waits for a network that is not cellular." }
        if lacking.contains(.unconstrained) || lacking.contains(.unmetered) {
            return "The transfer waits for an unmetered network."
        }
        return "The transfer waits for external power."
    }
}

/// The number of transfers that can run at the same time, for all hosts together and per host.
package struct TransferRoom: Sendable, Equatable {
    /// The maximum number of simultaneous attempts, for all hosts together.
    package static let limit = 16
    /// The number of attempts that are reserved for hosts without a running attempt, so that a few slow servers do not delay
    /// other servers. The value ``limit`` includes these attempts.
    private static let keptForOtherHosts = 4

    private var hosts: [String: Int] = [:]
    /// The maximum number of simultaneous attempts for each host that could not be reached.
    private var restricted: [String: Int] = [:]
    private var count = 0

    /// - Parameter running: The host of each running attempt.
    package init(running: [String]) {
        for host in running { insert(host) }
    }

    /// The number of attempts that can begin in addition to the running attempts.
    package var left: Int { max(0, Self.limit - count) }

    package func has(_ host: String, limit: Int) -> Bool {
        let running = hosts[host, default: 0]
        guard left > (running == 0 ? 0 : Self.keptForOtherHosts) else { return false }
        return running < min(max(1, limit), restricted[host, default: .max])
    }

    /// Limits the number of attempts at a host, even if the transfers allow more attempts. The value 0 allows no attempts.
    package mutating func restrict(_ host: String, to limit: Int) { restricted[host] = limit }

    package mutating func insert(_ host: String) {
        hosts[host, default: 0] += 1
        count += 1
    }
}
