import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import FoundationNetworking
import Synchronization

/// The decision of a delegate about response headers. The delegate's queue waits for the decision, because a delegate usually
/// decides within milliseconds. If the delegate needs the waiting thread for the decision, the wait ends, and the delegate
/// receives the rest of the response later.
final class HeaderDecision: Sendable {
    private enum State {
        case open
        case answered(URLSession.ResponseDisposition)
        /// The delegate's queue does not wait for the decision any more.
        case late
    }

    /// The number of seconds for which the delegate's queue waits for the decision. The wait is short, because the delegate may
    /// need this queue or the main thread for the decision.
    private static let patience = 0.05

    private let state = Mutex(State.open)
    private let decisionMade = DispatchSemaphore(value: 0)

    /// - Returns: `true` if the delegate's queue does not wait any more, so the caller passes the rest of the response to the
    ///   delegate. Only the first decision is used.
    func answer(_ disposition: URLSession.ResponseDisposition) -> Bool {
        let isLate = state.withLock { state in
            switch state {
            case .open:
                state = .answered(disposition)
                return false
            case .answered: return false
            case .late:
                state = .answered(disposition)
                return true
            }
        }
        if !isLate { decisionMade.signal() }
        return isLate
    }

    /// Waits for the decision and returns it. Returns `nil` if the delegate decides later.
    ///
    /// - Parameter isLastChance: `true` if the delegates of earlier launches did not decide. If the value is `true`, the method
    ///   waits up to five seconds, and then the body is delivered without a decision.
    func wait(isLastChance: Bool) -> URLSession.ResponseDisposition? {
        _ = decisionMade.wait(timeout: .now() + (isLastChance ? 5 : Self.patience))
        return state.withLock { state in
            if case .answered(let disposition) = state { return disposition }
            state = isLastChance ? .answered(.allow) : .late
            return isLastChance ? .allow : nil
        }
    }
}

extension BackgroundSession {
    /// Passes a response to the delegate as data: the headers, then all bytes, then the end. If the delegate decides late about
    /// the headers, the delegate receives the bytes and the result after the decision.
    func hand(
        _ file: URL, of transfer: TransferRecord, _ event: SessionEventRecord, _ task: URLSessionTask, _ session: URLSession,
        then end: @escaping @Sendable () -> Void
    ) {
        guard let hearer = task.receiver(as: (any URLSessionDataDelegate).self, or: self.delegate),
            let task = task as? URLSessionDataTask, let response = transfer.response
        else { return end() }
        nonisolated(unsafe) let delegate = hearer
        // The data is read before the delegate is asked, because the file is removed when the event is acknowledged.
        let data = (try? RetriedFileRead.contents(of: file)) ?? Data()
        let rest: @Sendable (URLSession.ResponseDisposition) -> Void = { [self] disposition in
            if disposition != .cancel, !data.isEmpty {
                call(for: event) { delegate.urlSession(session, dataTask: task, didReceive: data) }
            }
            end()
        }
        let question = HeaderDecision()
        let calls = OutstandingCalls.shared
        calls.enter()
        waitForDecision()
        call(for: event) {
            delegate.urlSession(session, dataTask: task, didReceive: response) { disposition in
                guard question.answer(disposition) else { return }
                session.onDelegateQueue { [self] in
                    // If this process is about to exit, the ledger does not record the result as delivered, and the next process
                    // reports the result.
                    afterLateDecision { rest(disposition) }
                    calls.leave()
                }
            }
        }
        guard let disposition = question.wait(isLastChance: launch?.hasFailedTwice ?? false) else { return }
        decided()
        rest(disposition)
        calls.leave()
    }

    /// Counts a response that waits for the delegate's decision about its headers.
    func waitForDecision() { state.withLock { $0.reporting.undecided += 1 } }

    /// - Returns: `true` if no other response waits for a decision.
    @discardableResult
    func decided() -> Bool {
        state.withLock { state in
            state.reporting.undecided -= 1
            guard state.reporting.undecided == 0 else { return false }
            // The ledger is read once more before the session becomes invalid, so that the delegate is notified that it has
            // received all events.
            if state.life == .ending(hasReadLedger: true) { state.life = .ending(hasReadLedger: false) }
            return true
        }
    }

    /// Runs `body`, which passes the rest of a response to the delegate after a late decision. If the process is about to exit,
    /// `body` does not run.
    func afterLateDecision(_ body: () -> Void) {
        if deliveries.enter() {
            body()
            deliveries.leave()
        }
        if decided() { scheduleLedgerRead() }
    }
}
