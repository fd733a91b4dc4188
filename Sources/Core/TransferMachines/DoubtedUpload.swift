import Foundation

/// An upload by a single request, whose response with success may come from another system than the server.
///
/// Over http, a captive portal responds to every request with success or a redirect. Over https, a login gateway in front of the
/// server responds with a redirect. After such a response, a file name that exists on no server is requested.
///
/// If the response to this request is success or a redirect over http, the upload waits. The file is sent again only after the same
/// request receives another response. If the response is the same redirect over https, the upload fails, because it is unknown
/// whether the server has the file.
struct DoubtedUpload: UploadProtocol {
    private enum State: Equatable {
        case sending
        /// The response may come from a captive portal.
        case querying(after: Answer)
        /// The response to the request for a name that no server has was a page.
        case waiting
    }

    /// The response to the file.
    private enum Answer: Equatable {
        /// Success. If a redirect means success, `leading` is the address to which the server redirected.
        case stored(at: String, leading: String?)
        /// A redirect to another place, as if the file should be sent there.
        case led(to: String)
    }

    let plan: UploadPlan
    private var rules: any UploadProtocol
    private var state: State

    /// - Parameter memory: The committed state of an earlier process, which ended before the response for the unused name arrived.
    ///   Over https the response to the file still counts. Over http that response does not count, and the name is requested first.
    init(_ rules: any UploadProtocol, plan: UploadPlan, resuming memory: UploadMemory?) {
        (self.rules, self.plan) = (rules, plan)
        guard memory?.step == .check else {
            state = .sending
            return
        }
        state = memory?.place.map { .querying(after: .stored(at: PublicAddress.of(plan.collectionURL), leading: $0)) } ?? .waiting
    }

    func next() -> UploadCommand {
        switch state {
        case .sending: return rules.next()
        case .querying, .waiting:
            var memory = UploadMemory(step: .check)
            if case .querying(after: .stored(_, leading: let place?)) = state, plan.collectionURL.lowercased().hasPrefix("https:")
            {
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
                let place = head.isRedirect ? CommonResponse.place(head) : nil
                state = .querying(after: .stored(at: url, leading: place))
            // The server may still have received the file, and a form that is sent again is stored twice.
            case .retry where suspects && (300..<400).contains(head.status), .fail where suspects && head.mayLeadToALogIn:
                state = .querying(after: .led(to: CommonResponse.place(head)))
            default: return outcome
            }
            return .continue
        case .querying(let answer):
            let leadsEverybody = leadsEverybody(head, after: answer)
            if head.isOfAPortalForEveryName || leadsEverybody && head.isUnencrypted {
                state = .waiting
                return pauses.suspicion(head, CommonResponse.everyPage)
            }
            switch answer {
            case .stored(_, leading: let place?) where leadsEverybody: return .fail(head, -1010, CommonResponse.ledOn(to: place))
            case .stored(let url, leading: _): return .finished(remoteURL: url)
            case .led(let place):
                let message = plan.order.method.mayBeCut ? CommonResponse.moved(to: place) : CommonResponse.ledOn(to: place)
                return .fail(TransferTrouble(code: -1010, message: message))
            }
        case .waiting:
            guard head.isOfAPortalForEveryName || (300..<400).contains(head.status) && !head.leadsToEncryption else {
                // The unused name has another response than before, so the earlier success did not come from the server.
                state = .sending
                return .continue
            }
            return pauses.suspicion(head, CommonResponse.everyPage)
        }
    }

    /// Returns whether a request for a name that no file has is redirected to the same place. A server that confirms uploads by a
    /// redirect redirects such a request to another place, for example to a login page.
    private func leadsEverybody(_ head: ResponseHead, after answer: Answer) -> Bool {
        guard (300..<400).contains(head.status), !head.leadsToEncryption else { return false }
        switch answer {
        case .led(to: let place), .stored(at: _, leading: let place?): return place == CommonResponse.place(head)
        case .stored(at: _, leading: nil): return false
        }
    }

    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { state == .sending && rules.mayPass(head, end) }
    mutating func handleUncertainty() { rules.handleUncertainty() }
    mutating func lost(_ end: WireEnd) { if state == .sending { rules.lost(end) } }
    mutating func recordEarlyResponse() { rules.recordEarlyResponse() }
}
