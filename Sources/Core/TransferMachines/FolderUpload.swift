import Foundation

/// An upload into a folder by PUT, or by PUT and MOVE for WebDAV. The process may be killed at any line of code.
///
/// After any crash, lost response or retry, exactly one complete copy has a final name, and no other file was changed. If no
/// response to a request arrived, the upload checks the state of the server before it sends the request again.
struct FolderUpload: UploadProtocol {
    enum State {
        /// The upload sends HEAD for the final name, because this name must be free.
        case choosingName(Int, isStored: Bool)
        /// The upload sends HEAD and then GET for a name that no file has, because the server reported many names as taken.
        case doubting(Int, isStored: Bool)
        /// The upload sends the file by PUT.
        case sendingBody(Int, foldersMade: Bool)
        /// The upload makes one folder of the path by MKCOL. The upload continues with the parent folders until one of them
        /// exists, and then makes the folders below it.
        case makingFolder(Int, level: Int, goingDown: Bool, why: Reason = .missing)
        /// The response to the PUT was lost. The upload sends HEAD for the temporary name, because the file may be complete.
        case queryingBody(Int, foldersMade: Bool)
        /// The temporary file on the server has the right length. The upload reads the file back with GET to check its content. A
        /// server that reserves disk space for the announced length may not have received the rest of the body.
        case readingBody(Int, ReadBack, foldersMade: Bool)
        /// The upload sends HEAD for the file that the PUT sent, to check its length. `mayBeAnothers` is `true` if the server did
        /// not confirm that the PUT made a new file. `mayBeAnothers` is also `true` if an earlier process received the response.
        case checkingBody(Int, mayBeAnothers: Bool)
        /// The server has a file with the name and the length of this upload's file. The upload reads it with GET, because only
        /// the content shows whether this upload sent the file.
        case readingBack(Int, ReadBack, isStored: Bool)
        /// The upload moves the temporary file to the final name by MOVE.
        case moving(Int)
        /// The MOVE had no clear success, and the upload sends HEAD for the temporary name. `wasRefused` is `true` if the server
        /// responded with 412.
        case queryingTemporary(Int, wasRefused: Bool)
        /// The upload sends HEAD for the final name, because this upload may have sent the file with this name. `wasRefused` is
        /// `true` if the server responded with 412. A WebDAV upload then still has its temporary file.
        case queryingTarget(Int, wasRefused: Bool)
        /// After a successful MOVE, the upload sends HEAD for the final name to confirm that the file exists.
        case confirming(Int)
    }

    /// The reason why the upload makes a folder.
    enum Reason {
        /// The server reported that the folder is missing.
        case missing
        /// The folder may be missing, and the body is large. The folder is made first, because a missing folder would make the
        /// PUT fail.
        case beforeLarge
        /// The folder may be missing, because the server failed and did not report the reason.
        case afterTrouble
    }

    /// The minimum size of a large body in bytes. Before a large body is sent, the upload makes sure that the folder exists.
    static let largeBody: Int64 = 1 << 20

    let plan: UploadPlan
    let address: CollectionAddress?
    var state: State
    /// The evidence that the server has the file.
    var proof = UploadProof.answer
    /// Records whether an existing file with the final name may be the file of this upload. For a WebDAV upload, this value also
    /// counts how often the temporary name was checked.
    var doubt: NameDoubt
    /// The strong entity tag in the response to the PUT.
    var storedTag: String?
    /// The number of consecutive times that the server confirmed a body but then did not show the file.
    var losses = 0
    static let maximumLosses = 2
    var knowledge: ServerKnowledge
    /// Addresses that other uploads of this machine use or may use, in the form of ``CollectionAddress/folded(_:)``.
    private var taken: Set<String> = []
    /// Addresses of completed uploads of this machine, in the form of ``CollectionAddress/folded(_:)``.
    private var stored: Set<String> = []

    var search: NameSearch
    var forbidden: ForbiddenCharacters
    /// `true` if the server's responses do not show whether a file exists at an address.
    var cannotAsk: Bool
    /// `true` if a body was sent to the address and its response was lost, and the server does not show whether the file exists.
    var mayBeThere = false
    /// `true` if another file may have the file's name. The file is then sent to a marked name, which contains a part of its
    /// digest. No other file has the marked name.
    var isMarked: Bool

    mutating func setOtherNames(taken: Set<String>, stored: Set<String>) {
        self.taken = Set(taken.map(CollectionAddress.folded))
        self.stored = Set(stored.map(CollectionAddress.folded))
        guard plan.order.method == .put, case .sendingBody(let index, let foldersMade) = state else { return }
        let free = firstName(from: index)
        // Another upload of this machine began to use this name after the name was checked.
        if free != index {
            state = cannotAsk ? .sendingBody(free, foldersMade: foldersMade) : .choosingName(free, isStored: false)
        }
    }

    /// The state to commit after a PUT that the server refused and that left no file. Without this state, the next attempt could
    /// mistake another file of the same length for the file of this upload.
    var memory: UploadMemory? {
        guard plan.order.method == .put, case .choosingName(let index, let isStored) = state else { return nil }
        return record(.chooseName, index, isStored: isStored)
    }

    /// - Parameter resuming: The last committed state of an earlier process, or `nil` for a new upload.
    init(plan: UploadPlan, resuming saved: UploadMemory? = nil) {
        self.plan = plan
        address = CollectionAddress(plan.collectionURL)
        knowledge = plan.knowledge
        isMarked = saved?.isMarked ?? false
        search = NameSearch(resuming: saved)
        doubt = NameDoubt(resuming: saved, sentIn: plan.order.method == .webdav ? [.move] : [.put, .check])
        forbidden = ForbiddenCharacters(resuming: saved)
        cannotAsk = search.distrustsHead
        let name = saved?.nameIndex ?? 0
        switch saved?.step {
        case nil: state = .choosingName(0, isStored: false)
        case .chooseName: state = .choosingName(name, isStored: saved?.isStored ?? false)
        case .put:
            // The earlier process may have sent the file, so the server is checked before the file is sent again.
            state =
                plan.order.method == .webdav
                ? .queryingBody(name, foldersMade: false) : .queryingTarget(name, wasRefused: false)
        case .check: state = .checkingBody(name, mayBeAnothers: true)
        // If the server responded to the MOVE, no temporary file is left.
        case .move: state = saved?.isStored == false ? .confirming(name) : .queryingTemporary(name, wasRefused: false)
        // These steps belong to other protocols and are not used here.
        case .create, .ask, .append: state = .choosingName(0, isStored: false)
        }
    }

    func next() -> UploadCommand {
        guard let address else { return .fail(TransferTrouble(.unsupportedURL)) }
        switch state {
        case .choosingName(let wished, let isStored):
            let index = firstName(from: wished)
            return send("HEAD", address.file(finalName(index)), saving: .chooseName, index, isStored: isStored)
        case .doubting(let index, let isStored):
            let url = address.file(forbidden.replaced(in: plan.nobodysName))
            return send(search.methodForFreeName, url, saving: .chooseName, index, isStored: isStored)
        case .sendingBody(let index, _):
            let isDirect = plan.order.method == .put
            let url = address.file(isDirect ? finalName(index) : temporaryName)
            // The request for a marked name (with a part of the digest) has no condition, because no other file has this name. An
            // interrupted PUT may have left a part of the file, which the next PUT replaces.
            let condition = isDirect && !isMarked ? [HeaderField("If-None-Match", "*")] : []
            return send("PUT", url, condition, withBody: true, saving: .put, index, isStored: false)
        case .queryingBody(let index, _):
            return send("HEAD", address.file(temporaryName), [NameDoubt.wantedDigest], saving: .put, index, isStored: false)
        case .readingBody(let index, let question, _):
            let request = plan.request("GET", address.file(temporaryName), question.headers)
            return question.command(request, persistFirst: record(.put, index, isStored: false))
        case .makingFolder(let index, let level, _, _):
            return send("MKCOL", address.folder(levels: level), saving: .put, index, isStored: false)
        case .checkingBody(let index, let mayBeAnothers):
            let url = address.file(plan.order.method == .put ? finalName(index) : temporaryName)
            let digest = mayBeAnothers && plan.order.method == .put ? [NameDoubt.wantedDigest] : []
            return send("HEAD", url, digest, saving: .check, index, isStored: true)
        case .readingBack(let index, let question, let isStored):
            // The step `put` is recorded only if this upload sent the file. Otherwise the next process would expect a file from a
            // PUT that was never sent.
            let step = plan.order.method == .put && doubt.isOpen ? UploadMemory.Step.put : .chooseName
            let request = plan.request("GET", address.file(finalName(index)), question.headers)
            return question.command(request, persistFirst: record(step, index, isStored: isStored))
        case .moving(let index):
            let headers = [
                HeaderField("Destination", destination(address.publicFile(finalName(index)))), HeaderField("Overwrite", "F"),
            ]
            return send("MOVE", address.file(temporaryName), headers, saving: .move, index, isStored: true)
        case .queryingTemporary(let index, _):
            return send("HEAD", address.file(temporaryName), saving: .move, index, isStored: true)
        case .queryingTarget(let index, _):
            let url = address.file(finalName(index))
            guard plan.order.method == .put else { return send("HEAD", url, saving: .move, index, isStored: true) }
            return send("HEAD", url, [NameDoubt.wantedDigest], saving: .put, index, isStored: false)
        case .confirming(let index):
            return send("HEAD", address.file(finalName(index)), saving: .move, index, isStored: false)
        }
    }

    /// Selects the next form of the `Destination` header.
    ///
    /// - Returns: `false` if the server refused every form of the header, or if the connection does not use TLS.
    mutating func changeDestination() -> Bool {
        guard plan.collectionURL.lowercased().hasPrefix("https://") else { return false }
        knowledge.moveDestination = MoveDestination.next(after: knowledge.moveDestination)
        return knowledge.moveDestination != nil
    }

    private func destination(_ address: String) -> String {
        guard address.hasPrefix("https://"), let form = knowledge.moveDestination else { return address }
        return form.of(address)
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        // Apache responds with 502 to a `Destination` with another scheme. The upload looks for the file before the next MOVE.
        if case .moving = state, head.status == 502 { _ = changeDestination() }
        switch state {
        case .readingBack(let index, let question, let isStored):
            return afterReadBack(head, end.comparison, index, question, isStored: isStored, pauses)
        case .readingBody(let index, let question, let foldersMade):
            return afterBodyReadBack(head, end.comparison, index, question, foldersMade: foldersMade, pauses)
        // The server accepted the file. If the server refuses a check, the upload still continues.
        case .checkingBody(let index, let mayBeAnothers) where NameDoubt.isRefusedCheck(head):
            return afterBodyCheck(head, index, mayBeAnothers: mayBeAnothers, pauses)
        case .confirming(let index) where NameDoubt.isRefusedCheck(head): return afterConfirmation(head, index, pauses)
        case .doubting(let index, let isStored): return afterDoubt(head, index, isStored: isStored, pauses)
        case .choosingName, .sendingBody, .makingFolder, .queryingBody, .checkingBody, .moving, .queryingTemporary,
            .queryingTarget, .confirming:
            break
        }
        if case .makingFolder(let index, let level, let goingDown, let why) = state, head.status == 403 {
            return afterFolder(head, index, level: level, goingDown: goingDown, why)
        }
        if case .makingFolder(let index, _, _, let why) = state, why != .missing, ![404, 405, 409].contains(head.status),
            head.status >= 300
        {
            // The response does not show whether the folder is missing. The following PUT shows whether the folder exists.
            state = .sendingBody(index, foldersMade: why == .afterTrouble)
            return .continue
        }
        if case .sendingBody(let index, foldersMade: false) = state, head.status == 500, plan.order.method == .webdav,
            let levels = address?.segments.count, levels > 0
        {
            // nginx responds with 500 if the folder is missing. The upload checks the folder before it sends the complete file
            // again.
            state = .makingFolder(index, level: levels, goingDown: false, why: .afterTrouble)
            return pauses.retry(head)
        }
        if isOther(head, end) { return .continue }
        if let outcome = commonStatus(head, pauses) ?? afterPage(head, pauses) { return outcome }
        switch state {
        case .choosingName(let index, let isStored):
            return afterNameCheck(head, index, isStored: isStored, pauses)
        case .doubting(let index, let isStored):
            return afterDoubt(head, index, isStored: isStored, pauses)
        case .sendingBody(let index, let foldersMade):
            return afterPut(head, index, foldersMade: foldersMade)
        case .queryingBody(let index, let foldersMade):
            return afterBodySearch(head, index, foldersMade: foldersMade)
        case .makingFolder(let index, let level, let goingDown, let why):
            return afterFolder(head, index, level: level, goingDown: goingDown, why)
        case .checkingBody(let index, let mayBeAnothers):
            return afterBodyCheck(head, index, mayBeAnothers: mayBeAnothers, pauses)
        case .readingBack(let index, let question, let isStored):
            return afterReadBack(head, end.comparison, index, question, isStored: isStored, pauses)
        case .readingBody(let index, let question, let foldersMade):
            return afterBodyReadBack(head, end.comparison, index, question, foldersMade: foldersMade, pauses)
        case .moving(let index):
            return afterMove(head, index, pauses)
        case .queryingTemporary(let index, let wasRefused):
            return afterTemporaryCheck(head, index, wasRefused: wasRefused)
        case .queryingTarget(let index, let wasRefused):
            return afterTargetCheck(head, index, wasRefused: wasRefused, pauses)
        case .confirming(let index):
            return afterConfirmation(head, index, pauses)
        }
    }

    var openName: String? {
        guard plan.order.method == .put, let address else { return nil }
        switch state {
        case .sendingBody(let index, _), .checkingBody(let index, _), .readingBack(let index, _, _),
            .queryingTarget(let index, _):
            return address.publicFile(finalName(index))
        case .choosingName(let index, _) where doubt.isOpen: return address.publicFile(finalName(index))
        case .choosingName, .doubting, .queryingBody, .readingBody, .makingFolder, .moving, .queryingTemporary, .confirming:
            return nil
        }
    }

    var needsNames: Bool {
        if case .sendingBody = state { cannotAsk && plan.order.method == .put } else { false }
    }

    /// Returns the index of the first name that no other upload of this machine uses or may use.
    func firstName(from index: Int) -> Int {
        guard plan.order.method == .put, let address else { return index }
        let others = cannotAsk ? taken.union(stored) : taken
        return RemoteName.firstIndex(from: index) {
            !others.contains(CollectionAddress.folded(address.publicFile(finalName($0))))
        }
    }

    /// Returns whether another upload of this machine uses or may use the name.
    func isOfOther(_ index: Int) -> Bool { plan.order.method == .put && has(index, in: taken) }

    /// Returns whether a completed upload of this machine used the name.
    func wasStored(_ index: Int) -> Bool { has(index, in: stored) }

    private func has(_ index: Int, in names: Set<String>) -> Bool {
        address.map { names.contains(CollectionAddress.folded($0.publicFile(finalName(index)))) } ?? false
    }

    /// The progress of the upload. The value is 0 if the server has no complete body, and 1 if it has the complete body. The
    /// value decreases if the server loses the body.
    var stage: Int64 {
        switch state {
        case .choosingName(_, let isStored), .doubting(_, let isStored), .readingBack(_, _, let isStored): isStored ? 1 : 0
        case .sendingBody, .queryingBody, .readingBody, .makingFolder, .checkingBody: 0
        case .queryingTarget: plan.order.method == .webdav ? 1 : 0
        case .moving, .queryingTemporary, .confirming: 1
        }
    }

    var nameIndex: Int {
        switch state {
        case .choosingName(let index, _), .doubting(let index, _), .sendingBody(let index, _), .queryingBody(let index, _),
            .readingBody(let index, _, _),
            .makingFolder(let index, _, _, _), .checkingBody(let index, _), .readingBack(let index, _, _), .moving(let index),
            .queryingTemporary(let index, _), .queryingTarget(let index, _), .confirming(let index):
            index
        }
    }

    /// The request that removes the file of an unfinished upload. A WebDAV upload removes its temporary file. A plain PUT removes
    /// its file only if this process received the response that the PUT made a new file.
    var removal: WireRequest? {
        guard let address else { return nil }
        if plan.order.method == .put {
            guard case .checkingBody(let index, mayBeAnothers: false) = state else { return nil }
            let condition = storedTag.map { [HeaderField("If-Match", $0)] } ?? []
            return plan.request("DELETE", address.file(finalName(index)), condition)
        }
        switch state {
        case .sendingBody, .queryingBody, .readingBody, .checkingBody, .moving, .queryingTemporary,
            .queryingTarget(_, wasRefused: true):
            return plan.request("DELETE", address.file(temporaryName))
        case .choosingName(_, let isStored), .doubting(_, let isStored), .readingBack(_, _, let isStored):
            return isStored ? plan.request("DELETE", address.file(temporaryName)) : nil
        case .makingFolder, .queryingTarget, .confirming: return nil
        }
    }

    /// The number of bytes that the server has stored. The value is the number of all bytes after the temporary file is complete.
    var storedBytes: Int64 { stage > 0 ? plan.order.byteCount : 0 }

    var temporaryName: String { RemoteName.temporary(token: plan.order.token) }

    func finalName(_ index: Int) -> String { forbidden.replaced(in: plan.name(index, isMarked: isMarked)) }

    var remark: String? { forbidden.remark }

    private func send(
        _ method: String, _ url: String, _ extra: [HeaderField] = [], withBody: Bool = false, saving step: UploadMemory.Step,
        _ index: Int, isStored: Bool
    ) -> UploadCommand {
        let content = withBody ? UploadContent.snapshot(from: 0, count: plan.order.byteCount) : .none
        return .send(plan.request(method, url, extra), content, persistFirst: record(step, index, isStored: isStored))
    }

    private func record(_ step: UploadMemory.Step, _ index: Int, isStored: Bool) -> UploadMemory {
        UploadMemory(
            step: step, nameIndex: index, isStored: isStored, isMarked: isMarked, distrustsHead: search.distrustsHead,
            replaced: forbidden.found, nameRules: forbidden.rules.rawValue,
            // The other steps already show that the file may have been sent, so the value is not stored for these steps.
            isDoubted: doubt.isOpen && (step == .chooseName || plan.order.method == .webdav && [.put, .check].contains(step)))
    }
}
