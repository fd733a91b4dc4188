/// What a transfer needs of the desktop before its bytes may move. Transfers with equal needs form a class: a class is open
/// or shut as a whole, so that who is next can be found without looking at every transfer.
///
/// The network itself is no need: without a default route hosts of the local network can be reached all the same, and a
/// transfer that finds nobody waits without counting the attempt.
package struct TransferNeeds: OptionSet, Sendable, Hashable, Codable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Not over a connection that costs money per byte, as far as the desktop knows.
    package static let unmetered = TransferNeeds(rawValue: 1)
    /// Not over a connection that the person marked as metered.
    package static let unconstrained = TransferNeeds(rawValue: 2)
    /// Not over a mobile-phone network.
    package static let notCellular = TransferNeeds(rawValue: 4)
    package static let externalPower = TransferNeeds(rawValue: 8)

    /// Needs that the desktop meets now.
    package init(metBy conditions: DesktopConditions) {
        self = []
        if !conditions.isNetworkMetered { insert(.unmetered) }
        if !conditions.isNetworkConstrained { insert(.unconstrained) }
        if !conditions.isNetworkCellular { insert(.notCellular) }
        if conditions.isOnExternalPower { insert(.externalPower) }
    }

    /// Every class whose needs are among these.
    package var openClasses: [TransferNeeds] {
        (0..<16).map(TransferNeeds.init(rawValue:)).filter { isSuperset(of: $0) }
    }

    /// Why it waits, in words; the first of what is missing.
    package func missing(from met: TransferNeeds) -> String? {
        let lacking = subtracting(met)
        if lacking.isEmpty { return nil }
        if lacking.contains(.notCellular) { return "Waiting for a network that is not cellular." }
        if lacking.contains(.unconstrained) || lacking.contains(.unmetered) { return "Waiting for an unmetered network." }
        return "Waiting for external power."
    }
}

/// How many transfers run at once, over all and per host.
package struct TransferRoom: Sendable, Equatable {
    /// Attempts at once, whatever their hosts.
    package static let limit = 16
    /// The last of them are for hosts without an attempt: a few slow servers do not hold up the others.
    private static let keptForOtherHosts = 4

    private var hosts: [String: Int] = [:]
    /// Attempts at once at hosts that could not be reached.
    private var restricted: [String: Int] = [:]
    private var count = 0

    /// - Parameter running: the host of each attempt that runs.
    package init(running: [String]) {
        for host in running { take(host) }
    }

    /// Attempts that may still begin.
    package var left: Int { max(0, Self.limit - count) }

    package func has(_ host: String, limit: Int) -> Bool {
        let running = hosts[host, default: 0]
        guard left > (running == 0 ? 0 : Self.keptForOtherHosts) else { return false }
        return running < min(max(1, limit), restricted[host, default: .max])
    }

    /// At most so many at this host, whatever transfers allow; none: 0.
    package mutating func restrict(_ host: String, to limit: Int) { restricted[host] = limit }

    package mutating func take(_ host: String) {
        hosts[host, default: 0] += 1
        count += 1
    }
}
