import Foundation

/// The states of one upload with any protocol. Each protocol has its own rules (``UploadProtocol``). This type contains the
/// common rules. For example, an upload ends only once, and a pause follows an attempt without a response.
///
/// If no response to a request arrived, a protocol checks the state of the server (if possible) before it sends the request
/// again. The state that a new process needs to continue is committed before each request.
package struct UploadMachine: Sendable {
    private var rules: any UploadProtocol
    private let policy: RetryPolicy
    private let opener: UploadOpener
    private let advice: UploadAdvice?
    private var end: End?
    private var refusal: Refusal?
    /// The highest progress of the upload since this process started. `idleAnswers` is the number of responses since then without
    /// further progress.
    private var furthest = Progress()
    private var idleAnswers = 0
    /// The number of refusals since the last progress that may concern only a single attempt.
    private var refusals = 0

    /// The progress of an upload. A taken name also counts as progress, because the number of possible names is limited.
    private struct Progress: Equatable, Sendable {
        var stage: Int64 = 0
        var name = 0
    }

    /// The maximum number of consecutive responses without progress. An upload needs some of these responses for checks, for
    /// folders and for a new start. Without a maximum, an upload could repeat the same steps endlessly.
    private static let maximumIdleAnswers = 24

    private let plan: UploadPlan
    /// `true` if the last check showed that the server does not have the file. Only used by uploads that never send the file.
    private var isAbsent = false
    /// `true` if the server has a file of the right length and did not show the content. Only used by uploads that never send the
    /// file.
    private var isHidden = false

    /// Returns whether another plan is equal to this machine's plan. The facts about the server and the progress of the upload
    /// are not compared.
    package func follows(_ other: UploadPlan) -> Bool {
        var other = other
        (other.knowledge, other.order.furthest) = (plan.knowledge, plan.order.furthest)
        return other == plan
    }

    /// The states of the check that follows if the server's final response was a web page over http. A captive portal may have
    /// sent this page. So before the upload fails, it requests a name that no file has.
    private enum Refusal: Equatable, Sendable {
        /// - Parameter isTriedAgain: `true` if the upload is tried again, because the server may accept another attempt.
        case querying(TransferTrouble, isTriedAgain: Bool)
        /// The response to the request for the unused name was also a page. No file is sent until the server responds differently
        /// to this request.
        case waiting
    }

    private enum End: Sendable {
        case finished(String)
        case failed(TransferTrouble)
    }

    /// - Parameter memory: The last committed state of an earlier process, or `nil` for a new upload.
    package init(plan: UploadPlan, resuming memory: UploadMemory? = nil, policy: RetryPolicy = .standard) {
        self.policy = policy
        self.plan = plan
        (opener, advice) = (UploadOpener(plan), UploadAdvice(plan))
        switch plan.order.method {
        case .plain: rules = DoubtedUpload(AddressUpload(plan: plan), plan: plan, resuming: memory)
        case .put where AddressUpload.isMeant(by: plan):
            rules = DoubtedUpload(AddressUpload(plan: plan), plan: plan, resuming: memory)
        case .put, .webdav: rules = FolderUpload(plan: plan, resuming: memory)
        case .multipart: rules = DoubtedUpload(FormUpload(plan: plan, resuming: memory), plan: plan, resuming: memory)
        case .tus: rules = TusUpload(plan: plan, resuming: memory)
        case .resumable: rules = ResumableUpload(plan: plan, resuming: memory)
        case .s3: rules = S3Upload(plan: plan, resuming: memory)
        case .nextcloud: rules = NextcloudUpload(plan: plan, resuming: memory)
        case .immich: rules = ImmichUpload(plan: plan, resuming: memory)
        }
    }

    /// Returns the next request, or the result if the upload has ended. A repeated call returns the same value.
    package mutating func next() -> UploadCommand {
        switch end {
        case .finished(let url): return .finished(remoteURL: url)
        case .failed(let trouble): return .fail(trouble)
        case nil: break
        }
        let command = onlyChecking(rules.next())
        switch command {
        case .send(_, _, let memory), .compare(_, _, let memory):
            if refusal != nil { return .send(plan.bare("GET", rules.addressOfNothing), .none, persistFirst: memory) }
        case .finished(let url): end = .finished(url)
        case .fail(let trouble):
            let named = advice?.named(trouble, isTriedAgain: false) ?? trouble
            end = .failed(named)
            return .fail(named)
        }
        return command
    }

    /// Replaces the first command that would change the server, if the upload only checks whether the server has the file.
    private func onlyChecking(_ command: UploadCommand) -> UploadCommand {
        guard plan.order.onlyChecks == true, case .send(let request, _, _) = command, !request.onlyReads else { return command }
        return .fail(isAbsent && !isHidden ? .notOnServer : .notShownByServer)
    }

    /// Records whether a response shows that the server does not have the file.
    private mutating func recordAbsence(_ head: ResponseHead, _ wire: WireEnd) {
        guard plan.order.onlyChecks == true, refusal == nil else { return }
        switch rules.next() {
        case .send(let request, _, _) where request.method == "POST": isAbsent = ImmichRecord.finding(wire.body) == .absent
        // The request for the version of Immich is not a request for the photo.
        case .send where plan.order.method == .immich: break
        case .send: isAbsent = [404, 410].contains(head.status)
        case .compare where wire.comparison == .same || wire.comparison == .differs: break
        case .compare: isHidden = ![404, 410].contains(head.status)
        case .finished, .fail: break
        }
    }

    /// Handles a 104 response that arrived during a request.
    /// - Returns: The ``UploadMemory`` to commit now, because a final response may never arrive. `nil` if nothing changed.
    package mutating func received(_ resumption: ResponseHead) -> UploadMemory? { end == nil ? rules.received(resumption) : nil }

    /// Handles the end of an attempt.
    /// - Parameters:
    ///   - attemptsWithoutProgress: The number of attempts after the last attempt with progress.
    ///   - jitter: A random number in 0..<1.
    package mutating func ended(_ wire: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> UploadOutcome {
        switch end {
        case .finished(let url): return .finished(remoteURL: url)
        case .failed(let trouble): return .fail(trouble)
        case nil: break
        }
        let pauses = Pauses(policy: policy, now: now, attempts: attemptsWithoutProgress, jitter: jitter, opener: opener)
        var outcome: UploadOutcome
        // If response headers arrived, they are handled as a response, even if the connection broke later. Servers that refuse a
        // large body respond and then close the connection.
        if wire.failure != .cancelled, let head = wire.head {
            recordAbsence(head, wire)
            if let refusal {
                outcome = answered(refusal, head, pauses)
            } else if isEarly(head, wire) {
                rules.recordEarlyResponse()
                outcome = pauses.retry(head, Self.answeredEarly)
            } else {
                outcome = answered(head, wire, pauses)
            }
        } else {
            let failure = wire.failure ?? .badAnswer("no headers")
            outcome = pauses.after(failure)
            if failure.mayHaveActed, refusal == nil { rules.lost(wire) }
        }
        // Secrets are removed before the advice is added, because the advice contains the name of the destination.
        outcome = outcome.changing { UploadSecrets(plan).removed(from: $0) }.advised(by: advice)
        switch outcome {
        case .continue: return pauseInACircle(wire, pauses).advised(by: advice)
        case .retry: break
        case .finished(let url): end = .finished(url)
        case .fail(let trouble): end = .failed(trouble)
        }
        return outcome
    }

    static let answeredEarly = "The server responded before it had the complete file."

    /// Returns whether the server reported success before all bytes of the request were sent. At the time of such a response, the
    /// server cannot have the complete file.
    private func isEarly(_ head: ResponseHead, _ wire: WireEnd) -> Bool {
        guard (200..<300).contains(head.status), case .send(_, let content, _) = rules.next() else {
            return false
        }
        switch content {
        case .none, .empty, .data: return false
        case .snapshot(_, let count): return wire.bytesSent < count
        case .wrapped(let before, let after):
            return wire.bytesSent < Int64(before.count) + plan.order.byteCount + Int64(after.count)
        }
    }

    private mutating func answered(_ head: ResponseHead, _ wire: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        let reason = head.status >= 400 ? ServerReason(wire.body) : nil
        let before = rules
        var outcome = rules.answered(head, wire, pauses)
        let isOfAnybody = head.isUnprovenSuccess && policy.suspicionDelay != nil
        guard case .fail(let trouble) = outcome, !isOfAnybody, mayPass(head, wire, reason, before) else {
            return suspecting(outcome.explained(by: reason), head, pauses)
        }
        // The refusal is handled like a lost response, because the server may have carried out the request.
        rules = before
        rules.handleUncertainty()
        if head.isPage, head.isUnencrypted, policy.suspicionDelay != nil {
            refusal = .querying(trouble, isTriedAgain: true)
            return .continue
        }
        outcome = head.isRedirect || head.status < 300 ? pauses.detour(head, trouble.message) : pauses.retry(head)
        return outcome.explained(by: reason)
    }

    /// Returns whether a refusal may concern only a single attempt. The number of such refusals is limited.
    ///
    /// - Parameter refused: The rules of the protocol before this response.
    private mutating func mayPass(
        _ head: ResponseHead, _ wire: WireEnd, _ reason: ServerReason?, _ refused: any UploadProtocol
    ) -> Bool {
        let mayPass = refused.mayPass(head, wire) || reason?.mayPass == true
        guard mayPass, !ForbiddenCharacters.isRefusal(head, wire.body) else { return false }
        refusals += 1
        return refusals < RetryPolicy.maximumRefusals
    }

    /// Handles a page, or a success that does not follow the protocol. A captive portal may have sent such a response, so the
    /// upload does not fail.
    private mutating func suspecting(_ outcome: UploadOutcome, _ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        guard case .fail(let trouble) = outcome, policy.suspicionDelay != nil else { return outcome }
        if head.isUnprovenSuccess {
            if head.isPage { return pauses.suspicion(head, "\(CommonResponse.page) (\(trouble.message))") }
            refusal = .querying(trouble, isTriedAgain: false)
            return .continue
        }
        guard head.isPage else { return outcome }
        // The status 413 comes from a proxy that refuses large bodies. The server behind this proxy may respond with a page to
        // every name, so a request for an unused name would not prove anything.
        guard head.status >= 400, ![401, 407, 413].contains(head.status), head.isUnencrypted else { return outcome }
        refusal = .querying(trouble, isTriedAgain: false)
        return .continue
    }

    /// Handles the response to a request for a name that no file has.
    private mutating func answered(_ refusal: Refusal, _ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        if head.isOfAPortalForEveryName || head.mayLeadToALogIn && !head.leadsToEncryption {
            self.refusal = .waiting
            return pauses.suspicion(head, CommonResponse.everyPage)
        }
        self.refusal = nil
        switch refusal {
        case .querying(let trouble, isTriedAgain: false): return .fail(trouble)
        case .querying(let trouble, isTriedAgain: true):
            return .retry(after: policy.backoff(attemptsWithoutProgress: pauses.attempts, jitter: pauses.jitter), trouble)
        case .waiting: return .continue
        }
    }

    private mutating func pauseInACircle(_ wire: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        if rules.stage > furthest.stage || rules.nameIndex > furthest.name {
            furthest = Progress(stage: max(furthest.stage, rules.stage), name: max(furthest.name, rules.nameIndex))
            (idleAnswers, refusals) = (0, 0)
        }
        idleAnswers += 1
        guard idleAnswers > Self.maximumIdleAnswers, let head = wire.head else { return .continue }
        return pauses.retry(head, "The server redirects the request again and again.")
    }

    /// The progress, in a unit that the protocol defines. A value is progress if it is greater than all earlier values. The value
    /// decreases if the server loses stored bytes.
    package var stage: Int64 { rules.stage }

    /// The number of bytes that the server has stored and that are not sent again.
    package var storedBytes: Int64 { rules.storedBytes }

    /// The ``UploadMemory`` for the next attempt. `nil` if the last response did not change the ``UploadMemory``.
    package var memory: UploadMemory? { rules.memory }

    /// The address at which the server may have the file although no response confirmed this. The address contains no secrets.
    /// `nil` if the file was not sent.
    package var openName: String? { rules.openName }

    /// Sets the names that other uploads of this computer use.
    ///
    /// - Parameter taken: The addresses at which files of other uploads are stored or may be stored. A file at such an address is
    ///   not the file of this upload, and this upload does not send its file to such an address.
    /// - Parameter stored: The addresses of completed uploads. The server may have lost the files of these uploads.
    package mutating func setOtherNames(taken: Set<String>, stored: Set<String> = []) {
        // A check must also find the files of other uploads of this computer.
        if plan.order.onlyChecks != true { rules.setOtherNames(taken: taken, stored: stored) }
    }

    /// `true` if the next request sends the file to an address although the server does not report whether a file exists at this
    /// address. In this case, only the names from ``setOtherNames(taken:stored:)`` prevent the upload from overwriting another
    /// upload's file.
    package var needsNames: Bool { rules.needsNames }

    /// The evidence that the server has the complete file.
    package var proof: UploadProof { rules.proof }

    /// The known facts about the server, which later uploads use.
    package var knowledge: ServerKnowledge { rules.knowledge }

    /// The reason why the server does not store the file as requested, for example because the file has another name. `nil` if
    /// the file is stored as requested.
    package var remark: String? { rules.remark }

    /// The request that removes a failed upload from the server. `nil` if the server has no data of the upload, or if the data
    /// cannot be removed.
    package var removal: WireRequest? {
        if case .finished = end { return nil }
        if plan.order.onlyChecks == true { return nil }
        // The data is also removed from the server of a destination that the user removed.
        var removal = rules.removal
        removal?.requiredLines = []
        return removal
    }
}

/// The rules of one upload protocol. The rules are not used after the upload ended.
protocol UploadProtocol: Sendable {
    /// Returns the next request. A repeated call returns the same value.
    func next() -> UploadCommand
    /// Records that the server may have carried out the last request, although the response was lost or contradicts this. The
    /// state of the server is checked before the request is repeated.
    mutating func handleUncertainty()
    /// Records that the server reported success before it received the complete file.
    mutating func recordEarlyResponse()
    /// Records that a request was sent completely or in part, and that no response arrived.
    mutating func lost(_ end: WireEnd)
    mutating func received(_ resumption: ResponseHead) -> UploadMemory?
    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome
    var plan: UploadPlan { get }
    /// Returns whether the server may accept the last request later, although this response is final in the protocol.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool
    var stage: Int64 { get }
    /// The index of the name that is used now.
    var nameIndex: Int { get }
    var storedBytes: Int64 { get }
    var proof: UploadProof { get }
    var removal: WireRequest? { get }
    var knowledge: ServerKnowledge { get }
    var memory: UploadMemory? { get }
    var remark: String? { get }
    mutating func setOtherNames(taken: Set<String>, stored: Set<String>)
    /// An address at the same host that no file has.
    var addressOfNothing: String { get }
    var openName: String? { get }
    var needsNames: Bool { get }
}

/// The default implementations. These implementations are sufficient for a protocol with a single request.
extension UploadProtocol {
    mutating func handleUncertainty() {}
    mutating func recordEarlyResponse() { handleUncertainty() }
    mutating func lost(_ end: WireEnd) { handleUncertainty() }
    mutating func received(_ resumption: ResponseHead) -> UploadMemory? { nil }
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { head.hasNoMeaningForUploads }
    var stage: Int64 { 0 }
    var nameIndex: Int { 0 }
    var storedBytes: Int64 { 0 }
    var proof: UploadProof { .answer }
    var removal: WireRequest? { nil }
    var knowledge: ServerKnowledge { ServerKnowledge() }
    var memory: UploadMemory? { nil }
    var remark: String? { nil }
    mutating func setOtherNames(taken: Set<String>, stored: Set<String>) {}
    var addressOfNothing: String { plan.addressOfNothing }
    var openName: String? { nil }
    var needsNames: Bool { false }
}

extension UploadOutcome {
    /// The outcome if all numbered names are taken.
    static let everyNameIsTaken = UploadOutcome.fail(
        TransferTrouble(code: -3000, message: "\(RemoteName.maximumIndex) files of this name exist already."))

    /// The outcome if HEAD reports names as free but the server refuses these names.
    static let freeNamesAreRefused = UploadOutcome.fail(
        TransferTrouble(
            code: -1011,
            message: "The server responds with 412 (a file of this name exists), although HEAD reports that the name is free.",
            status: 412))

    /// Returns a failure that contains the status of the response.
    static func fail(_ head: ResponseHead, _ code: Int, _ message: String) -> UploadOutcome {
        .fail(TransferTrouble(code: code, message: message, status: head.status))
    }
}

/// The evidence that a server has the complete file.
package enum UploadProof: String, Codable, Sendable {
    /// The server reported success.
    case answer
    /// The server reported the expected number of bytes.
    case length
    /// Blocks of the file were read back and are equal to the sent blocks.
    case content
    /// The complete file was read back and is equal to the sent file, or the server's digest equals the digest of the sent data.
    case digest
}
