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
                _ = transfer.handle(.began)
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
            let mayStop = transfer.mayBeInterrupted && (!isMet || transfer.isSuspended)
            guard transfer.state != .running || mayStop else { continue }
            try stop(&transfer, attempt, &pass)
            if let why = attempt.needs.missing(from: met) { log.note("transfer \(id): \(why)") }
        }
    }

    /// Its part is made durable before the attempt ends: whoever goes on with it begins there.
    func stop(_ transfer: inout TransferRecord, _ attempt: RunningTransfer, _ pass: inout Pass) throws {
        pass.effects.append(.stopAttempt(transfer.id!))
        if case .download(let file) = attempt.work,
            transfer.partial != nil || transfer.keptUntil != nil || !transfer.state.isTerminal,
            let partial = file.release()
        {
            transfer.partial = partial
            transfer.bytesDone = partial.durableBytes
        }
        try pass.transaction.handle(.stopped, &transfer, now: pass.now)
    }

    /// Given up for lack of progress, never for a number of attempts.
    private func giveUp(_ pass: inout Pass) throws {
        let (due, next) = try pass.transaction.transfersToGiveUp(now: pass.now)
        for var transfer in due {
            let why = transfer.errorMessage.map { " The last trouble: \($0)" } ?? ""
            let reason = TransferLife.Reason(
                code: URLError.Code.timedOut.rawValue, message: "No progress for \(Int(transfer.resourceTimeout)) s.\(why)")
            if running[transfer.id!] != nil { pass.effects.append(.stopAttempt(transfer.id!)) }
            try end(&transfer, as: .failed, reason, &pass)
        }
        pass.wake(at: next)
    }

    /// Transfers that nobody awaits or adopted in time; files of answers that were delivered; parts nobody came back for.
    private func collect(_ pass: inout Pass) throws {
        for var transfer in try pass.transaction.collectableTransfers(now: pass.now) {
            let before = transfer
            if !before.life.hasEnded {
                transfer.note = "nobody waited for it any more"
                if running[transfer.id!] != nil { pass.effects.append(.stopAttempt(transfer.id!)) }
            }
            let commands = try pass.transaction.handle(.collected(now: pass.now), &transfer, now: pass.now)
            // Asked once, as its copy goes once. No attempt of its own: whatever comes of it changes nothing here.
            if commands.contains(.removeBody), before.state != .completed, before.attempts > 0,
                let removal = try uploadMachine(before, pass.transaction)?.removal
            {
                let attempt = AttemptID(transfer: before.id!, number: before.attemptNumber + 1)
                pass.effects.append(.tidyServer(removal.signed(at: pass.now, hashing: CryptoHashing()), attempt))
            }
            removeRemains(of: before, commands, &pass)
            try pass.transaction.settle(transfer.id!)
        }
        pass.wake(at: try pass.transaction.nextCollection(after: pass.now))
        guard endsBeforePruning <= 0 else { return }
        endsBeforePruning = Self.endsPerPruning
        for transfer in try pass.transaction.pruneTransfers(now: pass.now) {
            removeRemains(of: transfer, [.removeFiles, .removeBody], &pass)
        }
    }

    /// What an event of its life leaves to remove.
    ///
    /// - Parameter before: as it was, with the names of its files.
    func removeRemains(of before: TransferRecord, _ commands: [TransferLife.Command], _ pass: inout Pass) {
        if commands.contains(.removeFiles) { removeFiles(of: before) }
        if commands.contains(.removeBody), let body = before.bodyFile {
            pass.effects.append(.removeFile(ledger.directories.spool.appendingPathComponent(body)))
        }
    }

    /// Part and whole in the spool; beside a destination the part alone: what stands there is the person's.
    func removeFiles(of transfer: TransferRecord) {
        let spool = ledger.directories.spool
        // At once: a crash after the commit would leave a file that no row knows. One before it costs at most these bytes.
        if let part = transfer.partFile(in: spool) { unlink(part.path) }
        if transfer.destination == nil, let whole = transfer.wholeFile(in: spool) { unlink(whole.path) }
    }

    func retryWaitingForNetwork(_ pass: inout Pass) throws {
        unreached = [:]
        try pass.transaction.retryTransfers(waitingWith: TransferTrouble.recordedNetworkCodes, now: pass.now)
    }
}
