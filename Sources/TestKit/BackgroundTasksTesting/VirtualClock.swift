import BackgroundRuntime
import Foundation
import Synchronization

/// The clocks of a simulated host: the wall clock that people set, and the seconds that pass while the host is awake.
///
/// A Swift `Clock` too (of the waking seconds), for code under test that takes one: whoever sleeps on it wakes when the driver's
/// time comes there.
public final class VirtualClock: Clock, Sendable {
    /// Waking seconds since the host began.
    public struct Instant: InstantProtocol {
        let offset: Duration

        /// Later by `duration`.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// From here to `other`.
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Earlier before later.
        public static func < (one: Instant, other: Instant) -> Bool { one.offset < other.offset }
    }

    private struct Timer {
        let number: Int
        let due: Double
        /// Set for a sleeping task: its launch, `.some(nil)` if that is not known.
        var sleeper: Int64??
        let action: @Sendable () -> Void
    }

    private struct State {
        var wall: Date
        var awake = 1_000.0
        var slept = 0.0
        var zone: TimeZone
        var timers: [Timer] = []
        var nextTimer = 0
    }

    private let state: Mutex<State>

    init(wall: Date, zone: TimeZone) { state = Mutex(State(wall: wall, zone: zone)) }

    // MARK: Reading

    /// What the wall clock shows.
    public var date: Date { state.withLock { $0.wall } }

    /// The zone that the person is in.
    public var timeZone: TimeZone { state.withLock { $0.zone } }

    /// Now.
    public var now: Instant { Instant(offset: .seconds(awake)) }

    /// Nobody's clock is finer here.
    public var minimumResolution: Duration { .microseconds(1) }

    package var awake: Double { state.withLock { $0.awake } }
    package var slept: Double { state.withLock { $0.slept } }

    /// Sleeps until the driver's time comes there.
    ///
    /// For the driver, a launch with a sleeper waits for time, whatever else it does: a handler that races real work against such a
    /// sleep is not waited for. A sleeper of no known launch counts for every launch: in the test itself let time pass instead.
    /// - Throws: `CancellationError`.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let number = newNumber()
        let timer = Timer(
            number: number, due: deadline.offset / .seconds(1), sleeper: .some(LaunchContext.currentNumber),
            action: { continuation.finish() })
        await withTaskCancellationHandler {
            // Only here, where the cancellation of the task wakes it: the driver lets time pass from this line on.
            insert(timer)
            sleepersChanged()
            for await _ in stream {}
        } onCancel: {
            // Before the thread of the task runs: time does not pass until its work is done.
            cancel(number)
            sleepersChanged()
        }
        cancel(number)
        try Task.checkCancellation()
    }

    private let onSleepersChange = Mutex<@Sendable () -> Void>({})

    private func sleepersChanged() { onSleepersChange.withLock { $0 }() }

    /// Whether a task of this launch sleeps on the clock, or a task that belongs to no known launch.
    func hasSleeper(launch: Int64) -> Bool {
        state.withLock { state in
            state.timers.contains { timer in
                guard let sleeper = timer.sleeper else { return false }
                return sleeper == launch || sleeper == nil
            }
        }
    }

    func onSleepersChange(_ action: @escaping @Sendable () -> Void) { onSleepersChange.withLock { $0 = action } }

    // MARK: Timers of the host

    @discardableResult
    package func schedule(after seconds: Double, _ action: @escaping @Sendable () -> Void) -> Int {
        let number = newNumber()
        insert(Timer(number: number, due: awake + seconds, action: action))
        return number
    }

    private func newNumber() -> Int {
        state.withLock { state in
            state.nextTimer += 1
            return state.nextTimer
        }
    }

    private func insert(_ timer: Timer) {
        state.withLock { state in
            // A task that is cancelled after this line finds its timer, and removes it.
            if timer.sleeper != nil, Task.isCancelled { return }
            let place = state.timers.firstIndex { $0.due > timer.due } ?? state.timers.endIndex
            state.timers.insert(timer, at: place)
        }
    }

    package func cancel(_ number: Int) { state.withLock { $0.timers.removeAll { $0.number == number } } }

    /// Waking seconds until the first timer.
    var untilNextTimer: Double? { state.withLock { state in state.timers.first.map { max(0, $0.due - state.awake) } } }

    /// Runs the timers whose time has come. `false`: there were none.
    func fire() -> Bool {
        let due = state.withLock { state -> [Timer] in
            let due = state.timers.prefix { $0.due <= state.awake + 1e-9 }
            state.timers.removeFirst(due.count)
            return Array(due)
        }
        for timer in due { timer.action() }
        if due.contains(where: { $0.sleeper != nil }) { sleepersChanged() }
        return !due.isEmpty
    }

    // MARK: Moving

    func pass(_ seconds: Double) {
        state.withLock { state in
            state.wall += seconds
            state.awake += seconds
        }
    }

    /// To a moment of the wall clock, without what adding up would lose.
    func pass(to wall: Date) {
        state.withLock { state in
            state.awake += wall.timeIntervalSince(state.wall)
            state.wall = wall
        }
    }

    func sleep(_ seconds: Double) {
        state.withLock { state in
            state.wall += seconds
            state.slept += seconds
        }
    }

    func step(_ seconds: Double) { state.withLock { $0.wall += seconds } }

    func set(_ zone: TimeZone) { state.withLock { $0.zone = zone } }
}
