import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import FoundationNetworking
import Synchronization

/// Tells a delegate of every ended transfer of its session that the app was not told of: those of earlier processes
/// first, then what ends while this process lives. Events come one at a time, in the order they ended.
final class EventReplay: Sendable {
    private struct State {
        var token: LedgerWatch.Token?
        var delivered: Set<Int64> = []
        var saidFinished = false
        var isStopped = false
    }

    private let sessionIdentifier: String
    private let delegate: any URLSessionDelegate
    private let queue: OperationQueue
    private let state = Mutex(State())

    init(session: String, delegate: any URLSessionDelegate, queue: OperationQueue?) {
        sessionIdentifier = session
        self.delegate = delegate
        if let queue {
            self.queue = queue
        } else {
            self.queue = OperationQueue()
            self.queue.maxConcurrentOperationCount = 1
        }
    }

    func start(for session: URLSession) {
        do {
            // While this process is attached the agent launches no other for the session's events.
            try AppRuntime.shared.ledger().write { try $0.attach(session: sessionIdentifier, process: .current) }
            let token = try AppRuntime.shared.onCommit { [weak self, weak session] in
                guard let self, let session else { return }
                self.schedule(session)
            }
            state.withLock { $0.token = token }
        } catch {
            FileHandle.standardError.write(Data("events of session \(sessionIdentifier): \(error)\n".utf8))
        }
        schedule(session)
    }

    func stop() {
        state.withLock {
            $0.isStopped = true
            $0.token?.cancel()
            $0.token = nil
        }
        try? AppRuntime.shared.ledger().write { try $0.detach(session: sessionIdentifier, process: .current) }
    }

    private func schedule(_ session: URLSession) {
        queue.addOperation { self.deliver(to: session) }
    }

    private func deliver(to session: URLSession) {
        guard !state.withLock({ $0.isStopped }) else { return }
        let events =
            (try? AppRuntime.shared.ledger().readAfterRing { transaction in
                try transaction.undeliveredEvents(session: self.sessionIdentifier).compactMap { event in
                    try transaction.transfer(event.transfer).map { (event, $0) }
                }
            }) ?? []
        for (event, transfer) in events {
            guard state.withLock({ $0.delivered.insert(event.id!).inserted }) else { continue }
            deliver(transfer, to: session)
            acknowledge(event.id!)
        }
        let isFirst = state.withLock { state -> Bool in
            defer { state.saidFinished = true }
            return !state.saidFinished
        }
        if isFirst { delegate.urlSessionDidFinishEvents(forBackgroundURLSession: session) }
    }

    private func deliver(_ transfer: TransferRecord, to session: URLSession) {
        switch transfer.kind {
        case .download:
            let task = URLSessionDownloadTask(session: session, record: transfer)
            if transfer.state == .completed, let file = transfer.file {
                let location = AppRuntime.shared.directories.spool.appendingPathComponent(file)
                (delegate as? any URLSessionDownloadDelegate)?
                    .urlSession(session, downloadTask: task, didFinishDownloadingTo: location)
            }
            complete(transfer, task, session)
        case .upload:
            complete(transfer, URLSessionUploadTask(session: session, record: transfer), session)
        }
    }

    private func complete(_ transfer: TransferRecord, _ task: URLSessionTask, _ session: URLSession) {
        let error = transfer.state == .completed ? nil : transfer.urlError
        (delegate as? any URLSessionTaskDelegate)?.urlSession(session, task: task, didCompleteWithError: error)
    }

    /// In a launch for events the acknowledgement waits for the launch's result: a handler that dies is told again.
    private func acknowledge(_ event: Int64) {
        let acknowledge: @Sendable (LedgerTransaction) throws -> Void = { try $0.eventWasDelivered(event, now: Date()) }
        if let context = LaunchContext.current {
            context.acknowledgeAtEnd(acknowledge)
        } else {
            try? AppRuntime.shared.ledger().write(acknowledge)
        }
    }
}
