import BackgroundScheduling
import Foundation
import Synchronization

/// A user manager in virtual time: it starts an agent that left when its timer elapses, by the wall clock, and when clock or zone are set.
package final class VirtualUserManager: AgentActivator {
    private struct State {
        /// An agent left, and is to be started.
        var isArmed = false
        var instant: Date?
        var refuses = false
        var count = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func arm(at instant: Date?) throws(ActivationFailure) {
        let isRefused = state.withLock { state in
            if state.refuses { return true }
            (state.isArmed, state.instant) = (true, instant)
            state.count += 1
            return false
        }
        if isRefused { throw ActivationFailure("the user manager does not take it") }
    }

    /// The timer is masked, or does not understand the moment.
    package func refuse(_ isRefusing: Bool) { state.withLock { $0.refuses = isRefusing } }

    /// How often agents left.
    package var timesArmed: Int { state.withLock { $0.count } }

    /// When it starts an agent by its timer; `nil`: not by time alone.
    package var instant: Date? { state.withLock { $0.isArmed ? $0.instant : nil } }

    /// Somebody set clock or zone.
    func noteClock() { state.withLock { if $0.isArmed { $0.instant = .distantPast } } }

    /// Whether an agent is to be started, now that the clock shows this.
    func elapses(at now: Date) -> Bool {
        state.withLock { state in
            guard state.isArmed, let instant = state.instant, instant <= now else { return false }
            state.isArmed = false
            return true
        }
    }
}
