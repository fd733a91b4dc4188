import Spool
import BackgroundLedger
import Foundation
import TransferMachines

/// Removes data that is not needed any more: transfers without a waiting process, delivered responses, unused partial files, old
/// rows, and files without a row.
struct Cleanup {
    /// The number of transfers that may end before the number of old ended transfers is checked.
    private static let endsPerPruning = 100
    /// The number of seconds after which files without a row are searched again, if another process was adding files.
    private static let patience: Double = 3_600

    private var endsBeforePruning = 0
    /// The time, in seconds awake, of the next search for files without a row; `nil` if none is needed.
    private var orphansDue: Double?

    /// Records that a process ended, because it may have died while queuing: no other event wakes an agent that runs for months.
    mutating func scheduleOrphanRemoval(_ moment: ClockReading) { orphansDue = moment.awake }

    /// Records that another process was adding files when orphans were to be removed.
    mutating func postponeOrphanRemoval(_ moment: ClockReading) { orphansDue = moment.awake + Self.patience }

    /// Collects transfers. Called before attempts are planned, because attempts of collected transfers are stopped with them.
    func collect(_ pass: inout Pass) throws {
        for var transfer in try pass.transaction.collectableTransfers(now: pass.now) {
            guard let id = transfer.id else { continue }
            let before = transfer
            if !before.life.hasEnded {
                transfer.note = "the process that waited for the transfer had ended"
                pass.perform(.stopAttempt(id))
            }
            let commands = try pass.transaction.handle(.collected(now: pass.now), &transfer, now: pass.now)
            // The request to the server is sent once, when the copy is removed. The result is not needed, so the request is not an
            // attempt of the transfer.
            if commands.contains(.removeBody), before.state != .completed, before.attempts > 0,
                let removal = try AttemptPreparation.uploadMachine(before, pass.transaction)?.removal
            {
                let attempt = AttemptID(transfer: id, number: before.attemptNumber + 1)
                pass.perform(.tidyServer(removal.signed(at: pass.now, hashing: CryptoHashing()), attempt))
            }
            pass.remove(commands, of: before)
            pass.recordEndedTransfer(before)
            try pass.transaction.filesWereRemoved(id)
        }
        pass.wake(at: try pass.transaction.nextCollection(after: pass.now))
    }

    /// Removes rows of transfers that ended long ago, after enough transfers have ended.
    mutating func prune(_ pass: inout Pass) throws {
        endsBeforePruning -= pass.endedTransfers.count
        guard endsBeforePruning <= 0 else { return }
        endsBeforePruning = Self.endsPerPruning
        for transfer in try pass.transaction.pruneTransfers(now: pass.now) {
            pass.remove([.removeFiles, .removeBody], of: transfer)
        }
    }

    /// Plans the search for orphans. If the agent ends before the search is due, the search runs at the agent's end.
    mutating func planOrphans(_ pass: inout Pass, _ lifetime: Lifetime) {
        // The rows of a newer version may refer to files that this version does not know.
        guard let due = orphansDue, !lifetime.isSuperseded else { return }
        let left = lifetime.hasEnded ? 0 : due - pass.moment.awake
        guard left <= 0 else { return pass.wake(at: pass.now.addingTimeInterval(left)) }
        orphansDue = nil
        pass.perform(.removeOrphans)
    }
}
