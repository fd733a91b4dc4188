import BackgroundLedger
import Foundation
import TransferMachines

// What a transport says of an attempt, and what follows.
extension Agent {
    func note(_ event: TransportEvent, _ pass: inout Pass) throws {
        switch event {
        case .progress(let attempt, let sent, let received):
            guard running[attempt.transfer]?.attempt == attempt else { return }
            try noteProgress(attempt.transfer, sent: sent, received: received, &pass)
        case .resumption(let attempt, let head):
            guard running[attempt.transfer]?.attempt == attempt else { return }
            try noteResumption(attempt.transfer, head, &pass)
        case .ended(let attempt, let end):
            // The late answer of an attempt that was stopped or replaced.
            guard let ended = running[attempt.transfer], ended.attempt == attempt else { return }
            running[attempt.transfer] = nil
            guard var transfer = try pass.transaction.transfer(attempt.transfer), transfer.state == .running else { return }
            CrashPoint.reach("agent.transferEnded", attempt.transfer)
            transfer.bytesOnWire = ended.wireBase + end.bytesSent + end.bytesReceived
            switch ended.work {
            case .download(let file): try finish(&transfer, file, end, &pass)
            case .upload(let machine, let source, let answer):
                var end = end
                end.body = answer.body
                try finish(&transfer, machine, source, end, &pass)
            }
            CrashPoint.reach("agent.transferCommitting", attempt.transfer)
        }
    }

    private func noteProgress(_ id: Int64, sent: Int64, received: Int64, _ pass: inout Pass) throws {
        guard let current = running[id], var transfer = try pass.transaction.transfer(id) else { return }
        let before = transfer
        transfer.bytesOnWire = current.wireBase + sent + received
        switch current.work {
        case .download(let file):
            noteProgress(of: file, &transfer, pass)
            if transfer.kind == .upload { transfer.bytesDone = sent }
        case .upload(_, let source, _):
            if let source { transfer.bytesDone = source.place(sent: sent) }
        }
        if transfer != before { try pass.transaction.update(transfer) }
    }

    private func noteProgress(of file: DownloadFile, _ transfer: inout TransferRecord, _ pass: Pass) {
        let (partial, written) = file.progress
        if noteFurthest(&transfer, partial) { _ = transfer.handle(.progressed(now: pass.now)) }
        transfer.partial = partial
        guard transfer.kind == .download else { return }
        transfer.bytesTotal = partial?.totalBytes
        transfer.bytesDone = written
    }

    /// A server fell silent: were this agent to die now, the next one goes on behind all that is here.
    func noteSynced(_ attempt: AttemptID, _ pass: inout Pass) throws {
        guard let current = running[attempt.transfer], current.attempt == attempt, case .download(let file) = current.work,
            var transfer = try pass.transaction.transfer(attempt.transfer)
        else { return }
        let before = transfer
        noteProgress(of: file, &transfer, pass)
        if transfer != before { try pass.transaction.update(transfer) }
    }

    /// A server names the place where an upload can be gone on with, long before it answers.
    private func noteResumption(_ id: Int64, _ head: ResponseHead, _ pass: inout Pass) throws {
        guard var current = running[id], case .upload(var machine, let source, let answer) = current.work,
            var transfer = try pass.transaction.transfer(id)
        else { return }
        let memory = machine.heard(head)
        current.work = .upload(machine, source, answer)
        running[id] = current
        guard let memory else { return }
        transfer.uploadMemory = memory
        try pass.transaction.update(transfer)
    }

    // MARK: Downloads

    private func finish(
        _ transfer: inout TransferRecord, _ file: DownloadFile, _ end: WireEnd, _ pass: inout Pass
    ) throws {
        let outcome = file.ended(
            end, now: pass.now, attemptsWithoutProgress: transfer.fruitlessAttempts, jitter: jitter())
        transfer.partial = outcome.partial
        transfer.bytesDone = outcome.partial?.durableBytes ?? outcome.byteCount
        noteFruit(&transfer, hasProgress: noteFurthest(&transfer, outcome.partial), now: pass.now)
        if let trouble = outcome.trouble {
            return try failLocally(&transfer, trouble, &pass)
        }
        switch outcome.command {
        case .finish(let head, _):
            transfer.head = head
            transfer.bytesDone = outcome.byteCount
            transfer.bytesTotal = outcome.byteCount
            transfer.sha256 = outcome.sha256
            if transfer.kind == .download { transfer.note = describe(outcome.report, transfer) }
            try finishWhole(&transfer, &pass)
        case .retry(let after, let trouble):
            try wait(&transfer, after: after, trouble, &pass)
        case .restart(let after, let trouble):
            transfer.partial = nil
            transfer.bytesDone = 0
            transfer.note = outcome.report.description
            try wait(&transfer, after: after, trouble, &pass)
        case .fail(let trouble):
            try fail(&transfer, trouble, &pass)
        }
    }

    /// Bytes of a file in the spool up to which its intent is not written down first: they are soon here again.
    private static let smallFile: Int64 = 1 << 20

    /// Proven and synced. Its name comes next: after a commit that says so, or a crash in between would leave a file that
    /// nobody can tell from somebody else's.
    private func finishWhole(_ transfer: inout TransferRecord, _ pass: inout Pass) throws {
        let spool = ledger.directories.spool
        CrashPoint.reach("agent.transferProven", transfer.id!)
        guard let part = transfer.partFile(in: spool), let whole = transfer.wholeFile(in: spool) else {
            return try failLocally(&transfer, .init(why: "the row is damaged", isPassing: false), &pass)
        }
        if transfer.destination == nil, transfer.bytesDone <= Self.smallFile {
            if let trouble = DownloadFile.place(part, as: whole) {
                return try failLocally(&transfer, trouble, &pass)
            }
            CrashPoint.reach("agent.transferPlaced", transfer.id!)
            // Synced before this pass commits, once for all that ended in it.
            pass.placesFiles = true
            return try endWhole(&transfer, &pass)
        }
        try pass.transaction.handle(.proven, &transfer, now: pass.now)
        pass.effects.append(.placeFile(transfer.id!))
    }

    func placeFile(_ id: Int64) throws(LedgerError) {
        let spool = ledger.directories.spool
        let transfer = try ledger.read { try $0.transfer(id) }
        // Cancelled meanwhile: it shall not appear.
        guard let transfer, transfer.state == .running, transfer.isFinishing, let part = transfer.partFile(in: spool),
            let whole = transfer.wholeFile(in: spool)
        else { return }
        CrashPoint.reach("agent.transferPlacing", id)
        var trouble = DownloadFile.place(part, as: whole)
        if trouble == nil, let why = DownloadFile.syncFolder(whole.deletingLastPathComponent().path) {
            trouble = .init(why: why, isPassing: false)
        }
        CrashPoint.reach("agent.transferPlaced", id)
        hear(.transferPlaced(id, trouble))
    }

    func notePlaced(_ id: Int64, _ trouble: FileTrouble?, _ pass: inout Pass) throws {
        guard var transfer = try pass.transaction.transfer(id), transfer.state == .running, transfer.isFinishing else { return }
        if let trouble { return try failLocally(&transfer, trouble, &pass) }
        try endWhole(&transfer, &pass)
    }

    private func endWhole(_ transfer: inout TransferRecord, _ pass: inout Pass) throws {
        if transfer.kind == .upload, let head = transfer.head { return try finishPlainUpload(&transfer, head, &pass) }
        try end(&transfer, as: .completed, nil, &pass)
    }

    /// Which of the ways the bytes came: the history says it.
    private func describe(_ report: ResumeReport, _ transfer: TransferRecord) -> String {
        let isHandedOver = transfer.isAdopted && transfer.attempts == 1 && transfer.bytesOnWire > 0
        switch report {
        case .fresh:
            if isHandedOver { return "on its first connection" }
            return transfer.attempts > 1 ? transfer.note ?? report.description : report.description
        case .resumed, .startedOver:
            return report.description
        }
    }

    private func finishPlainUpload(_ transfer: inout TransferRecord, _ head: ResponseHead, _ pass: inout Pass) throws {
        // The file that arrived is the answer; what counts is what was sent.
        transfer.bytesTotal = transfer.upload?.byteCount
        transfer.bytesDone = transfer.bytesTotal ?? 0
        if (200..<300).contains(head.status) {
            transfer.sha256 = transfer.sourceSHA256
            return try end(&transfer, as: .completed, nil, &pass)
        }
        let trouble = TransferTrouble(head: head, now: pass.now, policy: Self.retryPolicy)
        try fail(&transfer, trouble, &pass)
    }

    // MARK: Uploads

    private func finish(
        _ transfer: inout TransferRecord, _ machine: UploadMachine, _ source: UploadFile?, _ end: WireEnd,
        _ pass: inout Pass
    ) throws {
        var machine = machine
        let id = transfer.id!
        if let source {
            transfer.bytesDone = source.place(sent: end.bytesSent)
            if let digest = source.sha256 { transfer.sha256 = digest }
        }
        let known = machine.knowledge
        let outcome = machine.ended(
            end, now: pass.now, attemptsWithoutProgress: transfer.fruitlessAttempts, jitter: jitter())
        uploads[id] = machine
        if machine.knowledge != known { try pass.transaction.setFact(.server(of: transfer), machine.knowledge) }
        switch outcome {
        case .continue:
            let furthest = transfer.upload?.furthest ?? 0
            // The first question costs nothing and a look after a failed step brings nothing on: else a server that
            // refuses one step for ever would be asked for ever, without a pause.
            if machine.stage > furthest {
                transfer.upload?.furthest = Int(machine.stage)
                noteFruit(&transfer, hasProgress: true, now: pass.now)
            }
            try prepareNextStep(&transfer, &pass)
        case .retry(let after, let trouble):
            // What the server did not keep will be sent again: that is no progress.
            transfer.bytesDone = machine.storedBytes
            noteFruit(&transfer, hasProgress: false, now: pass.now)
            try wait(&transfer, after: after, trouble, &pass)
        case .finished(let remoteURL):
            try finishUpload(&transfer, machine, at: remoteURL, &pass)
        case .fail(let trouble):
            try fail(&transfer, trouble, &pass)
        }
    }

    /// The server has it: the receipt.
    func finishUpload(_ transfer: inout TransferRecord, _ machine: UploadMachine, at remoteURL: String, _ pass: inout Pass) throws
    {
        transfer.bytesDone = transfer.bytesTotal ?? transfer.bytesDone
        // After a restart the bytes may have been sent by an agent that is gone, and a resumed upload sends a part: their
        // digest then is the snapshot's, whose length the server confirmed.
        let sent = transfer.sha256 ?? transfer.sourceSHA256
        guard sent == transfer.sourceSHA256 else {
            let reason = TransferLife.Reason(
                code: URLError.Code.dataLengthExceedsMaximum.rawValue,
                message: "What was sent differs from the file: the queued copy is damaged.")
            return try end(&transfer, as: .failed, reason, &pass)
        }
        transfer.sha256 = sent
        transfer.note = "stored as \(remoteURL)"
        transfer.receipt = UploadReceipt(
            url: remoteURL, byteCount: transfer.upload?.byteCount ?? transfer.bytesDone, sha256: sent ?? "", storedAt: pass.now,
            proof: machine.proof, checkedAt: nil)
        try end(&transfer, as: .completed, nil, &pass)
    }

    // MARK: Waiting

    /// `BACKGROUND_RETRY_BASE` (seconds, debug builds only) lets tests of many faults end within a day.
    static let retryPolicy: RetryPolicy = {
        #if DEBUG
            if let base = ProcessInfo.processInfo.environment["BACKGROUND_RETRY_BASE"].flatMap(Double.init) {
                return RetryPolicy(base: base, networkDelay: base * 10)
            }
        #endif
        return .standard
    }()

    /// Never quite nothing: full jitter alone may allow an attempt without any pause.
    private func jitter() -> Double { 0.2 + 0.8 * random() }

    /// Bytes that the next attempt need not fetch again. Only they count as progress: a server that cuts every answer
    /// would otherwise be asked without pause and never be given up.
    private static func keptBytes(_ partial: PartialFile?) -> Int64 {
        partial?.validator == nil ? 0 : partial?.durableBytes ?? 0
    }

    /// More than was ever here. Bytes that were thrown away and fetched again are no progress, however often.
    private func noteFurthest(_ transfer: inout TransferRecord, _ partial: PartialFile?) -> Bool {
        let kept = Self.keptBytes(partial)
        guard kept > transfer.furthest else { return false }
        transfer.furthest = kept
        return true
    }

    private func noteFruit(_ transfer: inout TransferRecord, hasProgress: Bool, now: Date) {
        if hasProgress {
            _ = transfer.handle(.progressed(now: now))
            if let id = transfer.id { unreached[id] = nil }
        }
        transfer.fruitlessAttempts = hasProgress ? 0 : transfer.fruitlessAttempts + 1
    }

    private func wait(_ transfer: inout TransferRecord, after: Double, _ trouble: TransferTrouble, _ pass: inout Pass) throws {
        var pause = after
        if trouble.isWaitingForNetwork {
            // An attempt that could not reach anybody says nothing about the server.
            transfer.fruitlessAttempts = max(0, transfer.fruitlessAttempts - 1)
            pause *= stretch(transfer.id!)
        } else {
            unreached[transfer.id!] = nil
        }
        try pass.transaction.handle(
            .waits(until: pass.now.addingTimeInterval(pause), TransferLife.Reason(trouble)), &transfer, now: pass.now)
        log.note("transfer \(transfer.id!) waits \(Int(pause.rounded(.up))) s: \(trouble.message)")
    }

    /// Hours offline need no attempt every quarter of a minute: a network that comes is a reason of its own to try at once.
    private func stretch(_ id: Int64) -> Double {
        let before = unreached[id, default: 0]
        unreached[id] = before + 1
        return min(pow(1.5, Double(before)), Self.longestStretch)
    }

    /// Of a pause of a quarter of a minute: five minutes.
    private static let longestStretch: Double = 20

    /// Our own disk is the trouble: full, or a part that somebody tidied away, is a waiting state; anything else fails.
    private func failLocally(_ transfer: inout TransferRecord, _ trouble: FileTrouble, _ pass: inout Pass) throws {
        let code = URLError.Code.cannotWriteToFile.rawValue
        // Where it would be sent again for that, and must not be, it fails.
        guard trouble.isPassing, transfer.mayBeRepeated || transfer.isFinishing else {
            return try fail(&transfer, TransferTrouble(code: code, message: trouble.why), &pass)
        }
        try wait(
            &transfer, after: 60, TransferTrouble(code: code, message: "Waiting for the disk: \(trouble.why)"), &pass)
    }
}
