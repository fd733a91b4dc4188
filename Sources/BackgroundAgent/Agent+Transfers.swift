import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// One attempt that runs now.
struct RunningTransfer {
    enum Work {
        case download(DownloadFile)
        case upload(UploadMachine, UploadFile?)
    }

    let attempt: AttemptID
    var work: Work
    /// Bytes on the wire before this attempt.
    let wireBase: Int64
}

// Transfers: started when due, followed, finished, retried; collected when nobody wants them.
extension Agent {
    /// Attempts that run at once.
    private static let concurrency = 6

    func planTransfers(_ pass: inout Pass) throws {
        try stopUnwanted(&pass)
        try collect(&pass)
        var slots = Self.concurrency - running.count
        for var transfer in try pass.transaction.unfinishedTransfers() {
            guard try !giveUp(&transfer, &pass) else { continue }
            switch transfer.state {
            case .queued: break
            case .waiting:
                guard let next = transfer.nextAttemptAt, next > pass.now else { break }
                pass.wake(at: next)
                continue
            case .running, .paused, .completed, .failed, .cancelled:
                continue
            }
            guard slots > 0 else { continue }
            slots -= 1
            transfer.state = .running
            transfer.nextAttemptAt = nil
            try pass.transaction.update(transfer)
            pass.effects.append(.startTransfer(transfer.id!))
        }
    }

    /// Cancelled or paused by the app while its bytes moved.
    private func stopUnwanted(_ pass: inout Pass) throws {
        for id in running.keys where try pass.transaction.transfer(id)?.state != .running {
            pass.effects.append(.stopAttempt(id))
        }
    }

    /// Given up for lack of progress, never for a number of attempts.
    private func giveUp(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> Bool {
        guard transfer.state != .paused else { return false }
        let isOver = RetryPolicy.shouldGiveUp(
            lastProgressAt: transfer.lastProgressAt, now: pass.now, resourceTimeout: transfer.resourceTimeout)
        guard isOver else {
            pass.wake(at: transfer.lastProgressAt.addingTimeInterval(transfer.resourceTimeout))
            return false
        }
        let why = transfer.errorMessage.map { " The last trouble: \($0)" } ?? ""
        transfer.errorCode = URLError.Code.timedOut.rawValue
        transfer.errorMessage = "No progress for \(Int(transfer.resourceTimeout)) s.\(why)"
        try end(&transfer, as: .failed, &pass)
        return true
    }

    /// Transfers that nobody awaits or adopted in time; files of answers that were delivered.
    private func collect(_ pass: inout Pass) throws {
        for var transfer in try pass.transaction.collectableTransfers(now: pass.now) {
            // Also the copy of a photo that was cancelled: nobody can send it any more.
            for file in [transfer.file, transfer.bodyFile] {
                if let file { pass.effects.append(.removeFile(file)) }
            }
            transfer.file = nil
            transfer.bodyFile = nil
            if !transfer.state.isTerminal {
                transfer.state = .cancelled
                transfer.finishedAt = pass.now
                transfer.note = "nobody waited for it any more"
            }
            transfer.adoptableUntil = nil
            transfer.nextAttemptAt = nil
            try pass.transaction.update(transfer)
        }
        pass.wake(at: try pass.transaction.nextCollection(after: pass.now))
        for file in try pass.transaction.pruneTransfers() { pass.effects.append(.removeFile(file)) }
    }

    func retryWaitingForNetwork(_ pass: inout Pass) throws {
        for var transfer in try pass.transaction.unfinishedTransfers() where transfer.state == .waiting {
            guard let code = transfer.errorCode, Self.networkCodes.contains(code) else { continue }
            transfer.nextAttemptAt = pass.now
            try pass.transaction.update(transfer)
        }
    }

    private static let networkCodes: Set<Int> = [-1001, -1003, -1004, -1005, -1009]

    // MARK: Starting

    /// What the transport is asked to do, once it is committed.
    private struct Start {
        let request: WireRequest
        let source: UploadFile?
        let sink: any BodySink
        let work: RunningTransfer.Work
    }

    func startTransfer(_ id: Int64) throws(LedgerError) {
        var start: Start?
        var effects: [AgentEffect] = []
        var row: TransferRecord?
        // Read and written in one transaction: the app may adopt, pause or cancel it at any moment.
        try ledger.write { transaction in
            guard var transfer = try transaction.transfer(id), transfer.state == .running else { return }
            var pass = Pass(transaction: transaction, settings: AgentSettings(), now: now())
            transfer.attemptNumber += 1
            start = try prepare(&transfer, &pass)
            if start != nil { try transaction.update(transfer) }
            row = transfer
            effects = pass.effects
        }
        for case .removeFile(let name) in effects { removeSpoolFile(name) }
        guard let start, let row else { return }
        CrashPoint.reach("agent.transferStarting")
        let attempt = AttemptID(transfer: id, number: row.attemptNumber)
        running[id] = RunningTransfer(attempt: attempt, work: start.work, wireBase: row.bytesOnWire)
        ports.transport.start(attempt, start.request, source: start.source, sink: start.sink)
    }

    /// The next attempt, written into the row; `nil`: the transfer ended instead.
    private func prepare(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> Start? {
        switch transfer.upload?.method {
        case nil:
            return prepareExchange(&transfer, source: nil)
        case .plain:
            guard let source = snapshot(of: transfer) else { return try failMissingSnapshot(&transfer, &pass) }
            return prepareExchange(&transfer, source: source)
        case .webdav:
            return try prepareUpload(&transfer, .webdav, &pass)
        case .put:
            return try prepareUpload(&transfer, .put, &pass)
        }
    }

    /// One request whose answer is a file: a download, or a plain upload.
    private func prepareExchange(_ transfer: inout TransferRecord, source: UploadFile?) -> Start {
        let id = transfer.id!
        let name = transfer.file ?? "transfer-\(id)"
        let url = ledger.directories.spool.appendingPathComponent(name)
        // Somebody tidied the spool: what is not there cannot be resumed.
        if let partial = transfer.partial, !DownloadFile.holds(partial, at: url) { transfer.partial = nil }
        let machine = DownloadMachine(
            request: TransferRequest(
                method: transfer.method, url: transfer.url, headers: transfer.headers, idleTimeout: transfer.idleTimeout,
                maximumBodyBytes: transfer.maximumBodyBytes),
            partial: transfer.partial)
        let attempt = AttemptID(transfer: id, number: transfer.attemptNumber)
        let file = DownloadFile(attempt: attempt, file: name, machine: machine, ledger: ledger)
        transfer.file = name
        transfer.attempts += 1
        return Start(request: file.begin(), source: source, sink: file, work: .download(file))
    }

    private func prepareUpload(_ transfer: inout TransferRecord, _ kind: UploadKind, _ pass: inout Pass) throws -> Start? {
        guard let order = transfer.upload, let id = transfer.id else { return nil }
        var machine = uploads[id] ?? uploadMachine(transfer, order, kind)
        let command = machine.next()
        uploads[id] = machine
        switch command {
        case .send(let request, let withBody, let saved):
            var source: UploadFile?
            if withBody {
                source = snapshot(of: transfer)
                guard source != nil else { return try failMissingSnapshot(&transfer, &pass) }
                transfer.attempts += 1
                transfer.bytesDone = 0
            }
            transfer.uploadState = String(decoding: try JSONEncoder().encode(saved), as: UTF8.self)
            CrashPoint.reach("agent.upload.\(saved.step.rawValue)")
            return Start(request: request, source: source, sink: AnswerSink(), work: .upload(machine, source))
        case .finished(let remoteURL):
            transfer.note = "stored as \(remoteURL)"
            try end(&transfer, as: .completed, &pass)
            return nil
        case .fail(let trouble):
            try fail(&transfer, trouble, &pass)
            return nil
        }
    }

    private func uploadMachine(_ transfer: TransferRecord, _ order: UploadOrder, _ kind: UploadKind) -> UploadMachine {
        let saved = transfer.uploadState.flatMap {
            try? JSONDecoder().decode(UploadMachine.Saved.self, from: Data($0.utf8))
        }
        return UploadMachine(
            plan: UploadPlan(
                kind: kind, collectionURL: transfer.url, fileName: order.fileName, byteCount: order.byteCount,
                token: order.token, headers: transfer.headers, idleTimeout: transfer.idleTimeout),
            resuming: saved)
    }

    private func snapshot(of transfer: TransferRecord) -> UploadFile? {
        guard let name = transfer.bodyFile, let order = transfer.upload else { return nil }
        return UploadFile(ledger.directories.spool.appendingPathComponent(name), byteCount: order.byteCount)
    }

    private func failMissingSnapshot(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> Start? {
        try fail(
            &transfer,
            TransferTrouble(
                code: URLError.Code.fileDoesNotExist.rawValue, message: "The queued copy of the file is gone from the spool."),
            &pass)
        return nil
    }

    func fail(_ transfer: inout TransferRecord, _ trouble: TransferTrouble, _ pass: inout Pass) throws {
        transfer.errorCode = trouble.code
        transfer.errorMessage = trouble.message
        try end(&transfer, as: .failed, &pass)
    }

    func stopAttempt(_ id: Int64) {
        guard let stopped = running.removeValue(forKey: id) else { return }
        uploads[id] = nil
        ports.transport.cancel(stopped.attempt)
    }

    func removeSpoolFile(_ name: String) {
        // Names are our own; a damaged row must not reach outside the spool.
        guard !name.contains("/"), !name.isEmpty, name != ".." else { return }
        try? FileManager.default.removeItem(at: ledger.directories.spool.appendingPathComponent(name))
    }

    // MARK: Ends

    /// A transfer ends for good: its row, its event, its files.
    func end(_ transfer: inout TransferRecord, as state: TransferRecord.State, _ pass: inout Pass) throws {
        transfer.state = state
        transfer.finishedAt = pass.now
        transfer.nextAttemptAt = nil
        if state == .completed {
            transfer.errorCode = nil
            transfer.errorMessage = nil
        }
        if transfer.kind == .download, state != .completed, let file = transfer.file {
            pass.effects.append(.removeFile(file))
            transfer.file = nil
        }
        if state == .completed, let body = transfer.bodyFile {
            pass.effects.append(.removeFile(body))
            transfer.bodyFile = nil
        }
        uploads[transfer.id!] = nil
        try pass.transaction.update(transfer)
        if transfer.isAdopted { try pass.transaction.addEvent(for: transfer, now: pass.now) }
        let sentence = transfer.errorMessage.map { ": \($0)" } ?? ""
        log.note("transfer \(transfer.id!) of \(transfer.session): \(state.rawValue)\(sentence)")
    }
}
