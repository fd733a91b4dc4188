import Dispatch
import Synchronization

/// Repeats reads of the ledger, or of a store, that failed after a change notification.
///
/// Each change of the ledger causes only one change notification. If the read were not repeated, the process would detect the
/// change only after the next change.
package final class ReadRetry: Sendable {
    /// The number of seconds before the first repetition. The pause doubles with each failure.
    private static let firstPause = 0.1
    private static let longestPause = 2.0

    package typealias Alarm = @Sendable (_ seconds: Double, _ action: @escaping @Sendable () -> Void) -> Void

    private struct State {
        var failures = 0
        var since: SuspendingClock.Instant?
        var isPlanned = false
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> SuspendingClock.Instant
    private let alarm: Alarm

    /// - Parameters:
    ///   - now: a closure that returns the current time.
    ///   - alarm: a function that calls an action once, after the given number of seconds.
    package init(
        now: @escaping @Sendable () -> SuspendingClock.Instant = { .now },
        alarm: @escaping Alarm = { seconds, action in
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { action() }
        }
    ) {
        (self.now, self.alarm) = (now, alarm)
    }

    package var isFailing: Bool { state.withLock { $0.since != nil } }

    /// Records a successful read. The next failure begins a new series of failures.
    package func succeeded() { state.withLock { ($0.failures, $0.since) = (0, nil) } }

    /// Records a failed read.
    ///
    /// - Parameter again: a closure that reads again. The closure is called after a pause, once for all failures that are
    ///   recorded during this pause.
    /// - Returns: the time since the first failure of the series.
    @discardableResult
    package func failed(again: @escaping @Sendable () -> Void) -> Duration {
        let now = now()
        let (failing, pause) = state.withLock { state -> (Duration, Double?) in
            let since = state.since ?? now
            state.since = since
            guard !state.isPlanned else { return (since.duration(to: now), nil) }
            let pause = min(Self.firstPause * Double(1 << min(state.failures, 10)), Self.longestPause)
            (state.failures, state.isPlanned) = (state.failures + 1, true)
            return (since.duration(to: now), pause)
        }
        if let pause {
            alarm(pause) {
                self.state.withLock { $0.isPlanned = false }
                again()
            }
        }
        return failing
    }
}
