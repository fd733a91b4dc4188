import ProcessSupport
import BackgroundLedger
import Foundation
import TransferMachines

/// Creates an attempt from the transfer's row: the request, the stored bytes and the place of the response. This type has no
/// state and opens no file.
enum AttemptPreparation {
    enum Result {
        case attempt(PreparedAttempt)
        /// An earlier agent verified the downloaded file, which has to be checked again first.
        case proof(FileProof.Expectation)
        /// The server already stores the file of this upload at the address.
        case stored(at: String)
        /// The transfer ended during the preparation.
        case ended
    }

    /// Prepares the next attempt, and writes it into the row.
    ///
    /// - Parameter machine: the machine of an upload. If it is `nil`, a new machine is created.
    static func prepare(
        _ transfer: inout TransferRecord, _ machine: inout UploadMachine?, _ pass: inout Pass
    ) throws -> Result {
        if transfer.upload.map({ $0.method != .plain }) ?? false { return try prepareUpload(&transfer, &machine, &pass) }
        return try prepareExchange(&transfer, &pass)
    }

    /// Prepares a single request whose response is a file. Such a request belongs to a plain upload or to a download. A download
    /// may also send a body, for example with POST.
    private static func prepareExchange(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> Result {
        transfer.nameFile()
        guard let id = transfer.id, let place = transfer.partPlace(in: pass.spool) else {
            try pass.fail(&transfer, .cannotCreateFile, "The data of this transfer in the ledger is damaged.")
            return .ended
        }
        if transfer.isFinishing {
            return .proof(FileProof.Expectation(of: transfer, at: place, mustMatch: transfer.destination == nil))
        }
        var body: PreparedAttempt.Source?
        if let size = transfer.upload?.byteCount ?? (transfer.bodyFile == nil ? nil : transfer.expectedToSend ?? -1) {
            body = source(of: transfer, size: size, nil, pass)
            guard body != nil else {
                try pass.failWithoutSource(&transfer, .queuedCopyIsGone)
                return .ended
            }
        }
        // The app's header `Accept-Encoding` is removed, because the agent does not decode compressed responses. With this
        // header, the app would receive compressed bytes.
        let headers = transfer.headers.filter { $0.name.lowercased() != "accept-encoding" }
        var request = TransferRequest(
            method: transfer.method, url: transfer.url, headers: headers, idleTimeout: transfer.idleTimeout,
            maximumBodyBytes: transfer.maximumBodyBytes, rateLimit: transfer.rateLimit,
            expectedSHA256: transfer.expectedSHA256,
            fileName: transfer.destination.map { URL(fileURLWithPath: $0, isDirectory: false).lastPathComponent })
        request.leastRate = WireRequest.leastUsefulRate
        let machine = DownloadMachine(
            request: request,
            partial: transfer.partial, policy: .ofAgent)
        transfer.attempts += 1
        return .attempt(PreparedAttempt(transfer, id, .download(machine, place, body: body)))
    }

    private static func prepareUpload(
        _ transfer: inout TransferRecord, _ known: inout UploadMachine?, _ pass: inout Pass
    ) throws -> Result {
        guard let id = transfer.id, let plan = try uploadPlan(transfer, pass.transaction) else { return .ended }
        // The user may have corrected the destination after the last attempt.
        var machine = known.flatMap { $0.follows(plan) ? $0 : nil } ?? machine(plan, of: transfer)
        if transfer.upload?.method.choosesNames == true {
            let names = try namesOfOthers(transfer, pass.transaction, alsoStored: machine.needsNames)
            machine.setOtherNames(taken: names.open, stored: names.stored)
        }
        let command = machine.next()
        known = machine
        switch command {
        case .send(let request, let content, let memory):
            var source: PreparedAttempt.Source?
            switch content {
            case .none: break
            case .empty: source = .bytes(Data())
            case .data(let bytes): source = .bytes(bytes)
            case .snapshot, .wrapped:
                source = transfer.upload.flatMap { Self.source(of: transfer, size: $0.byteCount, content, pass) }
                guard source != nil else {
                    try pass.failWithoutSource(&transfer, .queuedCopyIsGone)
                    return .ended
                }
                transfer.attempts += 1
                if case .snapshot(let from, _) = content { transfer.bytesDone = from } else { transfer.bytesDone = 0 }
            }
            transfer.uploadMemory = memory
            KillPoint.reach(KillPoint(memory.step), id)
            return .attempt(PreparedAttempt(transfer, id, .upload(machine, request, source)))
        case .compare(let request, let part, let memory):
            guard let name = transfer.bodyFile else {
                try pass.failWithoutSource(&transfer, .queuedCopyIsGone)
                return .ended
            }
            transfer.uploadMemory = memory
            KillPoint.reach(KillPoint(memory.step), id)
            let copy = pass.directories.spooled(name)
            return .attempt(PreparedAttempt(transfer, id, .comparison(machine, request, copy, part)))
        case .finished(let remoteURL): return .stored(at: remoteURL)
        case .fail(let trouble):
            try pass.fail(&transfer, trouble)
            return .ended
        }
    }

    /// Returns the names in the server's folder that other uploads of this computer use or may use. `open` contains the names of
    /// uploads that have no response yet.
    ///
    /// `stored` contains the names of completed uploads. These names are necessary if the server does not report whether a name
    /// is in use. The names are also necessary if the server may already have the file of this upload in the folder.
    private static func namesOfOthers(
        _ transfer: TransferRecord, _ transaction: LedgerTransaction, alsoStored: Bool
    ) throws -> (open: Set<String>, stored: Set<String>) {
        guard let id = transfer.id else { return ([], []) }
        let beginning = Self.plainBeginning(of: transfer.upload?.fileName ?? "")
        let open = try transaction.uploadsWithOpenAnswer(to: transfer.url, except: id, having: beginning).compactMap { other in
            try uploadMachine(other, transaction)?.openName
        }
        guard alsoStored || transfer.upload?.method == .put && transfer.uploadMemory?.mayBeThere == true else {
            return (Set(open), [])
        }
        return (Set(open), try transaction.storedUploads(to: transfer.url, except: id, beginning: beginning))
    }

    /// Returns the common beginning of a name and its numbered forms. The beginning contains only characters that an address does
    /// not encode. The beginning is so short that it is not cut even in a shortened name. A search by this beginning returns only
    /// a few of thousands of stored names.
    private static func plainBeginning(of name: String) -> String {
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name[...]
        return String(
            stem.prefix(40).prefix { character in
                character.isASCII && (character.isLetter || character.isNumber || character == "-" || character == "_")
            })
    }

    /// Returns the agent's copy of the file to upload, which is in the spool. The original is not used, because it may have
    /// changed after it was queued.
    private static func source(
        of transfer: TransferRecord, size: Int64, _ content: UploadContent?, _ pass: Pass
    ) -> PreparedAttempt.Source? {
        guard let name = transfer.bodyFile else { return nil }
        return .file(pass.directories.spooled(name), size: size, content)
    }

    /// Returns the machine of an upload with its stored state. Returns `nil` if the transfer is not an upload with a protocol.
    static func uploadMachine(_ transfer: TransferRecord, _ transaction: LedgerTransaction) throws -> UploadMachine? {
        try uploadPlan(transfer, transaction).map { machine($0, of: transfer) }
    }

    private static func machine(_ plan: UploadPlan, of transfer: TransferRecord) -> UploadMachine {
        UploadMachine(plan: plan, resuming: transfer.uploadMemory, policy: .ofAgent)
    }

    private static func uploadPlan(_ transfer: TransferRecord, _ transaction: LedgerTransaction) throws -> UploadPlan? {
        guard let order = transfer.upload, order.method != .plain else { return nil }
        return UploadPlan(
            order: order, collectionURL: transfer.url, headers: transfer.headers, idleTimeout: transfer.idleTimeout,
            rateLimit: transfer.rateLimit, sha256: transfer.sourceSHA256,
            knowledge: try transaction.fact(.server(of: transfer)) ?? ServerKnowledge())
    }
}

extension FileProof.Expectation {
    /// - Parameter mustMatch: `true` if it is certain that the user did not change the file with the final name.
    init(of transfer: TransferRecord, at place: PartPlace, mustMatch: Bool) {
        (part, whole, folder) = (place.url, place.whole, place.seenFolder)
        (self.mustMatch, replaced) = (mustMatch, transfer.replacedFile)
        (byteCount, sha256) = (transfer.bytesTotal ?? -1, transfer.sha256 ?? "")
    }
}

extension RetryPolicy {
    /// The agent's policy for pauses and retries. In debug builds, `BACKGROUND_RETRY_BASE` (in seconds) shortens the pauses, so
    /// that tests of many faults end within a day.
    static let ofAgent: RetryPolicy = {
        #if DEBUG
            if let base = ProcessInfo.processInfo.environment["BACKGROUND_RETRY_BASE"].flatMap(Double.init) {
                var quick = RetryPolicy(base: base, networkDelay: base * 10)
                quick.suspicionDelay = base * 100
                return quick
            }
        #endif
        var policy = RetryPolicy.standard
        policy.suspicionDelay = 900
        return policy
    }()
}

extension KillPoint {
    /// Creates the kill point of the next step of an upload.
    init(_ step: UploadMemory.Step) {
        self =
            switch step {
            case .chooseName: .uploadChooseName
            case .put: .uploadPut
            case .check: .uploadCheck
            case .move: .uploadMove
            case .create: .uploadCreate
            case .ask: .uploadAsk
            case .append: .uploadAppend
            }
    }
}
