import Foundation

/// An upload by a single request. A response that reports success may come from a system other than the server.
///
/// Over http, a captive portal responds to every request with success or a redirect. Over https, a login gateway in front of the
/// server responds with a redirect. After such a response, this type requests a file name that does not exist on the server.
///
/// Over http, the upload waits if the response for this name is success or a redirect. The file is sent again only after the
/// request for this name receives a different response. Over https, the upload fails if this request and the request that sent
/// the file are redirected to the same address. It is then unknown whether the server has the file.
struct DoubtedUpload: UploadProtocol {
    private enum State: Equatable {
        case sending
        /// The response may come from a captive portal.
        case querying(after: SendingResult)
        /// The upload waits, because the response to the request for the unused name may come from a captive portal.
        case waiting
    }

    /// The response to the request that sent the file.
    private enum SendingResult: Equatable {
        /// The server reported success. If the success was a redirect, `leading` is the address to which the server redirected.
        /// `type` is the media type of the response, or `nil` if the type is not known.
        case stored(at: String, leading: String?, type: String? = nil)
        /// The server redirected to another address, possibly because the file has to be sent to that address.
        case led(to: String)
    }

    let plan: UploadPlan
    private var rules: any UploadProtocol
    private var state: State

    /// - Parameter memory: The committed state of an earlier process. That process ended before the response for the unused name
    ///   arrived. The response to the request that sent the file is still used, unless the earlier process had found that a
    ///   captive portal sent it.
    init(_ rules: any UploadProtocol, plan: UploadPlan, resuming memory: UploadMemory?) {
        (self.rules, self.plan) = (rules, plan)
        guard memory?.step == .check else {
            state = .sending
            return
        }
        switch (memory?.place, memory?.isStored) {
        case (let url?, true): state = .querying(after: .stored(at: url, leading: nil))
        case (let place?, _): state = .querying(after: .stored(at: PublicAddress.of(plan.collectionURL), leading: place))
        case (nil, _): state = .waiting
        }
    }

    func next() -> UploadCommand {
        switch state {
        case .sending: return rules.next()
        case .querying, .waiting:
            var memory = UploadMemory(step: .check)
            switch state {
            case .querying(after: .stored(_, leading: let place?, _)) where plan.collectionURL.lowercased().hasPrefix("https:"):
                memory.place = place
            case .querying(after: .stored(let url, leading: nil, _)): (memory.place, memory.isStored) = (url, true)
            case .sending, .querying, .waiting: break
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
                state = .querying(after: .stored(at: url, leading: place, type: Self.type(head)))
            // The server may have received the file although it responded with a redirect. If a form is sent again, the server
            // stores the file twice.
            case .retry where suspects && (300..<400).contains(head.status), .fail where suspects && head.mayLeadToALogIn:
                state = .querying(after: .led(to: CommonResponse.place(head)))
            default: return outcome
            }
            return .continue
        case .querying(let answer):
            let leadsEverybody = leadsEverybody(head, after: answer)
            // A captive portal responds to every request in the same format. The server of a web app can respond to a form with
            // data, and to every unknown name with the page of the app.
            if case .stored(let url, leading: nil, let type?) = answer, (200..<300).contains(head.status), head.isPage,
                type != Self.type(head)
            {
                return .finished(remoteURL: url)
            }
            if head.isOfAPortalForEveryName || leadsEverybody && head.isUnencrypted {
                state = .waiting
                return pauses.suspicion(head, CommonResponse.everyPage)
            }
            switch answer {
            case .stored(_, leading: let place?, _) where leadsEverybody:
                return .fail(head, -1010, CommonResponse.ledOn(to: place))
            case .stored(let url, leading: _, _): return .finished(remoteURL: url)
            case .led(let place):
                let message = plan.order.method.mayBeCut ? CommonResponse.moved(to: place) : CommonResponse.ledOn(to: place)
                return .fail(TransferTrouble(code: -1010, message: message))
            }
        // An error of the server does not show that the captive portal is gone.
        case .waiting where head.status >= 500 && head.status != 511: return pauses.retry(head)
        case .waiting:
            guard head.isOfAPortalForEveryName || (300..<400).contains(head.status) && !head.leadsToEncryption else {
                // The response for the unused name changed, so the earlier success did not come from the server.
                state = .sending
                return .continue
            }
            return pauses.suspicion(head, CommonResponse.everyPage)
        }
    }

    /// Returns whether the server redirected the request for the unused name to the same address as the request that sent the
    /// file. A server that confirms uploads by a redirect sends these two requests to different addresses.
    private func leadsEverybody(_ head: ResponseHead, after answer: SendingResult) -> Bool {
        guard (300..<400).contains(head.status), !head.leadsToEncryption else { return false }
        switch answer {
        case .led(to: let place), .stored(at: _, leading: let place?, _): return place == CommonResponse.place(head)
        case .stored(at: _, leading: nil, _): return false
        }
    }

    /// Returns the media type of a response without parameters. The result is empty if the response has no type.
    private static func type(_ head: ResponseHead) -> String {
        let type = head["Content-Type"]?.prefix { $0 != ";" } ?? ""
        return type.trimmingCharacters(in: .whitespaces).lowercased()
    }

    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { state == .sending && rules.mayPass(head, end) }
    mutating func handleUncertainty() { rules.handleUncertainty() }
    mutating func lost(_ end: WireEnd) { if state == .sending { rules.lost(end) } }
    mutating func recordEarlyResponse() { rules.recordEarlyResponse() }
}
