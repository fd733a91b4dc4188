/// What an upload knows of a file under a name that it sent its own file to.
///
/// All protocols that choose a name use this type, and follow one rule: an upload whose response was lost, or is contradicted by the
/// server, does not go to another name before it has looked at the first one. Some servers show a new file, or its length, a moment late, and
/// some carry out a request after its connection broke. For this reason a look that does not show the file is repeated, and a file of the
/// right length is read back.
struct NameDoubt: Sendable {
    /// Looks at a file in a row before the server's response counts.
    static let maximumLooks = 4

    /// The file was sent to this name, so a file that is there may be ours.
    private(set) var isOpen: Bool
    /// The server said yes before it had the complete file, so it may have kept a part of the file.
    private(set) var isPartial = false
    private var looks = 0
    /// Files that the server confirmed and kept only a part of.
    private var cuts = 0
    /// Responses in a row to the request for the file that show nothing of its content.
    private var unclearFindings = 0

    /// - Parameter memory: the last committed state of an earlier process.
    /// - Parameter steps: the steps during which the file is sent to its name.
    init(resuming memory: UploadMemory?, sentIn steps: Set<UploadMemory.Step>) {
        isOpen = memory.map { steps.contains($0.step) || $0.isDoubted == true } ?? false
    }

    /// The file is sent to the name, or was.
    mutating func open() { (isOpen, isPartial, looks) = (true, false, 0) }

    /// The server said yes to the last request before it had the complete file.
    mutating func noteEarlyAnswer() { isPartial = isOpen }

    /// The next name is another one.
    mutating func close() { (isOpen, isPartial, looks, unclearFindings) = (false, false, 0, 0) }

    /// The server confirmed the file and kept only a part, for example because its disk was full. The part is not replaced, because it may be
    /// another's file.
    ///
    /// - Returns: whether the file is sent once more, under the next name.
    mutating func noteCut() -> Bool {
        cuts += 1
        return cuts == 1
    }

    /// Counts a look that did not show the file.
    ///
    /// - Returns: whether the server is asked again.
    mutating func looksAgain() -> Bool { isOpen && countLook() }

    private mutating func countLook() -> Bool {
        looks = (looks + 1) % Self.maximumLooks
        return looks != 0
    }
}

// MARK: - The look at a file that the server confirmed

extension NameDoubt {
    static let notShown = "The server does not show the file it took."

    /// The outcome for a file that the server cut.
    ///
    /// - Parameter next: the step to the next name. `nil` if the file is not sent again (``noteCut()``).
    static func afterCut(
        _ length: Int64, _ head: ResponseHead, of plan: UploadPlan, next: UploadOutcome?, _ pauses: Pauses
    ) -> UploadOutcome {
        let words = kept(length, of: plan)
        guard case .continue? = next else { return .fail(head, -1011, words) }
        return pauses.retry(head, words)
    }

    static func kept(_ length: Int64, of plan: UploadPlan) -> String {
        "The server kept \(length) of \(plan.order.byteCount) bytes."
    }

    /// The finding of a HEAD for a file that the server confirmed.
    enum Confirmation {
        /// `isMeasured`: the server showed its length.
        case stored(isMeasured: Bool)
        /// The server shows no file to this user. The file is there for all that is known.
        case hidden
        /// The file is not there, or has another length. The look is repeated.
        case again(UploadOutcome)
        /// The file is not there. It was not there in the earlier looks.
        case missing
        /// The file has another length. It had another length in the earlier looks.
        case otherLength(Int64)
        /// A response that means the same to each request.
        case other
    }

    /// Returns whether the server refuses the look at a file that it accepted, or sends the file from another address. Such a response does
    /// not mean that the file is missing.
    static func isRefusedLook(_ head: ResponseHead) -> Bool {
        switch head.status {
        case 300..<400: !head.mayLeadToAPortal && !head.leadsToAnotherName
        case 404, 407, 408, 409, 410, 421, 423, 425, 429: false
        default: (400..<500).contains(head.status)
        }
    }

    /// - Parameter isTrusted: `false` if the server answers each HEAD with 200.
    mutating func confirmation(
        _ head: ResponseHead, of plan: UploadPlan, isTrusted: Bool, _ pauses: Pauses
    ) -> Confirmation {
        switch head.status {
        case 200..<300 where !isTrusted: return .hidden
        case 200..<300:
            // The length of a coded body is not the file's.
            guard head["Content-Encoding"] == nil, let length = head.contentLength else { return .stored(isMeasured: false) }
            guard length != plan.order.byteCount else {
                looks = 0
                return .stored(isMeasured: true)
            }
            return countLook() ? .again(pauses.retry(head, Self.kept(length, of: plan))) : .otherLength(length)
        case 404, 409, 410: return countLook() ? .again(pauses.retry(head, Self.notShown)) : .missing
        // The server accepted the file with the same credentials, or without any.
        case 401: return countLook() ? .again(pauses.retry(head, Self.notShown)) : .hidden
        case 501: return .hidden
        default: return Self.isRefusedLook(head) ? .hidden : .other
        }
    }
}

// MARK: - The content of a file that has our length

extension NameDoubt {
    /// The finding of a request for a part of a file.
    enum Verdict {
        case ours(UploadProof)
        case another
        /// The next part.
        case next(ReadBack)
        /// The file changed. The name is looked at again.
        case changed(UploadOutcome)
        /// The part is requested again.
        case again(UploadOutcome)
    }

    /// - Parameter lengthIsProof: a file that the server does not send is ours because of its length, or of the server's earlier response if
    ///   the server shows no length.
    mutating func verdict(
        _ question: ReadBack, _ head: ResponseHead, _ comparison: BodyComparison?, of plan: UploadPlan, lengthIsProof: Bool,
        _ pauses: Pauses
    ) -> Verdict {
        let unseen: Verdict = lengthIsProof ? .ours(question.isMeasured ? .length : .answer) : .another
        // A network with a log-in page has one at every address.
        if head.status == 200, head.isPage(inPlaceOf: plan), comparison != .same { return .again(pauses.page(head)) }
        switch question.finding(head, comparison) {
        case .ours(let found): return .ours(found)
        case .another: return .another
        case .next(let next): return .next(next)
        case .changed:
            return .changed(pauses.retry(head, "The file on the server changed while it was read back."))
        case .unclear:
            unclearFindings += 1
            guard unclearFindings < Self.maximumLooks else { return unseen }
            return .again(pauses.retry(head, "The file could not be read back completely."))
        case .refused:
            if case .retry(let after, let trouble)? = CommonAnswer(head, pauses)?.outcome {
                return .again(.retry(after: after, trouble))
            }
            return unseen
        }
    }

    /// Reads the digest of the file in the response to a HEAD.
    ///
    /// - Returns: whether it is ours. `nil` if the server shows no digest that is known here.
    static func hasOurDigest(_ head: ResponseHead, _ plan: UploadPlan) -> Bool? {
        guard head.contentCoding == nil, let ours = plan.sha256, let theirs = RequiredDigest.announced(in: head),
            theirs.header == "Repr-Digest", theirs.algorithm == .sha256
        else { return nil }
        return Hex.text(theirs.bytes) == ours.lowercased()
    }

    /// Request header: a server that supports RFC 9530 shows the digest of the file.
    static let wantedDigest = HeaderField("Want-Repr-Digest", "sha-256=10")
}
