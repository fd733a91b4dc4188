import Foundation

/// An upload of one request, whose good answer may not be the server's.
///
/// Over http a network with a log-in page answers in every server's place, and says yes to everything: with a page, or by leading to a
/// place of its own. Where an answer looks like that, a name is asked for that no server has. Who has a page for that, too, is no
/// server of files: the upload waits, and nothing is sent again before the same question is answered otherwise.
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

    /// - Parameter memory: of a process that ended over the question: what was answered then counts for nothing, and is asked anew.
    init(_ rules: any UploadProtocol, plan: UploadPlan, resuming memory: UploadMemory?) {
        (self.rules, self.plan) = (rules, plan)
        state = memory?.step == .check ? .waiting : .sending
    }

    func next() -> UploadCommand {
        switch state {
        case .sending: return rules.next()
        case .asking, .waiting:
            return .send(plan.bare("GET", plan.addressOfNothing), .none, persistFirst: UploadMemory(step: .check))
        }
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch state {
        case .sending:
            let outcome = rules.answered(head, end, pauses)
            guard pauses.policy.suspicionDelay != nil else { return outcome }
            switch outcome {
            case .finished(let url) where head.mayBeOfAPortal || head.mayLeadToALogIn:
                let place = head.mayLeadToALogIn ? CommonAnswer.place(head) : nil
                state = .asking(after: .stored(at: url, leading: place))
            // A server may have it all the same, and a form that is sent again is there twice.
            case .retry where (300..<400).contains(head.status), .fail where head.mayLeadToALogIn:
                state = .asking(after: .led(to: CommonAnswer.place(head)))
            default: return outcome
            }
            return .continue
        case .asking(let answer):
            if head.mayBeOfAPortal || head.status == 511 || leadsEverybody(head, after: answer) {
                state = .waiting
                return pauses.suspicion(head, CommonAnswer.everyPage)
            }
            switch answer {
            case .stored(let url, leading: _): return .finished(remoteURL: url)
            case .led(let place):
                let message = plan.order.method.mayBeCut ? CommonAnswer.moved(to: place) : CommonAnswer.ledOn(to: place)
                return .fail(TransferTrouble(code: -1010, message: message))
            }
        case .waiting:
            guard head.mayBeOfAPortal || head.status == 511 || (300..<400).contains(head.status) && !head.leadsToEncryption else {
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
    mutating func noteEarlyAnswer() { rules.noteEarlyAnswer() }
}
