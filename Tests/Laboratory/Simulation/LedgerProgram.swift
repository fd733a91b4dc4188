import Spool
import BackgroundLedger
import BackgroundTasksTesting
import Foundation

/// An app that is simulated at the level of the ledger. The actions of its processes are written to the ledger in virtual time.
protocol LedgerProgram: VirtualProgram {
    var host: SimulatedHost { get }
}

extension LedgerProgram {
    /// Writes to the ledger. The ledger is in memory, so a write fails only if the code of the simulation is wrong.
    @discardableResult
    func write<Value>(_ body: (LedgerTransaction) throws -> Value) -> Value {
        do { return try host.ledger.write(body) } catch { fatalError("\(error)") }
    }

    /// Writes a copy of a photo into the spool. `body` then writes the row that names the copy.
    func writeCopy<Value>(of photo: Data, _ body: (LedgerTransaction, Snapshot) throws -> Value) -> Value {
        do {
            let taken = try Snapshot.store(photo, in: host.directories)
            defer { taken.keep() }
            return write { try body($0, taken) }
        } catch {
            fatalError("\(error)")
        }
    }

    /// Runs an action later, if the process is still running at that time.
    func later(_ seconds: Double, _ process: VirtualProcess, _ action: @escaping @Sendable () -> Void) {
        host.clock.schedule(after: seconds) { if process.isAlive { action() } }
    }
}
