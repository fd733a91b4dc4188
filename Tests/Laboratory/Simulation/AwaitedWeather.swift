import ProcessSupport
import BackgroundLedger
import Foundation

// What the API modules write for an awaited transfer, for processes that are simulated at the ledger.
extension LedgerTransaction {
    /// The process awaits the weather: it joins the transfer that is under way, or begins one. Returns its number.
    func awaitWeather(from url: String, process: ProcessIdentity, now: Date) throws -> Int64 {
        var transfer =
            try joinableTransfer(session: "weather", key: "weather", now: now)
            ?? insert(
                TransferRecord(
                    session: "weather", key: "weather", kind: .download, method: "GET", url: url, headers: [], now: now))
        try handle(.awaited(now: now), &transfer, now: now)
        _ = try addWaiter(to: transfer.id!, process: process)
        return transfer.id!
    }

    /// The process took its answer.
    func stopAwaiting(process: ProcessIdentity, grace: Double = 0, now: Date) throws {
        for waiter in try waiters() where waiter.process == process { try removeWaiter(waiter.id!, grace: grace, now: now) }
    }

    /// The process was told to stop: its awaits are cancelled, and some are taken up by a task of the same request, as
    /// `downloadTask(with:)` in the handler of the cancellation does.
    func handOver(process: ProcessIdentity, now: Date, taking isTaken: () -> Bool = { true }) throws {
        for waiter in try waiters() where waiter.process == process {
            try removeWaiter(waiter.id!, grace: AgentSettings().grace, now: now)
            guard isTaken(), var transfer = try transfer(waiter.transfer) else { continue }
            try handle(.adopted(suspended: false), &transfer, now: now)
        }
    }
}
