import Foundation

/// Handles the responses to the steps of the upload.
extension FolderUpload {
    /// Handles a request whose response was lost. A PUT to the temporary name can be repeated. The repetition is not necessary if
    /// the server has the complete file.
    mutating func handleUncertainty() {
        switch state {
        case .moving(let index):
            doubt.open()
            state = .queryingTemporary(index, wasRefused: false)
        case .sendingBody(let index, _) where plan.order.method == .put:
            doubt.open()
            state = .queryingTarget(index, wasRefused: false)
        case .sendingBody(let index, let foldersMade): state = .queryingBody(index, foldersMade: foldersMade)
        case .choosingName, .doubting, .queryingBody, .readingBody, .makingFolder, .checkingBody, .readingBack,
            .queryingTemporary, .queryingTarget, .confirming:
            break
        }
    }

    mutating func recordEarlyResponse() {
        handleUncertainty()
        doubt.recordEarlyResponse()
    }

    /// Chooses another name if the server refused the characters of this name. A stored temporary file is kept.
    mutating func isOther(_ head: ResponseHead, _ end: WireEnd) -> Bool {
        switch state {
        case .sendingBody(let index, _) where plan.order.method == .put:
            guard forbidden.read(head, end.body, for: finalName(index)) else { return false }
            doubt.close()
            state = .choosingName(0, isStored: false)
        case .moving(let index):
            guard forbidden.read(head, end.body, for: finalName(index)) else { return false }
            doubt.close()
            state = .choosingName(0, isStored: true)
        case .sendingBody, .choosingName, .doubting, .makingFolder, .queryingBody, .readingBody, .checkingBody, .readingBack,
            .queryingTemporary, .queryingTarget, .confirming:
            return false
        }
        return true
    }

    /// Handles responses that have the same meaning for every request.
    mutating func commonStatus(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome? {
        if isWriteOnly(head) { return nil }
        guard let common = CommonResponse(head, pauses) else { return nil }
        if case .sendingBody(let index, _) = state, !common.mayHaveActed || Self.refusals.contains(head.status) {
            if plan.order.method == .put { state = .choosingName(index, isStored: false) }
        } else if common.mayHaveActed {
            handleUncertainty()
        }
        return common.outcome
    }

    /// Returns whether the folder may permit PUT and forbid HEAD. The response to PUT shows whether the folder accepts files.
    private func isWriteOnly(_ head: ResponseHead) -> Bool {
        if case .choosingName = state { head.status == 403 } else { false }
    }

    /// Statuses of a server that did not carry out the request (RFC 6585 §4, RFC 4918 §11.3, RFC 8470 §5.2, RFC 9110 §15.5.20).
    /// The status 503 is not included, because a gateway also sends 503 if the server did not respond to the forwarded request.
    private static let refusals: Set<Int> = [421, 423, 425, 429]

    /// Returns whether the refusal may be temporary. Before the file is sent again, the name is checked.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool {
        if case .sendingBody = state, plan.order.method == .put, head.status == 409 { return true }
        return head.hasNoMeaningForUploads
    }

    mutating func afterNameCheck(_ head: ResponseHead, _ wished: Int, isStored: Bool, _ pauses: Pauses) -> UploadOutcome {
        let index = firstName(from: wished)
        // Nextcloud responds with 400 to HEAD for a forbidden name. Only the response to the next request contains the reason.
        let isForbidden = head.status == 400 && ForbiddenCharacters.areLikely(in: finalName(index))
        let answer = isForbidden ? .unknown : existence(head)
        // The file was sent to this name before, so the server responded to an earlier HEAD for this name.
        if answer.isUnknown, !isForbidden, !cannotAsk, doubt.shouldCheckAgain() { return pauses.retry(head, NameDoubt.notShown) }
        // If HEAD is not supported, the condition of the request and the record of this machine's uploads protect other files.
        cannotAsk = answer.isUnknown
        switch answer {
        case .there where head.isPage(inPlaceOf: plan): return pauses.page(head)
        // The file was sent before. The server shows the file late, or this computer was restored from a backup.
        case .there(let length)
        where (length == plan.order.byteCount || length == nil && doubt.isOpen && !doubt.isPartial)
            && index == wished && !isOfOther(index) && (doubt.isOpen || !isStored):
            return compareContent(head, index, isStored: isStored)
        case .there:
            guard search.recordTaken() else { return tryName(after: index, isStored: isStored) }
            state = .doubting(index, isStored: isStored)
            return .continue
        case .absent where search.refused == index: return .freeNamesAreRefused
        case .absent, .unknown:
            if isStored { state = .moving(index) } else { sendBody(index) }
            return .continue
        case .refused: return refused(head)
        }
    }

    mutating func afterDoubt(_ head: ResponseHead, _ index: Int, isStored: Bool, _ pauses: Pauses) -> UploadOutcome {
        switch search.finding(head, of: plan, pauses) {
        case .namesAreTaken: return tryName(after: index, isStored: isStored)
        case .continues: break
        case .headIsNoAnswer:
            (cannotAsk, isMarked) = (true, true)
            if isStored { state = .moving(0) } else { sendBody(0) }
        case .waits(let outcome):
            state = .doubting(0, isStored: isStored)
            return outcome
        case .startsOver: state = .choosingName(0, isStored: isStored)
        }
        return .continue
    }

    /// Continues with the PUT of the file, or with the check of its folder.
    private mutating func sendBody(_ index: Int) {
        let levels = address?.segments.count ?? 0
        let asksFirst = plan.order.method == .webdav && plan.order.byteCount >= Self.largeBody && levels > 0
        state =
            asksFirst
            ? .makingFolder(index, level: levels, goingDown: false, why: .beforeLarge)
            : .sendingBody(index, foldersMade: false)
    }

    /// Handles a page in place of the file. The page may come from a captive portal. A check with such a page is repeated. After
    /// a rename with such a page, the upload looks for the file. A page with the file's length is accepted as the file.
    ///
    /// - Returns: `nil` if the response is not such a page.
    mutating func afterPage(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome? {
        guard (200..<300).contains(head.status), head.mayBeOfAPortal, head.isPage(inPlaceOf: plan),
            pauses.policy.suspicionDelay != nil
        else { return nil }
        switch state {
        case .queryingBody, .checkingBody, .queryingTemporary, .queryingTarget, .confirming:
            return head.contentLength == plan.order.byteCount ? nil : pauses.page(head)
        // Servers respond to a rename with 201 or 204. A 201 may contain a page.
        case .moving(let index) where head.status == 200:
            doubt.open()
            state = .queryingTemporary(index, wasRefused: false)
            return pauses.page(head)
        case .choosingName, .doubting, .sendingBody, .makingFolder, .readingBack, .readingBody, .moving: return nil
        }
    }

    mutating func afterPut(_ head: ResponseHead, _ index: Int, foldersMade: Bool) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            storedTag = Self.strongTag(in: head)
            if plan.order.method == .put { doubt.open() }
            // A server responds with 201 if the file is new. Another status may mean that the PUT replaced an existing file.
            state = .checkingBody(index, mayBeAnothers: head.status != 201)
            return .continue
        case 404, 409:
            guard plan.order.method == .webdav, !foldersMade, let levels = address?.segments.count, levels > 0 else {
                let words = foldersMade ? CommonResponse.noFolderMade : "The folder does not exist on the server."
                return .fail(head, -1100, words)
            }
            state = .makingFolder(index, level: levels, goingDown: false)
            return .continue
        // A PUT to a name with a part of the digest has no condition, so the status 412 is a refusal.
        case 412 where plan.order.method == .put && isMarked: return refused(head)
        // The existing file may be the file of this upload. With a marked name, the server stores the file at most twice.
        case 412 where plan.order.method == .put && mayBeThere:
            isMarked = true
            state = .sendingBody(0, foldersMade: false)
            return .continue
        case 412 where plan.order.method == .put && cannotAsk: return afterRefusedName(index, isStored: false)
        // The existing file may be the file of this upload, if the server carried out a PUT late or a proxy sent the PUT twice.
        case 412 where plan.order.method == .put:
            state = .queryingTarget(index, wasRefused: true)
            return .continue
        default:
            if plan.order.method == .put { state = .choosingName(index, isStored: false) }
            return refused(head)
        }
    }

    mutating func afterFolder(
        _ head: ResponseHead, _ index: Int, level: Int, goingDown: Bool, _ why: Reason
    ) -> UploadOutcome {
        switch head.status {
        // 405 means that the folder exists. 403 means that making the folder is forbidden, or that another upload is making the
        // folder. Apache sends 403 to the later of two such requests. The next request shows whether the folder exists.
        case 200..<300, 405, 403:
            let isLast = level == address?.segments.count
            state =
                isLast
                ? .sendingBody(index, foldersMade: true)
                : .makingFolder(index, level: level + 1, goingDown: true, why: why)
            return .continue
        case 404, 409:
            guard !goingDown, level > 1 else {
                guard why == .beforeLarge else {
                    return .fail(head, -1100, CommonResponse.noFolderMade)
                }
                // The following PUT shows whether the folder exists.
                state = .sendingBody(index, foldersMade: false)
                return .continue
            }
            state = .makingFolder(index, level: level - 1, goingDown: false, why: why)
            return .continue
        default:
            return refused(head)
        }
    }

    /// Handles the check of the temporary name after a response was lost. No other upload uses the temporary name. The file may
    /// have the right length although some of its bytes are missing.
    mutating func afterBodySearch(_ head: ResponseHead, _ index: Int, foldersMade: Bool) -> UploadOutcome {
        switch existence(head) {
        case .there(let length) where length == plan.order.byteCount:
            switch NameDoubt.hasOurDigest(head, plan) {
            case true?:
                proof = .digest
                state = .moving(index)
            case false?: state = .sendingBody(index, foldersMade: foldersMade)
            case nil where plan.order.byteCount == 0: state = .moving(index)
            case nil: state = .readingBody(index, ReadBack(plan.order.byteCount), foldersMade: foldersMade)
            }
        // If the server has only a part of the file, or a file of unknown length, the file is sent again.
        case .there: state = .sendingBody(index, foldersMade: foldersMade)
        case .absent, .unknown:
            if foldersMade { state = .sendingBody(index, foldersMade: true) } else { sendBody(index) }
        case .refused: return refused(head)
        }
        return .continue
    }

    mutating func afterBodyCheck(
        _ head: ResponseHead, _ index: Int, mayBeAnothers: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch doubt.confirmation(head, of: plan, isTrusted: !search.distrustsHead, pauses) {
        case .stored(let isMeasured):
            proof = isMeasured ? .length : .answer
            if isMeasured, plan.order.method == .put, mayBeAnothers || isOtherVersion(head) { return compareContent(head, index) }
            return stored(index)
        case .hidden:
            proof = .answer
            return stored(index)
        case .again(let outcome): return outcome
        case .otherLength(let length) where plan.order.method == .put: return afterCut(length, head, index, pauses)
        case .otherLength(let length):
            state = .sendingBody(index, foldersMade: false)
            return pauses.retry(head, NameDoubt.kept(length, of: plan))
        case .missing:
            return lost(
                plan.order.method == .put ? .queryingTarget(index, wasRefused: false) : .sendingBody(index, foldersMade: false),
                head, NameDoubt.notShown, pauses)
        case .other: return refused(head)
        }
    }

    /// Handles a body that the server confirmed but does not have. The body is sent once more.
    ///
    /// Some servers store each file at an address of their choice. Some programs move each new file out of the folder. The number
    /// of repetitions is limited, because otherwise the file would be sent endlessly.
    mutating func lost(_ next: State, _ head: ResponseHead, _ words: String, _ pauses: Pauses) -> UploadOutcome {
        losses += 1
        guard losses < Self.maximumLosses else { return .fail(head, -1011, words) }
        state = next
        return pauses.retry(head, words)
    }

    private mutating func stored(_ index: Int) -> UploadOutcome {
        if plan.order.method == .put { return finish(index) }
        state = .moving(index)
        return .continue
    }

    mutating func afterMove(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200, 201, 204:
            doubt.open()
            state = .confirming(index)
            return .continue
        // nginx responds with 400 to a Destination with another host or scheme.
        case 400 where changeDestination():
            state = .queryingTemporary(index, wasRefused: false)
            return pauses.retry(head)
        case 405, 501: return .fail(head, -1011, "The server cannot rename files (MOVE). Use a plain PUT upload.")
        case 412, 404, 410:
            // If a proxy sent the MOVE twice, the server may respond to the second MOVE with 412.
            if head.status != 412 { doubt.open() }
            state = .queryingTemporary(index, wasRefused: head.status == 412)
            return .continue
        case 409:
            state = .choosingName(index, isStored: false)
            return pauses.retry(head, "The folder was removed from the server.")
        case 202, 207:
            doubt.open()
            state = .queryingTemporary(index, wasRefused: false)
            return pauses.retry(head)
        default: return refused(head)
        }
    }

    /// Handles the check of the final name after a successful MOVE.
    ///
    /// Some servers report success but do not rename the file. Such a server still has the temporary file.
    mutating func afterConfirmation(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch doubt.confirmation(head, of: plan, isTrusted: !search.distrustsHead, pauses) {
        case .stored(let isMeasured):
            if isMeasured, proof == .answer { proof = .length }
            return finish(index)
        // The response to the MOVE is the only proof that the server has the file.
        case .hidden:
            proof = .answer
            return finish(index)
        case .again(let outcome): return outcome
        case .otherLength(let length): return afterCut(length, head, index, pauses)
        case .missing:
            state = .queryingTemporary(index, wasRefused: false)
            return pauses.retry(head, NameDoubt.notShown)
        case .other: return refused(head)
        }
    }

    mutating func afterTemporaryCheck(_ head: ResponseHead, _ index: Int, wasRefused: Bool) -> UploadOutcome {
        switch existence(head) {
        case .there(let length):
            if let length, length != plan.order.byteCount {
                state = .sendingBody(index, foldersMade: false)
                return .continue
            }
            return moveAgain(index, wasRefused: wasRefused)
        case .absent:
            state = .queryingTarget(index, wasRefused: false)
            return .continue
        case .unknown: return moveAgain(index, wasRefused: wasRefused)
        case .refused: return refused(head)
        }
    }

    private mutating func moveAgain(_ index: Int, wasRefused: Bool) -> UploadOutcome {
        if !wasRefused {
            state = .moving(index)
        } else if doubt.isOpen, !cannotAsk {
            // Some servers copy the file and remove the temporary file later. Such a server shows both files for some time.
            state = .queryingTarget(index, wasRefused: true)
        } else {
            return afterRefusedName(index, isStored: true)
        }
        return .continue
    }
}

// MARK: - Reading a response

extension FolderUpload {
    enum Existence {
        case there(length: Int64?)
        case absent
        /// The server does not support HEAD.
        case unknown
        case refused

        var isUnknown: Bool { if case .unknown = self { true } else { false } }
    }

    func existence(_ head: ResponseHead) -> Existence {
        switch head.status {
        case 200..<300 where search.distrustsHead: .unknown
        // The length of a compressed body is ignored, because the file has another length.
        case 200..<300: .there(length: head["Content-Encoding"] == nil ? head.contentLength : nil)
        case 404, 410, 409: .absent
        case 405, 501: .unknown
        case 403 where isWriteOnly(head): .unknown
        default: .refused
        }
    }

    mutating func tryName(after index: Int, isStored: Bool) -> UploadOutcome {
        guard index < RemoteName.maximumIndex else { return .everyNameIsTaken }
        doubt.close()
        state = .choosingName(index + 1, isStored: isStored)
        return .continue
    }

    /// Handles a name that the server refused with 412. If HEAD reported the name as free, HEAD is sent again after some refused
    /// names. If the server does not support HEAD, the upload uses a name that contains a part of the digest.
    mutating func afterRefusedName(_ index: Int, isStored: Bool) -> UploadOutcome {
        if !cannotAsk, search.recordRefusal(of: index) {
            state = .choosingName(index, isStored: isStored)
        } else if cannotAsk, !isMarked, search.recordTaken() {
            isMarked = true
            state = isStored ? .moving(0) : .sendingBody(0, foldersMade: false)
        } else {
            return tryName(after: index, isStored: isStored)
        }
        return .continue
    }

    func finish(_ index: Int) -> UploadOutcome {
        .finished(remoteURL: address?.publicFile(finalName(index)) ?? plan.collectionURL)
    }

    func refused(_ head: ResponseHead) -> UploadOutcome {
        .fail(head, -1011, "The server responded with status \(head.status).")
    }
}
