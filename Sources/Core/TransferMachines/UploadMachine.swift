import Foundation

/// One upload's life, whatever its protocol. The rules are each protocol's own (``UploadProtocol``); what all of them share is
/// here: an end stays the end, and an attempt without an answer is waited out.
///
/// The promise of all: what was sent without an answer is never sent again before the server was asked what it did, where the
/// protocol has such a question; and what is needed to go on is committed before each request.
package struct UploadMachine: Sendable {
    private var rules: any UploadProtocol
    private let policy: RetryPolicy
    private let opener: UploadOpener
    private let advice: UploadAdvice?
    private var end: End?
    private var refusal: Refusal?
    /// The furthest it came in this process, and answers since then that did not bring it on.
    private var furthest = Progress()
    private var idleAnswers = 0
    /// Refusals since then that may be about one attempt.
    private var refusals = 0

    /// A name that is taken is a step as well: there is an end to them.
    private struct Progress: Equatable, Sendable {
        var stage: Int64 = 0
        var name = 0
    }

    /// Answers in a row that need not bring an upload on: it asks, makes folders, and begins anew. More is a server that
    /// leads it in a circle.
    private static let maximumIdleAnswers = 24

    private let plan: UploadPlan

    /// Returns whether the plan equals the plan of this machine. Knowledge about the server and the progress of the upload are not compared.
    package func follows(_ other: UploadPlan) -> Bool {
        var other = other
        (other.knowledge, other.order.furthest) = (plan.knowledge, plan.order.furthest)
        return other == plan
    }

    /// A final answer over http that is a web page. A network with a log-in page may have refused the request in the server's place, so a
    /// name that no file has is requested before the upload fails.
    private enum Refusal: Equatable, Sendable {
        /// - Parameter isTriedAgain: the refusal may be about one attempt.
        case asking(TransferTrouble, isTriedAgain: Bool)
        /// That name was answered with a page as well. Nothing is sent before it is answered differently.
        case waiting
    }

    private enum End: Sendable {
        case finished(String)
        case failed(TransferTrouble)
    }

    /// - Parameter memory: the last committed state of an earlier process; `nil`: a new upload.
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
        case .immich: rules = ImmichUpload(plan: plan)
        }
    }

    /// The next request, or the end. Asking twice gives the same answer.
    package mutating func next() -> UploadCommand {
        switch end {
        case .finished(let url): return .finished(remoteURL: url)
        case .failed(let trouble): return .fail(trouble)
        case nil: break
        }
        let command = rules.next()
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

    /// A 104 came while a request runs.
    /// - Returns: what is to be committed now, as an answer may never come; `nil`: nothing new.
    package mutating func heard(_ resumption: ResponseHead) -> UploadMemory? { end == nil ? rules.heard(resumption) : nil }

    /// An attempt ended.
    /// - Parameters:
    ///   - attemptsWithoutProgress: attempts since the last one that brought the upload on.
    ///   - jitter: 0..<1, a random number.
    package mutating func ended(_ wire: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> UploadOutcome {
        switch end {
        case .finished(let url): return .finished(remoteURL: url)
        case .failed(let trouble): return .fail(trouble)
        case nil: break
        }
        let pauses = Pauses(policy: policy, now: now, attempts: attemptsWithoutProgress, jitter: jitter, opener: opener)
        var outcome: UploadOutcome
        // A head is an answer, also if the connection broke after it: servers refuse large bodies that way.
        if wire.failure != .cancelled, let head = wire.head {
            if let refusal {
                outcome = answered(refusal, head, pauses)
            } else if isEarly(head, wire) {
                rules.noteEarlyAnswer()
                outcome = pauses.retry(head, Self.answeredEarly)
            } else {
                outcome = answered(head, wire, pauses)
            }
        } else {
            let failure = wire.failure ?? .badAnswer("no headers")
            outcome = pauses.after(failure)
            if failure.mayHaveActed, refusal == nil { rules.lost(wire) }
        }
        // Before the advice, which names the destination.
        outcome = outcome.changing { UploadSecrets(plan).removed(from: $0) }.advised(by: advice)
        switch outcome {
        case .continue: return pauseInACircle(wire, pauses).advised(by: advice)
        case .retry: break
        case .finished(let url): end = .finished(url)
        case .fail(let trouble): end = .failed(trouble)
        }
        return outcome
    }

    static let answeredEarly = "The server answered before it had the whole file."

    /// Returns whether the server answered with yes before all bytes of the request were sent. The server cannot know the file at that moment.
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
        // The server may have acted, as after a lost response.
        rules = before
        rules.noteUncertainty()
        if head.isPage, head.isUnencrypted, policy.suspicionDelay != nil {
            refusal = .asking(trouble, isTriedAgain: true)
            return .continue
        }
        outcome = head.isRedirect || head.status < 300 ? pauses.detour(head, trouble.message) : pauses.retry(head)
        return outcome.explained(by: reason)
    }

    /// Returns whether a refusal may be about one attempt. The number of such refusals has a limit.
    ///
    /// - Parameter refused: the rules that sent the request.
    private mutating func mayPass(
        _ head: ResponseHead, _ wire: WireEnd, _ reason: ServerReason?, _ refused: any UploadProtocol
    ) -> Bool {
        let mayPass = refused.mayPass(head, wire) || reason?.mayPass == true
        guard mayPass, !ForbiddenCharacters.isRefusal(head, wire.body) else { return false }
        refusals += 1
        return refusals < RetryPolicy.maximumRefusals
    }

    /// A page, or a success without the protocol's words, may come from a captive portal. The upload is not given up for that.
    private mutating func suspecting(_ outcome: UploadOutcome, _ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        guard case .fail(let trouble) = outcome, policy.suspicionDelay != nil else { return outcome }
        if head.isUnprovenSuccess {
            if head.isPage { return pauses.suspicion(head, "\(CommonAnswer.page) (\(trouble.message))") }
            refusal = .asking(trouble, isTriedAgain: false)
            return .continue
        }
        guard head.isPage else { return outcome }
        // A proxy that limits bodies says 413 of a large photo, in front of servers that have a page for each name.
        guard head.status >= 400, ![401, 407, 413].contains(head.status), head.isUnencrypted else { return outcome }
        refusal = .asking(trouble, isTriedAgain: false)
        return .continue
    }

    /// The response to a name that no file has.
    private mutating func answered(_ refusal: Refusal, _ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        if head.isOfAPortalForEveryName || head.mayLeadToALogIn && !head.leadsToEncryption {
            self.refusal = .waiting
            return pauses.suspicion(head, CommonAnswer.everyPage)
        }
        self.refusal = nil
        switch refusal {
        case .asking(let trouble, isTriedAgain: false): return .fail(trouble)
        case .asking(let trouble, isTriedAgain: true):
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
        return pauses.retry(head, "The server's answers lead nowhere.")
    }

    /// How far it came, in the protocol's own measure: more than ever before is progress. It may fall back, when what was
    /// stored is lost.
    package var stage: Int64 { rules.stage }

    /// Bytes that the server has for good, and that are not sent again.
    package var storedBytes: Int64 { rules.storedBytes }

    /// What the next attempt begins with, where the last answer said more than what was committed before it; else `nil`.
    package var memory: UploadMemory? { rules.memory }

    /// The address at which the file is, or may be, while its answer is open; without secrets. `nil`: nothing was sent there.
    package var openName: String? { rules.openName }

    /// Names that this computer's other uploads use.
    ///
    /// - Parameter taken: addresses at which the other uploads are, or may be. A file there is not this one, and none is sent there.
    /// - Parameter stored: addresses of completed uploads. The server may have lost their files since.
    package mutating func note(taken: Set<String>, stored: Set<String> = []) { rules.note(taken: taken, stored: stored) }

    /// The file is sent next to an address of which the server would not say whether something is there: only what this machine knows
    /// of its own uploads, to be told by ``note(taken:stored:)``, keeps one from being written over the other.
    package var needsNames: Bool { rules.needsNames }

    /// How it is known that the server has the whole file.
    package var proof: UploadProof { rules.proof }

    /// What it knows of the server by now, for the uploads after it.
    package var knowledge: ServerKnowledge { rules.knowledge }

    /// The reason why a file is stored otherwise than asked, for example under another name. `nil` if the file is stored as asked.
    package var remark: String? { rules.remark }

    /// What takes an upload that was given up off the server; `nil`: nothing is there, or it cannot be.
    package var removal: WireRequest? {
        if case .finished = end { return nil }
        return rules.removal
    }
}

/// The rules of one way to send a file. Asked and told only until the first end.
protocol UploadProtocol: Sendable {
    /// The next request. Asking twice gives the same answer.
    func next() -> UploadCommand
    /// The last request may have been carried out, though its answer is lost or says otherwise: ask before it is repeated.
    mutating func noteUncertainty()
    /// The server answered the last request with yes before the file was sent completely.
    mutating func noteEarlyAnswer()
    /// No answer came to a request that was sent, in part or as a whole.
    mutating func lost(_ end: WireEnd)
    mutating func heard(_ resumption: ResponseHead) -> UploadMemory?
    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome
    var plan: UploadPlan { get }
    /// Returns whether the server may accept the last request later, although the protocol takes this response for final.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool
    var stage: Int64 { get }
    /// Which of the numbered names it is at.
    var nameIndex: Int { get }
    var storedBytes: Int64 { get }
    var proof: UploadProof { get }
    var removal: WireRequest? { get }
    var knowledge: ServerKnowledge { get }
    var memory: UploadMemory? { get }
    var remark: String? { get }
    mutating func note(taken: Set<String>, stored: Set<String>)
    /// An address at the same host that no file has.
    var addressOfNothing: String { get }
    var openName: String? { get }
    var needsNames: Bool { get }
}

/// Of one request with nothing before or after it.
extension UploadProtocol {
    mutating func noteUncertainty() {}
    mutating func noteEarlyAnswer() { noteUncertainty() }
    mutating func lost(_ end: WireEnd) { noteUncertainty() }
    mutating func heard(_ resumption: ResponseHead) -> UploadMemory? { nil }
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { head.hasNoMeaningForUploads }
    var stage: Int64 { 0 }
    var nameIndex: Int { 0 }
    var storedBytes: Int64 { 0 }
    var proof: UploadProof { .answer }
    var removal: WireRequest? { nil }
    var knowledge: ServerKnowledge { ServerKnowledge() }
    var memory: UploadMemory? { nil }
    var remark: String? { nil }
    mutating func note(taken: Set<String>, stored: Set<String>) {}
    var addressOfNothing: String { plan.addressOfNothing }
    var openName: String? { nil }
    var needsNames: Bool { false }
}

extension UploadOutcome {
    /// No numbered name is free.
    static let everyNameIsTaken = UploadOutcome.fail(
        TransferTrouble(code: -3000, message: "\(RemoteName.maximumIndex) files of this name exist already."))

    /// The server would be sent the file under every numbered name.
    static let freeNamesAreRefused = UploadOutcome.fail(
        TransferTrouble(
            code: -1011,
            message: "The server answers 412 (a file of this name exists), although HEAD reports that the name is free.",
            status: 412))

    /// The end, with the status that led to it.
    static func fail(_ head: ResponseHead, _ code: Int, _ message: String) -> UploadOutcome {
        .fail(TransferTrouble(code: code, message: message, status: head.status))
    }
}

/// How it is known that a server has the whole file.
package enum UploadProof: String, Codable, Sendable {
    /// It said so.
    case answer
    /// It says that it has so many bytes as were to be sent.
    case length
    /// Blocks of it were read back, and are what was sent.
    case content
    /// It was read back, or its own digest is ours.
    case digest
}
