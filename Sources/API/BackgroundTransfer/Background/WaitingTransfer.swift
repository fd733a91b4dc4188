import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import ProcessSupport
import TransferMachines

/// The response of an awaited transfer. The file is kept until the caller calls `release`.
struct EndedTransfer {
    let file: URL
    let response: URLResponse
    let release: @Sendable () -> Void
}

/// A single await of a transfer that the agent makes.
struct WaitingTransfer: Sendable {
    let transfer: Int64
    let waiter: Int64
    let grace: Double

    private enum Found {
        case hasEnded(TransferRecord)
        case isGone
    }

    /// Waits until the transfer has ended. The caller reads the response and then calls `release`.
    func result() async throws -> EndedTransfer {
        let ended: TransferRecord
        do {
            let id = transfer
            let found = try await AppRuntime.shared.waitWithAgent { transaction -> Found? in
                guard let record = try transaction.transfer(id) else { return .isGone }
                return record.state.isTerminal ? .hasEnded(record) : nil
            }
            switch found {
            case .hasEnded(let record): ended = record
            // If the ledger does not contain the row any more, the transfer was cancelled and removed.
            case .isGone: throw URLError(.cancelled)
            }
        } catch is CancellationError {
            throw URLError(.cancelled)
        } catch let error as NoAgent {
            stopWaiting(grace: grace)
            throw URLError(.backgroundSessionWasDisconnected, userInfo: [NSLocalizedDescriptionKey: error.description])
        } catch let error as StoreError {
            stopWaiting(grace: grace)
            throw URLError(.backgroundSessionWasDisconnected, userInfo: [NSLocalizedDescriptionKey: error.description])
        } catch {
            stopWaiting(grace: grace)
            throw error
        }
        let result = TransferResult(ended)
        guard let response = ended.response, let file = result.file else {
            release()
            throw result.error ?? URLError(.badServerResponse)
        }
        return EndedTransfer(file: file, response: response) { release() }
    }

    /// Ends a cancelled await. The agent continues the transfer for the grace time.
    func giveUp() {
        KillPoint.reach(.waiterLeaving)
        stopWaiting(grace: grace)
        KillPoint.reach(.waiterLeft)
    }

    /// Ends the await after the caller has read the response. The transfer is then not needed any more, unless a task continues
    /// the transfer.
    private func release() {
        stopWaiting(grace: 0)
    }

    private func stopWaiting(grace: Double) {
        let now = AppRuntime.shared.now
        // The commit does not start an agent. A running agent is notified of every commit, and detects waiters whose process has
        // ended.
        DurableWrites.shared.commit("the end of an awaited transfer", startsAgent: false) { [waiter] in
            try $0.removeWaiter(waiter, grace: grace, now: now)
        }
    }
}
