/// Records whether the server may have the file of an upload under the name to which the upload sent the file.
///
/// All protocols that choose a name use this type and follow one rule. If the response to an upload was lost, or a later response
/// contradicts it, the upload checks the first name before it uses another name.
///
/// Some servers show a new file, or its length, a moment late. Some servers process a request after its connection was lost. So a
/// check that does not find the file is repeated, and a file of the right length is read back.
struct NameDoubt: Sendable {
    /// The number of checks of a file in a row after which the server's response is accepted.
    static let maximumChecks = 4

    /// `true` if the file was sent to this name, so that an existing file may be ours.
    private(set) var isOpen: Bool
    /// `true` if the server reported success before it had the complete file. The server may then have kept only a part.
    private(set) var isPartial = false
    private var queries = 0
    /// The number of files that the server confirmed but of which it kept only a part.
    private var cuts = 0
    /// The number of responses in a row to the request for the file that reveal nothing about its content.
    private var unclearFindings = 0

    /// - Parameter memory: The last committed state of an earlier process.
    /// - Parameter steps: The steps during which the file is sent to its name.
    init(resuming memory: UploadMemory?, sentIn steps: Set<UploadMemory.Step>) {
        isOpen = memory.map { steps.contains($0.step) || $0.isDoubted == true } ?? false
    }

    /// Records that the file is being sent, or was sent, to the name.
    mutating func open() { (isOpen, isPartial, queries) = (true, false, 0) }

    /// Records that the server reported success before it had the complete file.
    mutating func recordEarlyResponse() { isPartial = isOpen }

    /// Resets the doubt for another name.
    mutating func close() { (isOpen, isPartial, queries, unclearFindings) = (false, false, 0, 0) }

    /// Records that the server confirmed the file but kept only a part, for example because its disk was full. The part is not
    /// replaced, because the existing file may be another file.
    ///
    /// - Returns: whether the file is sent once more, under the next name.
    mutating func recordTruncation() -> Bool {
        cuts += 1
        return cuts == 1
    }

    /// Counts a check that did not show the file.
    ///
    /// - Returns: Whether the check is repeated.
    mutating func shouldCheckAgain() -> Bool { isOpen && countCheck() }

    private mutating func countCheck() -> Bool {
        queries = (queries + 1) % Self.maximumChecks
        return queries != 0
    }
}

// MARK: - The look at a file that the server confirmed

extension NameDoubt {
    static let notShown = "The server accepted the file but does not show it."

    /// Returns the outcome for a file of which the server kept only a part.
    ///
    /// - Parameter next: The step to the next name; `nil` if the file is not sent again (``recordTruncation()``).
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

    /// The result of a HEAD for a file that the server confirmed.
    enum Confirmation {
        /// `isMeasured` if the server showed the length of the file.
        case stored(isMeasured: Bool)
        /// The server shows no file to this user. The file may still exist.
        case hidden
        /// The file is missing, or has another length. The check is repeated.
        case again(UploadOutcome)
        /// The file is missing, as in the earlier checks.
        case missing
        /// The file has another length, as in the earlier checks.
        case otherLength(Int64)
        /// A response that has the same meaning for every request.
        case other
    }

    /// Returns whether the server refuses the check of a file that it accepted, or sends the file from another address. The file
    /// may exist despite such a response.
    static func isRefusedCheck(_ head: ResponseHead) -> Bool {
        switch head.status {
        case 300..<400: !head.mayLeadToAPortal && !head.leadsToAnotherName
        case 404, 407, 408, 409, 410, 421, 423, 425, 429: false
        default: (400..<500).contains(head.status)
        }
    }

    /// - Parameter isTrusted: `false` if the server responds to every HEAD with 200.
    mutating func confirmation(
        _ head: ResponseHead, of plan: UploadPlan, isTrusted: Bool, _ pauses: Pauses
    ) -> Confirmation {
        switch head.status {
        case 200..<300 where !isTrusted: return .hidden
        case 200..<300:
            // The length of a compressed body is ignored, because it is not the length of the file.
            guard head["Content-Encoding"] == nil, let length = head.contentLength else { return .stored(isMeasured: false) }
            guard length != plan.order.byteCount else {
                queries = 0
                return .stored(isMeasured: true)
            }
            return countCheck() ? .again(pauses.retry(head, Self.kept(length, of: plan))) : .otherLength(length)
        case 404, 409, 410: return countCheck() ? .again(pauses.retry(head, Self.notShown)) : .missing
        // The server accepted the file with the same credentials, or without credentials.
        case 401: return countCheck() ? .again(pauses.retry(head, Self.notShown)) : .hidden
        case 501: return .hidden
        default: return Self.isRefusedCheck(head) ? .hidden : .other
        }
    }
}

// MARK: - The content of a file that has our length

extension NameDoubt {
    /// The result of a request for a part of a file.
    enum Verdict {
        case ours(UploadProof)
        case another
        /// The part is equal. The value is the next request.
        case next(ReadBack)
        /// The file changed. The name is checked again.
        case changed(UploadOutcome)
        /// The part is requested again.
        case again(UploadOutcome)
    }

    /// - Parameter lengthIsProof: `true` if the length is a proof for a file that the server does not send. If the server shows no
    ///   length, the server's earlier response is the proof.
    mutating func verdict(
        _ question: ReadBack, _ head: ResponseHead, _ comparison: BodyComparison?, of plan: UploadPlan, lengthIsProof: Bool,
        _ pauses: Pauses
    ) -> Verdict {
        let unseen: Verdict = lengthIsProof ? .ours(question.isMeasured ? .length : .answer) : .another
        // Such a page is not a proof, because a captive portal responds with a page at every address.
        if head.status == 200, head.isPage(inPlaceOf: plan), comparison != .same { return .again(pauses.page(head)) }
        switch question.finding(head, comparison) {
        case .ours(let found): return .ours(found)
        case .another: return .another
        case .next(let next): return .next(next)
        case .changed:
            return .changed(pauses.retry(head, "The file on the server changed while it was read back."))
        case .unclear:
            unclearFindings += 1
            guard unclearFindings < Self.maximumChecks else { return unseen }
            return .again(pauses.retry(head, "The file could not be read back completely."))
        case .refused:
            if case .retry(let after, let trouble)? = CommonResponse(head, pauses)?.outcome {
                return .again(.retry(after: after, trouble))
            }
            return unseen
        }
    }

    /// Reads the digest of the file in the response to a HEAD.
    ///
    /// - Returns: Whether the digest is ours; `nil` if the server shows no digest that is supported here.
    static func hasOurDigest(_ head: ResponseHead, _ plan: UploadPlan) -> Bool? {
        guard head.contentCoding == nil, let ours = plan.sha256, let theirs = RequiredDigest.announced(in: head),
            theirs.header == "Repr-Digest", theirs.algorithm == .sha256
        else { return nil }
        return Hex.text(theirs.bytes) == ours.lowercased()
    }

    /// The request header with which a server that supports RFC 9530 shows the digest of the file.
    static let wantedDigest = HeaderField("Want-Repr-Digest", "sha-256=10")
}
