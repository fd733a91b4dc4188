import Spool
import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// The properties of a transfer that are needed while its attempt is running.
struct AttemptTraits {
    let session: String
    let host: String
    let needs: TransferNeeds
    let target: UploadTarget?

    init(_ transfer: TransferRecord) {
        (session, host, needs) = (transfer.session, transfer.host, transfer.needs)
        target = UploadTarget(transfer)
    }
}

/// The server and the file name to which an upload sends its file. Uploads with equal targets run one after the other. If two
/// such uploads ran at the same time, each upload would find that the name is free. A server without conditional requests would
/// then keep only the second file.
struct UploadTarget: Hashable {
    private let folder: String
    private let name: String

    /// Creates the upload target of a transfer. Returns `nil` if the transfer is not an upload with a name on the server.
    init?(_ transfer: TransferRecord) {
        guard let spec = transfer.upload, spec.method != .plain else { return nil }
        // An address with a slash at its end and an address without this slash belong to the same folder.
        folder = transfer.url.hasSuffix("/") ? transfer.url : transfer.url + "/"
        name = RemoteName.folded(spec.fileName)
    }
}

/// A planned attempt, which consists of values and has no open file.
struct PreparedAttempt {
    enum Work {
        case download(DownloadMachine, PartPlace, body: Source?)
        case upload(UploadMachine, WireRequest, Source?)
        /// The response body is compared with a part of the queued copy.
        case comparison(UploadMachine, WireRequest, URL, SnapshotPart)
    }

    /// The body of a request.
    enum Source {
        case bytes(Data)
        /// The body is a file. The content is the part of the file to send, together with the data before and after it. `nil` if
        /// the complete file is sent.
        case file(URL, size: Int64, UploadContent?)

        func open(_ calls: FileCalls) throws(FileTrouble) -> any BodySource {
            switch self {
            case .bytes(let bytes): DataSource(bytes)
            case .file(let url, let size, let content): try UploadFile(url, size: size, content: content, calls: calls)
            }
        }
    }

    let id: AttemptID
    let traits: AttemptTraits
    let work: Work
    /// The number of bytes that were transferred before this attempt.
    let wireBase: Int64
    let hasDestination: Bool

    init(_ transfer: TransferRecord, _ id: Int64, _ work: Work) {
        self.id = AttemptID(transfer: id, number: transfer.attemptNumber)
        traits = AttemptTraits(transfer)
        self.work = work
        wireBase = transfer.bytesOnWire
        hasDestination = transfer.destination != nil
    }

    /// Opens the files of the attempt.
    func start(
        disk: DiskWorker, now: Date, post: @escaping @Sendable (AgentEvent) -> Void
    ) -> RunningAttempt.Start {
        do throws(FileTrouble) {
            return try opened(disk: disk, now: now, post: post)
        } catch {
            return .withoutSource(id, error)
        }
    }

    private func opened(
        disk: DiskWorker, now: Date, post: @escaping @Sendable (AgentEvent) -> Void
    ) throws(FileTrouble) -> RunningAttempt.Start {
        switch work {
        case .download(let machine, let place, let body):
            // The folder is checked before the partial file is opened. In another folder the partial file would be missing, and
            // the download would start from the beginning.
            if let trouble = FileTrouble.otherFolder(of: place.whole, place.seenFolder) { throw trouble }
            let source = try body?.open(disk.calls)
            let file = DownloadFile(
                attempt: id, place: place, isPrivate: !hasDestination, machine: machine, disk: disk, now: now, post: post)
            return .attempt(
                RunningAttempt(self, .download(file, body: source as? UploadFile)),
                .init(request: file.begin(), source: source, sink: file))
        case .upload(let machine, let request, let content):
            let source = try content?.open(disk.calls)
            let answer = ResponseSink()
            var attempt = RunningAttempt(self, .upload(machine, source as? UploadFile, .kept(answer)))
            if let file = source as? UploadFile, file.isLastPart { attempt.check = CopyCheck(of: file, id, on: disk, post: post) }
            return .attempt(
                attempt,
                .init(request: signed(request, now), source: source, sink: answer))
        case .comparison(let machine, let request, let copy, let part):
            let answer = try ComparisonSink(copy, part, disk.calls)
            return .attempt(
                RunningAttempt(self, .upload(machine, nil, .compared(answer))),
                .init(request: signed(request, now), source: nil, sink: answer))
        }
    }

    private func signed(_ request: WireRequest, _ now: Date) -> WireRequest {
        request.signed(at: now, hashing: CryptoHashing())
    }
}

/// A running attempt.
struct RunningAttempt {
    enum Work {
        /// The attempt of a download. `body` is the body of the request if this body is a file.
        case download(DownloadFile, body: UploadFile?)
        case upload(UploadMachine, UploadFile?, BodyHandling)
    }

    /// The possible uses of the response body of an upload's request.
    enum BodyHandling {
        case kept(ResponseSink)
        case compared(ComparisonSink)

        /// Returns the end of the attempt, together with the body or the result of the comparison.
        func completing(_ end: WireEnd) -> WireEnd {
            var end = end
            switch self {
            case .kept(let answer): end.body = answer.body
            case .compared(let answer): end.comparison = answer.comparison
            }
            return end
        }
    }

    /// The request, the source and the sink that the transport receives.
    struct Wire {
        let request: WireRequest
        let source: (any BodySource)?
        let sink: any BodySink
    }

    enum Start {
        case attempt(RunningAttempt, Wire)
        case withoutSource(AttemptID, FileTrouble)
    }

    let id: AttemptID
    let traits: AttemptTraits
    var work: Work
    let wireBase: Int64
    let hasDestination: Bool
    /// `true` if the transfer has ended and the disk worker is still hashing the last bytes.
    var isSettling = false
    /// `true` if the complete file already has its final name in addition to the name of the partial file.
    var isLinked = false
    /// The check of an upload whose request contains the last part of the file.
    fileprivate(set) var check: CopyCheck?

    fileprivate init(_ prepared: PreparedAttempt, _ work: Work) {
        (id, traits, wireBase) = (prepared.id, prepared.traits, prepared.wireBase)
        hasDestination = prepared.hasDestination
        self.work = work
    }

    /// Returns the end of the attempt, corrected if the server confirmed the body too early.
    ///
    /// A server that confirms a body before it received all bytes cannot have stored the body. So this confirmation is handled
    /// like a broken connection.
    func counted(_ end: WireEnd) -> WireEnd {
        guard case .download(_, let body?) = work, let head = end.head, (200..<300).contains(head.status), end.failure == nil,
            !body.isHandedOut
        else { return end }
        var end = end
        end.failure = .connectionLost
        return end
    }

    /// Handles the end of the attempt's transfer.
    ///
    /// - Returns: `true` if no slow work is left. If the value is `false`, `.attemptFinished` is posted when the slow work is
    ///   complete.
    func finish(_ end: WireEnd) -> Bool {
        switch work {
        case .download(let file, body: _): file.finish(end)
        case .upload: check?.finish(end) ?? true
        }
    }

    // MARK: Progress

    func recordProgress(sent: Int64, received: Int64, _ pass: inout Pass) throws {
        guard var transfer = try pass.transaction.transfer(id.transfer) else { return }
        let before = transfer
        transfer.bytesOnWire = wireBase + sent + received
        switch work {
        case .download(let file, body: _):
            file.progress.record(in: &transfer, &pass)
            if transfer.kind == .upload { transfer.bytesDone = sent }
        case .upload(_, let source, _):
            if let source { transfer.bytesDone = source.place(sent: sent) }
        }
        if transfer != before { try pass.transaction.record(transfer) }
    }

    /// Records the progress of a download when the number of transferred bytes has not changed.
    func recordProgress(_ pass: inout Pass) throws {
        guard case .download(let file, body: _) = work, var transfer = try pass.transaction.transfer(id.transfer) else { return }
        let before = transfer
        file.progress.record(in: &transfer, &pass)
        if transfer != before { try pass.transaction.record(transfer) }
    }

    /// Handles an interim message of the server that contains the address at which an upload can be resumed. The message arrives
    /// long before the response.
    mutating func storeResumptionAddress(_ head: ResponseHead, _ pass: inout Pass) throws {
        guard case .upload(var machine, let source, let answer) = work,
            var transfer = try pass.transaction.transfer(id.transfer)
        else { return }
        let memory = machine.received(head)
        work = .upload(machine, source, answer)
        guard let memory else { return }
        transfer.uploadMemory = memory
        try pass.transaction.record(transfer)
    }
}

extension DownloadFile.Progress {
    /// Writes into a row the stored part of the download, and the name of its file.
    func recordPart(in transfer: inout TransferRecord, _ pass: inout Pass) {
        transfer.partial = partial
        guard let known = transfer.partPlace(in: pass.spool), known.name != place.name else { return }
        // A new version of the file is written to a partial file with another name, and this commit records that name in the
        // ledger.
        transfer.file = place.name
        pass.perform(.removeFile(known.url))
    }

    /// Writes the progress of a running attempt into a row.
    func record(in transfer: inout TransferRecord, _ pass: inout Pass) {
        if transfer.recordGreatestLength(partial) { _ = transfer.handle(.progressed(now: pass.now)) }
        recordPart(in: &transfer, &pass)
        guard transfer.kind == .download else { return }
        if hasAnswer { transfer.resumedAt = resumedAt }
        transfer.bytesTotal = partial?.totalBytes
        transfer.bytesDone = written
    }
}
