/// Decides whether this upload sent the file that exists on the server under the upload's name.
extension FolderUpload {
    /// Handles the check of the final name after a response was lost, or after the server reported that the name is taken.
    ///
    /// A file of the right length can be the file of another machine, if the server did not carry out this upload's PUT or MOVE.
    /// A proxy can hide the temporary file for a short time. The file is read back even if the server shows no length.
    mutating func afterTargetCheck(
        _ head: ResponseHead, _ index: Int, wasRefused: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        let isMoved = plan.order.method == .webdav && !wasRefused
        let answer = existence(head)
        switch answer {
        case .there where isOfOther(index):
            return tryName(after: index, isStored: false)
        case .there(let length) where length == plan.order.byteCount || length == nil && !doubt.isPartial:
            return compareContent(head, index, isStored: plan.order.method == .webdav && wasRefused)
        case .there(let length):
            if let length, doubt.shouldCheckAgain() { return pauses.retry(head, NameDoubt.kept(length, of: plan)) }
            if isMoved { return lostAfterMove(head, index, pauses) }
            // The upload fails, because the server would keep only a part of the file under any name.
            if doubt.isPartial {
                return .fail(head, -1011, length.map { NameDoubt.kept($0, of: plan) } ?? UploadMachine.answeredEarly)
            }
            return tryName(after: index, isStored: plan.order.method == .webdav)
        case .absent, .unknown:
            // Another program in front of the server may have sent 405 or 501. A marked name (with a part of the digest) needs no
            // check, because only this upload's file can have this name.
            let isContradicted = answer.isUnknown && !cannotAsk && !isMarked
            if wasRefused || isContradicted, doubt.shouldCheckAgain() { return pauses.retry(head, NameDoubt.notShown) }
            if wasRefused {
                return afterRefusedName(index, isStored: plan.order.method == .webdav)
            }
            if isMoved { return lostAfterMove(head, index, pauses) }
            if answer.isUnknown { (cannotAsk, mayBeThere) = (true, true) } else { cannotAsk = search.distrustsHead }
            // If the server carries out the first PUT late, the server refuses the second PUT with 412.
            state = .sendingBody(index, foldersMade: false)
            return .continue
        case .refused: return refused(head)
        }
    }

    private mutating func lostAfterMove(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        lost(
            .choosingName(index, isStored: false), head,
            "The server has the file neither under its name nor under its temporary name.", pauses)
    }

    /// Examines an existing file that has the name to which this upload sent its file. Another machine may have sent the existing
    /// file. The existing file has the length of this upload's file, or the server shows no length.
    ///
    /// If the name is marked (with a part of the digest), this upload sent the file, because no other machine uses this name.
    ///
    /// - Parameter isStored: `true` if the temporary file of a WebDAV upload exists.
    mutating func compareContent(_ head: ResponseHead, _ index: Int, isStored: Bool = false) -> UploadOutcome {
        let isMeasured = head["Content-Encoding"] == nil && head.contentLength == plan.order.byteCount
        proof = isMeasured ? .length : .answer
        guard plan.order.byteCount > 0, !(isMarked && isMeasured) else { return finish(index) }
        switch NameDoubt.hasOurDigest(head, plan) {
        case true?:
            proof = .digest
            return finish(index)
        case false?: return tryName(after: index, isStored: isStored)
        case nil:
            let question = ReadBack(plan.order.byteCount, wasSent: doubt.isOpen, isMeasured: isMeasured)
            state = .readingBack(index, question, isStored: isStored)
            return .continue
        }
    }

    /// Handles the response to a request for a part of the file or for the complete file. If the server does not send the
    /// content, only the length is known.
    ///
    /// The length proves nothing if this upload sent nothing to the name. The length also proves nothing if another upload of
    /// this machine stored a file with this name. After a lost PUT, the server may have only a part, so the length is checked. A
    /// MOVE either moves the complete file or does nothing, so the length is not checked.
    mutating func afterReadBack(
        _ head: ResponseHead, _ comparison: BodyComparison?, _ index: Int, _ question: ReadBack, isStored: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        let isWhole = question.isMeasured || plan.order.method == .webdav
        let lengthIsProof = isWhole && doubt.isOpen && !wasStored(index) && !isStored
        let verdict = doubt.verdict(question, head, comparison, of: plan, lengthIsProof: lengthIsProof, pauses)
        switch verdict {
        case .ours(let found):
            proof = found
            return finish(index)
        case .another: return tryName(after: index, isStored: isStored)
        case .next(let next):
            state = .readingBack(index, next, isStored: isStored)
            return .continue
        case .changed(let outcome):
            let mayBeLate = plan.order.method == .put && doubt.isOpen
            state = mayBeLate ? .queryingTarget(index, wasRefused: false) : .choosingName(index, isStored: isStored)
            return outcome
        case .again(let outcome): return outcome
        }
    }

    /// Handles the content of the temporary file, which was read after the response to the PUT was lost. If the server does not
    /// send the content, the file is accepted by its length.
    mutating func afterBodyReadBack(
        _ head: ResponseHead, _ comparison: BodyComparison?, _ index: Int, _ question: ReadBack, foldersMade: Bool,
        _ pauses: Pauses
    ) -> UploadOutcome {
        switch doubt.verdict(question, head, comparison, of: plan, lengthIsProof: true, pauses) {
        case .ours(let found):
            proof = found
            state = .moving(index)
        case .another: state = .sendingBody(index, foldersMade: foldersMade)
        case .next(let next): state = .readingBody(index, next, foldersMade: foldersMade)
        case .changed(let outcome):
            state = .queryingBody(index, foldersMade: foldersMade)
            return outcome
        case .again(let outcome): return outcome
        }
        return .continue
    }

    /// Handles a file if the server kept only a part of it.
    mutating func afterCut(_ length: Int64, _ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        let next = doubt.recordTruncation() ? tryName(after: index, isStored: false) : nil
        return NameDoubt.afterCut(length, head, of: plan, next: next, pauses)
    }

    /// Returns whether the entity tag of the response belongs to another version than the version that the PUT made.
    func isOtherVersion(_ head: ResponseHead) -> Bool {
        guard let storedTag, let shown = Self.strongTag(in: head) else { return false }
        return shown != storedTag
    }

    static func strongTag(in head: ResponseHead) -> String? {
        if case .entityTag(let tag)? = Validator.from(head) { tag } else { nil }
    }
}
