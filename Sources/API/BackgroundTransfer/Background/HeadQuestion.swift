import Foundation
import Synchronization

/// What a delegate is asked about an answer's head while its queue waits for the word: who leaves the question to Swift's threads answers in a moment.
/// Who wants this very thread for the answer gets it, and is told the rest later.
final class HeadQuestion: Sendable {
    private enum State {
        case asked
        case answered(URLSession.ResponseDisposition)
        /// Nobody waits any more.
        case late
    }

    /// Seconds that a queue waits; the main thread less, as it is the one that an answer may want.
    private static let (patience, patienceOfMain) = (5.0, 0.05)

    private let state = Mutex(State.asked)
    private let said = DispatchSemaphore(value: 0)

    /// - Returns: `true`: nobody waits any more; whoever answers sees to the rest. Only the first answer counts.
    func answer(_ disposition: URLSession.ResponseDisposition) -> Bool {
        let isLate = state.withLock { state in
            switch state {
            case .asked:
                state = .answered(disposition)
                return false
            case .answered: return false
            case .late:
                state = .answered(disposition)
                return true
            }
        }
        if !isLate { said.signal() }
        return isLate
    }

    /// `nil`: it is answered later.
    func wait() -> URLSession.ResponseDisposition? {
        _ = said.wait(timeout: .now() + (Thread.isMainThread ? Self.patienceOfMain : Self.patience))
        return state.withLock { state in
            if case .answered(let disposition) = state { return disposition }
            state = .late
            return nil
        }
    }
}
