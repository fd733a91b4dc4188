import BackgroundRuntime
import Foundation
import Synchronization

/// The clocks of a simulated host: the wall clock, which users can change, and the seconds that pass while the host is awake.
///
/// The type is also a Swift `Clock` of the waking seconds, for code under test that has a clock as a parameter. A sleep on this
/// clock ends when virtual time reaches the deadline.
public final class VirtualClock: Clock, Sendable {
    /// A number of waking seconds since the start of the host.
    public struct Instant: InstantProtocol {
        let offset: Duration

        /// Returns the instant that is later by `duration`.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// Returns the duration from this instant to `other`.
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Returns whether the first instant is earlier.
        public static func < (one: Instant, other: Instant) -> Bool { one.offset < other.offset }
    }

    private struct Timer {
        let number: Int
        let due: Double
        /// The number of the launch whose task sleeps until this timer. `.some(nil)` if a task of an unknown launch sleeps; `nil`
        /// if the timer is not for a sleep.
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

    /// The time of the wall clock.
    public var date: Date { state.withLock { $0.wall } }

    /// The time zone of the user.
    public var timeZone: TimeZone { state.withLock { $0.zone } }

    /// The current instant.
    public var now: Instant { Instant(offset: .seconds(awake)) }

    /// The resolution of the clock, one microsecond.
    public var minimumResolution: Duration { .microseconds(1) }

    package var awake: Double { state.withLock { $0.awake } }
    package var slept: Double { state.withLock { $0.slept } }

    /// Sleeps until virtual time reaches the deadline.
    ///
    /// If a task of a launch sleeps, the complete launch waits for virtual time, even if other tasks of the launch are running.
    /// For example, if a handler races real work against a sleep, the driver does not wait for the real work. If the launch of a
    /// sleep is not known, the sleep is assigned to every launch. In the test itself, do not sleep but let time pass with the
    /// driver.
    ///
    /// - Throws: `CancellationError`.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let number = newNumber()
        let timer = Timer(
            number: number, due: deadline.offset / .seconds(1), sleeper: .some(LaunchContext.currentNumber),
            action: { continuation.finish() })
        await withTaskCancellationHandler {
            // The timer is inserted at this line, because from here on a cancellation of the task removes the timer. The driver
            // lets virtual time pass only after this line.
            insert(timer)
            sleepersChanged()
            for await _ in stream {}
        } onCancel: {
            // The timer is removed before the task continues. Virtual time does not pass until the work of the task is done.
            cancel(number)
            sleepersChanged()
        }
        cancel(number)
        try Task.checkCancellation()
    }

    /// A lock that protects a function directly would wrap the function again at each access, without a limit.
    private struct Listener {
        var call: @Sendable () -> Void = {}
    }

    private let listener = Mutex(Listener())

    private func sleepersChanged() { listener.withLock { $0.call }() }

    /// Returns whether a task of this launch sleeps until a time of this clock. If the launch of a sleeping task is not known,
    /// the task is assigned to every launch.
    func hasSleeper(launch: Int64) -> Bool {
        state.withLock { state in
            state.timers.contains { timer in
                guard let sleeper = timer.sleeper else { return false }
                return sleeper == launch || sleeper == nil
            }
        }
    }

    func onSleepersChange(_ action: @escaping @Sendable () -> Void) { listener.withLock { $0.call = action } }

    // MARK: Timers of the host

    @discardableResult
    package func schedule(after seconds: Double, isIdle: Bool = false, _ action: @escaping @Sendable () -> Void) -> Int {
        let number = newNumber()
        let sleeper: Int64?? = isIdle ? .some(LaunchContext.currentNumber) : .none
        insert(Timer(number: number, due: awake + seconds, sleeper: sleeper, action: action))
        if isIdle { sleepersChanged() }
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
            // If a task is cancelled after this line, the cancellation removes the timer.
            if timer.sleeper != nil, Task.isCancelled { return }
            let place = state.timers.firstIndex { $0.due > timer.due } ?? state.timers.endIndex
            state.timers.insert(timer, at: place)
        }
    }

    package func cancel(_ number: Int) { state.withLock { $0.timers.removeAll { $0.number == number } } }

    /// The seconds until the first timer, without time in sleep.
    var untilNextTimer: Double? { state.withLock { state in state.timers.first.map { max(0, $0.due - state.awake) } } }

    /// Runs the timers that are due. Returns `false` if no timer is due.
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

    /// Advances the clocks to an exact time of the wall clock, so that no rounding errors accumulate.
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
