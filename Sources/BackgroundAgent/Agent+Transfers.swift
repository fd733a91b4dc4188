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
    let session: String
    let host: String
    let needs: TransferNeeds

    init(_ start: PreparedTransfer) {
        attempt = start.attempt
        work = start.work
        wireBase = start.wireBase
        session = start.session
        host = start.host
        needs = start.needs
    }
}

/// What the transport is asked to do, once it is committed.
struct PreparedTransfer {
    let attempt: AttemptID
    let request: WireRequest
    let source: UploadFile?
    let sink: any BodySink
    let work: RunningTransfer.Work
    let wireBase: Int64
    let session: String
    let host: String
    let needs: TransferNeeds

    init(
        _ transfer: TransferRecord, request: WireRequest, source: UploadFile?, sink: any BodySink, work: RunningTransfer.Work
    ) {
        attempt = AttemptID(transfer: transfer.id!, number: transfer.attemptNumber)
        self.request = request
        self.source = source
        self.sink = sink
        self.work = work
        wireBase = transfer.bytesOnWire
        session = transfer.session
        host = transfer.host
        needs = transfer.needs
    }
}

// Transfers: started when due, followed, finished, retried; collected when nobody wants them.
extension Agent {
    func planTransfers(_ pass: inout Pass) throws {
        let met = TransferNeeds(metBy: ports.conditions.current)
        try stopUnwanted(met: met, &pass)
        try giveUp(&pass)
        try collect(&pass)
        var room = TransferRoom(running: running.values.map(\.host) + prepared.values.map(\.host))
        // One transfer may end in being prepared and make room for another.
        while room.left > 0 {
            let next = try pass.transaction.queueDueTransfers(now: pass.now, limit: TransferRoom.limit)
            let candidates = try pass.transaction.nextTransfers(met: met, room: room)
            if candidates.isEmpty {
                pass.wake(at: next)
                break
            }
            var hasBegun = false
            for candidate in candidates {
                // Its earlier attempt is being stopped in this very pass: the next one begins it again.
                guard running[candidate.id] == nil, prepared[candidate.id] == nil else { continue }
                hasBegun = true
                guard var transfer = try pass.transaction.transfer(candidate.id) else { continue }
                transfer.state = .running
                transfer.nextAttemptAt = nil
                transfer.attemptNumber += 1
                guard let start = try prepare(&transfer, &pass) else { continue }
                try pass.transaction.update(transfer)
                room.take(transfer.host)
                prepared[candidate.id] = start
                pass.effects.append(.startTransfer(candidate.id))
            }
            guard hasBegun else { break }
        }
    }

    /// Cancelled, paused or suspended while its bytes moved; or what it needs is no longer there.
    private func stopUnwanted(met: TransferNeeds, _ pass: inout Pass) throws {
        for (id, attempt) in running {
            guard var transfer = try pass.transaction.transfer(id) else {
                pass.effects.append(.stopAttempt(id))
                continue
            }
            let isMet = met.isSuperset(of: attempt.needs)
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
        guard mustPrune else { return }
        mustPrune = false
        for transfer in try pass.transaction.pruneTransfers() {
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
        try pass.transaction.retryTransfers(waitingWith: Self.networkCodes, now: pass.now)
    }

    private static let networkCodes = [-1001, -1003, -1004, -1005, -1009]

    // MARK: Starting

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
    private func prepare(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> PreparedTransfer? {
        switch transfer.upload?.method {
        case nil:
            return try prepareDownload(&transfer, &pass)
        case .plain:
            guard let source = snapshot(of: transfer) else { return try failMissingSnapshot(&transfer, &pass) }
            return try prepareExchange(&transfer, source: source, &pass)
        case .webdav:
            return try prepareUpload(&transfer, .webdav, &pass)
        case .put:
            return try prepareUpload(&transfer, .put, &pass)
        }
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
            attempt: attempt, part: part, isPrivate: transfer.destination == nil, machine: machine, ledger: ledger)
        transfer.attempts += 1
        return PreparedTransfer(transfer, request: file.begin(), source: source, sink: file, work: .download(file))
    }

    /// An agent died between proving a file whole and giving it its name. `false`: what it proved is gone.
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
            hear(.transferPlaced(transfer.id!, trouble: nil, isPassing: false))
            return true
        }
        transfer.isFinishing = false
        transfer.partial = nil
        transfer.bytesDone = 0
        return false
    }

    private func prepareUpload(_ transfer: inout TransferRecord, _ kind: UploadKind, _ pass: inout Pass) throws
        -> PreparedTransfer?
    {
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
            CrashPoint.reach("agent.upload.\(saved.step.rawValue)", id)
            return PreparedTransfer(
                transfer, request: request, source: source, sink: AnswerSink(), work: .upload(machine, source))
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

    /// With a body of its own (a POST, say) or, mostly, without.
    private func prepareDownload(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> PreparedTransfer? {
        guard let body = transfer.bodyFile else { return try prepareExchange(&transfer, source: nil, &pass) }
        let source = UploadFile(
            ledger.directories.spool.appendingPathComponent(body), byteCount: transfer.expectedToSend ?? -1)
        guard let source else { return try failMissingSnapshot(&transfer, &pass) }
        return try prepareExchange(&transfer, source: source, &pass)
    }

    private func snapshot(of transfer: TransferRecord) -> UploadFile? {
        guard let name = transfer.bodyFile, let order = transfer.upload else { return nil }
        return UploadFile(ledger.directories.spool.appendingPathComponent(name), byteCount: order.byteCount)
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
        transfer.errorCode = trouble.code
        transfer.errorMessage = trouble.message
        try end(&transfer, as: .failed, &pass)
    }

    func stopAttempt(_ id: Int64) {
        prepared[id] = nil
        guard let stopped = running.removeValue(forKey: id) else { return }
        uploads[id] = nil
        if case .download(let file) = stopped.work { file.stop() }
        ports.transport.cancel(stopped.attempt)
    }

    // MARK: Ends

    /// Seconds that the copy of a failed upload is kept for another try.
    private static let bodyPatience: Double = 30 * 86_400
    /// Seconds that the part of a failed download is kept for its resume data.
    private static let partPatience: Double = 7 * 86_400

    /// A transfer ends for good: its row, its event, its files.
    func end(_ transfer: inout TransferRecord, as state: TransferRecord.State, _ pass: inout Pass) throws {
        transfer.state = state
        transfer.finishedAt = pass.now
        transfer.nextAttemptAt = nil
        if state == .completed {
            transfer.errorCode = nil
            transfer.errorMessage = nil
        }
        // A whole file that could not get its name is kept for another try.
        let keepsWhole = state == .failed && transfer.isFinishing
        transfer.isFinishing = keepsWhole
        mustPrune = true
        if keepsWhole {
            transfer.keptUntil = pass.now.addingTimeInterval(Self.partPatience)
        } else if state != .completed {
            // What resume data can speak of is kept for whoever has some.
            if state == .failed, transfer.kind == .download, transfer.partial?.isResumable == true, transfer.isAdopted {
                transfer.resumeToken = transfer.resumeToken ?? UUID().uuidString.lowercased()
                transfer.keptUntil = pass.now.addingTimeInterval(Self.partPatience)
            } else if transfer.head == nil || transfer.kind == .download || state == .cancelled {
                removeFiles(of: transfer, &pass)
                transfer.file = nil
                transfer.partial = nil
            }
        }
        // A failed upload can be tried again; a download's body belongs to its one request.
        if state == .failed, transfer.kind == .upload, transfer.isAdopted {
            transfer.keptUntil = pass.now.addingTimeInterval(Self.bodyPatience)
        }
        if let body = transfer.bodyFile, state == .completed || transfer.kind == .download || !transfer.isAdopted {
            pass.effects.append(.removeFile(ledger.directories.spool.appendingPathComponent(body)))
            transfer.bodyFile = nil
        }
        uploads[transfer.id!] = nil
        try pass.transaction.update(transfer)
        if transfer.isAdopted { try pass.transaction.addEvent(for: transfer, now: pass.now) }
        let sentence = transfer.errorMessage.map { ": \($0)" } ?? ""
        log.note("transfer \(transfer.id!) of \(transfer.session): \(state.rawValue)\(sentence)")
    }
}
