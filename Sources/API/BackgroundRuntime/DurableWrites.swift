import BackgroundLedger
import Dispatch
import Foundation
import ProcessSupport
import Synchronization

/// The durable writes of calls that cannot throw, as on iOS: `cancel()`, `suspend()`, removals.
///
/// One that fails because the disk is full or another process is long in the ledger is said on standard error and tried again with
/// growing pauses; later ones wait behind it, and so do the throwing ones, so that their order stays. A process that a person started does not
/// leave before they came through, or the time is over; a launch whose writes do not come through has no result, and is made up for. What
/// cannot be written at all is said, and dropped.
package final class DurableWrites: Sendable {
    package static var shared: DurableWrites {
        let runtime = AppRuntime.shared
        return runtime.part {
            DurableWrites(calls: { OutstandingCalls.shared }, report: { runtime.report($0) }) {
                [unowned runtime] body, startsAgent throws(StoreError) in
                try runtime.write(body)
                if startsAgent { runtime.startAgent() }
            }
        }
    }

    package typealias Body = @Sendable (LedgerTransaction) throws -> Void

    private struct Waiting {
        let name: String
        let startsAgent: Bool
        let body: Body
        let since: ContinuousClock.Instant
    }

    /// Seconds before the first further try, between two at most, and in all.
    private let firstPause: Double
    private static let longestPause = 10.0
    private static let patience = Duration.seconds(120)

    private let waiting = Mutex<[Waiting]>([])
    /// Held by whoever tries what waits: nothing is written twice.
    private let working = Mutex(())
    private let queue = DispatchQueue(label: "durable writes")

    private let calls: @Sendable () -> OutstandingCalls
    private let report: @Sendable (String) -> Void
    private let write: @Sendable (Body, Bool) throws(StoreError) -> Void

    /// - Parameters:
    ///   - calls: whom a process waits for before it leaves.
    ///   - report: takes a line for standard error.
    ///   - write: commits, and then starts an agent if that is wanted.
    package init(
        firstPause: Double = 0.2, calls: @escaping @Sendable () -> OutstandingCalls,
        report: @escaping @Sendable (String) -> Void, write: @escaping @Sendable (Body, Bool) throws(StoreError) -> Void
    ) {
        (self.firstPause, self.calls, self.report, self.write) = (firstPause, calls, report, write)
    }

    /// Commits now, on the caller's thread, or, where that fails for the moment, later.
    ///
    /// - Parameters:
    ///   - name: what is recorded, for the message.
    ///   - startsAgent: an agent is needed for it.
    package func commit(_ name: String, startsAgent: Bool = true, _ body: @escaping Body) {
        let write = Waiting(
            name: name, startsAgent: startsAgent, body: body, since: ContinuousClock.now)
        // In the order of the calls: what waits goes first.
        let error = settle() ?? attempt(write)
        guard let error else { return }
        guard error.isPassing else { return report("\(name) could not be recorded: \(error)") }
        let isFirst = waiting.withLock { waiting in
            waiting.append(write)
            return waiting.count == 1
        }
        guard isFirst else { return }
        report("\(name) could not be recorded yet: \(error)")
        let calls = calls()
        calls.enter()
        tryAgain(after: firstPause, calls)
    }

    /// Tries what waits once more. Whoever writes something that must come after it asks first.
    ///
    /// - Returns: why it still waits; `nil`: nothing does.
    package func settle() -> StoreError? {
        if waiting.withLock({ $0.isEmpty }) { return nil }
        return working.withLock { _ in
            while let write = waiting.withLock({ $0.first }) {
                let error = attempt(write)
                if let error, error.isPassing, ContinuousClock.now - write.since < Self.patience { return error }
                if let error { report("\(write.name) was not recorded: \(error)") }
                waiting.withLock { _ = $0.removeFirst() }
            }
            return nil
        }
    }

    /// `nil`: committed.
    private func attempt(_ waiting: Waiting) -> StoreError? {
        do throws(StoreError) {
            try write(waiting.body, waiting.startsAgent)
            return nil
        } catch {
            return error
        }
    }

    private func tryAgain(after pause: Double, _ calls: OutstandingCalls) {
        queue.asyncAfter(deadline: .now() + pause) { [self] in
            if settle() != nil { tryAgain(after: min(pause * 2, Self.longestPause), calls) } else { calls.leave() }
        }
    }
}
