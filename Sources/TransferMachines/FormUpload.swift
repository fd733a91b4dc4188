import Foundation

/// One POST of `multipart/form-data` (RFC 7578): for servers that take files the way a browser sends them.
///
/// Such a server has no question to ask: after a lost answer the form is sent again, under the same `Idempotency-Key`, and a
/// server that does not know that header has the file twice. A redirect is believed only as 303, which means "done, look
/// there"; the others may lead to a page that asks for a login.
public struct FormUpload: Equatable, Sendable {
    enum State: Equatable, Sendable {
        case sending
        case finished(String)
        case failed(TransferTrouble)
    }

    let plan: UploadPlan
    let policy: RetryPolicy
    var state = State.sending

    init(plan: UploadPlan, policy: RetryPolicy) {
        self.plan = plan
        self.policy = policy
    }

    func next() -> UploadCommand {
        switch state {
        case .sending:
            let headers = [
                HeaderField("Content-Type", "multipart/form-data; boundary=\(boundary)"),
                HeaderField("Idempotency-Key", "\"\(token)\""),
            ]
            return .send(
                plan.request("POST", plan.collectionURL, headers), .wrapped(before: opening, after: closing),
                persistFirst: UploadMemory(step: .put))
        case .finished(let url): return .finished(remoteURL: url)
        case .failed(let trouble): return .fail(trouble)
        }
    }

    mutating func ended(_ end: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> UploadOutcome {
        let pauses = Pauses(policy: policy, now: now, attempts: attemptsWithoutProgress, jitter: jitter)
        guard end.failure != .cancelled, let head = end.head else {
            return settle(pauses.after(end.failure ?? .badAnswer("no headers")))
        }
        switch head.status {
        case 200..<300 where end.bytesSent >= wholeLength, 303 where end.bytesSent >= wholeLength:
            let url = place(of: head)
            state = .finished(url)
            return .finished(remoteURL: url)
        case 200..<300, 303:
            // Answered before it had the whole form: whatever it says, it is not about this photo.
            return pauses.retry(head, "The server answered before it had the whole file.")
        default:
            if let common = CommonAnswer(head, pauses) { return settle(common.outcome) }
            let message = "The server answered with status \(head.status)."
            return settle(.fail(TransferTrouble(code: -1011, message: message, status: head.status)))
        }
    }

    private mutating func settle(_ outcome: UploadOutcome) -> UploadOutcome {
        if case .fail(let trouble) = outcome { state = .failed(trouble) }
        return outcome
    }

    /// Where the server says it is; else where it was sent.
    private func place(of head: ResponseHead) -> String {
        let base = URL(string: plan.collectionURL)
        let said = head["Location"].flatMap { URL(string: $0, relativeTo: base)?.absoluteURL }
        // Never less encrypted than what was sent.
        let scheme = said?.scheme?.lowercased()
        if let said, scheme == "https" || scheme == "http" && base?.scheme?.lowercased() == "http" {
            return PublicAddress.of(said.absoluteString, keepsQuery: true)
        }
        return PublicAddress.of(plan.collectionURL)
    }

    // MARK: The form

    private var token: String { String(plan.token.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(48)) }

    private var boundary: String { "----stormy-\(token)" }

    private var opening: Data {
        let name = Self.quoted(RemoteName.safe(plan.fileName))
        return Data(
            """
            --\(boundary)\r
            Content-Disposition: form-data; name="\(Self.quoted(plan.field))"; filename="\(name)"\r
            Content-Type: \(Self.oneLine(plan.contentType))\r
            \r

            """.utf8)
    }

    private var closing: Data { Data("\r\n--\(boundary)--\r\n".utf8) }

    private var wholeLength: Int64 { Int64(opening.count + closing.count) + plan.byteCount }

    /// As browsers write it (HTML standard, multipart/form-data encoding): quotes and line ends as percent codes.
    private static func quoted(_ text: String) -> String {
        // By scalars: to Swift a carriage return and a line feed together are one character, and neither of them.
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\"": result += "%22"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }

    private static func oneLine(_ text: String) -> String {
        String(text.unicodeScalars.filter { $0.value >= 32 }.map(Character.init))
    }
}
