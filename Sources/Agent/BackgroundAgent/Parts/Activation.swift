import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Whether the agent may leave although work is left, as somebody starts it again in time.
struct Activation {
    private enum State {
        /// Nobody would.
        case none
        case available
        /// It was refused, at so many seconds awake.
        case refused(why: String, at: Double)
    }

    /// Refusals in a row.
    private var refusals = 0

    private var state: State

    /// Seconds until it is asked again: soon after a first refusal, as of a manager that is just being replaced.
    private var pause: Double { min(10 * pow(4, Double(refusals - 1)), 600) }
    /// It does not leave for less: a start costs more than so long a sleep.
    private static let shortest: Double = 20

    init(isAvailable: Bool) { state = isAvailable ? .available : .none }

    /// The agent was ready to leave, and nobody would start it again.
    mutating func note(refusal: ActivationFailure, at moment: Moment) {
        state = .refused(why: refusal.description, at: moment.awake)
        refusals = min(refusals + 1, 8)
    }

    /// The agent may leave now, with work left: nothing needs it before the next moment that is known, and that is not near.
    mutating func mayLeave(_ pass: inout Pass) throws -> Bool {
        switch state {
        case .none:
            try pass.transaction.setFact(.activationTrouble, nil)
            return false
        case .refused(let why, let since):
            try pass.transaction.setFact(.activationTrouble, why)
            let again = since + pause
            guard pass.moment.awake >= again else {
                pass.wake(at: pass.moment.date(atAwake: again))
                return false
            }
            state = .available
        case .available: break
        }
        if let wake = pass.wake, wake.timeIntervalSince(pass.now) < Self.shortest { return false }
        return try pass.transaction.needOfAgent(now: pass.now, watchesFiles: pass.settings.watchedFiles != nil) == nil
    }
}
