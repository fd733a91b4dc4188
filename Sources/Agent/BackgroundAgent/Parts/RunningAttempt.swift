import Spool
import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// What of a transfer matters to others while an attempt at it runs.
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

/// The name that an upload wants on its server. Two that want the same one go one after the other: at the same time both would
/// find it free, and servers that know no condition would keep the second alone.
struct UploadTarget: Hashable {
    private let folder: String
    private let name: String

    /// `nil`: not an upload that has a name of its own there.
    init?(_ transfer: TransferRecord) {
        guard let spec = transfer.upload, spec.method != .plain else { return nil }
        // With the last stroke or without it is one folder.
        folder = transfer.url.hasSuffix("/") ? transfer.url : transfer.url + "/"
        name = RemoteName.folded(spec.fileName)
    }
}

/// An attempt that is decided on: values alone, no open file.
struct PreparedAttempt {
    enum Work {
        case download(DownloadMachine, PartPlace, body: Source?)
        case upload(UploadMachine, WireRequest, Source?)
        /// The body of the response is compared with a part of the queued copy.
        case comparison(UploadMachine, WireRequest, URL, SnapshotPart)
    }

    /// What a request carries.
    enum Source {
        case bytes(Data)
        /// - content: which part of the file, in what wrapping; `nil`: all of it.
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
    /// Bytes on the wire before this attempt.
    let wireBase: Int64
    let hasDestination: Bool

    init(_ transfer: TransferRecord, _ id: Int64, _ work: Work) {
        self.id = AttemptID(transfer: id, number: transfer.attemptNumber)
        traits = AttemptTraits(transfer)
        self.work = work
        wireBase = transfer.bytesOnWire
        hasDestination = transfer.destination != nil
    }

    /// Opens its files.
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
            // Before the part is looked for: in another folder it would be gone, and begin again.
            if let trouble = FileTrouble.otherFolder(of: place.whole, place.seenFolder) { throw trouble }
            let source = try body?.open(disk.calls)
            let file = DownloadFile(
                attempt: id, place: place, isPrivate: !hasDestination, machine: machine, disk: disk, now: now, post: post)
            return .attempt(
                RunningAttempt(self, .download(file, body: source as? UploadFile)),
                .init(request: file.begin(), source: source, sink: file))
        case .upload(let machine, let request, let content):
            let source = try content?.open(disk.calls)
            let answer = AnswerSink()
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

/// One attempt that runs now.
struct RunningAttempt {
    enum Work {
        /// - body: what the request carries, if it is a file.
        case download(DownloadFile, body: UploadFile?)
        case upload(UploadMachine, UploadFile?, Answer)
    }

    /// What becomes of the body of the response to an upload's request.
    enum Answer {
        case kept(AnswerSink)
        case compared(ComparisonSink)

        /// The end of the attempt, with what is known of the body.
        func completing(_ end: WireEnd) -> WireEnd {
            var end = end
            switch self {
            case .kept(let answer): end.body = answer.body
            case .compared(let answer): end.comparison = answer.comparison
            }
            return end
        }
    }

    /// What the transport is handed.
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
    /// It ended on the wire, and the disk worker hashes what is left.
    var isSettling = false
    /// Its whole file has its name already, beside that of its part.
    var isLinked = false
    /// Of an upload whose request carries the last part of the file.
    fileprivate(set) var check: CopyCheck?

    fileprivate init(_ prepared: PreparedAttempt, _ work: Work) {
        (id, traits, wireBase) = (prepared.id, prepared.traits, prepared.wireBase)
        hasDestination = prepared.hasDestination
        self.work = work
    }

    /// The end of the attempt, as it counts here.
    ///
    /// A server that confirms a body before it has all of it cannot have stored it. That is a connection that broke.
    func counted(_ end: WireEnd) -> WireEnd {
        guard case .download(_, let body?) = work, let head = end.head, (200..<300).contains(head.status), end.failure == nil,
            !body.isHandedOut
        else { return end }
        var end = end
        end.failure = .connectionLost
        return end
    }

    /// The attempt ended on the wire.
    ///
    /// - Returns: `true` if nothing slow is left to do. Otherwise `.attemptSettled` is posted when it is done.
    func settle(_ end: WireEnd) -> Bool {
        switch work {
        case .download(let file, body: _): file.settle(end)
        case .upload: check?.settle(end) ?? true
        }
    }

    // MARK: On its way

    func noteProgress(sent: Int64, received: Int64, _ pass: inout Pass) throws {
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

    /// Of a download, whatever has moved on the wire.
    func noteProgress(_ pass: inout Pass) throws {
        guard case .download(let file, body: _) = work, var transfer = try pass.transaction.transfer(id.transfer) else { return }
        let before = transfer
        file.progress.record(in: &transfer, &pass)
        if transfer != before { try pass.transaction.record(transfer) }
    }

    /// A server names the place where an upload can be gone on with, long before it answers.
    mutating func noteResumption(_ head: ResponseHead, _ pass: inout Pass) throws {
        guard case .upload(var machine, let source, let answer) = work,
            var transfer = try pass.transaction.transfer(id.transfer)
        else { return }
        let memory = machine.heard(head)
        work = .upload(machine, source, answer)
        guard let memory else { return }
        transfer.uploadMemory = memory
        try pass.transaction.record(transfer)
    }
}

extension DownloadFile.Progress {
    /// Writes into a row how much of the download is on the disk, and in which file.
    func recordPart(in transfer: inout TransferRecord, _ pass: inout Pass) {
        transfer.partial = partial
        guard let known = transfer.partPlace(in: pass.spool), known.name != place.name else { return }
        // A new version began under the other name. The ledger refers to that name from this commit on.
        transfer.file = place.name
        pass.perform(.removeFile(known.url))
    }

    /// Writes into a row how far a running attempt is.
    func record(in transfer: inout TransferRecord, _ pass: inout Pass) {
        if transfer.noteFurthest(partial) { _ = transfer.handle(.progressed(now: pass.now)) }
        recordPart(in: &transfer, &pass)
        guard transfer.kind == .download else { return }
        if hasAnswer { transfer.resumedAt = resumedAt }
        transfer.bytesTotal = partial?.totalBytes
        transfer.bytesDone = written
    }
}
