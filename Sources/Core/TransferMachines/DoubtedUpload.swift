import Foundation

/// An upload of one request, whose good response may come from another system than the server.
///
/// Over http a captive portal answers every request with success or a redirect. Over https a gateway for log-ins, which the user put before
/// the server, answers with a redirect. After such a response a name is requested that no server has. If that is answered with success or
/// a redirect over http, the upload waits, and nothing is sent again before the same request is answered otherwise. If it is answered with the same redirect
/// over https, the upload fails: whether the server has the file is unknown.
struct DoubtedUpload: UploadProtocol {
    private enum State: Equatable {
        case sending
        /// The answer may be that of a log-in page.
        case asking(after: Answer)
        /// The question was answered with a page.
        case waiting
    }

    /// What was answered to the file.
    private enum Answer: Equatable {
        /// `leading`: with a redirect to that place, which means "done, look there".
        case stored(at: String, leading: String?)
        /// Elsewhere, as if that were the place to send it.
        case led(to: String)
    }

    let plan: UploadPlan
    private var rules: any UploadProtocol
    private var state: State

    /// - Parameter memory: of a process that ended before the name was answered. Over https the response to the file still counts; over
    ///   http it counts for nothing, and the name is requested first.
    init(_ rules: any UploadProtocol, plan: UploadPlan, resuming memory: UploadMemory?) {
        (self.rules, self.plan) = (rules, plan)
        guard memory?.step == .check else {
            state = .sending
            return
        }
        state = memory?.place.map { .asking(after: .stored(at: PublicAddress.of(plan.collectionURL), leading: $0)) } ?? .waiting
    }

    func next() -> UploadCommand {
        switch state {
        case .sending: return rules.next()
        case .asking, .waiting:
            var memory = UploadMemory(step: .check)
            if case .asking(after: .stored(_, leading: let place?)) = state, plan.collectionURL.lowercased().hasPrefix("https:") {
                memory.place = place
            }
            return .send(plan.bare("GET", plan.addressOfNothing), .none, persistFirst: memory)
        }
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch state {
        case .sending:
            let outcome = rules.answered(head, end, pauses)
            let suspects = pauses.policy.suspicionDelay != nil
            switch outcome {
            case .finished(let url) where head.isUnencrypted ? suspects : head.isRedirect:
                let place = head.isRedirect ? CommonAnswer.place(head) : nil
                state = .asking(after: .stored(at: url, leading: place))
            // A server may have it all the same, and a form that is sent again is there twice.
            case .retry where suspects && (300..<400).contains(head.status), .fail where suspects && head.mayLeadToALogIn:
                state = .asking(after: .led(to: CommonAnswer.place(head)))
            default: return outcome
            }
            return .continue
        case .asking(let answer):
            let leadsEverybody = leadsEverybody(head, after: answer)
            if head.isOfAPortalForEveryName || leadsEverybody && head.isUnencrypted {
                state = .waiting
                return pauses.suspicion(head, CommonAnswer.everyPage)
            }
            switch answer {
            case .stored(_, leading: let place?) where leadsEverybody: return .fail(head, -1010, CommonAnswer.ledOn(to: place))
            case .stored(let url, leading: _): return .finished(remoteURL: url)
            case .led(let place):
                let message = plan.order.method.mayBeCut ? CommonAnswer.moved(to: place) : CommonAnswer.ledOn(to: place)
                return .fail(TransferTrouble(code: -1010, message: message))
            }
        case .waiting:
            guard head.isOfAPortalForEveryName || (300..<400).contains(head.status) && !head.leadsToEncryption else {
                // Whoever said yes before was not the server.
                state = .sending
                return .continue
            }
            return pauses.suspicion(head, CommonAnswer.everyPage)
        }
    }

    /// Whoever asks for a name that nobody has is led on, too. Of a server that thanks by a redirect it is another place: to log in, say.
    private func leadsEverybody(_ head: ResponseHead, after answer: Answer) -> Bool {
        guard (300..<400).contains(head.status), !head.leadsToEncryption else { return false }
        switch answer {
        case .led(to: let place), .stored(at: _, leading: let place?): return place == CommonAnswer.place(head)
        case .stored(at: _, leading: nil): return false
        }
    }

    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { state == .sending && rules.mayPass(head, end) }
    mutating func noteUncertainty() { rules.noteUncertainty() }
    mutating func lost(_ end: WireEnd) { if state == .sending { rules.lost(end) } }
    mutating func noteEarlyAnswer() { rules.noteEarlyAnswer() }
}
