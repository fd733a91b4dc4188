import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

// Transfers: started when due, followed, finished, retried; collected when nobody wants them.
extension Agent {
    func planTransfers(_ pass: inout Pass) throws {
        // What is guessed at the start is no promise: a transfer that needs power would begin on a battery.
        let met = mayPlanByConditions(&pass) ? TransferNeeds(metBy: ports.conditions.current) : []
        try stopUnwanted(met: met, &pass)
        try giveUp(&pass)
        try collect(&pass)
        var room = TransferRoom(running: running.values.map(\.host) + prepared.values.map(\.host))
        // One transfer may end in being prepared and make room for another.
        while room.left > 0 {
            pass.wake(at: try pass.transaction.queueDueTransfers(now: pass.now, limit: TransferRoom.limit))
            let candidates = try pass.transaction.nextTransfers(met: met, room: room, behind: lastHost)
            if candidates.isEmpty { break }
            var hasBegun = false
            for candidate in candidates {
                // Its earlier attempt is being stopped in this very pass: the next one begins it again.
                guard running[candidate.id] == nil, prepared[candidate.id] == nil else { continue }
                guard var transfer = try pass.transaction.transfer(candidate.id) else { continue }
                if let target = UploadTarget(transfer), isTaken(target) { continue }
                hasBegun = true
                transfer.state = .running
                transfer.nextAttemptAt = nil
                transfer.attemptNumber += 1
                guard let start = try prepare(&transfer, &pass) else { continue }
                try pass.transaction.update(transfer)
                room.take(transfer.host)
                lastHost = transfer.host
                prepared[candidate.id] = start
                pass.effects.append(.startTransfer(candidate.id))
            }
            guard hasBegun else { break }
        }
    }

    private func isTaken(_ target: UploadTarget) -> Bool {
        running.values.contains { $0.target == target } || prepared.values.contains { $0.target == target }
    }

    /// Cancelled, paused or suspended while its bytes moved; or what it needs is no longer there.
    private func stopUnwanted(met: TransferNeeds, _ pass: inout Pass) throws {
        let stopped = try pass.transaction.stoppedTransfers(among: running.keys)
        for (id, attempt) in running {
            let isMet = met.isSuperset(of: attempt.needs)
            guard !isMet || stopped.contains(id) else { continue }
            guard var transfer = try pass.transaction.transfer(id) else {
                pass.effects.append(.stopAttempt(id))
                continue
            }
            // What must not be done twice is let finish, whatever the network costs by now.
            let mayStop = !isMet && !["POST", "PATCH"].contains(transfer.method)
            guard transfer.state != .running || transfer.isSuspended || mayStop else { continue }
            if transfer.state == .running { transfer.state = .queued }
            try letGo(&transfer, attempt, &pass)
            if let why = attempt.needs.missing(from: met) { log.note("transfer \(id): \(why)") }
        }
    }

    /// Its part is made durable before the attempt ends: whoever goes on with it begins there.
    func letGo(_ transfer: inout TransferRecord, _ attempt: RunningTransfer, _ pass: inout Pass) throws {
        pass.effects.append(.stopAttempt(transfer.id!))
        if case .download(let file) = attempt.work,
            transfer.partial != nil || transfer.keptUntil != nil || !transfer.state.isTerminal,
            let partial = file.letGo()
        {
            transfer.partial = partial
            transfer.bytesDone = partial.durableBytes
        }
        let isAwaited = transfer.state.isTerminal && transfer.isSuspended
        if transfer.state.isTerminal { transfer.isSuspended = false }
        try pass.transaction.update(transfer)
        // Cancelled by an app that waits for this word: its end is told now.
        if isAwaited, transfer.isAdopted { try pass.transaction.addEvent(for: transfer, now: pass.now) }
    }

    /// Given up for lack of progress, never for a number of attempts.
    private func giveUp(_ pass: inout Pass) throws {
        let (due, next) = try pass.transaction.transfersToGiveUp(now: pass.now)
        for var transfer in due {
            let why = transfer.errorMessage.map { " The last trouble: \($0)" } ?? ""
            transfer.errorCode = URLError.Code.timedOut.rawValue
            transfer.errorMessage = "No progress for \(Int(transfer.resourceTimeout)) s.\(why)"
            if running[transfer.id!] != nil { pass.effects.append(.stopAttempt(transfer.id!)) }
            try end(&transfer, as: .failed, &pass)
        }
        pass.wake(at: next)
    }

    /// Transfers that nobody awaits or adopted in time; files of answers that were delivered; parts nobody came back for.
    private func collect(_ pass: inout Pass) throws {
        for var transfer in try pass.transaction.collectableTransfers(now: pass.now) {
            let isKept = transfer.keptUntil.map { $0 > pass.now } ?? false
            if !isKept {
                removeFiles(of: transfer, &pass)
                transfer.file = nil
                transfer.keptUntil = nil
                transfer.resumeToken = nil
            }
            // Also the copy of a photo that was cancelled: nobody can send it any more. One that failed can be tried again.
            if let body = transfer.bodyFile, transfer.state != .failed || transfer.keptUntil == nil {
                // Asked once, as its copy goes once. No attempt of its own: whatever comes of it changes nothing here.
                if transfer.state != .completed, transfer.attempts > 0,
                    let removal = try uploadMachine(transfer, pass.transaction)?.removal
                {
                    let attempt = AttemptID(transfer: transfer.id!, number: transfer.attemptNumber + 1)
                    pass.effects.append(.tidyServer(removal.signed(at: pass.now, hashing: CryptoHashing()), attempt))
                }
                pass.effects.append(.removeFile(ledger.directories.spool.appendingPathComponent(body)))
                transfer.bodyFile = nil
            }
            if !transfer.state.isTerminal {
                transfer.state = .cancelled
                transfer.finishedAt = pass.now
                transfer.note = "nobody waited for it any more"
                if running[transfer.id!] != nil { pass.effects.append(.stopAttempt(transfer.id!)) }
            }
            transfer.adoptableUntil = nil
            transfer.nextAttemptAt = nil
            try pass.transaction.update(transfer)
            try pass.transaction.settle(transfer.id!)
        }
        pass.wake(at: try pass.transaction.nextCollection(after: pass.now))
        guard endsBeforePruning <= 0 else { return }
        endsBeforePruning = Self.endsPerPruning
        for transfer in try pass.transaction.pruneTransfers(now: pass.now) {
            removeFiles(of: transfer, &pass)
            if let body = transfer.bodyFile {
                pass.effects.append(.removeFile(ledger.directories.spool.appendingPathComponent(body)))
            }
        }
    }

    /// Part and whole in the spool; beside a destination the part alone: what stands there is the person's.
    func removeFiles(of transfer: TransferRecord, _ pass: inout Pass) {
        let spool = ledger.directories.spool
        // At once: a crash after the commit would leave a file that no row knows. One before it costs at most these bytes.
        if let part = transfer.partFile(in: spool) { unlink(part.path) }
        if transfer.destination == nil, let whole = transfer.wholeFile(in: spool) { unlink(whole.path) }
    }

    func retryWaitingForNetwork(_ pass: inout Pass) throws {
        unreached = [:]
        try pass.transaction.retryTransfers(waitingWith: Self.networkCodes, now: pass.now)
    }

    private static let networkCodes = [-1001, -1003, -1004, -1005, -1009]
}
