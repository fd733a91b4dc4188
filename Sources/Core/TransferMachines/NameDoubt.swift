/// Records whether the server may have the file of an upload under the name to which the upload sent the file.
///
/// All protocols that choose a name use this type and follow one rule. A response to an upload may be lost, or a later response
/// may contradict it. If this happened, the upload checks the first name before it uses another name.
///
/// Some servers show a new file or its length with a short delay. Some servers process a request after its connection was lost.
/// So the upload repeats a check that does not find the file, and reads back a file of the right length.
struct NameDoubt: Sendable {
    /// The number of consecutive checks of a file after which the server's response is accepted.
    static let maximumChecks = 4

    /// `true` if the file was sent to this name. The existing file with this name may then be the file of this upload.
    private(set) var isOpen: Bool
    /// `true` if the server reported success before it received the complete file. The server may then have stored only a part.
    private(set) var isPartial = false
    private var queries = 0
    /// The number of files that the server confirmed although it stored only a part.
    private var cuts = 0
    /// The number of consecutive responses to the request for the file that do not reveal its content.
    private var unclearFindings = 0

    /// - Parameter memory: The last committed state of an earlier process.
    /// - Parameter steps: The steps during which the file is sent to its name.
    init(resuming memory: UploadMemory?, sentIn steps: Set<UploadMemory.Step>) {
        isOpen = memory.map { steps.contains($0.step) || $0.isDoubted == true } ?? false
    }

    /// Records that the file is being sent or was sent to the name.
    mutating func open() { (isOpen, isPartial, queries) = (true, false, 0) }

    /// Records that the server reported success before it received the complete file.
    mutating func recordEarlyResponse() { isPartial = isOpen }

    /// Resets this record because the upload uses another name.
    mutating func close() { (isOpen, isPartial, queries, unclearFindings) = (false, false, 0, 0) }

    /// Records that the server confirmed the file but stored only a part, for example because its disk was full. The upload does
    /// not replace the part, because the existing file may be another file.
    ///
    /// - Returns: whether the file is sent once more, under the next name.
    mutating func recordTruncation() -> Bool {
        cuts += 1
        return cuts == 1
    }

    /// Counts a check that did not show the file.
    ///
    /// - Returns: `true` if the check is repeated.
    mutating func shouldCheckAgain() -> Bool { isOpen && countCheck() }

    private mutating func countCheck() -> Bool {
        queries = (queries + 1) % Self.maximumChecks
        return queries != 0
    }
}

// MARK: - Checking a file that the server confirmed

extension NameDoubt {
    static let notShown = "The server accepted the file but does not show the file."

    /// Returns the outcome for a file if the server stored only a part of it.
    ///
    /// - Parameter next: The outcome that continues with the next name, or `nil` if the file is not sent again
    ///   (``recordTruncation()``).
    static func afterCut(
        _ length: Int64, _ head: ResponseHead, of plan: UploadPlan, next: UploadOutcome?, _ pauses: Pauses
    ) -> UploadOutcome {
        let words = kept(length, of: plan)
        guard case .continue? = next else { return .fail(head, -1011, words) }
        return pauses.retry(head, words)
    }

    static func kept(_ length: Int64, of plan: UploadPlan) -> String {
        "The server stored \(length) of \(plan.order.byteCount) bytes."
    }

    /// The result of a HEAD for a file that the server confirmed.
    enum Confirmation {
        /// The server has the file. `isMeasured` is `true` if the server showed the length of the file.
        case stored(isMeasured: Bool)
        /// The server does not show the file to this user. The file may still exist.
        case hidden
        /// The server does not show the file, or shows another length. The check is repeated.
        case again(UploadOutcome)
        /// The server does not show the file, also after repeated checks.
        case missing
        /// The server shows another length of the file, also after repeated checks.
        case otherLength(Int64)
        /// The meaning of the response does not depend on the request (``CommonResponse``).
        case other
    }

    /// Returns whether the server refuses the check of an accepted file, or redirects the check to another address. The file may
    /// exist despite such a response.
    static func isRefusedCheck(_ head: ResponseHead) -> Bool {
        switch head.status {
        case 300..<400: !head.mayLeadToAPortal && !head.leadsToAnotherName
        case 404, 407, 408, 409, 410, 421, 423, 425, 429: false
        default: (400..<500).contains(head.status)
        }
    }

    /// Evaluates the response to a HEAD for a file that the server confirmed.
    ///
    /// - Parameter isTrusted: `false` if the server responds to every HEAD with 200.
    mutating func confirmation(
        _ head: ResponseHead, of plan: UploadPlan, isTrusted: Bool, _ pauses: Pauses
    ) -> Confirmation {
        switch head.status {
        case 200..<300 where !isTrusted: return .hidden
        case 200..<300:
            // The length of a compressed body is ignored, because the file has another length.
            guard head["Content-Encoding"] == nil, let length = head.contentLength else { return .stored(isMeasured: false) }
            guard length != plan.order.byteCount else {
                queries = 0
                return .stored(isMeasured: true)
            }
            return countCheck() ? .again(pauses.retry(head, Self.kept(length, of: plan))) : .otherLength(length)
        case 404, 409, 410: return countCheck() ? .again(pauses.retry(head, Self.notShown)) : .missing
        // The server accepted the file with the credentials that it now refuses, or without credentials.
        case 401: return countCheck() ? .again(pauses.retry(head, Self.notShown)) : .hidden
        case 501: return .hidden
        default: return Self.isRefusedCheck(head) ? .hidden : .other
        }
    }
}

// MARK: - Comparing the content of a file that has the right length

extension NameDoubt {
    /// The conclusion from the response to a request for a part of a file.
    enum Verdict {
        case ours(UploadProof)
        case another
        /// The compared part of the server's file is equal to the same part of the user's file. The comparison continues with
        /// this request.
        case next(ReadBack)
        /// The file changed on the server. The name is checked again.
        case changed(UploadOutcome)
        /// The part of the file is requested again.
        case again(UploadOutcome)
    }

    /// Evaluates the response to a request for a part of a file.
    ///
    /// - Parameter lengthIsProof: `true` if the file is accepted by its length when the server does not send the content. If the
    ///   server also shows no length, the server's earlier response is sufficient.
    mutating func verdict(
        _ question: ReadBack, _ head: ResponseHead, _ comparison: BodyComparison?, of plan: UploadPlan, lengthIsProof: Bool,
        _ pauses: Pauses
    ) -> Verdict {
        let unseen: Verdict = lengthIsProof ? .ours(question.isMeasured ? .length : .answer) : .another
        // Such a page does not prove that the server has the file, because a captive portal responds with a page for every
        // address.
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

    /// Compares the digest in the response to a HEAD with the digest of this upload's file.
    ///
    /// - Returns: whether the digests are equal, or `nil` if the response contains no digest of a supported kind.
    static func hasOurDigest(_ head: ResponseHead, _ plan: UploadPlan) -> Bool? {
        guard head.contentCoding == nil, let ours = plan.sha256, let theirs = RequiredDigest.announced(in: head),
            theirs.header == "Repr-Digest", theirs.algorithm == .sha256
        else { return nil }
        return Hex.text(theirs.bytes) == ours.lowercased()
    }

    /// The request header that asks for the digest of the file. Servers that support RFC 9530 then send the digest.
    static let wantedDigest = HeaderField("Want-Repr-Digest", "sha-256=10")
}
