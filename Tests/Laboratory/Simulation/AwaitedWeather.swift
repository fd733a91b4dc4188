import ProcessSupport
import BackgroundLedger
import Foundation

// The changes of the ledger that the API modules make for an awaited transfer. The simulated processes change the ledger
// directly, without the API modules.
extension LedgerTransaction {
    /// Makes the process wait for the weather. If a transfer is running, the process waits for this transfer. Otherwise, a
    /// transfer begins. Returns the number of the transfer.
    func awaitWeather(from url: String, process: ProcessIdentity, now: Date) throws -> Int64 {
        var transfer =
            try joinableTransfer(session: "weather", key: "weather", now: now) { _ in false }
            ?? insert(
                TransferRecord(
                    session: "weather", key: "weather", kind: .download, method: "GET", url: url, headers: [], now: now))
        try handle(.awaited(now: now), &transfer, now: now)
        _ = try addWaiter(to: transfer.id!, process: process)
        return transfer.id!
    }

    /// Records that a process no longer waits for the weather, because the process has received its response.
    func stopAwaiting(process: ProcessIdentity, grace: Double = 0, now: Date) throws {
        for waiter in try waiters() where waiter.process == process { try removeWaiter(waiter.id!, grace: grace, now: now) }
    }

    /// Cancels the transfers that a process waits for, because the time of the process is up. Some of these transfers continue as
    /// tasks with the same request, as if the cancellation handler had called `downloadTask(with:)`.
    func handOver(process: ProcessIdentity, now: Date, taking isTaken: () -> Bool = { true }) throws {
        for waiter in try waiters() where waiter.process == process {
            try removeWaiter(waiter.id!, grace: AgentSettings().grace, now: now)
            guard isTaken(), var transfer = try transfer(waiter.transfer) else { continue }
            try handle(.adopted(suspended: false), &transfer, now: now)
        }
    }
}
