import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

// Transfers end: their rows, their events, their files.
extension Agent {
    /// Seconds that the copy of a failed upload is kept for another try.
    private static let bodyPatience: Double = 30 * 86_400
    /// Seconds that the part of a failed download is kept for its resume data.
    private static let partPatience: Double = 7 * 86_400

    /// A transfer ends for good: its row, its event, its files.
    func end(_ transfer: inout TransferRecord, as state: TransferRecord.State, _ pass: inout Pass) throws {
        transfer.state = state
        transfer.finishedAt = pass.now
        transfer.nextAttemptAt = nil
        if state == .completed {
            transfer.errorCode = nil
            transfer.errorMessage = nil
            if transfer.upload?.method != .plain { transfer.forgetSecrets() }
        }
        // A whole file that could not get its name is kept for another try.
        let keepsWhole = state == .failed && transfer.isFinishing
        transfer.isFinishing = keepsWhole
        endsBeforePruning -= 1
        if keepsWhole {
            transfer.keptUntil = pass.now.addingTimeInterval(Self.partPatience)
        } else if state != .completed {
            // What resume data can speak of is kept for whoever has some.
            if state == .failed, transfer.kind == .download, transfer.partial?.isResumable == true, transfer.isAdopted {
                transfer.resumeToken = transfer.resumeToken ?? UUID().uuidString.lowercased()
                transfer.keptUntil = pass.now.addingTimeInterval(Self.partPatience)
            } else if transfer.head == nil || transfer.kind == .download || state == .cancelled {
                removeFiles(of: transfer, &pass)
                transfer.file = nil
                transfer.partial = nil
            }
        }
        // A failed upload can be tried again; a download's body belongs to its one request.
        if state == .failed, transfer.kind == .upload, transfer.isAdopted {
            transfer.keptUntil = pass.now.addingTimeInterval(Self.bodyPatience)
        }
        if let body = transfer.bodyFile, state == .completed || transfer.kind == .download || !transfer.isAdopted {
            pass.effects.append(.removeFile(ledger.directories.spool.appendingPathComponent(body)))
            transfer.bodyFile = nil
        }
        (uploads[transfer.id!], unreached[transfer.id!]) = (nil, nil)
        try pass.transaction.update(transfer)
        if transfer.isAdopted { try pass.transaction.addEvent(for: transfer, now: pass.now) }
        let sentence = transfer.errorMessage.map { ": \($0)" } ?? ""
        log.note("transfer \(transfer.id!) of \(transfer.session): \(state.rawValue)\(sentence)")
    }
}
