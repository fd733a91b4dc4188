import BackgroundScheduling
import Foundation
import Synchronization

/// A user manager in virtual time. The manager starts an exited agent again when its wall-clock timer elapses, or when the clock or
/// time zone is changed.
package final class VirtualUserManager: AgentActivator {
    private struct State {
        /// `true` if an agent exited and the timer has to start another agent.
        var isArmed = false
        var instant: Date?
        var refuses = false
        var count = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func arm(at instant: Date?, folders: [String]) throws(ActivationFailure) {
        let isRefused = state.withLock { state in
            if state.refuses { return true }
            (state.isArmed, state.instant) = (true, instant)
            state.count += 1
            return false
        }
        if isRefused { throw ActivationFailure("the user manager does not accept the change") }
    }

    /// Sets whether the timer is refused, for example because it is masked.
    package func refuse(_ isRefusing: Bool) { state.withLock { $0.refuses = isRefusing } }

    /// The number of times that an agent exited after it had set the timer.
    package var timesArmed: Int { state.withLock { $0.count } }

    /// The time when the timer starts an agent; `nil` if the timer is not set.
    package var instant: Date? { state.withLock { $0.isArmed ? $0.instant : nil } }

    /// Handles a change of the clock or the time zone.
    func handleClockChange() { state.withLock { if $0.isArmed { $0.instant = .distantPast } } }

    /// Returns whether an agent has to be started at this time.
    func elapses(at now: Date) -> Bool {
        state.withLock { state in
            guard state.isArmed, let instant = state.instant, instant <= now else { return false }
            state.isArmed = false
            return true
        }
    }
}
