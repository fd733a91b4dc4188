import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// The part of the agent for attempts of transfers. This part starts due attempts, supervises them, evaluates how they ended, and
/// stops attempts that are not needed any more.
struct Attempts {
    private var entries: [Int64: Entry] = [:]
    /// The host of the transfer that was started last.
    private var lastHost = ""
    private var pauses = HostPauses()
    /// The unfinished transfers that this agent has tried since the machine last woke.
    private var tried: Set<Int64> = []

    /// Handles the end of a sleep. Transfers that were tried before the sleep are treated as not tried yet.
    mutating func handleWake() { tried = Set(entries.filter { $0.value.occupied != nil }.keys) }

    /// `true` if no attempt is running.
    var isEmpty: Bool { entries.values.allSatisfy(\.isIdle) }

    /// The sessions that have a running transfer, or a transfer that starts after the commit of this pass.
    var movingSessions: Set<String> { Set(entries.values.compactMap { $0.occupied?.session }) }

    private func running(_ attempt: AttemptID) -> RunningAttempt? {
        guard let running = entries[attempt.transfer]?.running, running.id == attempt else { return nil }
        return running
    }

    private mutating func set(_ id: Int64, _ entry: Entry) { entries[id] = entry.isForgettable ? nil : entry }

    // MARK: Outside the transaction

    /// Completes the slow work of ended attempts before the transaction, because other processes cannot write to the ledger
    /// during the transaction. Small complete files also get their final names.
    ///
    /// - Returns: The events that are not completed yet, and whether new file names in the spool have to be synced to the disk.
    mutating func finishEnded(_ heard: [AgentEvent]) -> (heard: [AgentEvent], hasLinked: Bool) {
        var hasLinked = false
        let left = heard.compactMap { event -> AgentEvent? in
            let (attempt, end): (AttemptID, WireEnd)
            switch event {
            case .transport(.ended(let id, let how)):
                guard var ended = running(id) else { return event }
                let how = ended.counted(how)
                // The disk worker does the remaining work for a large file.
                guard ended.finish(how) else {
                    ended.isSettling = true
                    entries[id.transfer]?.phase = .running(ended)
                    return nil
                }
                (attempt, end) = (id, how)
            case .attemptFinished(let id, let how): (attempt, end) = (id, how)
            case .transport, .presenter, .conditions, .timeChanged, .zoneChanged, .resumed, .sleepEvent, .alarmRang,
                .alarmRefused, .launchStarted, .launchFailed, .launchEnded, .processEnded, .attemptMoved, .attemptWithoutSource,
                .attemptStopped, .proofChecked, .filePlaced, .filesChanged, .folderChanging, .folderExamined, .appIsMissing,
                .stopRequested:
                return event
            }
            if var running = running(attempt), case .download(let file, body: _) = running.work, !running.hasDestination,
                file.linkIfWhole(end, upTo: Self.smallFile)
            {
                running.isLinked = true
                entries[attempt.transfer]?.phase = .running(running)
                hasLinked = true
            }
            return .attemptFinished(attempt, end)
        }
        return (left, hasLinked)
    }

    /// The maximum size in bytes of a file that gets its final name before a commit records this name. A small file can quickly
    /// be downloaded again.
    private static let smallFile: Int64 = 1 << 20

    /// Starts an attempt after the commit, and returns the data for the transport. Returns `nil` if the attempt is not needed any
    /// more.
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

    /// Stops an attempt. The partial file is synced before the attempt ends, because the next attempt continues after its bytes.
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

    /// Removes the entries of ended transfers. Any part of the agent can end a transfer.
    mutating func forget(_ ended: [Int64]) {
        for id in ended where entries[id]?.isIdle == true { entries[id] = nil }
        tried.subtract(ended)
    }

    // MARK: Events

    mutating func handle(_ event: TransportEvent, _ pass: inout Pass) throws {
        switch event {
        case .progress(let attempt, let sent, let received):
            guard let running = running(attempt) else { return }
            pauses.removePause(running.traits.host)
            try running.recordProgress(sent: sent, received: received, &pass)
        case .resumption(let attempt, let head):
            guard var running = running(attempt) else { return }
            try running.storeResumptionAddress(head, &pass)
            entries[attempt.transfer]?.phase = .running(running)
        case .ended(let attempt, let end):
            try handleAttemptEnd(of: attempt, end, &pass)
        }
    }

    /// Handles the end of an attempt after all slow work is complete.
    mutating func handleAttemptEnd(of attempt: AttemptID, _ end: WireEnd, _ pass: inout Pass) throws {
        let id = attempt.transfer
        // If no entry exists, this is the late end of an attempt that was stopped or replaced.
        guard let ended = running(attempt), var entry = entries[id] else { return }
        entry.phase = .idle
        defer { set(id, entry) }
        guard var transfer = try pass.transaction.transfer(id), transfer.state == .running else {
            // The transfer was stopped before its attempt ended. The stored state of the upload does not contain the last
            // response, so the next attempt first checks the state of the server.
            entry.machine = nil
            guard case .download(let file, body: _) = ended.work else { return try recordStoppedAttempt(of: id, nil, &pass) }
            if ended.isLinked { pass.perform(.removeFile(file.progress.place.whole)) }
            // Another process may be waiting for the final number of stored bytes.
            return try recordStoppedAttempt(of: id, file, &pass)
        }
        KillPoint.reach(.transferEnded, id)
        transfer.bytesOnWire = ended.wireBase + end.bytesSent + end.bytesReceived
        let next = try AttemptEnding(end: end, attempt: ended).judge(&transfer, &entry, &pass)
        pauses.record(end, of: transfer, pass.moment)
        switch next {
        case .nothing: break
        case .place(let sight): place(transfer, &entry, sight, checks: 0, &pass)
        case .nextStep:
            transfer.attemptNumber += 1
            try prepare(&transfer, &entry, &pass)
        }
        KillPoint.reach(.transferCommitting, id)
    }

    /// Handles progress of a download. The download continued at an offset, or all received bytes were synced because the server
    /// sends no more bytes.
    func recordMovedDownload(of attempt: AttemptID, _ pass: inout Pass) throws { try running(attempt)?.recordProgress(&pass) }

    /// Handles an attempt that the agent stopped, after its partial file was synced.
    mutating func handleAttemptStop(of attempt: AttemptID, _ pass: inout Pass) throws {
        let id = attempt.transfer
        guard var entry = entries[id], case .stopping(attempt, _, let file) = entry.phase else { return }
        entry.phase = .idle
        entry.machine = nil
        set(id, entry)
        try recordStoppedAttempt(of: id, file, &pass)
    }

    /// Records in the transfer how many bytes of a stopped attempt are stored on the disk.
    private func recordStoppedAttempt(of id: Int64, _ file: DownloadFile?, _ pass: inout Pass) throws {
        guard var transfer = try pass.transaction.transfer(id) else { return }
        if let file, transfer.partial != nil || transfer.keptUntil != nil || !transfer.state.isTerminal {
            let progress = file.progress
            progress.recordPart(in: &transfer, &pass)
            transfer.bytesDone = progress.partial?.durableBytes ?? transfer.bytesDone
        }
        try pass.transaction.handle(.stopped, &transfer, now: pass.now)
    }

    func failMissingSource(of attempt: AttemptID, _ trouble: FileTrouble, _ pass: inout Pass) throws {
        guard var transfer = try pass.transaction.transfer(attempt.transfer), transfer.state == .running,
            transfer.attemptNumber == attempt.number
        else { return }
        try pass.failWithoutSource(&transfer, trouble)
    }

    /// Handles the result of the check of a file that an earlier agent verified.
    ///
    /// - Parameter mayBegin: `true` if a new download can begin immediately.
    mutating func handleProof(of id: Int64, _ finding: FileProof.Finding, mayBegin: Bool, _ pass: inout Pass) throws {
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
            // Another program created the file that has the path of the partial file, for example a link.
            if let place = transfer.partPlace(in: pass.spool) { pass.perform(.removeFile(place.url)) }
            let commands = try pass.transaction.handle(.disproven(now: pass.now), &transfer, now: pass.now)
            pass.remove(commands, of: before)
            // A transfer that must not be repeated has ended at this point.
            guard !transfer.life.hasEnded else { return }
            guard mayBegin else {
                try pass.transaction.handle(.stopped, &transfer, now: pass.now)
                return
            }
            try prepare(&transfer, &entry, &pass)
        }
    }

    /// - Parameter giving: the result of the renaming, or `nil` if the file was not renamed.
    mutating func handlePlacedFile(_ id: Int64, _ giving: FileName.NamingResult?, _ pass: inout Pass) throws {
        var entry = entries[id] ?? Entry()
        let finishing = entry.phase
        if entry.checks != nil { entry.phase = .idle }
        defer { set(id, entry) }
        guard var transfer = try pass.transaction.transfer(id), let giving else { return }
        guard transfer.state == .running, transfer.isFinishing else {
            // The transfer was cancelled while the file was renamed. The note explains why the file exists although the transfer
            // was cancelled.
            guard giving == .given, transfer.state == .cancelled, let place = transfer.destination else { return }
            transfer.note = "the transfer was cancelled too late, because the file was already complete: \(place)"
            return try pass.transaction.record(transfer)
        }
        switch giving {
        case .given: try AttemptEnding.endWhole(&transfer, &pass)
        case .failed(let trouble): try pass.failLocally(&transfer, trouble)
        case .taken(let free):
            // The new name is recorded before the file is renamed. So after a crash, another program's file with the old name is
            // not mistaken for the downloaded file.
            transfer.claimName(free)
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

    /// The maximum number of consecutive times that a file is read again because it changed before it was renamed.
    private static let mostChecks = 3

    /// Retries all transfers that wait because no server could be reached. The reason for the retry is a change of the network.
    mutating func retryUnreached(_ pass: inout Pass) throws {
        pauses.clear()
        for id in entries.keys { entries[id]?.unreached = 0 }
        entries = entries.filter { !$0.value.isForgettable }
        try pass.transaction.retryTransfers(waitingWith: TransferTrouble.recordedNetworkCodes, now: pass.now)
    }

    // MARK: Planning

    /// - Parameter conditions: the conditions for transfers with needs, or `nil` if the conditions are not known yet.
    mutating func plan(_ pass: inout Pass, _ conditions: DesktopConditions?) throws {
        let met = conditions.map(TransferNeeds.init(metBy:)) ?? []
        try stopUnwanted(met: met, &pass)
        try giveUp(&pass)
        try begin(met: met, &pass)
    }

    /// Stops the attempts of all transfers. The partial files of the downloads are kept, and the next agent continues with these
    /// files.
    func stopAll(_ pass: inout Pass) {
        for (id, entry) in entries where entry.occupied != nil { pass.perform(.stopAttempt(id)) }
    }

    /// Stops attempts of transfers that were cancelled, paused or suspended, and of transfers whose needs are not met any more.
    private func stopUnwanted(met: TransferNeeds, _ pass: inout Pass) throws {
        let running = entries.compactMapValues(\.running)
        let stopped = try pass.transaction.stoppedTransfers(among: running.keys)
        for (id, attempt) in running {
            // If all bytes have arrived, the transfer does not need the network any more.
            let isMet = attempt.isSettling || met.isSuperset(of: attempt.traits.needs)
            guard !isMet || stopped.contains(id) else { continue }
            if let transfer = try pass.transaction.transfer(id) {
                // A transfer that must not be repeated is not stopped, even if its needs are not met any more.
                let mayStop = transfer.mayBeInterrupted && (!isMet || transfer.isSuspended)
                guard transfer.state != .running || mayStop else { continue }
                if let why = attempt.traits.needs.missing(from: met) {
                    pass.log(.transferStopped, (.transfer, id), (.reason, why))
                }
            }
            pass.perform(.stopAttempt(id))
        }
    }

    /// Gives up transfers that made no progress for too long or take too long in total. The number of attempts does not matter.
    ///
    /// A transfer is not given up before this agent has tried it. For example, the machine may have been off for a week, or the
    /// needs of the transfer may never have been met.
    private mutating func giveUp(_ pass: inout Pass) throws {
        let (due, untried, next) = try pass.transaction.transfersToGiveUp(tried: tried, now: pass.now)
        for var transfer in untried {
            let reason = transfer.life.reason ?? .init(code: nil, message: nil)
            try pass.transaction.handle(.waits(until: pass.now, reason), &transfer, now: pass.now)
        }
        for var transfer in due {
            guard let id = transfer.id, entries[id]?.running?.isSettling != true else { continue }
            tried.remove(id)
            let why = transfer.errorMessage.map { " The last error: \($0)" } ?? ""
            if entries[id]?.occupied != nil { pass.perform(.stopAttempt(id)) }
            let what =
                transfer.isIdleForTooLong(at: pass.now)
                ? "The transfer made no progress for \(Int(transfer.resourceTimeout)) s."
                : "The transfer was not complete within \(Int(transfer.patience ?? 0)) s. \(transfer.bytesDone) bytes were received."
            try pass.fail(&transfer, .timedOut, what + why)
        }
        pass.wake(at: next)
    }

    private mutating func begin(met: TransferNeeds, _ pass: inout Pass) throws {
        var room = TransferRoom(running: entries.values.compactMap { $0.occupied?.host })
        try pauses.restrict(&room, &pass)
        // If a transfer ends during its preparation, another transfer can start.
        while room.left > 0 {
            pass.wake(at: try pass.transaction.queueDueTransfers(now: pass.now, limit: TransferRoom.limit))
            let candidates = try pass.transaction.nextTransfers(met: met, room: room, behind: lastHost)
            if candidates.isEmpty { break }
            var hasBegun = false
            for candidate in candidates {
                var entry = entries[candidate.id] ?? Entry()
                // While an earlier attempt is being stopped, the transfer cannot start, and a later pass starts it.
                guard entry.isIdle, var transfer = try pass.transaction.transfer(candidate.id) else { continue }
                if let target = UploadTarget(transfer), entries.values.contains(where: { $0.occupied?.target == target }) {
                    continue
                }
                hasBegun = true
                guard try LeadingUpload.allows(&transfer, &pass) else { continue }
                _ = transfer.handle(.began)
                transfer.attemptNumber += 1
                // No attempt was possible before this first attempt, so the time until now does not count as time without
                // progress.
                if tried.insert(candidate.id).inserted, transfer.isPatienceOver(at: pass.now) {
                    _ = transfer.handle(.countsReset(now: pass.now))
                }
                try prepare(&transfer, &entry, &pass)
                if entry.occupied != nil {
                    room.insert(transfer.host)
                    lastHost = transfer.host
                }
                set(candidate.id, entry)
            }
            guard hasBegun else { break }
        }
    }

    /// Prepares the next attempt and writes it into the row, or ends the transfer.
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
        _ transfer: TransferRecord, _ entry: inout Entry, _ sight: FileVersion, checks: Int, _ pass: inout Pass
    ) {
        guard let id = transfer.id, let place = transfer.partPlace(in: pass.spool) else { return }
        entry.phase = .finishing(sight, checks: checks)
        pass.perform(.placeFile(id, part: place.url, whole: place.whole, sight))
    }
}
