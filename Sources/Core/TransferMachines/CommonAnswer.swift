import Foundation

/// What an end's waiting time is made of.
struct Pauses {
    let policy: RetryPolicy
    let now: Date
    let attempts: Int
    let jitter: Double
    let opener: UploadOpener

    func retry(_ head: ResponseHead, _ message: String? = nil) -> UploadOutcome {
        let trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
        let after = policy.delay(retryAfter: trouble.retryAfter, attemptsWithoutProgress: attempts, jitter: jitter)
        return .retry(after: after, trouble)
    }

    /// After an attempt without an answer.
    func after(_ failure: WireFailure) -> UploadOutcome {
        let trouble = TransferTrouble(failure)
        if let pause = policy.suspicionPause(trouble, jitter: jitter) { return .retry(after: pause, trouble) }
        guard failure.isWorthRetrying else { return .fail(trouble) }
        let after =
            trouble.isWaitingForNetwork
            ? policy.networkPause(attemptsWithoutProgress: attempts, jitter: jitter)
            : policy.backoff(attemptsWithoutProgress: attempts, jitter: jitter)
        return .retry(after: after, trouble)
    }

    /// The pause for a server without space for the file.
    ///
    /// - Parameter message: the sentence for a server that answers with another status than 507.
    func full(_ head: ResponseHead, _ message: String = "The server has no space left (507).") -> UploadOutcome {
        var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
        // The advice for the user is the one for 507.
        trouble.status = 507
        return .retry(after: max(trouble.retryAfter ?? 0, policy.fullDelay * (1 + jitter)), trouble)
    }

    /// The pause for a server that leads elsewhere for the time being, or answers with a page. As long as for a full server.
    func detour(_ head: ResponseHead, _ message: String) -> UploadOutcome {
        var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
        trouble.code = -1010
        return .retry(after: max(trouble.retryAfter ?? 0, policy.fullDelay * (1 + jitter)), trouble)
    }

    /// After an answer that may be that of a page to log in to a network.
    func suspicion(_ head: ResponseHead, _ message: String) -> UploadOutcome {
        var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
        (trouble.code, trouble.suspicion) = (-1010, .portal)
        return .retry(after: policy.suspicionPause(trouble, jitter: jitter) ?? policy.cap, trouble)
    }

    /// After a page where a file was asked about.
    func page(_ head: ResponseHead) -> UploadOutcome {
        let mayBeOfAPortal = head.mayBeOfAPortal && policy.suspicionDelay != nil
        return mayBeOfAPortal ? suspicion(head, CommonAnswer.page) : retry(head, CommonAnswer.page)
    }

    /// After an answer that means nothing special to what was asked.
    func afterOther(_ head: ResponseHead) -> UploadOutcome {
        CommonAnswer(head, self)?.outcome ?? .fail(head, -1011, "The server answered with status \(head.status).")
    }
}

/// Answers that mean the same to every request of every upload protocol.
struct CommonAnswer {
    let outcome: UploadOutcome
    /// The request may have been carried out all the same: the server is asked before it is sent again.
    let mayHaveActed: Bool

    static let everyPage =
        "Every address of the server is answered with a page: one to log in to this network, perhaps, and then the file is not there."
    static let logIn = "This network wants somebody to log in first."
    static let page = "The server answers with a page where a file would be: it wants somebody to log in, perhaps."

    /// Responses to a request that may succeed later.
    private static let passing = [
        421: "The server does not accept requests for this address on this connection (421).",
        423: "The file is locked on the server (423).",
        429: "The server receives too many requests (429).",
    ]

    /// The address that a redirect leads to, without its query, fragment and parameters.
    static func place(_ head: ResponseHead) -> String {
        head["Location"].map { ServerText.line(String($0.prefix(while: { !"?#;".contains($0) }))) } ?? "another address"
    }

    /// Of a form, whose server has no question to ask.
    static func ledOn(to place: String) -> String {
        "The server led to \(place) when it had the file: whether it is there is not known. Look there before it is sent again."
    }

    static func moved(to place: String) -> String { "The folder has moved to \(place): change the upload's address." }

    /// A redirect for the time being.
    static func detour(to place: String) -> String {
        "The server leads to \(place) instead of taking the file: perhaps to a log-in, or to a page about maintenance."
    }

    /// `nil`: what it means depends on what was asked.
    init?(_ head: ResponseHead, _ pauses: Pauses) {
        switch head.status {
        case 300..<400 where head.status != 304:
            let place = Self.place(head)
            mayHaveActed = false
            if head.mayLeadToAPortal || head.leadsToAnotherName, pauses.policy.suspicionDelay != nil {
                outcome = pauses.suspicion(
                    head, "The answer leads to \(place): a page to log in to this network, or the upload's address has changed.")
                return
            }
            outcome = .fail(head, -1010, [301, 308].contains(head.status) ? Self.moved(to: place) : Self.detour(to: place))
        case 511:
            outcome = pauses.suspicion(head, CommonAnswer.logIn)
            mayHaveActed = false
        case 401:
            outcome = .fail(head, -1013, pauses.opener.refusal)
            mayHaveActed = false
        case 407:
            outcome = .fail(head, -1013, "The proxy requires a user name and password (407).")
            mayHaveActed = false
        case 403:
            outcome = .fail(head, -1102, "The server does not permit uploads to this folder (403).")
            mayHaveActed = false
        case 413:
            outcome = .fail(head, -1103, "The file is too large for the server (413).")
            mayHaveActed = false
        case 507:
            outcome = pauses.full(head)
            mayHaveActed = true
        case 405, 501:
            return nil
        case 408, 421, 423, 425, 429, 500...:
            outcome = pauses.retry(head, Self.passing[head.status])
            mayHaveActed = true
        default:
            return nil
        }
    }
}
