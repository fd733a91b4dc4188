import Dispatch
import ProcessSupport
import Synchronization

/// Repeats reads and writes of the ledger that failed temporarily, for methods of the API that cannot throw.
///
/// Retries are necessary, because otherwise an app could receive an empty list of its work, and would begin the work again.
package final class LedgerRetry: Sendable {
    /// The current series of consecutive failures. The failures of all calls belong to the same series.
    private struct Failures {
        let since: SuspendingClock.Instant
        var last: SuspendingClock.Instant
        var reported: Set<String> = []
    }

    /// If the time between two failures is longer than this time, the second failure begins a new series, and the time limit
    /// starts again.
    private static let longestPause = Duration.seconds(10)

    private let failures = Mutex<Failures?>(nil)
    private let now: @Sendable () -> SuspendingClock.Instant
    private let retry: @Sendable () -> ReadRetry

    /// - Parameters:
    ///   - now: a closure that returns the current time.
    ///   - retry: a closure that creates the object that starts the repetitions of one call.
    package init(
        now: @escaping @Sendable () -> SuspendingClock.Instant = { .now },
        retry: @escaping @Sendable () -> ReadRetry = { ReadRetry() }
    ) {
        (self.now, self.retry) = (now, retry)
    }

    /// Calls the body until the body succeeds, and returns the body's result. The method blocks the caller's thread.
    ///
    /// - Parameter patience: The time limit, counted from the first failure of the current series of failures. A failure of an
    ///   earlier call can be the first failure.
    /// - Throws: The last error. The error is thrown immediately if a repetition cannot succeed.
    package func run<Value>(
        for patience: Duration, _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        let retry = retry()
        while true {
            let start = now()
            do throws(StoreError) {
                let value = try body()
                failures.withLock { $0 = nil }
                return value
            } catch {
                let failing = recordFailure(ofUseFrom: start)
                // Another file has replaced the ledger, so a repetition cannot succeed.
                if case .replaced = error { throw error }
                guard error.isPassing, failing < patience else { throw error }
                let pause = DispatchSemaphore(value: 0)
                retry.failed { pause.signal() }
                pause.wait()
            }
        }
    }

    /// Records a failure. The time between two failures does not include the duration of the failed call. For example, while a
    /// signal has stopped the agent, opening the ledger fails only after 10 seconds.
    ///
    /// - Returns: The time since the call began that failed first in the current series of failures.
    private func recordFailure(ofUseFrom start: SuspendingClock.Instant) -> Duration {
        let now = now()
        return failures.withLock { failures in
            var known = failures ?? Failures(since: start, last: start)
            if known.last.duration(to: start) > Self.longestPause { known = Failures(since: start, last: start) }
            known.last = now
            failures = known
            return known.since.duration(to: now)
        }
    }

    /// Returns whether a failure must be reported. Only some failures are reported, because an app may read the state of a
    /// thousand tasks.
    ///
    /// - Parameter name: The subject that could not be read. Each subject is reported once in a series of failures.
    package func isFirstReport(of name: String) -> Bool {
        failures.withLock { $0?.reported.insert(name).inserted ?? true }
    }
}
