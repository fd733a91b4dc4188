import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import FoundationNetworking
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

    /// Seconds that a queue waits. An answer may want this very queue, or the main thread.
    private static let patience = 0.05

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
        _ = said.wait(timeout: .now() + Self.patience)
        return state.withLock { state in
            if case .answered(let disposition) = state { return disposition }
            state = .late
            return nil
        }
    }
}

extension BackgroundSession {
    /// Gives the delegate a response as data: the headers, then all bytes, then the end. A delegate that decides about the headers later
    /// receives the rest after its decision.
    func hand(
        _ file: URL, of transfer: TransferRecord, _ task: URLSessionTask, _ session: URLSession,
        then end: @escaping @Sendable () -> Void
    ) {
        guard let hearer = task.hearer(as: (any URLSessionDataDelegate).self, or: self.delegate),
            let task = task as? URLSessionDataTask, let response = transfer.response
        else { return end() }
        nonisolated(unsafe) let delegate = hearer
        // Read before the delegate is asked: the file goes with the event.
        let data = (try? PatientFile.contents(of: file)) ?? Data()
        let rest: @Sendable (URLSession.ResponseDisposition) -> Void = { disposition in
            if disposition != .cancel, !data.isEmpty { delegate.urlSession(session, dataTask: task, didReceive: data) }
            end()
        }
        let question = HeadQuestion()
        let calls = OutstandingCalls.shared
        calls.enter()
        waitForDecision()
        delegate.urlSession(session, dataTask: task, didReceive: response) { disposition in
            guard question.answer(disposition) else { return }
            session.onDelegateQueue { [self] in
                // In a process that exits the end stays in the ledger, for the next process.
                afterLateDecision { rest(disposition) }
                calls.leave()
            }
        }
        guard let disposition = question.wait() else { return }
        decided()
        rest(disposition)
        calls.leave()
    }

    /// The delegate is asked about the headers of a response.
    func waitForDecision() { state.withLock { $0.telling.undecided += 1 } }

    /// - Returns: whether this was the last response without a decision.
    @discardableResult
    func decided() -> Bool {
        state.withLock { state in
            state.telling.undecided -= 1
            guard state.telling.undecided == 0 else { return false }
            // The next look reports that all is told, before the session ends.
            if state.life == .ending(hasLooked: true) { state.life = .ending(hasLooked: false) }
            return true
        }
    }

    /// Gives the delegate the rest of a response whose decision came late, unless the process exits.
    func afterLateDecision(_ body: () -> Void) {
        if deliveries.enter() {
            body()
            deliveries.leave()
        }
        if decided() { lookSoon() }
    }
}
