import BackgroundLedger
import Synchronization

/// The transfers that the app began in a launch. The completed launch continues while attempts at them are under way.
package final class BegunTransfers: Sendable {
    /// Tasks of ordinary sessions that are not suspended and whose ends were not delivered to the app.
    package let ordinary = WorkUnderWay()
    /// Transfers of background sessions whose ends this process delivers to the app.
    private let background = Mutex<Set<Int64>>([])

    package func insert(_ transfer: Int64) { background.withLock { _ = $0.insert(transfer) } }

    /// `false` if an attempt may be under way.
    var isEmpty: Bool { ordinary.isEmpty && background.withLock { $0.isEmpty } }

    /// Waits until no attempt is under way and the ends were delivered to the app.
    ///
    /// - Returns: `false` if no attempt was under way.
    func attemptsEnded() async -> Bool {
        let hasOrdinary = !ordinary.isEmpty
        await ordinary.finished()
        guard background.withLock({ !$0.isEmpty }) else { return hasOrdinary }
        let isUnderWay: @Sendable (LedgerTransaction) throws -> Bool = { [self] transaction in
            try transaction.isUnderWay(background.withLock { $0 })
        }
        guard (try? AppRuntime.shared.ledger().read(isUnderWay)) == true else { return hasOrdinary }
        _ = try? await AppRuntime.shared.wait { transaction -> Bool? in try isUnderWay(transaction) ? nil : true }
        return true
    }
}
