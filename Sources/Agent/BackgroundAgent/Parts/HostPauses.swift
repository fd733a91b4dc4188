import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// Hosts that nobody could reach just now. One attempt at a time probes for all that wait for such a host, with growing pauses: a
/// thousand photos for a server that is off are no thousand attempts.
struct HostPauses: Equatable {
    private struct Pause: Equatable {
        /// Seconds awake.
        var until: Double
        var probes: Int
    }

    private var pauses: [String: Pause] = [:]
    /// When somebody last wanted a transfer tried at once.
    private var retriedAt: Date?

    /// Seconds, at most.
    private static let longest: Double = 300
    /// Seconds after which a host counts as unknown again.
    private static let memory: Double = 3_600

    /// An attempt ended, and its transfer waits, goes on or has ended.
    mutating func note(_ end: WireEnd, of transfer: TransferRecord, _ moment: Moment) {
        if let failure = end.failure, TransferTrouble(failure).isWaitingForNetwork, !end.wasRedirected {
            noteUnreached(transfer.host, pause: transfer.nextAttemptAt?.timeIntervalSince(moment.now) ?? 0, moment)
        } else {
            pauses[transfer.host] = nil
        }
    }

    /// - Parameter seconds: the pause that one transfer makes.
    private mutating func noteUnreached(_ host: String, pause seconds: Double, _ moment: Moment) {
        let known = pauses[host]
        // Others were on their way to it at the same time.
        if let known, moment.awake < known.until { return }
        let probes = (known?.probes ?? 0) + 1
        let pause = min(max(seconds, 0) * pow(1.5, Double(probes - 1)), Self.longest)
        pauses[host] = Pause(until: moment.awake + pause, probes: probes)
        pauses = pauses.filter { moment.awake < $0.value.until + Self.memory }
    }

    /// It answers: nobody waits for the end of what is a long answer, perhaps.
    mutating func noteReached(_ host: String) { pauses[host] = nil }

    /// The network changed.
    mutating func clear() { pauses = [:] }

    /// What may begin at these hosts now; the pass wakes when the next may be probed.
    mutating func restrict(_ room: inout TransferRoom, _ pass: inout Pass) throws {
        let asked = try pass.transaction.fact(.retriedAt)
        if asked != retriedAt { clear() }
        retriedAt = asked
        // A moment that is as good as now is now: what wakes has to lie ahead.
        let awake = pass.moment.awake + 0.001
        for (host, pause) in pauses { room.restrict(host, to: awake < pause.until ? 0 : 1) }
        let next = pauses.values.map(\.until).filter { $0 > awake }.min()
        pass.wake(at: next.map(pass.moment.date))
    }
}
