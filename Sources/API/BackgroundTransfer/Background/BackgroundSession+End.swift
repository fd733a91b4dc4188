import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import Synchronization

// Ends tasks that never became transfers, and makes the session invalid.
extension BackgroundSession {
    /// Ends a task that never became a transfer.
    func end(_ task: URLSessionTask, _ error: URLError?) {
        state.withLock { $0.pendingCalls += 1 }
        defer {
            state.withLock { $0.pendingCalls -= 1 }
            considerEnding()
        }
        let isFirst = task.facts.withLock { facts -> Bool in
            defer { facts.isCompleted = true }
            return !facts.isCompleted
        }
        guard isFirst else { return }
        state.withLock { $0.tasks[task.taskIdentifier] = nil }
        let completion = task.facts.withLock { $0.completion }
        let error = error?.concerning(task.originalRequest?.url)
        nonisolated(unsafe) let delegate = task.receiver(or: delegate)
        task.session.onDelegateQueue {
            if let completion { return completion(TransferEnd(error: error)) }
            delegate?.urlSession(task.session, task: task, didCompleteWithError: error)
            (delegate as? any DeliveredEndsRecorder)?.recordDeliveredEnds()
        }
    }

    func invalidate(cancelling: Bool) {
        state.withLock { state in
            if state.life == .open { state.life = .ending(hasReadLedger: false) }
            state.pendingCalls += 1
        }
        if cancelling {
            // Tasks without a row are cancelled first, because another thread may be about to write their rows.
            let unresumed = state.withLock { $0.tasks.values.filter { $0.facts.withLock { $0.row == nil } } }
            for task in unresumed { cancel(task) }
            let now = AppRuntime.shared.now
            DurableWrites.shared.commit("the cancellation of tasks of session \(identifier)") { [identifier] transaction in
                for var transfer in try transaction.unfinishedTransfers(session: identifier) {
                    try transaction.handle(.cancelled(message: nil, now: now), &transfer, now: now)
                }
            }
        }
        state.withLock { state in
            // An earlier read did not find the transfers that this call cancelled. If no session object exists, no delegate has
            // to be notified.
            if state.life != .invalid { state.life = .ending(hasReadLedger: state.session == nil) }
            state.pendingCalls -= 1
        }
        scheduleLedgerRead()
        considerEnding()
    }

    /// Makes an ending session invalid if the tasks that this process resumed have ended and the delegate has received all
    /// waiting events.
    func considerEnding() {
        let ended = state.withLock { state -> (URLSession, HeldDelegate?)? in
            let hasTasks = state.tasks.values.contains { $0.facts.withLock { $0.isBegun && !$0.isCompleted } }
            guard state.life == .ending(hasReadLedger: true), !state.look.isReporting, state.reporting.undecided == 0,
                state.pendingCalls == 0, state.watch == nil || !hasTasks
            else {
                return nil
            }
            state.life = .invalid
            state.watch?.cancel()
            state.watch = nil
            defer { (state.session, state.delegate, state.tasks) = (nil, nil, [:]) }
            return state.session.map { ($0, state.delegate) }
        }
        guard let (session, delegate) = ended else { return }
        let known = AppRuntime.shared.part { SessionRegistry() }
        known.release(self)
        DurableWrites.shared.commit("the end of background session \(identifier)", startsAgent: false) {
            [self, identifier, process] in
            // The app may already have created a new session with this identifier, so this process still has a delegate.
            if known.successor(of: self)?.state.withLock({ $0.isAttached }) == true { return }
            try $0.detach(session: identifier, process: process)
        }
        // The counter is read now, because on the delegate's queue `shared` may return the counter of another test.
        let calls = OutstandingCalls.shared
        calls.enter()
        session.onDelegateQueue {
            delegate?.object.urlSession(session, didBecomeInvalidWithError: nil)
            calls.leave()
        }
    }
}
