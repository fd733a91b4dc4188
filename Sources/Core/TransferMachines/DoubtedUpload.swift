import Foundation

/// An upload of one request, whose good answer may not be the server's.
///
/// Over http a network with a log-in page answers in every server's place, and says yes to everything: with a page, or by leading to a
/// host of its own. Where a good answer looks like that, a name is asked for that no server has. Who has a page for that, too, is no
/// server of files: the upload waits, and nothing is sent again before the same question is answered otherwise.
struct DoubtedUpload: UploadProtocol {
    private enum State: Equatable {
        case sending
        /// The answer was good, and may be a page's.
        case asking(remoteURL: String)
        /// The question was answered with a page.
        case waiting
    }

    let plan: UploadPlan
    private var rules: any UploadProtocol
    private var state: State

    /// - Parameter memory: of a process that ended over the question: what was answered then counts for nothing, and is asked anew.
    init(_ rules: any UploadProtocol, plan: UploadPlan, resuming memory: UploadMemory?) {
        (self.rules, self.plan) = (rules, plan)
        state = memory?.step == .check ? .waiting : .sending
    }

    func next() -> UploadCommand {
        switch state {
        case .sending: return rules.next()
        case .asking, .waiting:
            return .send(plan.bare("GET", nobodysAddress), .none, persistFirst: UploadMemory(step: .check))
        }
    }

    /// A name at the same host that no file has.
    private var nobodysAddress: String {
        guard var parts = URLComponents(string: plan.collectionURL) else { return plan.collectionURL }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        parts.path = "/" + FormBody.plain(plan.token)
        return parts.string ?? plan.collectionURL
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch state {
        case .sending:
            let outcome = rules.answered(head, end, pauses)
            guard case .finished(let url) = outcome, pauses.policy.suspicionDelay != nil, head.mayBeOfAPortal else {
                return outcome
            }
            state = .asking(remoteURL: url)
            return .continue
        case .asking(let url):
            guard head.mayBeOfAPortal || head.status == 511 else { return .finished(remoteURL: url) }
            state = .waiting
            return pauses.suspicion(head, CommonAnswer.everyPage)
        case .waiting:
            guard head.mayBeOfAPortal || head.status == 511 else {
                // Whoever said yes before was not the server.
                state = .sending
                return .continue
            }
            return pauses.suspicion(head, CommonAnswer.everyPage)
        }
    }

    mutating func noteUncertainty() { rules.noteUncertainty() }
}
