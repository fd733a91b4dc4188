import ProcessSupport
import Spool
import BackgroundLedger
import Foundation
import TransferMachines

/// Decides what follows the end of an attempt. The transfer is complete, is retried, continues with another step, or fails. This
/// type has no state.
struct AttemptEnding {
    /// The action that follows after the row of the transfer was changed.
    enum Next {
        case nothing
        /// Rename the file to its final name, if the file has not changed.
        case place(FileVersion)
        /// Send the next request of the upload.
        case nextStep
    }

    let end: WireEnd
    let attempt: RunningAttempt

    func judge(_ transfer: inout TransferRecord, _ entry: inout Attempts.Entry, _ pass: inout Pass) throws -> Next {
        switch attempt.work {
        case .download(let file, let body): return try judge(file, body, &transfer, &entry, &pass)
        case .upload(let machine, let source, let answer):
            return try judge(machine, source, answer.completing(end), &transfer, &entry, &pass)
        }
    }

    // MARK: Downloads

    private func judge(
        _ file: DownloadFile, _ body: UploadFile?, _ transfer: inout TransferRecord, _ entry: inout Attempts.Entry,
        _ pass: inout Pass
    ) throws -> Next {
        let outcome = file.outcome(
            of: end, now: pass.now, attemptsWithoutProgress: transfer.fruitlessAttempts, jitter: pass.jitter())
        let partial = outcome.progress.partial
        outcome.progress.recordPart(in: &transfer, &pass)
        if outcome.progress.hasAnswer, transfer.kind == .download { transfer.resumedAt = outcome.progress.resumedAt }
        transfer.bytesDone = partial?.durableBytes ?? outcome.progress.written
        record(progress: transfer.recordGreatestLength(partial), &transfer, &entry, pass)
        if var trouble = outcome.trouble ?? (end.failure == nil ? nil : body?.trouble) {
            if trouble.isOfNoUse { transfer.partial = nil }
            var pause = Pass.diskPause
            if trouble.mayBeEndless {
                trouble.isPassing = transfer.fruitlessAttempts < RetryPolicy.maximumRefusals
                pause = RetryPolicy.ofAgent.fullDelay
            } else if trouble.isOfNoUse {
                pause = RetryPolicy.ofAgent.backoff(
                    attemptsWithoutProgress: transfer.fruitlessAttempts, jitter: pass.jitter())
            }
            try pass.failLocally(&transfer, trouble, pause: pause)
            return .nothing
        }
        if Self.isDamaged(body?.sha256, transfer) {
            try pass.end(&transfer, as: .failed, Self.damage)
            return .nothing
        }
        switch outcome.command {
        case .finish(let head, _):
            transfer.head = head
            transfer.bytesDone = outcome.progress.written
            transfer.bytesTotal = outcome.progress.written
            transfer.sha256 = outcome.sha256
            if transfer.kind == .download { transfer.note = describe(outcome.report, transfer) }
            return try finishWhole(&transfer, outcome.sight, &pass)
        case .retry(let after, let trouble):
            try wait(&transfer, after, trouble, &entry, &pass)
        case .restart(let after, let trouble):
            transfer.partial = nil
            transfer.bytesDone = 0
            transfer.note = outcome.report.description
            try wait(&transfer, after, trouble, &entry, &pass)
        case .fail(let trouble):
            try pass.fail(&transfer, trouble)
        }
        return .nothing
    }

    /// Handles a complete file that was verified and synced. If the file has no final name yet, a commit records the renaming
    /// before the file is renamed. Without this commit, a crash could leave a file that looks like a file of another program.
    private func finishWhole(_ transfer: inout TransferRecord, _ sight: FileVersion?, _ pass: inout Pass) throws -> Next {
        guard let place = transfer.partPlace(in: pass.spool), let sight else {
            try pass.failLocally(
                &transfer, FileTrouble(why: "the data of the transfer in the ledger is damaged", isPassing: false))
            return .nothing
        }
        if attempt.isLinked {
            pass.perform(.removeFile(place.url))
            try Self.endWhole(&transfer, &pass)
            return .nothing
        }
        KillPoint.reach(.transferProven, attempt.id.transfer)
        try pass.transaction.handle(.proven, &transfer, now: pass.now)
        return .place(sight)
    }

    /// Ends a transfer after its file got the final name.
    static func endWhole(_ transfer: inout TransferRecord, _ pass: inout Pass) throws {
        guard transfer.kind == .upload, let head = transfer.head else { return try pass.end(&transfer, as: .completed) }
        // The received file of a plain upload is only the response, so the progress is the number of sent bytes.
        transfer.bytesTotal = transfer.upload?.byteCount
        transfer.bytesDone = transfer.bytesTotal ?? 0
        if (200..<300).contains(head.status) {
            transfer.sha256 = transfer.sourceSHA256
            return try pass.end(&transfer, as: .completed)
        }
        try pass.fail(&transfer, TransferTrouble(head: head, now: pass.now, policy: .ofAgent))
    }

    /// Returns a text for the history that describes how the bytes arrived.
    private func describe(_ report: ResumeReport, _ transfer: TransferRecord) -> String {
        let isHandedOver = transfer.isAdopted && transfer.attempts == 1 && transfer.bytesOnWire > 0
        switch report {
        case .fresh:
            if isHandedOver { return "all bytes were received on the first connection" }
            return transfer.attempts > 1 ? transfer.note ?? report.description : report.description
        case .resumed, .startedOver:
            return report.description
        }
    }

    // MARK: Uploads

    private func judge(
        _ before: UploadMachine, _ source: UploadFile?, _ end: WireEnd, _ transfer: inout TransferRecord,
        _ entry: inout Attempts.Entry, _ pass: inout Pass
    ) throws -> Next {
        var (machine, end) = (before, end)
        // The request was stopped because the file could not be read. The server detects only that the connection was lost.
        let disk = end.failure == .stoppedByOwner && end.head == nil ? source?.trouble : nil
        if let disk, disk.isPassing { end.failure = .connectionLost }
        if let source { transfer.bytesDone = source.place(sent: end.bytesSent) }
        let sent = source?.sha256 ?? attempt.check?.sha256
        if let sent { transfer.sha256 = sent }
        let outcome = machine.ended(
            end, now: pass.now, attemptsWithoutProgress: transfer.fruitlessAttempts, jitter: pass.jitter())
        entry.machine = machine
        if machine.knowledge != before.knowledge { try pass.transaction.setFact(.server(of: transfer), machine.knowledge) }
        if Self.isDamaged(sent, transfer) {
            try failDamaged(&transfer, machine, &entry, &pass)
            return .nothing
        }
        switch outcome {
        case .continue:
            // The first query, and a check after a failed step, do not count as progress. Otherwise a server that always refuses
            // one step would receive requests endlessly and without a pause.
            if machine.stage > transfer.upload?.furthest ?? 0 {
                transfer.upload?.furthest = Int(machine.stage)
                record(progress: true, &transfer, &entry, pass)
            }
            return .nextStep
        case .retry(let after, let trouble):
            // Bytes that the server did not store are sent again, so these bytes do not count as progress.
            transfer.bytesDone = machine.storedBytes
            transfer.uploadMemory = machine.memory ?? transfer.uploadMemory
            record(progress: false, &transfer, &entry, pass)
            if let disk {
                try pass.wait(&transfer, for: Pass.diskPause, .disk(disk, .cannotOpenFile))
            } else {
                try wait(&transfer, after, trouble, &entry, &pass)
            }
        case .finished(let remoteURL):
            try Self.finishUpload(&transfer, machine, at: remoteURL, &pass)
        case .fail(let trouble):
            transfer.uploadMemory = machine.memory ?? transfer.uploadMemory
            entry.notFound += 1
            // Go's WebDAV server responds with 405 to a PUT if its disk is full.
            let mayBeFull = trouble.status == 405 && transfer.upload?.method == .webdav && transfer.uploadMemory?.step == .put
            guard trouble.status == 404 || mayBeFull, entry.notFound < RetryPolicy.maximumNotFound else {
                try pass.fail(&transfer, trouble)
                return .nothing
            }
            // The failed machine cannot continue, so the next attempt creates a new machine.
            entry.machine = nil
            record(progress: false, &transfer, &entry, pass)
            let pause = RetryPolicy.ofAgent.backoff(attemptsWithoutProgress: entry.notFound, jitter: pass.jitter())
            try wait(&transfer, mayBeFull ? max(pause, RetryPolicy.ofAgent.fullDelay) : pause, trouble, &entry, &pass)
        }
        return .nothing
    }

    /// Fails an upload whose sent bytes differ from the queued file. The agent asks the server to remove the sent file, so that
    /// the file gets no final name.
    private func failDamaged(
        _ transfer: inout TransferRecord, _ machine: UploadMachine, _ entry: inout Attempts.Entry, _ pass: inout Pass
    ) throws {
        // The stored state is removed, so that another try sends the file again and does not search for the damaged file on the
        // server.
        (transfer.uploadMemory, entry.machine) = (nil, nil)
        if let removal = machine.removal { try pass.transaction.addLeftover(ServerRemoval(removal), now: pass.now) }
        try pass.end(&transfer, as: .failed, Self.damage)
    }

    /// - Parameter sent: the digest of the sent bytes, or `nil` if only a part of the copy was read.
    private static func isDamaged(_ sent: String?, _ transfer: TransferRecord) -> Bool {
        guard let sent, let queued = transfer.sourceSHA256 else { return false }
        return sent != queued
    }

    private static let damage = TransferLife.Reason(
        code: URLError.Code.dataLengthExceedsMaximum.rawValue,
        message: "The sent bytes differ from the file because the queued copy is damaged. Upload the file again.")

    /// Completes an upload that the server has stored, and writes the receipt.
    static func finishUpload(
        _ transfer: inout TransferRecord, _ machine: UploadMachine, at remoteURL: String, _ pass: inout Pass
    ) throws {
        transfer.bytesDone = transfer.bytesTotal ?? transfer.bytesDone
        // An earlier agent may have sent the bytes, or a resumed upload sent only a part. The digest of the queued copy is then
        // used, because the server confirmed the length of the copy.
        let sent = transfer.sha256 ?? transfer.sourceSHA256
        guard sent == transfer.sourceSHA256 else { return try pass.end(&transfer, as: .failed, damage) }
        transfer.sha256 = sent
        let remark = machine.remark ?? Self.remark(on: transfer, at: remoteURL)
        transfer.note = ["stored as \(remoteURL)", remark].compactMap { $0 }.joined(separator: "; ")
        transfer.receipt = UploadReceipt(
            url: remoteURL, byteCount: transfer.upload?.byteCount ?? transfer.bytesDone, sha256: sent ?? "", storedAt: pass.now,
            proof: machine.proof, checkedAt: nil, remark: remark)
        try pass.end(&transfer, as: .completed)
    }

    /// Returns a remark if the name of a companion does not follow the name of its photo.
    private static func remark(on transfer: TransferRecord, at remoteURL: String) -> String? {
        guard let expected = transfer.upload?.company?.expectedName, let stored = URL(string: remoteURL)?.lastPathComponent,
            stored != RemoteName.safe(expected)
        else { return nil }
        return "the server has another file with the name \(expected), so the name differs from the name of the photo"
    }

    // MARK: Waiting

    private func record(
        progress hasProgress: Bool, _ transfer: inout TransferRecord, _ entry: inout Attempts.Entry, _ pass: Pass
    ) {
        if hasProgress {
            _ = transfer.handle(.progressed(now: pass.now))
            (entry.unreached, entry.notFound) = (0, 0)
        }
        transfer.fruitlessAttempts = hasProgress ? 0 : transfer.fruitlessAttempts + 1
    }

    private func wait(
        _ transfer: inout TransferRecord, _ after: Double, _ trouble: TransferTrouble, _ entry: inout Attempts.Entry,
        _ pass: inout Pass
    ) throws {
        if let suspicion = trouble.suspicion {
            // A process that awaits the response receives the error immediately, and can react to the error.
            guard transfer.isAdopted else { return try pass.fail(&transfer, trouble) }
            try pass.show(AgentNotice(suspicion, host: transfer.host, message: trouble.message, now: pass.now))
        }
        guard trouble.isWaitingForNetwork else {
            entry.unreached = 0
            return try pass.wait(&transfer, for: after, trouble)
        }
        // An attempt that did not reach the server does not show whether the server has a problem.
        transfer.fruitlessAttempts = max(0, transfer.fruitlessAttempts - 1)
        try pass.wait(&transfer, for: after * Self.stretch(entry.unreached), trouble)
        entry.unreached += 1
    }

    /// Returns the factor for a pause. If a host cannot be reached for hours, frequent attempts are not necessary, because a
    /// change of the network immediately causes an attempt.
    ///
    /// - Parameter unreached: the number of consecutive attempts that reached no server.
    private static func stretch(_ unreached: Int) -> Double { min(pow(1.5, Double(unreached)), longestStretch) }

    /// The maximum factor for a pause, which makes a pause of 15 seconds five minutes long.
    private static let longestStretch: Double = 20
}
