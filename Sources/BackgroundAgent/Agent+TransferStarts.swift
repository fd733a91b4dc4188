import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

// From a row to an attempt: what is asked for, what of it is here already, and where the answer goes.
extension Agent {
    /// The next request of an upload that goes on.
    func prepareNextStep(_ transfer: inout TransferRecord, _ pass: inout Pass) throws {
        transfer.attemptNumber += 1
        guard let start = try prepare(&transfer, &pass) else { return }
        try pass.transaction.update(transfer)
        prepared[transfer.id!] = start
        pass.effects.append(.startTransfer(transfer.id!))
    }

    /// It is committed: the transport may begin.
    func startTransfer(_ id: Int64) {
        guard let start = prepared.removeValue(forKey: id) else { return }
        CrashPoint.reach("agent.transferStarting", id)
        running[id] = RunningTransfer(start)
        ports.transport.start(start.attempt, start.request, source: start.source, sink: start.sink)
    }

    /// The next attempt, written into the row; `nil`: the transfer ended instead.
    func prepare(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> PreparedTransfer? {
        guard let upload = transfer.upload else { return try prepareDownload(&transfer, &pass) }
        guard upload.method == .plain else { return try prepareUpload(&transfer, &pass) }
        guard let source = snapshot(of: transfer) else { return try failMissingSnapshot(&transfer, &pass) }
        return try prepareExchange(&transfer, source: source, &pass)
    }

    /// One request whose answer is a file: a download, or a plain upload.
    private func prepareExchange(
        _ transfer: inout TransferRecord, source: UploadFile?, _ pass: inout Pass
    ) throws -> PreparedTransfer? {
        transfer.nameFile()
        let spool = ledger.directories.spool
        guard let part = transfer.partFile(in: spool) else {
            let why = "The row of this transfer is damaged."
            try fail(&transfer, TransferTrouble(code: URLError.Code.cannotCreateFile.rawValue, message: why), &pass)
            return nil
        }
        if transfer.isFinishing, try goOnFinishing(&transfer, part, &pass) { return nil }
        // Somebody tidied up: what is not there cannot be resumed.
        if let partial = transfer.partial, !DownloadFile.holds(partial.durableBytes, at: part) { transfer.partial = nil }
        let machine = DownloadMachine(
            request: TransferRequest(
                method: transfer.method, url: transfer.url, headers: transfer.headers, idleTimeout: transfer.idleTimeout,
                maximumBodyBytes: transfer.maximumBodyBytes, rateLimit: transfer.rateLimit,
                expectedSHA256: transfer.expectedSHA256, wantsOnlyFile: transfer.destination != nil),
            partial: transfer.partial, policy: Self.retryPolicy)
        let attempt = AttemptID(transfer: transfer.id!, number: transfer.attemptNumber)
        let file = DownloadFile(
            attempt: attempt, part: part, isPrivate: transfer.destination == nil, machine: machine, ledger: ledger,
            disk: disk, now: now(), wasSynced: { [post] in post(.transferSynced(attempt)) })
        transfer.attempts += 1
        return PreparedTransfer(transfer, request: file.begin(), source: source, sink: file, work: .download(file))
    }

    /// An agent died between proving a file whole and giving it its name. `false`: what it proved is gone, and may be asked for again.
    private func goOnFinishing(_ transfer: inout TransferRecord, _ part: URL, _ pass: inout Pass) throws -> Bool {
        let size = transfer.bytesTotal ?? -1
        func isProven(_ file: URL) -> Bool {
            guard let found = try? FileDigest.sha256(of: file) else { return false }
            return found.byteCount == size && found.digest == transfer.sha256
        }
        if isProven(part) {
            try pass.transaction.update(transfer)
            pass.effects.append(.placeFile(transfer.id!))
            return true
        }
        // It has its name already: the part is gone and something stands there, the very file or, in a folder of the person's,
        // what they made of it since. That is theirs.
        let hasPart = FileManager.default.fileExists(atPath: part.path)
        if !hasPart, let whole = transfer.wholeFile(in: ledger.directories.spool),
            transfer.destination == nil ? isProven(whole) : FileManager.default.fileExists(atPath: whole.path)
        {
            try pass.transaction.update(transfer)
            hear(.transferPlaced(transfer.id!, nil))
            return true
        }
        transfer.partial = nil
        transfer.bytesDone = 0
        let before = transfer
        let commands = try pass.transaction.handle(.disproven(now: pass.now), &transfer, now: pass.now)
        removeRemains(of: before, commands, &pass)
        // What may not be asked for again has ended.
        return transfer.life.hasEnded
    }

    private func prepareUpload(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> PreparedTransfer? {
        guard let id = transfer.id, var machine = try uploads[id] ?? uploadMachine(transfer, pass.transaction) else { return nil }
        let command = machine.next()
        uploads[id] = machine
        switch command {
        case .send(let request, let content, let memory):
            var source: (any BodySource)?
            var file: UploadFile?
            switch content {
            case .none: break
            case .empty: source = WordsBody()
            case .words(let words): source = WordsBody(words)
            case .snapshot, .wrapped:
                file = snapshot(of: transfer, content)
                guard let file else { return try failMissingSnapshot(&transfer, &pass) }
                source = file
                transfer.attempts += 1
                transfer.bytesDone = file.place(sent: 0)
            }
            transfer.uploadMemory = memory
            CrashPoint.reach("agent.upload.\(memory.step.rawValue)", id)
            let answer = AnswerSink()
            return PreparedTransfer(
                transfer, request: request.signed(at: pass.now, hashing: CryptoHashing()), source: source, sink: answer,
                work: .upload(machine, file, answer))
        case .finished(let remoteURL):
            try finishUpload(&transfer, machine, at: remoteURL, &pass)
            return nil
        case .fail(let trouble):
            try fail(&transfer, trouble, &pass)
            return nil
        }
    }

    /// Its protocol's machine, where it stood; `nil`: not an upload of a protocol.
    func uploadMachine(_ transfer: TransferRecord, _ transaction: LedgerTransaction) throws -> UploadMachine? {
        guard let order = transfer.upload, order.method != .plain else { return nil }
        var plan = UploadPlan(
            kind: order.method, collectionURL: transfer.url, fileName: order.fileName, byteCount: order.byteCount,
            token: order.token,
            headers: transfer.headers, idleTimeout: transfer.idleTimeout, rateLimit: transfer.rateLimit,
            contentType: order.contentType ?? "application/octet-stream", field: order.field ?? "file",
            sha256: transfer.sourceSHA256)
        (plan.sha1, plan.modifiedAt, plan.s3) = (order.sha1, order.modifiedAt, order.s3)
        plan.knowledge = try transaction.fact(.server(of: transfer)) ?? ServerKnowledge()
        return UploadMachine(plan: plan, resuming: transfer.uploadMemory, policy: Self.retryPolicy)
    }

    /// With a body of its own (a POST, say) or, mostly, without.
    private func prepareDownload(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> PreparedTransfer? {
        guard let body = transfer.bodyFile else { return try prepareExchange(&transfer, source: nil, &pass) }
        let source = UploadFile(
            ledger.directories.spool.appendingPathComponent(body), size: transfer.expectedToSend ?? -1)
        guard let source else { return try failMissingSnapshot(&transfer, &pass) }
        return try prepareExchange(&transfer, source: source, &pass)
    }

    private func snapshot(of transfer: TransferRecord, _ content: UploadContent? = nil) -> UploadFile? {
        guard let name = transfer.bodyFile, let order = transfer.upload else { return nil }
        return UploadFile(ledger.directories.spool.appendingPathComponent(name), size: order.byteCount, content: content)
    }

    private func failMissingSnapshot(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> PreparedTransfer? {
        try fail(
            &transfer,
            TransferTrouble(
                code: URLError.Code.fileDoesNotExist.rawValue, message: "The queued copy of the file is gone from the spool."),
            &pass)
        return nil
    }

    func fail(_ transfer: inout TransferRecord, _ trouble: TransferTrouble, _ pass: inout Pass) throws {
        try end(&transfer, as: .failed, TransferLife.Reason(trouble), &pass)
    }

    func stopAttempt(_ id: Int64) {
        prepared[id] = nil
        guard let stopped = running.removeValue(forKey: id) else { return }
        uploads[id] = nil
        if case .download(let file) = stopped.work { file.stop() }
        ports.transport.cancel(stopped.attempt)
    }
}
