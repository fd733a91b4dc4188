/// Whose a file of our name and length is.
extension FolderUpload {
    /// A file of our length is under the name that a PUT was sent to, and the PUT may not have made it.
    ///
    /// No other machine uses a marked name.
    mutating func lookInside(_ head: ResponseHead, _ index: Int) -> UploadOutcome {
        proof = .length
        guard !isMarked, plan.byteCount > 0 else { return finish(index) }
        switch hasOurDigest(head) {
        case true?:
            proof = .digest
            return finish(index)
        case false?: return tryName(after: index, isStored: false)
        case nil:
            unclearFindings = 0
            state = .readingBack(index, ReadBack(plan.byteCount))
            return .continue
        }
    }

    /// A part of the file, or all of it, was requested. If the server does not send it, its length is all that is known.
    mutating func afterReadBack(
        _ head: ResponseHead, _ comparison: BodyComparison?, _ index: Int, _ question: ReadBack, _ pauses: Pauses
    ) -> UploadOutcome {
        // A network with a log-in page has one at every address.
        if head.status == 200, head.isPage(inPlaceOf: plan), comparison != .same { return pauses.page(head) }
        switch question.finding(head, comparison) {
        case .ours(let found):
            proof = found
            return finish(index)
        case .another: return tryName(after: index, isStored: false)
        case .next(let next):
            state = .readingBack(index, next)
            return .continue
        case .changed:
            state = .lookingForTarget(index)
            return pauses.retry(head, "The file on the server changed while it was read back.")
        case .unclear:
            unclearFindings += 1
            guard unclearFindings < Self.maximumOtherLengths else { return finish(index) }
            return pauses.retry(head, "The file could not be read back completely.")
        case .refused:
            if case .retry(let after, let trouble)? = CommonAnswer(head, pauses)?.outcome { return .retry(after: after, trouble) }
            return finish(index)
        }
    }

    /// The entity tag of the response shows another version of the file than the PUT made.
    func isOtherVersion(_ head: ResponseHead) -> Bool {
        guard let storedTag, let shown = Self.strongTag(in: head) else { return false }
        return shown != storedTag
    }

    static func strongTag(in head: ResponseHead) -> String? {
        if case .entityTag(let tag)? = Validator.from(head) { tag } else { nil }
    }

    /// - Returns: `nil` if the server does not say a digest that is known here.
    private func hasOurDigest(_ head: ResponseHead) -> Bool? {
        guard head.contentCoding == nil, let ours = plan.sha256, let theirs = RequiredDigest.announced(in: head),
            theirs.header == "Repr-Digest", theirs.algorithm == .sha256
        else { return nil }
        return Hex.text(theirs.bytes) == ours.lowercased()
    }
}
