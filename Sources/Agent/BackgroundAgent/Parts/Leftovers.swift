import Spool
import BackgroundLedger
import Foundation
import TransferMachines

/// What nobody wants any more: transfers without a waiter, answers that were delivered, parts nobody came back for, rows of long
/// ago, files that no row knows.
struct Leftovers {
    /// Transfers that may end before the oldest ended ones are looked at: are they too many?
    private static let endsPerPruning = 100
    /// Seconds after which files are looked for again, where somebody was putting files there.
    private static let patience: Double = 3_600

    private var endsBeforePruning = 0
    /// When (in seconds awake) files that no row knows are looked for again; `nil`: there is no reason to.
    private var orphansDue: Double?

    /// A process ended that may have died while it was queuing: nothing else wakes an agent that lives for months.
    mutating func noteEndedProcess(_ moment: Moment) { orphansDue = moment.awake }

    /// Somebody was putting files there when orphans were to be removed.
    mutating func noteInTheWay(_ moment: Moment) { orphansDue = moment.awake + Self.patience }

    /// Before attempts are planned: what is collected is stopped with them.
    func collect(_ pass: inout Pass) throws {
        for var transfer in try pass.transaction.collectableTransfers(now: pass.now) {
            guard let id = transfer.id else { continue }
            let before = transfer
            if !before.life.hasEnded {
                transfer.note = "nobody waited for it any more"
                pass.perform(.stopAttempt(id))
            }
            let commands = try pass.transaction.handle(.collected(now: pass.now), &transfer, now: pass.now)
            // Asked once, as its copy goes once. No attempt of its own: whatever comes of it changes nothing here.
            if commands.contains(.removeBody), before.state != .completed, before.attempts > 0,
                let removal = try AttemptPreparation.uploadMachine(before, pass.transaction)?.removal
            {
                let attempt = AttemptID(transfer: id, number: before.attemptNumber + 1)
                pass.perform(.tidyServer(removal.signed(at: pass.now, hashing: CryptoHashing()), attempt))
            }
            pass.remove(commands, of: before)
            pass.noteEnded(before)
            try pass.transaction.settle(id)
        }
        pass.wake(at: try pass.transaction.nextCollection(after: pass.now))
    }

    /// Rows of transfers that ended long ago, once enough have ended.
    mutating func prune(_ pass: inout Pass) throws {
        endsBeforePruning -= pass.endedTransfers.count
        guard endsBeforePruning <= 0 else { return }
        endsBeforePruning = Self.endsPerPruning
        for transfer in try pass.transaction.pruneTransfers(now: pass.now) {
            pass.remove([.removeFiles, .removeBody], of: transfer)
        }
    }

    /// An agent may live for months, or leave before the hour is over.
    mutating func planOrphans(_ pass: inout Pass, _ lifetime: Lifetime) {
        // A newer version's rows may name more than this one knows.
        guard let due = orphansDue, !lifetime.isSuperseded else { return }
        let left = lifetime.hasEnded ? 0 : due - pass.moment.awake
        guard left <= 0 else { return pass.wake(at: pass.now.addingTimeInterval(left)) }
        orphansDue = nil
        pass.perform(.removeOrphans)
    }
}
