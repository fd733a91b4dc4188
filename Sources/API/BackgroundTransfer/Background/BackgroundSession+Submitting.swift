import ProcessSupport
import Spool
import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import TransferMachines

// Stores tasks as rows of the ledger. The row of a task is on the disk before any byte is transferred.
extension BackgroundSession {
    /// The steps that write a task to the ledger.
    struct Submission {
        /// Inserts the task's transfer or joins an existing transfer, inside the transaction.
        let write: (LedgerTransaction) throws -> TransferRecord
        /// An action that runs after the commit.
        var afterwards: (TransferRecord) -> Void = { _ in }
    }

    func submission(of task: URLSessionTask) throws -> Submission {
        switch task {
        case let upload as URLSessionUploadTask: try submission(of: upload)
        case let download as URLSessionDownloadTask: try submission(of: download)
        default: try submission(of: task, request: task.originalRequest, kind: "data")
        }
    }

    private func submission(of task: URLSessionDownloadTask) throws -> Submission {
        try DestinationName.check(task.destination)
        switch task.source {
        case .request(let request): return try submission(of: task, request: request, kind: nil)
        case .resumeData(let data):
            guard let resume = ResumeData(data), let request = resume.request else { throw Self.badResumeData }
            let order = try WireOrder(request, configuration)
            let now = AppRuntime.shared.now
            var new = order.record(configuration, session: identifier, key: UUID.random().uuidString, kind: .download, now: now)
            Self.fill(&new, from: task, now: now)
            let wanted = new
            return Submission { transaction in
                var new = wanted
                try Self.movePart(resume.token, &new, transaction)
                return try transaction.insert(new)
            }
        }
    }

    static var badResumeData: URLError {
        let words = "The resume data is damaged, or another version of the program wrote the resume data."
        return URLError(.unsupportedURL, userInfo: [NSLocalizedDescriptionKey: words])
    }

    /// Passes the partial file that belongs to a resume token to the new transfer. If no ended transfer has this partial file, or
    /// if that transfer has another destination, the download begins from the start.
    static func movePart(_ token: String, _ new: inout TransferRecord, _ transaction: LedgerTransaction) throws {
        guard var old = try transaction.transfer(keepingPart: token), old.state.isTerminal else { return }
        if new.destination == nil { new.adoptDestination(of: old) }
        if new.expectedSHA256 == nil { new.expectedSHA256 = old.expectedSHA256 }
        guard new.hasDestination(of: old) else { return }
        (new.file, new.partial) = (old.file, old.partial)
        new.bytesDone = old.partial?.durableBytes ?? 0
        new.bytesTotal = old.partial?.totalBytes
        (old.file, old.partial) = (nil, nil)
        try transaction.handle(.partTaken, &old, now: AppRuntime.shared.now)
    }

    /// Copies the properties that the app set on the task before it was resumed.
    private static func fill(_ record: inout TransferRecord, from task: URLSessionTask, now: Date) {
        let facts = task.facts.withLock { $0 }
        record.taskIdentifier = task.taskIdentifier
        _ = record.handle(.adopted(suspended: facts.startsSuspended))
        // The completion handler exists only in this process, so the agent does not launch the app for the response.
        if facts.completion != nil { record.launchesApp = false }
        record.taskDescription = facts.description ?? record.taskDescription
        record.priority = Double(facts.priority)
        record.expectedToReceive = facts.expectsToReceive
        if let place = facts.destination { record.setDestination(place.path) }
        recordExistingFile(&record, facts)
        record.expectedSHA256 = facts.expectedSHA256?.lowercased() ?? record.expectedSHA256
        if facts.earliestBegin != nil {
            record.earliestBegin = facts.earliestBegin
            _ = record.handle(.scheduled(for: facts.earliestBegin, now: now))
        }
    }

    /// Records the identity of the file that exists at the destination now. The download replaces this file, but does not replace
    /// a file that is created later.
    private static func recordExistingFile(_ record: inout TransferRecord, _ facts: URLSessionTask.Facts) {
        let standing = facts.replacesDestination == nil ? record.destination.flatMap(FileIdentity.init) : nil
        record.mayReplace = facts.replacesDestination ?? (standing != nil)
        record.replacedFile = standing?.text
    }

    /// Throws an error if another unfinished download has the same destination. If another download to this destination has ended
    /// after the task was created, the file at the destination belongs to that download. The new download replaces this file.
    private static func claimDestination(
        _ record: inout TransferRecord, _ facts: URLSessionTask.Facts, _ transaction: LedgerTransaction
    ) throws {
        guard let destination = record.destination else { return }
        if let other = try transaction.unfinishedTransfer(to: destination), let number = other.id {
            let why = "transfer \(number) already downloads to this file"
            throw URLError(.cannotCreateFile, userInfo: [NSLocalizedDescriptionKey: why])
        }
        recordExistingFile(&record, facts)
    }

    /// Connects a task to an existing transfer that the app awaited, so that the task continues the transfer. The time limit of
    /// the transfer becomes at least the time limit of the task's session.
    private static func adopt(
        _ known: inout TransferRecord, for task: URLSessionTask, identifier: Int, patience: Double,
        _ transaction: LedgerTransaction, now: Date
    ) throws {
        fill(&known, from: task, now: now)
        known.taskIdentifier = identifier
        known.resourceTimeout = max(known.resourceTimeout, min(patience, TransferRecord.longestIdle))
        known.patience = known.patience.map { max($0, patience) }
        try transaction.adopt(known, now: now)
    }

    private func submission(of task: URLSessionTask, request: URLRequest?, kind: String?) throws -> Submission {
        guard let request else { throw URLError(.badURL) }
        let order = try WireOrder(request, configuration)
        let now = AppRuntime.shared.now
        let facts = task.facts.withLock { $0 }
        if let digest = facts.expectedSHA256, RequiredDigest(askedSHA256: digest) == nil {
            throw URLError(
                .badURL, userInfo: [NSLocalizedDescriptionKey: "\(digest) is not a valid SHA-256: expected 64 hexadecimal digits"]
            )
        }
        let body = try storeBody(of: order)
        var new = order.record(configuration, session: identifier, key: order.key(session: identifier), kind: .download, now: now)
        if let body { (new.bodyFile, new.expectedToSend) = (body.name, body.byteCount) }
        new.taskKind = kind
        Self.fill(&new, from: task, now: now)
        let wanted = new
        // Two tasks cannot share a download that has a destination.
        let mayAdopt = wanted.destination == nil && wanted.expectedSHA256 == nil && kind == nil
        let cancelledAwaits = state.withLock { $0.cancelledAwaits }
        return Submission { transaction in
            guard mayAdopt,
                var known = try transaction.adoptableTransfer(
                    session: wanted.session, key: wanted.key, cancelledAwaits: cancelledAwaits, now: now,
                    isInUse: { try self.isInUse($0, transaction) }),
                known.kind == .download
            else {
                var new = wanted
                if facts.claimsDestination { try Self.claimDestination(&new, facts, transaction) }
                return try transaction.insert(new)
            }
            let identifier = known.isAdopted ? known.taskIdentifier : task.taskIdentifier
            known.launchesApp = wanted.launchesApp
            try Self.adopt(&known, for: task, identifier: identifier, patience: wanted.resourceTimeout, transaction, now: now)
            return known
        } afterwards: { [self] started in
            keepOrRemove(body, started)
            // Only one task continues the transfer of a cancelled await. A later task with an equal request starts a separate
            // transfer.
            if let id = started.id { state.withLock { _ = $0.cancelledAwaits.remove(id) } }
        }
    }

    private func submission(of task: URLSessionUploadTask) throws -> Submission {
        // An upload task has no body only if the app created it from resume data. Uploads do not support resume data.
        guard let body = task.body, let request = task.originalRequest else { throw Self.badResumeData }
        let order = try WireOrder(request, configuration, defaultMethod: "PUT")
        let taken = try task.currentSnapshot()
        let key = task.storedSubmissionKey
        let (now, spool) = (AppRuntime.shared.now, AppRuntime.shared.directories.spool)
        let name = if case .file(let file) = body { file.lastPathComponent } else { "data" }
        var new = uploadRecord(order, taken, key: key ?? taken.name, now: now)
        if case .file(let file) = body { new.sourceName = task.listedPath ?? file.path }
        var upload = Self.uploadOrder(task.delivery, name, taken)
        if case .file(let file) = body {
            // `stat` is used instead of `FileManager`, because `FileManager` also reads /etc/passwd for each file.
            var information = stat()
            if stat(file.path, &information) == 0 {
                let time = information.st_mtim
                upload.modifiedAt = Date(timeIntervalSince1970: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
            }
        }
        new.upload = upload
        Self.fill(&new, from: task, now: now)
        let wanted = new
        let awaited = order.key(session: identifier, bodyDigest: taken.sha256)
        let cancelledAwaits = state.withLock { $0.cancelledAwaits }
        return Submission { transaction in
            if let key, var earlier = try transaction.repeatableUpload(session: wanted.session, key: key) {
                try transaction.unpause(&earlier, bringing: taken.name, taken.sha256, in: spool, now: now)
                // The app may have suspended the transfer through an earlier task with this submission key. The new task was
                // resumed, so the transfer continues.
                try transaction.handle(.released(notBefore: earlier.earliestBegin, now: now), &earlier, now: now)
                return earlier
            }
            // If the app awaited an equal upload and cancelled the await within the grace time, the new task continues that
            // upload.
            if key == nil, upload.method == .plain,
                var known = try transaction.adoptableTransfer(
                    session: wanted.session, key: awaited, cancelledAwaits: cancelledAwaits, now: now,
                    isInUse: { try self.isInUse($0, transaction) }),
                !known.isAdopted
            {
                try Self.adopt(
                    &known, for: task, identifier: task.taskIdentifier, patience: wanted.resourceTimeout, transaction, now: now)
                return known
            }
            return try transaction.insert(wanted)
        } afterwards: { started in
            if started.bodyFile == taken.name {
                taken.keep()
            } else {
                task.discardSnapshot()
            }
        }
    }

    private static func uploadOrder(_ delivery: UploadDelivery, _ name: String, _ taken: Snapshot) -> UploadOrder {
        let kind = delivery.way.kind
        var order = UploadOrder(
            method: kind, fileName: delivery.fileName ?? name, byteCount: taken.byteCount, token: taken.name)
        if kind.tellsContentType { order.contentType = delivery.contentType }
        if kind.needsSHA1 {
            order.sha1 = FileDigest.sha1(of: AppRuntime.shared.directories.spooled(taken.name))
        }
        (order.field, order.s3, order.server) = (delivery.way.field, delivery.way.s3, delivery.way.server)
        (order.company, order.takenAt) = (delivery.company, delivery.takenAt)
        order.onlyChecks = delivery.onlyChecks ? true : nil
        return order
    }

    private func uploadRecord(_ order: WireOrder, _ taken: Snapshot, key: String, now: Date) -> TransferRecord {
        var record = order.record(configuration, session: identifier, key: key, kind: .upload, now: now)
        record.bodyFile = taken.name
        record.bytesTotal = taken.byteCount
        record.sourceSHA256 = taken.sha256
        record.originalSHA256 = taken.originalSHA256
        record.upload = UploadOrder(method: .plain, fileName: "data", byteCount: taken.byteCount, token: taken.name)
        return record
    }

    /// Stores the request body of a download, for example of a POST, in the spool.
    private func storeBody(of order: WireOrder) throws -> Snapshot? {
        guard let body = order.body, !body.isEmpty else { return nil }
        _ = try AppRuntime.shared.ledger()
        return try Snapshot.store(body, in: AppRuntime.shared.directories)
    }

    /// Keeps the stored body if the committed record uses it. If the task joined another transfer, the stored body is removed.
    private func keepOrRemove(_ body: Snapshot?, _ record: TransferRecord) {
        if record.bodyFile == body?.name { body?.keep() } else { body?.discard() }
    }

    // MARK: Awaited

    func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)?) async throws -> (Data, URLResponse) {
        let ended = try await awaitDownload(.request(request))
        defer { ended.release() }
        return (try Data(contentsOf: ended.file), ended.response)
    }

    func download(_ source: DownloadSource, delegate: (any URLSessionTaskDelegate)?) async throws -> (URL, URLResponse) {
        let ended = try await awaitDownload(source)
        defer { ended.release() }
        let place = FileManager.default.temporaryDirectory.appendingPathComponent(
            "download-\(UUID.random().uuidString.lowercased()).tmp")
        do {
            try FileManager.default.linkItem(at: ended.file, to: place)
        } catch {
            // The file is copied, because a hard link to a file on another file system is not possible.
            try FileManager.default.copyItem(at: ended.file, to: place)
        }
        return (place, ended.response)
    }

    func upload(
        for request: URLRequest, from body: UploadBody, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        let order = try WireOrder(request, configuration, defaultMethod: "PUT")
        guard !Task.isCancelled else { throw URLError(.cancelled) }
        _ = try AppRuntime.shared.ledger()
        let directories = AppRuntime.shared.directories
        let taken: Snapshot
        do {
            taken =
                switch body {
                case .file(let file): try Snapshot.make(of: file, in: directories, allowsEmpty: true)
                case .data(let data): try Snapshot.store(data, in: directories)
                case .stream: throw URLError(.unsupportedURL)
                }
        } catch {
            throw URLError(.cannotOpenFile, userInfo: [NSLocalizedDescriptionKey: "\(error)"])
        }
        let key = order.key(session: identifier, bodyDigest: taken.sha256)
        let now = AppRuntime.shared.now
        var new = uploadRecord(order, taken, key: key, now: now)
        if case .file(let file) = body { new.sourceName = file.path }
        let wanted = new
        let ended = try await wait { transaction in
            let known = try transaction.joinableTransfer(
                session: wanted.session, key: key, now: now, isInUse: { try self.isInUse($0, transaction) })
            return try known ?? transaction.insert(wanted)
        } onSubmit: { record in
            keepOrRemove(taken, record)
        }
        defer { ended.release() }
        return (try Data(contentsOf: ended.file), ended.response)
    }

    private func awaitDownload(_ source: DownloadSource) async throws -> EndedTransfer {
        let resume: ResumeData?
        let request: URLRequest
        switch source {
        case .request(let asked): (resume, request) = (nil, asked)
        case .resumeData(let data):
            resume = ResumeData(data)
            guard let known = resume?.request else { throw Self.badResumeData }
            request = known
        }
        let order = try WireOrder(request, configuration)
        // If the Swift task was cancelled before the await began, no transfer is submitted. A later task with an equal request
        // starts a separate transfer.
        guard !Task.isCancelled else { throw URLError(.cancelled) }
        let body = try storeBody(of: order)
        let now = AppRuntime.shared.now
        let key = order.key(session: identifier)
        var new = order.record(configuration, session: identifier, key: key, kind: .download, now: now)
        if let body { (new.bodyFile, new.expectedToSend) = (body.name, body.byteCount) }
        let wanted = new
        return try await wait { transaction in
            var new = wanted
            if let resume {
                try Self.movePart(resume.token, &new, transaction)
                return try transaction.insert(new)
            }
            let known = try transaction.joinableTransfer(
                session: wanted.session, key: key, now: now, isInUse: { try self.isInUse($0, transaction) })
            // Two tasks cannot share a download that has a destination. If an ended download has no file any more, the download
            // is repeated.
            if let known, known.kind == .download, known.destination == nil, !known.hasAnswer || TransferResult(known).file != nil
            {
                return known
            }
            return try transaction.insert(new)
        } onSubmit: { record in
            keepOrRemove(body, record)
        }
    }

    /// Returns whether a transfer has a task of this session, or is awaited in a running process. The removal of a cancelled await
    /// may not be committed yet.
    private func isInUse(_ id: Int64, _ transaction: LedgerTransaction) throws -> Bool {
        let (isCancelled, hasTask) = state.withLock { state in
            (state.cancelledAwaits.contains(id), state.tasks.values.contains { $0.facts.withLock { $0.row == id } })
        }
        if hasTask { return true }
        return try transaction.waiters(of: id).contains { waiter in
            !(isCancelled && waiter.process == process) && AppRuntime.shared.isAlive(waiter.process)
        }
    }

    /// Submits a transfer and waits until the transfer has ended.
    private func wait(
        _ submit: @escaping (LedgerTransaction) throws -> TransferRecord, onSubmit: (TransferRecord) -> Void
    ) async throws -> EndedTransfer {
        let grace = try AppRuntime.shared.ledger().read { try $0.fact(.settings) }?.grace ?? AgentSettings().grace
        let now = AppRuntime.shared.now
        let (waiting, record) = try AppRuntime.shared.commit { transaction -> (WaitingTransfer, TransferRecord) in
            var transfer = try submit(transaction)
            // The transfer may be paused, for example because the user paused all work. A new await ends the pause, because the
            // app needs the response now. A call of `resume()` on a task does not end the pause, because a handler may make this
            // call while the agent ends its launch.
            try transaction.handle(.awaited(now: now), &transfer, now: now)
            let waiter = try transaction.addWaiter(to: transfer.id!, process: process)
            return (WaitingTransfer(transfer: transfer.id!, waiter: waiter, grace: grace), transfer)
        }
        onSubmit(record)
        KillPoint.reach(.transferSubmitted)
        return try await withTaskCancellationHandler {
            try await waiting.result()
        } onCancel: {
            state.withLock { _ = $0.cancelledAwaits.insert(waiting.transfer) }
            waiting.giveUp()
        }
    }
}
