import Foundation

/// The values from which the pause after an attempt is computed.
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

    /// Returns the outcome of an attempt without a response.
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

    /// Returns the outcome if the server has no space for the file. The upload pauses and is then tried again.
    ///
    /// - Parameter message: The message if the server responds with a status other than 507.
    func full(_ head: ResponseHead, _ message: String = "The server has no space left (507).") -> UploadOutcome {
        var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
        // With the status 507, the message to the user contains the advice for a full server.
        trouble.status = 507
        return .retry(after: max(trouble.retryAfter ?? 0, policy.fullDelay * (1 + jitter)), trouble)
    }

    /// Returns the outcome if the server redirects temporarily or responds with a page. The pause is as long as for a full
    /// server.
    func detour(_ head: ResponseHead, _ message: String) -> UploadOutcome {
        var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
        trouble.code = -1010
        return .retry(after: max(trouble.retryAfter ?? 0, policy.fullDelay * (1 + jitter)), trouble)
    }

    /// Returns the outcome if the response may come from a captive portal.
    func suspicion(_ head: ResponseHead, _ message: String) -> UploadOutcome {
        var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
        (trouble.code, trouble.suspicion) = (-1010, .portal)
        return .retry(after: policy.suspicionPause(trouble, jitter: jitter) ?? policy.cap, trouble)
    }

    /// Returns the outcome if the server sent a page in response to a request about a file.
    func page(_ head: ResponseHead) -> UploadOutcome {
        let mayBeOfAPortal = head.mayBeOfAPortal && policy.suspicionDelay != nil
        return mayBeOfAPortal ? suspicion(head, CommonResponse.page) : retry(head, CommonResponse.page)
    }

    /// Returns the outcome if the response has no special meaning for its request.
    func afterOther(_ head: ResponseHead) -> UploadOutcome {
        CommonResponse(head, self)?.outcome ?? .fail(head, -1011, "The server responded with status \(head.status).")
    }
}

/// The meaning of a response, if this meaning does not depend on the request or the upload protocol.
struct CommonResponse {
    let outcome: UploadOutcome
    /// `true` if the server may have carried out the request. The upload then checks the state of the server before it sends the
    /// request again.
    let mayHaveActed: Bool

    static let everyPage =
        "The server sends a page for every address, perhaps the login page of this network. The file was probably not uploaded."
    static let noFolderMade = "The folder does not exist on the server and cannot be created."
    static let logIn = "This network requires a login first."
    static let page = "The server sent a page instead of the file, perhaps because the server requires a login."

    /// The messages for temporary failures. The same request may succeed later.
    private static let passing = [
        421: "The server does not accept requests for this address on this connection (421).",
        423: "The file is locked on the server (423).",
        429: "The server receives too many requests (429).",
    ]

    /// Returns the address of a redirect without its query, fragment and parameters.
    static func place(_ head: ResponseHead) -> String {
        head["Location"].map { ServerText.line(String($0.prefix(while: { !"?#;".contains($0) }))) } ?? "another address"
    }

    /// Returns the message for a redirect in response to a form. The user has to check the server, because no request can show
    /// whether a server for forms has the file.
    static func ledOn(to place: String) -> String {
        "The server redirected to \(place) after it received the file. Check whether the file is on the server before you retry."
    }

    static func moved(to place: String) -> String { "The folder has moved to \(place). Change the address of the upload." }

    /// Returns the message for a temporary redirect.
    static func detour(to place: String) -> String {
        "The server redirects to \(place) instead of accepting the file, perhaps to a login page or a maintenance page."
    }

    /// Creates the meaning of a response by its status. Returns `nil` if the status has a different meaning for different
    /// requests.
    init?(_ head: ResponseHead, _ pauses: Pauses) {
        switch head.status {
        case 300..<400 where head.status != 304:
            let place = Self.place(head)
            mayHaveActed = false
            if head.mayLeadToAPortal || head.leadsToAnotherName, pauses.policy.suspicionDelay != nil {
                outcome = pauses.suspicion(
                    head,
                    "The server redirects to \(place), which is the login page of this network or the new address for uploads.")
                return
            }
            outcome = .fail(head, -1010, [301, 308].contains(head.status) ? Self.moved(to: place) : Self.detour(to: place))
        case 511:
            outcome = pauses.suspicion(head, CommonResponse.logIn)
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
