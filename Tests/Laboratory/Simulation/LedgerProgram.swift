import Spool
import BackgroundLedger
import BackgroundTasksTesting
import Foundation

/// An app that is simulated at the ledger: what its processes do is written there, in virtual time.
protocol LedgerProgram: VirtualProgram {
    var host: SimulatedHost { get }
}

extension LedgerProgram {
    /// The ledger is in memory: it cannot fail, unless this code is wrong.
    @discardableResult
    func write<Value>(_ body: (LedgerTransaction) throws -> Value) -> Value {
        do { return try host.ledger.write(body) } catch { fatalError("\(error)") }
    }

    /// A copy of a photo and, written by `body`, the row that names it.
    func writeCopy<Value>(of photo: Data, _ body: (LedgerTransaction, Snapshot) throws -> Value) -> Value {
        do {
            let taken = try Snapshot.store(photo, in: host.directories)
            defer { taken.keep() }
            return write { try body($0, taken) }
        } catch {
            fatalError("\(error)")
        }
    }

    /// As long as the process lives.
    func later(_ seconds: Double, _ process: VirtualProcess, _ action: @escaping @Sendable () -> Void) {
        host.clock.schedule(after: seconds) { if process.isAlive { action() } }
    }
}
