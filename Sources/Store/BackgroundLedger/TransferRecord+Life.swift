import Foundation
import ProcessSupport
import TransferMachines

// The columns that store the life of a transfer. Outside this file, only statements that change many transfers write these
// columns, for example ``LedgerTransaction/queueDueTransfers(now:limit:)``.
extension TransferRecord {
    /// The state of the transfer as a value of the state machine `TransferLife`. The state contains the phase, the demand of the
    /// user and the app, and the stored data.
    package var life: TransferLife {
        TransferLife(
            phase: phase, wish: wish, kept: kept, isProven: isFinishing,
            reason: errorCode == nil && errorMessage == nil ? nil : .init(code: errorCode, message: errorMessage),
            idleSince: lastProgressAt, triedSince: triedSince ?? createdAt)
    }

    private var phase: TransferLife.Phase {
        // Only in a damaged row, one of these two times is missing.
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

    private var wish: TransferLife.Demand {
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
        var facts = TransferLife.Facts(
            isUpload: kind == .upload, mayBeRepeated: mayBeRepeated, mayBeCut: mayBeInterrupted, hasBody: bodyFile != nil,
            hasResumablePart: partial?.isResumable == true, hasAnswer: head != nil,
            // The token refers to a partial file. A token is created only if a partial file exists, because this property is read
            // at each report of progress.
            newToken: partial?.isResumable == true ? UUID.random().uuidString.lowercased() : "")
        facts.onlyChecks = upload?.onlyChecks == true
        return facts
    }

    /// `true` if the request can be sent again without a second effect, or if the server can report which bytes it has received.
    package var mayBeRepeated: Bool {
        if let upload, upload.method != .plain { return true }
        return TransferRequest.isIdempotent(method)
    }

    /// `true` if a running transfer can be stopped without harm. Such a transfer can be repeated, and the server can report which
    /// bytes the server has received. `false` for an upload by a form.
    package var mayBeInterrupted: Bool { mayBeRepeated && (upload?.method.mayBeCut ?? true) }

    /// Returns whether the transfer made no progress for longer than its resource timeout.
    package func isIdleForTooLong(at now: Date) -> Bool {
        RetryPolicy.shouldGiveUp(lastProgressAt: lastProgressAt, now: now, resourceTimeout: resourceTimeout)
    }

    /// Returns whether the transfer must fail, because it made no progress for too long or takes too long in total.
    package func isPatienceOver(at now: Date) -> Bool {
        if isIdleForTooLong(at: now) { return true }
        guard let triedSince, let patience else { return false }
        return now.timeIntervalSince(triedSince) >= patience
    }

    /// Applies an event to the transfer and updates its properties.
    ///
    /// - Returns: the actions that the caller must perform.
    package mutating func handle(_ event: TransferLife.Event) -> [TransferLife.Command] {
        var life = life
        let commands = life.handle(event, facts)
        write(life)
        for command in commands {
            switch command {
            case .reportEnd, .forgetReport: break
            case .removeFiles:
                partial = nil
                // A partial file next to a destination has a random name. The row keeps this name, so that a later agent can
                // remove the file if this agent is killed before it removes the file.
                if destination == nil { file = nil }
            case .removeBody: bodyFile = nil
            case .resetCounts:
                fruitlessAttempts = 0
                uploadMemory?.creations = 0
            case .forgetSecrets:
                // The secrets of a request that the app created are kept until the files of the transfer are removed. The app can
                // read the request when the task ends.
                if case .collected = event {
                    forgetSecrets()
                    // The headers of the response may contain cookies and signed addresses. A later task with the same submission
                    // key receives the response without headers.
                    head?.headers = []
                } else if let upload, upload.method != .plain {
                    forgetSecrets()
                }
            }
        }
        return commands
    }
}

extension TransferRecord {
    /// Returns whether the event would change the transfer in its current state.
    package func isChanged(by event: TransferLife.Event) -> Bool {
        var copy = self
        return !copy.handle(event).isEmpty || copy.life != life
    }
}

extension LedgerTransaction {
    /// Applies an event to a transfer, updates the transfer's row, and adds or removes the event that reports the transfer's end.
    ///
    /// - Returns: the actions that the process with the transfer's files must perform.
    @discardableResult
    package func handle(_ event: TransferLife.Event, _ transfer: inout TransferRecord, now: Date) throws -> [TransferLife.Command]
    {
        let commands = transfer.handle(event)
        try update(transfer)
        for command in commands {
            switch command {
            case .reportEnd: try addEvent(for: transfer, now: now)
            case .forgetReport: try forgetEvents(of: transfer.id!)
            case .removeFiles, .removeBody, .resetCounts, .forgetSecrets: break
            }
        }
        if transfer.state.isTerminal { try wakeFollowers(of: transfer, now: now) }
        if case .retried = event, !transfer.state.isTerminal { try retryFollowers(of: transfer, now: now) }
        return commands
    }

    /// Retries the uploads that failed because this upload failed.
    private func retryFollowers(of transfer: TransferRecord, now: Date) throws {
        guard let keys = transfer.upload?.company?.followers, !keys.isEmpty else { return }
        for var follower in try transfers(ofKeys: keys, session: transfer.session).values
        where follower.state == .failed && follower.upload?.company?.leader == transfer.key {
            try handle(.retried(now: now), &follower, now: now)
        }
    }

    /// Ends the waits of the uploads that begin after this upload.
    private func wakeFollowers(of transfer: TransferRecord, now: Date) throws {
        guard let keys = transfer.upload?.company?.followers, !keys.isEmpty else { return }
        for var follower in try transfers(ofKeys: keys, session: transfer.session).values where follower.state == .waiting {
            try handle(.waits(until: now, follower.life.reason ?? .init(code: nil, message: nil)), &follower, now: now)
        }
    }

    /// Applies an event to the transfer with this number. Returns `false` if the transfer does not exist, or if the event does
    /// not change the transfer.
    @discardableResult
    package func handle(_ event: TransferLife.Event, transfer id: Int64, now: Date) throws -> Bool {
        // If the event has no effect, nothing is written, because a write sends a change notification.
        guard var transfer = try transfer(id), transfer.isChanged(by: event) else { return false }
        try handle(event, &transfer, now: now)
        return true
    }
}

extension TransferRecord {
    /// `true` if the request that creates the file on the server was sent and no response arrived.
    package var mayBeOnServer: Bool {
        guard !state.isTerminal, attempts > 0, let upload, let step = uploadMemory?.step else { return false }
        return upload.method.mayBeOnServer(at: step)
    }
}

// Functions for the files of a transfer: the partial file, the complete file and the queued copy.
extension TransferRecord {
    /// Returns the place of the partial file, or `nil` before the first attempt.
    package func partPlace(in spool: URL) -> PartPlace? {
        guard let file, Self.isPlainName(file) else { return nil }
        return PartPlace(name: file, spool: spool, destination: destination, seenFolder: seenFolder)
    }

    private var seenFolder: SeenFolder? { destinationFolder.flatMap(SeenFolder.init(text:)) }

    /// Sets the destination, and records the identity that the destination's folder has in this process.
    package mutating func setDestination(_ path: String) {
        destination = path
        destinationFolder = SeenFolder(URL(fileURLWithPath: path, isDirectory: false).deletingLastPathComponent().path)?.text
    }

    package mutating func adoptDestination(of other: TransferRecord) {
        (destination, destinationFolder) = (other.destination, other.destinationFolder)
        (mayReplace, replacedFile) = (other.mayReplace, other.replacedFile)
    }

    /// Returns whether both transfers have the same destination: the same path in the same folder.
    package func hasDestination(of other: TransferRecord) -> Bool {
        guard destination.map(PathName.init) == other.destination.map(PathName.init) else { return false }
        guard let seenFolder, let folder = other.seenFolder else { return true }
        return seenFolder.isSame(as: folder)
    }

    /// Returns the partial file, or `nil` before the first attempt.
    package func partFile(in spool: URL) -> URL? { partPlace(in: spool)?.url }

    /// Returns the place of the complete file.
    package func wholeFile(in spool: URL) -> URL? {
        if let destination { return URL(fileURLWithPath: destination, isDirectory: false) }
        return partPlace(in: spool)?.whole
    }

    /// Returns the files that must be removed when the transfer is not needed any more. A file at the destination belongs to the
    /// user and is not included.
    package func remains(in spool: URL) -> [URL] {
        guard let place = partPlace(in: spool) else { return [] }
        return [place.url, place.other.url] + (destination == nil ? [place.whole] : [])
    }

    /// Returns whether a text is a file name without a folder. The agent chooses the names, but the name in a damaged row could
    /// lead to a file outside the folder.
    package static func isPlainName(_ name: String) -> Bool {
        !name.isEmpty && !name.utf8.contains(UInt8(ascii: "/")) && name != "." && name != ".."
    }

    /// Chooses the name of the partial file at the first call. If the download has a destination, the file is hidden, and its
    /// name contains the name of the destination.
    package mutating func nameFile() {
        guard file == nil, let id else { return }
        guard let destination else {
            // A later attempt uses another name, because another transfer may already use the earlier name for its partial file.
            file = attemptNumber > 1 ? "transfer-\(id)-\(attemptNumber)" : "transfer-\(id)"
            return
        }
        // A part of the name is random, because another program, or an app with another ledger, may use a predictable name.
        let mark = String(UInt32.random(in: .min ... .max), radix: 36)
        // `isDirectory` is given, because otherwise Foundation would check whether the path is a folder.
        let name = URL(fileURLWithPath: destination, isDirectory: false).lastPathComponent
        let full = ".\(name).\(mark)\(PartPlace.suffix)"
        file = full.utf8.count <= PartPlace.longestName ? full : ".download.\(mark)\(PartPlace.suffix)"
    }

    /// Changes the destination to a free name, because another file already has the requested name.
    package mutating func claimName(_ free: URL) {
        let taken = destination.map { URL(fileURLWithPath: $0, isDirectory: false).lastPathComponent } ?? ""
        destination = free.path
        // If the destination was already changed before, the note contains the earlier name, which is replaced.
        if let note, let earlier = note.range(of: "saved as \(taken), because ", options: .backwards) {
            self.note = note.replacingCharacters(in: earlier, with: "saved as \(free.lastPathComponent), because ")
        } else {
            let before = note.map { $0 + "; " } ?? ""
            note = "\(before)the file was saved as \(free.lastPathComponent), because \(taken) existed already"
        }
    }

    /// Records the greatest length that the partial file has reached.
    ///
    /// Bytes that are received a second time do not count as progress. Otherwise a transfer would never fail if the server
    /// interrupts every response.
    ///
    /// - Returns: `true` if the partial file is longer than before.
    package mutating func recordGreatestLength(_ partial: PartialFile?) -> Bool {
        let kept = partial?.validator == nil ? 0 : partial?.durableBytes ?? 0
        guard kept > furthest else { return false }
        furthest = kept
        return true
    }

    /// Returns whether the transfer is unfinished or failed, and its queued copy is not in the spool.
    package func lacksCopy(in spool: URL) -> Bool {
        state != .completed && state != .cancelled && bodyFile.map { Self.isMissing($0, in: spool) } ?? false
    }

    static func isMissing(_ name: String, in spool: URL) -> Bool {
        switch PathStatus.at(spool.appendingPathComponent(name, isDirectory: false).path, followingLinks: false) {
        case .absent: true
        // A link or a folder at the path is not the copy, because a copy is always a regular file.
        case .found(let information): information.st_mode & S_IFMT != S_IFREG
        case .unreadable: false
        }
    }
}
