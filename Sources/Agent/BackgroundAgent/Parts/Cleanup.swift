import Spool
import BackgroundLedger
import Foundation
import TransferMachines

/// Removes data that is not needed any more. Such data are transfers without a waiting process, delivered responses, unused
/// partial files, old rows, and files without a row.
struct Cleanup {
    /// After this number of transfers have ended, the agent checks how many old ended transfers the ledger contains.
    private static let endsPerPruning = 100
    /// The number of seconds until the next search for files without a row, if another process prevented the search.
    private static let patience: Double = 3_600

    private var endsBeforePruning = 0
    /// The time of the next search for files without a row, in seconds of the clock that stops during sleep. `nil` if no search
    /// is needed.
    private var orphansDue: Double?

    /// Schedules a search for files without a row after a process ended, because the process may have died while it queued a
    /// file. An agent can run for months, and no other event schedules this search.
    mutating func scheduleOrphanRemoval(_ moment: ClockReading) { orphansDue = moment.awake }

    /// Schedules another search for files without a row, because another process was adding files.
    mutating func postponeOrphanRemoval(_ moment: ClockReading) { orphansDue = moment.awake + Self.patience }

    /// Ends and cleans up transfers that no process needs. Call this method before attempts are planned, because the attempts of
    /// these transfers are also stopped.
    func collect(_ pass: inout Pass) throws {
        for var transfer in try pass.transaction.collectableTransfers(now: pass.now) {
            guard let id = transfer.id else { continue }
            let before = transfer
            if !before.life.hasEnded {
                transfer.note = "the process that waited for the transfer had ended"
                pass.perform(.stopAttempt(id))
            }
            let commands = try pass.transaction.handle(.collected(now: pass.now), &transfer, now: pass.now)
            // When the copy of a file is removed, the upload's data is also removed from the server.
            if commands.contains(.removeBody), before.state != .completed, before.attempts > 0,
                let removal = try AttemptPreparation.uploadMachine(before, pass.transaction)?.removal
            {
                try pass.transaction.addLeftover(ServerRemoval(removal), now: pass.now)
            }
            pass.remove(commands, of: before)
            pass.recordEndedTransfer(before)
            try pass.transaction.filesWereRemoved(id)
        }
        pass.wake(at: try pass.transaction.nextCollection(after: pass.now))
    }

    /// Removes the rows of transfers that ended long ago. The rows are removed only after enough transfers have ended.
    mutating func prune(_ pass: inout Pass) throws {
        endsBeforePruning -= pass.endedTransfers.count
        guard endsBeforePruning <= 0 else { return }
        endsBeforePruning = Self.endsPerPruning
        for transfer in try pass.transaction.pruneTransfers(now: pass.now) {
            pass.remove([.removeFiles, .removeBody], of: transfer)
        }
    }

    /// Plans the search for files without a row. If the agent ends before this search is due, the search runs at the agent's end.
    mutating func planOrphans(_ pass: inout Pass, _ lifetime: Lifetime) {
        // In a ledger of a newer version, rows may refer to files in a way that this version does not support.
        guard let due = orphansDue, !lifetime.isSuperseded else { return }
        let left = lifetime.hasEnded ? 0 : due - pass.moment.awake
        guard left <= 0 else { return pass.wake(at: pass.now.addingTimeInterval(left)) }
        orphansDue = nil
        pass.perform(.removeOrphans)
    }
}
