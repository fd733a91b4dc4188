import BackgroundLedger
import Foundation
import Spool
import TransferMachines

/// Removes the data of cancelled and failed uploads from their servers. If a server is out of reach, the request is sent again
/// later, also by a later agent. This type has no state.
enum Leftovers {
    static func plan(_ pass: inout Pass) throws {
        for leftover in try pass.transaction.takeDueLeftovers(now: pass.now) {
            let request = leftover.removal.request.signed(at: pass.now, hashing: CryptoHashing())
            // The number of a transfer is positive, so the number of this attempt belongs to no transfer.
            pass.perform(.tidyServer(request, AttemptID(transfer: -leftover.id, number: leftover.attempts)))
        }
        pass.wake(at: try pass.transaction.nextLeftover())
    }

    /// Handles an event of a request.
    ///
    /// - Returns: `false` if the event belongs to a transfer.
    static func handle(_ event: TransportEvent, _ pass: inout Pass) throws -> Bool {
        switch event {
        case .progress(let attempt, _, _), .resumption(let attempt, _): return attempt.transfer < 0
        case .ended(let attempt, let end):
            guard attempt.transfer < 0 else { return false }
            if ServerRemoval.isOver(end) { try pass.transaction.removeLeftover(-attempt.transfer) }
            return true
        }
    }
}
