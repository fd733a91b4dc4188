import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// The pauses of hosts that could not be reached. After growing pauses, a single attempt probes such a host for all waiting
/// transfers. So a thousand photos for a server that is off do not cause a thousand attempts.
struct HostPauses: Equatable {
    private struct Pause: Equatable {
        /// The end of the pause, in seconds of the clock that stops during sleep.
        var until: Double
        var probes: Int
    }

    private var pauses: [String: Pause] = [:]
    /// The date of the last command to retry transfers immediately.
    private var retriedAt: Date?

    /// The maximum pause of a host in seconds.
    private static let longest: Double = 300
    /// The number of seconds after which the failures of a host are forgotten.
    private static let memory: Double = 3_600

    /// Records the end of an attempt. The caller has already changed the transfer of the attempt.
    mutating func record(_ end: WireEnd, of transfer: TransferRecord, _ moment: ClockReading) {
        if let failure = end.failure, TransferTrouble(failure).isWaitingForNetwork, !end.wasRedirected {
            recordUnreachable(transfer.host, pause: transfer.nextAttemptAt?.timeIntervalSince(moment.now) ?? 0, moment)
        } else {
            pauses[transfer.host] = nil
        }
    }

    /// - Parameter seconds: the pause of the transfer.
    private mutating func recordUnreachable(_ host: String, pause seconds: Double, _ moment: ClockReading) {
        let known = pauses[host]
        // If an attempt that began before the pause fails during the pause, the failure does not make the pause longer.
        if let known, moment.awake < known.until { return }
        let probes = (known?.probes ?? 0) + 1
        let pause = min(max(seconds, 0) * pow(1.5, Double(probes - 1)), Self.longest)
        pauses[host] = Pause(until: moment.awake + pause, probes: probes)
        pauses = pauses.filter { moment.awake < $0.value.until + Self.memory }
    }

    /// Removes the pause of a host that responds. So other transfers do not have to wait for the end of a long response.
    mutating func removePause(_ host: String) { pauses[host] = nil }

    /// Removes all pauses, because the network changed.
    mutating func clear() { pauses = [:] }

    /// Restricts the number of transfers at hosts that have a pause. The next pass starts when the next host can be probed.
    mutating func restrict(_ room: inout TransferRoom, _ pass: inout Pass) throws {
        let asked = try pass.transaction.fact(.retriedAt)
        if asked != retriedAt { clear() }
        retriedAt = asked
        // A date that is less than 1 ms ahead counts as now, because a wake-up must be in the future.
        let awake = pass.moment.awake + 0.001
        for (host, pause) in pauses { room.restrict(host, to: awake < pause.until ? 0 : 1) }
        let next = pauses.values.map(\.until).filter { $0 > awake }.min()
        pass.wake(at: next.map(pass.moment.date))
    }
}
