import Foundation

/// One PUT to an address as it stands: presigned, with a signature in its query that holds for this one request.
///
/// Nothing is asked before or after, as the signature covers no other method; and a lost answer is no doubt: the same bytes to
/// the same address again change nothing.
public struct AddressUpload: Equatable, Sendable {
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

    /// A query makes it the address of one file, not of a folder.
    static func isMeant(by plan: UploadPlan) -> Bool {
        plan.collectionURL.prefix { $0 != "#" }.contains("?")
    }

    func next() -> UploadCommand {
        switch state {
        case .sending:
            let content = UploadContent.snapshot(from: 0, count: plan.byteCount)
            return .send(plan.request("PUT", plan.collectionURL), content, persistFirst: UploadMemory(step: .put))
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
        case 200..<300:
            let url = PublicAddress.of(plan.collectionURL)
            state = .finished(url)
            return .finished(remoteURL: url)
        case 400, 401, 403:
            let message = "The server refuses this presigned address: it may have expired. Configure a new one, then retry."
            return settle(.fail(TransferTrouble(code: -1102, message: message, status: head.status)))
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
}
