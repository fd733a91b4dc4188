import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// The attempts at transfers: begun when due, followed, judged at their end, stopped when they are not wanted any more.
struct Attempts {
    private var entries: [Int64: Entry] = [:]
    /// The host that was served last.
    private var lastHost = ""
    private var pauses = HostPauses()
    /// Unfinished transfers that were tried since this agent began, or the host woke.
    private var tried: Set<Int64> = []

    /// The host was away: what happened before says nothing of now.
    mutating func noteWake() { tried = Set(entries.filter { $0.value.occupied != nil }.keys) }

    /// Nothing is under way.
    var isEmpty: Bool { entries.values.allSatisfy(\.isIdle) }

    /// Sessions of which bytes move, or will as soon as this turn is committed.
    var movingSessions: Set<String> { Set(entries.values.compactMap { $0.occupied?.session }) }

    private func running(_ attempt: AttemptID) -> RunningAttempt? {
        guard let running = entries[attempt.transfer]?.running, running.id == attempt else { return nil }
        return running
    }

    private mutating func set(_ id: Int64, _ entry: Entry) { entries[id] = entry.isForgettable ? nil : entry }

    // MARK: Outside the ledger

    /// The slow part of ends, before the ledger is entered: others write there, too. Small whole files get their names.
    ///
    /// - Returns: what is left to hear, and whether names in the spool have to be made durable.
    mutating func settle(_ heard: [AgentEvent]) -> (heard: [AgentEvent], hasLinked: Bool) {
        var hasLinked = false
        let left = heard.compactMap { event -> AgentEvent? in
            let (attempt, end): (AttemptID, WireEnd)
            switch event {
            case .transport(.ended(let id, let how)):
                guard var ended = running(id) else { return event }
                let how = ended.counted(how)
                // The rest of a large one is the disk worker's.
                guard ended.settle(how) else {
                    ended.isSettling = true
                    entries[id.transfer]?.phase = .running(ended)
                    return nil
                }
                (attempt, end) = (id, how)
            case .attemptSettled(let id, let how): (attempt, end) = (id, how)
            case .transport, .presenter, .conditions, .timeChanged, .zoneChanged, .resumed, .sleepEvent, .alarmRang,
                .alarmRefused, .launchStarted, .launchFailed, .launchEnded, .processEnded, .attemptMoved, .attemptWithoutSource,
                .attemptStopped, .proofChecked, .filePlaced, .filesChanged, .appIsMissing, .stopRequested:
                return event
            }
            if var running = running(attempt), case .download(let file, body: _) = running.work, !running.hasDestination,
                file.linkIfWhole(end, upTo: Self.smallFile)
            {
                running.isLinked = true
                entries[attempt.transfer]?.phase = .running(running)
                hasLinked = true
            }
            return .attemptSettled(attempt, end)
        }
        return (left, hasLinked)
    }

    /// Bytes of a file in the spool up to which its intent is not written down first: they are soon here again.
    private static let smallFile: Int64 = 1 << 20

    /// It is committed: what the transport needs. `nil`: it is not wanted any more.
    mutating func start(
        _ id: Int64, disk: DiskWorker, now: Date, post: @escaping @Sendable (AgentEvent) -> Void
    ) -> RunningAttempt.Start? {
        guard case .prepared(let prepared)? = entries[id]?.phase else { return nil }
        KillPoint.reach(.transferStarting, id)
        let start = prepared.start(disk: disk, now: now, post: post)
        switch start {
        case .attempt(let attempt, _): entries[id]?.phase = .running(attempt)
        case .withoutSource: entries[id]?.phase = .idle
        }
        return start
    }

    /// Its part is made durable before the attempt ends: whoever goes on with it begins there.
    mutating func stop(_ id: Int64) -> AttemptID? {
        guard let entry = entries[id], let traits = entry.occupied else { return nil }
        let (attempt, file): (AttemptID, DownloadFile?)
        switch entry.phase {
        case .prepared(let prepared): (attempt, file) = (prepared.id, nil)
        case .running(let running):
            attempt = running.id
            if case .download(let open, body: _) = running.work { file = open } else { file = nil }
        case .stopping, .idle, .finishing: return nil
        }
        entries[id]?.phase = .stopping(attempt, traits, file)
        file?.release()
        return attempt
    }

    /// These have ended, by whatever part of the agent.
    mutating func forget(_ ended: [Int64]) {
        for id in ended where entries[id]?.isIdle == true { entries[id] = nil }
        tried.subtract(ended)
    }

    // MARK: What is heard

    mutating func note(_ event: TransportEvent, _ pass: inout Pass) throws {
        switch event {
        case .progress(let attempt, let sent, let received):
            guard let running = running(attempt) else { return }
            pauses.noteReached(running.traits.host)
            try running.noteProgress(sent: sent, received: received, &pass)
        case .resumption(let attempt, let head):
            guard var running = running(attempt) else { return }
            try running.noteResumption(head, &pass)
            entries[attempt.transfer]?.phase = .running(running)
        case .ended(let attempt, let end):
            try noteEnd(of: attempt, end, &pass)
        }
    }

    /// The end of an attempt, of which nothing slow is left to do.
    mutating func noteEnd(of attempt: AttemptID, _ end: WireEnd, _ pass: inout Pass) throws {
        let id = attempt.transfer
        // The late answer of an attempt that was stopped or replaced.
        guard let ended = running(attempt), var entry = entries[id] else { return }
        entry.phase = .idle
        defer { set(id, entry) }
        guard var transfer = try pass.transaction.transfer(id), transfer.state == .running else {
            // Stopped just now. What its protocol heard last is not in its memory: the server is asked first next time.
            entry.machine = nil
            guard case .download(let file, body: _) = ended.work else { return try settleStop(of: id, nil, &pass) }
            if ended.isLinked { pass.perform(.removeFile(file.progress.place.whole)) }
            // Somebody may wait for the last word on what is here.
            return try settleStop(of: id, file, &pass)
        }
        KillPoint.reach(.transferEnded, id)
        transfer.bytesOnWire = ended.wireBase + end.bytesSent + end.bytesReceived
        let next = try AttemptEnding(end: end, attempt: ended).judge(&transfer, &entry, &pass)
        pauses.note(end, of: transfer, pass.moment)
        switch next {
        case .nothing: break
        case .place(let sight): place(transfer, &entry, sight, checks: 0, &pass)
        case .nextStep:
            transfer.attemptNumber += 1
            try prepare(&transfer, &entry, &pass)
        }
        KillPoint.reach(.transferCommitting, id)
    }

    /// It goes on at an offset; or a server fell silent, and all that arrived is durable.
    func noteMove(of attempt: AttemptID, _ pass: inout Pass) throws { try running(attempt)?.noteProgress(&pass) }

    /// It was stopped on our side, and its part is durable.
    mutating func noteStop(of attempt: AttemptID, _ pass: inout Pass) throws {
        let id = attempt.transfer
        guard var entry = entries[id], case .stopping(attempt, _, let file) = entry.phase else { return }
        entry.phase = .idle
        entry.machine = nil
        set(id, entry)
        try settleStop(of: id, file, &pass)
    }

    /// What a stopped attempt leaves is durable: its transfer knows how much that is.
    private func settleStop(of id: Int64, _ file: DownloadFile?, _ pass: inout Pass) throws {
        guard var transfer = try pass.transaction.transfer(id) else { return }
        if let file, transfer.partial != nil || transfer.keptUntil != nil || !transfer.state.isTerminal {
            let progress = file.progress
            progress.recordPart(in: &transfer, &pass)
            transfer.bytesDone = progress.partial?.durableBytes ?? transfer.bytesDone
        }
        try pass.transaction.handle(.stopped, &transfer, now: pass.now)
    }

    func noteMissingSource(of attempt: AttemptID, _ trouble: FileTrouble, _ pass: inout Pass) throws {
        guard var transfer = try pass.transaction.transfer(attempt.transfer), transfer.state == .running,
            transfer.attemptNumber == attempt.number
        else { return }
        try pass.failWithoutSource(&transfer, trouble)
    }

    /// What an earlier agent had proven was looked at again.
    ///
    /// - Parameter mayBegin: what has to be fetched anew may begin at once.
    mutating func noteProof(of id: Int64, _ finding: FileProof.Finding, mayBegin: Bool, _ pass: inout Pass) throws {
        guard var entry = entries[id], let checks = entry.checks else { return }
        entry.phase = .idle
        defer { set(id, entry) }
        guard var transfer = try pass.transaction.transfer(id), transfer.state == .running, transfer.isFinishing else { return }
        switch finding {
        case .partIsWhole(let sight): place(transfer, &entry, sight, checks: checks, &pass)
        case .isPlaced: try AttemptEnding.endWhole(&transfer, &pass)
        case .unreadable(let trouble): try pass.failLocally(&transfer, trouble)
        case .isGone:
            transfer.partial = nil
            transfer.bytesDone = 0
            let before = transfer
            // Another program made the file that has the name of the part, for example a link.
            if let place = transfer.partPlace(in: pass.spool) { pass.perform(.removeFile(place.url)) }
            let commands = try pass.transaction.handle(.disproven(now: pass.now), &transfer, now: pass.now)
            pass.remove(commands, of: before)
            // What may not be asked for again has ended.
            guard !transfer.life.hasEnded else { return }
            guard mayBegin else {
                try pass.transaction.handle(.stopped, &transfer, now: pass.now)
                return
            }
            try prepare(&transfer, &entry, &pass)
        }
    }

    /// - Parameter giving: `nil`: nothing was done.
    mutating func notePlaced(_ id: Int64, _ giving: FileName.Giving?, _ pass: inout Pass) throws {
        var entry = entries[id] ?? Entry()
        let finishing = entry.phase
        if entry.checks != nil { entry.phase = .idle }
        defer { set(id, entry) }
        guard var transfer = try pass.transaction.transfer(id), let giving else { return }
        guard transfer.state == .running, transfer.isFinishing else {
            // The cancel came while it got its name: a person who looks sees that it has it.
            guard giving == .given, transfer.state == .cancelled, let place = transfer.destination else { return }
            transfer.note = "its file had been saved by then: \(place)"
            return try pass.transaction.record(transfer)
        }
        switch giving {
        case .given: try AttemptEnding.endWhole(&transfer, &pass)
        case .failed(let trouble): try pass.failLocally(&transfer, trouble)
        case .taken(let free):
            // Known before it is done: after a crash in between nobody takes what stands at the first name for the download.
            transfer.takeName(free)
            try pass.transaction.record(transfer)
            guard case .finishing(let sight?, let checks) = finishing else { return }
            place(transfer, &entry, sight, checks: checks, &pass)
        case .changed:
            guard case .finishing(_, let checks) = finishing, let place = transfer.partPlace(in: pass.spool) else { return }
            guard checks < Self.mostChecks else { return try pass.failLocally(&transfer, .changedPart(place.url.path)) }
            entry.phase = .finishing(nil, checks: checks + 1)
            pass.perform(.checkProof(id, FileProof.Expectation(of: transfer, at: place, mustMatch: true)))
        }
    }

    /// How often in a row a file is read again because it changed before it got its name.
    private static let mostChecks = 3

    /// Whatever waits because nobody could be reached is tried at once: something of the network changed.
    mutating func retryUnreached(_ pass: inout Pass) throws {
        pauses.clear()
        for id in entries.keys { entries[id]?.unreached = 0 }
        entries = entries.filter { !$0.value.isForgettable }
        try pass.transaction.retryTransfers(waitingWith: TransferTrouble.recordedNetworkCodes, now: pass.now)
    }

    // MARK: What follows

    /// - Parameter conditions: what transfers with needs may be planned by; `nil`: nothing is known yet.
    mutating func plan(_ pass: inout Pass, _ conditions: DesktopConditions?) throws {
        let met = conditions.map(TransferNeeds.init(metBy:)) ?? []
        try stopUnwanted(met: met, &pass)
        try giveUp(&pass)
        try begin(met: met, &pass)
    }

    /// Their parts are kept; the next agent goes on with them.
    func stopAll(_ pass: inout Pass) {
        for (id, entry) in entries where entry.occupied != nil { pass.perform(.stopAttempt(id)) }
    }

    /// Cancelled, paused or suspended while its bytes moved; or what it needs is no longer there.
    private func stopUnwanted(met: TransferNeeds, _ pass: inout Pass) throws {
        let running = entries.compactMapValues(\.running)
        let stopped = try pass.transaction.stoppedTransfers(among: running.keys)
        for (id, attempt) in running {
            // All of it is here: it needs nothing more of the network.
            let isMet = attempt.isSettling || met.isSuperset(of: attempt.traits.needs)
            guard !isMet || stopped.contains(id) else { continue }
            if let transfer = try pass.transaction.transfer(id) {
                // What must not be done twice is let finish, whatever the network costs by now.
                let mayStop = transfer.mayBeInterrupted && (!isMet || transfer.isSuspended)
                guard transfer.state != .running || mayStop else { continue }
                if let why = attempt.traits.needs.missing(from: met) {
                    pass.log(.transferStopped, (.transfer, id), (.reason, why))
                }
            }
            pass.perform(.stopAttempt(id))
        }
    }

    /// Given up for lack of progress, or because it takes too long in all; never for a number of attempts.
    ///
    /// Nor before it was tried: after a week away, or behind a need that was never met, the first attempt comes first.
    private mutating func giveUp(_ pass: inout Pass) throws {
        let (due, untried, next) = try pass.transaction.transfersToGiveUp(tried: tried, now: pass.now)
        for var transfer in untried {
            let reason = transfer.life.reason ?? .init(code: nil, message: nil)
            try pass.transaction.handle(.waits(until: pass.now, reason), &transfer, now: pass.now)
        }
        for var transfer in due {
            guard let id = transfer.id, entries[id]?.running?.isSettling != true else { continue }
            tried.remove(id)
            let why = transfer.errorMessage.map { " The last trouble: \($0)" } ?? ""
            if entries[id]?.occupied != nil { pass.perform(.stopAttempt(id)) }
            let what =
                transfer.isIdleForTooLong(at: pass.now)
                ? "No progress for \(Int(transfer.resourceTimeout)) s."
                : "Not done within \(Int(transfer.patience ?? 0)) s: \(transfer.bytesDone) bytes came."
            try pass.fail(&transfer, .timedOut, what + why)
        }
        pass.wake(at: next)
    }

    private mutating func begin(met: TransferNeeds, _ pass: inout Pass) throws {
        var room = TransferRoom(running: entries.values.compactMap { $0.occupied?.host })
        try pauses.restrict(&room, &pass)
        // One transfer may end in being prepared and make room for another.
        while room.left > 0 {
            pass.wake(at: try pass.transaction.queueDueTransfers(now: pass.now, limit: TransferRoom.limit))
            let candidates = try pass.transaction.nextTransfers(met: met, room: room, behind: lastHost)
            if candidates.isEmpty { break }
            var hasBegun = false
            for candidate in candidates {
                var entry = entries[candidate.id] ?? Entry()
                // Its earlier attempt is being stopped: the next pass begins it again.
                guard entry.isIdle, var transfer = try pass.transaction.transfer(candidate.id) else { continue }
                if let target = UploadTarget(transfer), entries.values.contains(where: { $0.occupied?.target == target }) {
                    continue
                }
                hasBegun = true
                _ = transfer.handle(.began)
                transfer.attemptNumber += 1
                // Nobody could try it before: the time until now was none of its patience.
                if tried.insert(candidate.id).inserted, transfer.isPatienceOver(at: pass.now) {
                    _ = transfer.handle(.countedAnew(now: pass.now))
                }
                try prepare(&transfer, &entry, &pass)
                if entry.occupied != nil {
                    room.take(transfer.host)
                    lastHost = transfer.host
                }
                set(candidate.id, entry)
            }
            guard hasBegun else { break }
        }
    }

    /// The next attempt, written into the row; or the transfer ended instead.
    private func prepare(_ transfer: inout TransferRecord, _ entry: inout Entry, _ pass: inout Pass) throws {
        guard let id = transfer.id else { return }
        switch try AttemptPreparation.prepare(&transfer, &entry.machine, &pass) {
        case .attempt(let prepared):
            try pass.transaction.record(transfer)
            entry.phase = .prepared(prepared)
            pass.perform(.startAttempt(id))
        case .proof(let expectation):
            try pass.transaction.record(transfer)
            entry.phase = .finishing(nil, checks: 0)
            pass.perform(.checkProof(id, expectation))
        case .stored(let remoteURL):
            guard let machine = entry.machine else { return }
            try AttemptEnding.finishUpload(&transfer, machine, at: remoteURL, &pass)
            entry = Entry()
        case .ended:
            entry = Entry()
        }
    }

    private func place(
        _ transfer: TransferRecord, _ entry: inout Entry, _ sight: FileSight, checks: Int, _ pass: inout Pass
    ) {
        guard let id = transfer.id, let place = transfer.partPlace(in: pass.spool) else { return }
        entry.phase = .finishing(sight, checks: checks)
        pass.perform(.placeFile(id, part: place.url, whole: place.whole, sight))
    }
}
