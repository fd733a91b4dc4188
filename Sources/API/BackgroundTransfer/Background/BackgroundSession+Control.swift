import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import ProcessSupport
import Synchronization
import TransferMachines

// Suspends, changes and cancels resumed tasks.
extension BackgroundSession {
    func suspend(_ task: URLSessionTask) {
        guard let row = task.row(orNoting: { $0.entry.updateBeginning { $0.isHeld = true } }) else { return }
        handle("a suspend", { _ in .suspended }, row)
    }

    func update(_ task: URLSessionTask) {
        let now = AppRuntime.shared.now
        guard let row = task.row(orNoting: { $0.entry.updateBeginning { $0.isChanged = true } }) else { return }
        DurableWrites.shared.commit("a change of a task of background session \(identifier)") { [self] transaction in
            try change(row, of: task, now, transaction)
        }
    }

    /// Writes the properties that the app set on a task to the ledger.
    func change(_ row: Int64, of task: URLSessionTask, _ now: Date, _ transaction: LedgerTransaction) throws {
        let facts = task.facts.withLock { $0 }
        try transaction.change(
            transfer: row, description: facts.description, priority: Double(facts.priority), expectedToSend: facts.expectsToSend,
            expectedToReceive: facts.expectsToReceive, earliestBegin: facts.earliestBegin, now: now)
    }

    func cancel(_ task: URLSessionTask) {
        let failure = URLError(.cancelled)
        guard let row = task.row(orNoting: { $0.error = $0.error ?? failure }) else { return end(task, failure) }
        guard let wasCanceling = beginCanceling(task) else { return }
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("a cancellation of a task of background session \(identifier)") { transaction in
            // If the transfer has already ended, it is not cancelled, even if the delegate has not received the result yet.
            guard var transfer = try transaction.transfer(row), !transfer.state.isTerminal else {
                return task.facts.withLock { $0.isCanceling = wasCanceling }
            }
            try transaction.handle(.cancelled(message: nil, now: now), &transfer, now: now)
        }
    }

    /// - Returns: `true` if the app had already cancelled the task, or `nil` if the task is completed.
    private func beginCanceling(_ task: URLSessionTask) -> Bool? {
        task.facts.withLock { facts in
            guard !facts.isCompleted else { return nil }
            defer { facts.isCanceling = true }
            return facts.isCanceling
        }
    }

    /// The number of seconds to wait until the agent does not use a partial file any more. If no agent runs, the partial file is
    /// not in use.
    private static let patience: Double = 5

    func cancelProducingResumeData(_ task: URLSessionTask) async -> Data? {
        guard task is URLSessionDownloadTask, let row = task.facts.withLock({ $0.row }) else {
            cancel(task)
            return nil
        }
        guard let wasCanceling = beginCanceling(task) else { return nil }
        let began = AppRuntime.shared.now
        let cancellation = TransferLife.Event.cancelledKeepingPart(token: UUID.random().uuidString.lowercased(), now: began)
        do {
            let wasCancelled = try AppRuntime.shared.commit { transaction in
                try transaction.handle(cancellation, transfer: row, now: began)
            }
            guard wasCancelled else {
                task.facts.withLock { $0.isCanceling = wasCanceling }
                return nil
            }
        } catch {
            // The ledger cannot be written now, so the cancellation is written later. If the cancellation is written later, the
            // app finds the resume data in the error of the task.
            handle("a cancel", { _ in cancellation }, row)
            return nil
        }
        // The agent first syncs the partial file to the disk, and then records the file's length.
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = try? await AppRuntime.shared.waitForAgent { transaction -> Bool? in
                    if case .leaving? = try transaction.transfer(row)?.life.kept { return nil }
                    return true
                }
            }
            group.addTask { await AppRuntime.shared.pause(for: Self.patience) }
            await group.next()
            group.cancelAll()
        }
        do {
            return try AppRuntime.shared.commit { transaction -> Data? in
                guard var transfer = try transaction.transfer(row) else { return nil }
                let resume = ResumeData(transfer)
                // The delegate is called only after the resume data was created, because the error for the delegate contains the
                // same resume data.
                try transaction.handle(
                    .resumeDataMade(hasPart: resume != nil, now: began), &transfer, now: AppRuntime.shared.now)
                return resume?.data
            }
        } catch {
            handle("resume data", { .resumeDataMade(hasPart: ResumeData($0) != nil, now: began) }, row)
            return nil
        }
    }

    // MARK: Left out

    func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (URLSession.AsyncBytes, URLResponse) {
        throw URLError(
            .unsupportedURL,
            userInfo: [
                NSLocalizedDescriptionKey:
                    "a background session cannot deliver single bytes: await data(for:), or use an ordinary session"
            ]
        ).concerning(request.url)
    }
}
