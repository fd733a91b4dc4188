import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

// Transfers end: their rows, their events, their files.
extension Agent {
    /// A transfer ends for good: its row, its event, its files.
    func end(
        _ transfer: inout TransferRecord, as outcome: TransferLife.Outcome, _ reason: TransferLife.Reason?,
        _ pass: inout Pass
    ) throws {
        let before = transfer
        endsBeforePruning -= 1
        (uploads[transfer.id!], unreached[transfer.id!]) = (nil, nil)
        let commands = try pass.transaction.handle(.ended(outcome, reason, now: pass.now), &transfer, now: pass.now)
        removeRemains(of: before, commands, &pass)
        let sentence = transfer.errorMessage.map { ": \($0)" } ?? ""
        log.note("transfer \(transfer.id!) of \(transfer.session): \(outcome.rawValue)\(sentence)")
    }
}
