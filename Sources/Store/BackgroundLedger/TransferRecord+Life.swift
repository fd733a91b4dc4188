import Foundation
import TransferMachines

// How a transfer's life stands in the columns of its row. Nothing else writes these, but for the moments that come: what waits is queued
// in one statement, by ``LedgerTransaction/queueDueTransfers(now:limit:)`` and its neighbours.
extension TransferRecord {
    /// Where it is, who wants it, what of it is kept.
    package var life: TransferLife {
        TransferLife(
            phase: phase, wish: wish, kept: kept, isProven: isFinishing,
            reason: errorCode == nil && errorMessage == nil ? nil : .init(code: errorCode, message: errorMessage),
            idleSince: lastProgressAt, triedSince: triedSince ?? createdAt)
    }

    private var phase: TransferLife.Phase {
        // A moment is missing in damaged rows only.
        let due = nextAttemptAt ?? .distantPast
        let end = finishedAt ?? .distantPast
        switch (state, isSuspended) {
        case (.queued, false): return .queued
        case (.running, false): return isFinishing ? .finishing : .running
        case (.waiting, false): return .waiting(until: due)
        case (.queued, true): return .held(by: .app, next: .queued)
        case (.running, true): return .held(by: .app, next: .running)
        case (.waiting, true): return .held(by: .app, next: .waiting(until: due))
        case (.paused, false): return .held(by: .person, next: .queued)
        case (.paused, true): return .held(by: [.person, .app], next: .queued)
        case (.completed, _): return .ended(.completed, at: end)
        case (.failed, _): return .ended(.failed, at: end)
        case (.cancelled, _): return .ended(.cancelled, at: end)
        }
    }

    private var wish: TransferLife.Wish {
        if isAdopted { return .adopted }
        if let adoptableUntil { return .graceful(until: adoptableUntil) }
        return state.isTerminal ? .unwanted : .awaited
    }

    private var kept: TransferLife.Kept {
        guard let keptUntil else { return .nothing }
        if state == .cancelled, isSuspended { return .leaving(token: resumeToken, until: keptUntil) }
        return kind == .upload && resumeToken == nil
            ? .body(until: keptUntil) : .part(token: resumeToken, until: keptUntil)
    }

    private mutating func write(_ life: TransferLife) {
        (nextAttemptAt, finishedAt, isSuspended) = (nil, nil, false)
        switch life.phase {
        case .queued: state = .queued
        case .running, .finishing: state = .running
        case .waiting(let date): (state, nextAttemptAt) = (.waiting, date)
        case .held(by: let holders, next: let next):
            isSuspended = holders.contains(.app)
            switch next {
            case _ where holders.contains(.person): state = .paused
            case .queued: state = .queued
            case .running: state = .running
            case .waiting(let date): (state, nextAttemptAt) = (.waiting, date)
            }
        case .ended(let outcome, at: let date):
            finishedAt = date
            switch outcome {
            case .completed: state = .completed
            case .failed: state = .failed
            case .cancelled: state = .cancelled
            }
        }
        (isAdopted, adoptableUntil) = (false, nil)
        switch life.wish {
        case .awaited, .unwanted: break
        case .graceful(let until): adoptableUntil = until
        case .adopted: isAdopted = true
        }
        (keptUntil, resumeToken) = (nil, nil)
        switch life.kept {
        case .nothing: break
        case .body(let until): keptUntil = until
        case .part(let token, let until): (resumeToken, keptUntil) = (token, until)
        case .leaving(let token, let until): (resumeToken, keptUntil, isSuspended) = (token, until, true)
        }
        isFinishing = life.isProven
        (errorCode, errorMessage) = (life.reason?.code, life.reason?.message)
        lastProgressAt = life.idleSince
        if triedSince != nil { triedSince = life.triedSince }
    }

    private var facts: TransferLife.Facts {
        TransferLife.Facts(
            isUpload: kind == .upload, mayBeRepeated: mayBeRepeated, mayBeCut: mayBeInterrupted, hasBody: bodyFile != nil,
            hasResumablePart: partial?.isResumable == true, hasAnswer: head != nil,
            // Only a part is named by it, and this is asked at every progress.
            newToken: partial?.isResumable == true ? UUID().uuidString.lowercased() : "")
    }

    /// Nothing is done twice by sending it again; or its protocol knows what the server has.
    package var mayBeRepeated: Bool {
        if let upload, upload.method != .plain { return true }
        return TransferRequest.isIdempotent(method)
    }

    /// Stopping it half-way does no harm: it may be repeated, and its server can be asked what it has. A form's cannot.
    package var mayBeInterrupted: Bool { mayBeRepeated && (upload?.method.mayBeCut ?? true) }

    /// Nothing new of it came for as long as anybody waits for that.
    package func isIdleForTooLong(at now: Date) -> Bool {
        RetryPolicy.shouldGiveUp(lastProgressAt: lastProgressAt, now: now, resourceTimeout: resourceTimeout)
    }

    /// That, or it takes too long in all.
    package func isPatienceOver(at now: Date) -> Bool {
        if isIdleForTooLong(at: now) { return true }
        guard let triedSince, let patience else { return false }
        return now.timeIntervalSince(triedSince) >= patience
    }

    /// Something happened to it.
    ///
    /// - Returns: what else has to be done. Of its own row that is done already.
    package mutating func handle(_ event: TransferLife.Event) -> [TransferLife.Command] {
        var life = life
        let commands = life.handle(event, facts)
        write(life)
        for command in commands {
            switch command {
            case .tell, .forgetTelling: break
            case .removeFiles:
                partial = nil
                // Beside a destination its name is random: kept, an agent that died before it removed the file is made up for.
                if destination == nil { file = nil }
            case .removeBody: bodyFile = nil
            case .countAnew:
                fruitlessAttempts = 0
                uploadMemory?.creations = 0
            case .forgetSecrets:
                // An app still looks at the request of its own task when that ends.
                if case .collected = event {
                    forgetSecrets()
                    // The app has the response. Its headers may contain cookies and signed addresses.
                    head = nil
                } else if let upload, upload.method != .plain {
                    forgetSecrets()
                }
            }
        }
        return commands
    }
}

extension TransferRecord {
    /// The event means something to it as it is now.
    package func isChanged(by event: TransferLife.Event) -> Bool {
        var copy = self
        return !copy.handle(event).isEmpty || copy.life != life
    }
}

extension LedgerTransaction {
    /// Something happened to a transfer: its row, and the word to its app.
    ///
    /// - Returns: what is left to do for whoever owns its files.
    @discardableResult
    package func handle(_ event: TransferLife.Event, _ transfer: inout TransferRecord, now: Date) throws -> [TransferLife.Command]
    {
        let commands = transfer.handle(event)
        try update(transfer)
        for command in commands {
            switch command {
            case .tell: try addEvent(for: transfer, now: now)
            case .forgetTelling: try forgetEvents(of: transfer.id!)
            case .removeFiles, .removeBody, .countAnew, .forgetSecrets: break
            }
        }
        return commands
    }

    /// The same for a transfer by its number; nothing where there is none. `false`: it meant nothing to it.
    @discardableResult
    package func handle(_ event: TransferLife.Event, transfer id: Int64, now: Date) throws -> Bool {
        // What means nothing is not written: it would ring.
        guard var transfer = try transfer(id), transfer.isChanged(by: event) else { return false }
        try handle(event, &transfer, now: now)
        return true
    }
}
