import BackgroundLedger
import Dispatch
import Foundation
import ProcessSupport
import Synchronization

/// Durable writes for methods that cannot throw, for example `cancel()`, `suspend()` and removals.
///
/// A write can fail temporarily, for example if the disk is full or another process blocks the ledger. After a temporary failure,
/// an error is printed on standard error, and the write is retried after growing pauses. To keep the order, all later writes wait
/// until the failed write has succeeded. Later writes of methods that can throw also wait. A process that a user started does not
/// exit before the writes succeed or the time limit is reached. If the writes of a launch fail, the launch gets no result and is
/// retried. A write that can never succeed is reported and discarded.
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

    /// The number of seconds before the first retry. The pauses grow up to `longestPause`. The retries of a write end after the
    /// time `patience`.
    private let firstPause: Double
    private static let longestPause = 10.0
    private static let patience = Duration.seconds(120)

    private let waiting = Mutex<[Waiting]>([])
    /// A lock that only one thread at a time holds during retries, so that no write is committed twice.
    private let working = Mutex(())
    private let queue = DispatchQueue(label: "durable writes")

    private let calls: @Sendable () -> OutstandingCalls
    private let report: @Sendable (String) -> Void
    private let write: @Sendable (Body, Bool) throws(StoreError) -> Void

    /// - Parameters:
    ///   - calls: a closure that returns the counter of waiting writes. The process must not exit while writes wait.
    ///   - report: a closure that prints a line on standard error.
    ///   - write: a closure that commits a write, and then starts an agent if requested.
    package init(
        firstPause: Double = 0.2, calls: @escaping @Sendable () -> OutstandingCalls,
        report: @escaping @Sendable (String) -> Void, write: @escaping @Sendable (Body, Bool) throws(StoreError) -> Void
    ) {
        (self.firstPause, self.calls, self.report, self.write) = (firstPause, calls, report, write)
    }

    /// Commits a write immediately, on the caller's thread. If the write fails temporarily, it is retried later.
    ///
    /// - Parameters:
    ///   - name: the subject of the write, for the error message.
    ///   - startsAgent: `true` if the write needs an agent.
    package func commit(_ name: String, startsAgent: Bool = true, _ body: @escaping Body) {
        let write = Waiting(
            name: name, startsAgent: startsAgent, body: body, since: ContinuousClock.now)
        // Earlier writes are committed first, to keep the order of the calls.
        let error = flush() ?? attempt(write)
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

    /// Retries the waiting writes. Call this method before a write that must be committed after the waiting writes.
    ///
    /// - Returns: the reason why a write still waits, or `nil` if no write waits.
    package func flush() -> StoreError? {
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

    /// Commits a write. Returns the error, or `nil` if the write was committed.
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
            if flush() != nil { tryAgain(after: min(pause * 2, Self.longestPause), calls) } else { calls.leave() }
        }
    }
}
