import Dispatch
import ProcessSupport
import Synchronization

/// Repeats uses of the ledger that failed temporarily, for methods of the API that cannot throw.
///
/// Retries are necessary because an app would use an empty list as the result, and would begin its work again.
package final class LedgerRetry: Sendable {
    /// The consecutive failures of all calls together.
    private struct Failures {
        let since: SuspendingClock.Instant
        var last: SuspendingClock.Instant
        var reported: Set<String> = []
    }

    /// A failure after this pause begins a new series of failures.
    private static let longestPause = Duration.seconds(10)

    private let failures = Mutex<Failures?>(nil)
    private let now: @Sendable () -> SuspendingClock.Instant
    private let retry: @Sendable () -> ReadRetry

    /// - Parameters:
    ///   - now: returns the time.
    ///   - retry: creates the object that repeats the uses of one call.
    package init(
        now: @escaping @Sendable () -> SuspendingClock.Instant = { .now },
        retry: @escaping @Sendable () -> ReadRetry = { ReadRetry() }
    ) {
        (self.now, self.retry) = (now, retry)
    }

    /// Calls the body until it succeeds, and returns its result. Blocks the thread between two tries.
    ///
    /// - Parameter patience: The time limit, counted from the first failure. Time that another call has already waited is
    ///   included.
    /// - Throws: The last error. The error is thrown at once if another try cannot help.
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
                // Another ledger has replaced this ledger, so another try cannot help.
                if case .replaced = error { throw error }
                guard error.isPassing, failing < patience else { throw error }
                let pause = DispatchSemaphore(value: 0)
                retry.failed { pause.signal() }
                pause.wait()
            }
        }
    }

    /// Records a failure. The time of the use itself does not count as a pause, because opening the ledger beside a stopped agent
    /// fails only after 10 seconds.
    ///
    /// - Returns: The time since the begin of the first use in a row that failed.
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

    /// Returns whether a failure must be reported. Not every failure is reported, because an app may read the state of a thousand
    /// tasks.
    ///
    /// - Parameter name: The subject that could not be read. Each subject is reported once in a series of failures.
    package func isFirstReport(of name: String) -> Bool {
        failures.withLock { $0?.reported.insert(name).inserted ?? true }
    }
}
