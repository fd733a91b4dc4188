import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Decides whether the agent can exit although work is unfinished. The agent can exit if the service manager starts the agent
/// again in time.
struct Activation {
    private enum State {
        /// No program would start the agent again.
        case none
        case available
        /// The service manager refused to start the agent again. `at` is the time of the refusal in seconds of the clock that
        /// stops during sleep.
        case refused(why: String, at: Double)
    }

    /// The number of consecutive refusals of the service manager.
    private var refusals = 0

    private var state: State

    /// The number of seconds until the next try. The first pause is short, because the service manager may just be restarting.
    private var pause: Double { min(10 * pow(4, Double(refusals - 1)), 600) }
    /// The minimum number of seconds without work after which an exit is useful. If the time is shorter, a new start of the agent
    /// costs more than an agent that continues to run.
    private static let shortest: Double = 20

    init(isAvailable: Bool) { state = isAvailable ? .available : .none }

    /// Records that the agent was ready to exit, but that no program would start it again.
    mutating func record(refusal: ActivationFailure, at moment: ClockReading) {
        state = .refused(why: refusal.description, at: moment.awake)
        refusals = min(refusals + 1, 8)
    }

    /// Returns `true` if the agent can exit now although work is left. The agent can exit if no work needs the agent before the
    /// next known time, and this time is not near.
    mutating func mayExit(_ pass: inout Pass) throws -> Bool {
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
