import BackgroundRuntime
import Synchronization
import Testing

@Suite struct ReadRetryTests {
    /// A virtual clock, and the repeated reads that wait for a time of this clock.
    private final class VirtualTime: Sendable {
        private struct State {
            var now = SuspendingClock.now
            var alarms: [(seconds: Double, action: @Sendable () -> Void)] = []
            var reads = 0
        }

        private let state = Mutex(State())

        var reads: Int { state.withLock { $0.reads } }
        var alarmCount: Int { state.withLock { $0.alarms.count } }

        func retry() -> ReadRetry {
            ReadRetry(now: { self.state.withLock { $0.now } }) { seconds, action in
                self.state.withLock { $0.alarms.append((seconds, action)) }
            }
        }

        /// Reads once, as after a change notification. The first `failures` reads fail.
        func read(_ retry: ReadRetry, failures: Int) {
            let count = state.withLock { state in
                state.reads += 1
                return state.reads
            }
            if count > failures { return retry.succeeded() }
            retry.failed { self.read(retry, failures: failures) }
        }

        func pass(_ time: Duration) { state.withLock { $0.now = $0.now.advanced(by: time) } }

        /// Lets time pass until the next repetition.
        ///
        /// - Returns: The number of seconds that passed; `nil` if no repetition is scheduled.
        func next() -> Double? {
            let alarm = state.withLock { state -> (seconds: Double, action: @Sendable () -> Void)? in
                guard !state.alarms.isEmpty else { return nil }
                let alarm = state.alarms.removeFirst()
                state.now = state.now.advanced(by: .seconds(alarm.seconds))
                return alarm
            }
            alarm?.action()
            return alarm?.seconds
        }
    }

    private let time = VirtualTime()

    @Test func `a read that fails is repeated until it succeeds, with growing pauses`() {
        let retry = time.retry()
        time.read(retry, failures: 7)
        #expect(retry.isFailing)
        var pauses: [Double] = []
        while let pause = time.next() { pauses.append(pause) }
        #expect(pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2, 2])
        #expect(time.reads == 8 && !retry.isFailing)
    }

    @Test func `several failures before the next read cause one repetition`() {
        let retry = time.retry()
        for _ in 0..<3 { time.read(retry, failures: 3) }
        #expect(time.alarmCount == 1)
        #expect(time.next() == 0.1)
        #expect(time.reads == 4 && time.next() == nil)
    }

    @Test func `the pauses are short again after a read that succeeded`() {
        let retry = time.retry()
        time.read(retry, failures: 2)
        while time.next() != nil {}
        #expect(time.reads == 3)
        retry.failed(again: {})
        #expect(time.next() == 0.1)
    }

    @Test func `the duration of the failures counts from the first failure`() {
        let retry = time.retry()
        #expect(retry.failed(again: {}) == .zero)
        time.pass(.seconds(59))
        #expect(retry.failed(again: {}) == .seconds(59))
        retry.succeeded()
        time.pass(.seconds(1))
        #expect(retry.failed(again: {}) == .zero)
    }
}
