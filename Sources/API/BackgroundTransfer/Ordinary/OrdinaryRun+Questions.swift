import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

// Asks the delegate for decisions during a task: about redirects and credentials.
extension OrdinaryRun {
    // MARK: Redirects

    func askAboutRedirect(_ proposed: URLRequest) {
        let (count, response) = state.withLock { state -> (Int, HTTPURLResponse?) in
            state.redirects += 1
            state.waitsForDelegate = true
            return (state.redirects, state.headResponse ?? state.status.response as? HTTPURLResponse)
        }
        guard count <= RedirectRule.limit else {
            return finish(TransferTrouble(.tooManyRedirects).urlError)
        }
        let first = FirstDecision()
        let continueWork: @Sendable (URLRequest?) -> Void = { [self] chosen in
            guard first.isThis else { return }
            state.withLock { $0.waitsForDelegate = false }
            if let chosen { follow(chosen, proposed) } else { acceptDetour() }
        }
        // If a server redirects to a file of this machine or to a `data:` address, the task fails, and the delegate is not asked.
        let scheme = proposed.url?.scheme?.lowercased()
        if scheme == "file" || scheme == "data", scheme != response?.url?.scheme?.lowercased() {
            return finish(URLError(.unsupportedURL).concerning(proposed.url))
        }
        guard let response, let delegate = HeldDelegate(task.receiver(or: engine.delegate)) else { return continueWork(proposed) }
        let (session, task) = (task.session, task)
        session.onDelegateQueue { [self] in
            guard let delegate = delegate.object as? any URLSessionTaskDelegate, !state.withLock({ $0.isOver }) else { return }
            delegate.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: proposed, completionHandler: continueWork)
        }
    }

    /// Sends the request that the delegate chose, without changes. The headers of the configuration are not added, because these
    /// headers may contain secrets that another server must not receive.
    private func follow(_ request: URLRequest, _ proposed: URLRequest) {
        do {
            let bare = URLSessionConfiguration.bare
            bare.timeoutIntervalForRequest = configuration.timeoutIntervalForRequest
            task.facts.withLock { $0.currentRequest = request }
            let next = try order(of: request, adding: bare)
            state.withLock { state in
                if let next, next.method != state.order?.method || request.httpBody != proposed.httpBody {
                    state.dropsBody = true
                }
                let isSameServer = Self.origin(state.order?.url) == Self.origin(next?.url)
                (state.request, state.order) = (request, next)
                // If the task is a download, the received bytes and their validator (for example the ETag) are kept, even if the
                // next request has another address.
                if state.file != nil { state.machine = next.map { machine($0, state.machine?.partial) } }
                // If the next request goes to another server, the credential and the number of challenges are reset, because this
                // server may require another credential.
                if !isSameServer { (state.credential, state.challenges) = (nil, 0) }
            }
            attempt()
        } catch {
            finish(URLError(bridging: error))
        }
    }

    private static func origin(_ url: String?) -> String? { url.flatMap { URL(string: $0) }.map(RedirectRule.origin) }

    // MARK: Credentials

    func askForCredential(_ demand: AuthenticationDemand) {
        let (failures, head, order) = state.withLock { state in
            defer { state.challenges += 1 }
            state.waitsForDelegate = true
            return (state.challenges, state.head, state.order)
        }
        guard let order, let url = URL(string: order.url), let host = url.host else { return finish(URLError(.badURL)) }
        let asked = URLProtectionSpace(
            host: host, port: url.port ?? (url.scheme == "https" ? 443 : 80), protocol: url.scheme, realm: demand.realm,
            authenticationMethod: demand.scheme == .digest
                ? NSURLAuthenticationMethodHTTPDigest : NSURLAuthenticationMethodHTTPBasic)
        let storage = configuration.urlCredentialStorage
        let space = storage?.space(like: asked) ?? asked
        let known = storage?.defaultCredential(for: space)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: known, previousFailureCount: failures,
            failureResponse: head?.response(asked: order.url), error: nil, sender: ChallengeSender())
        let use: @Sendable (String, String) -> Void = { [self] user, password in
            state.withLock {
                $0.credential = WireCredential(user: user, password: password, isDigest: demand.scheme == .digest)
            }
            attempt()
        }
        // The stored credential is tried only once, because the server may not accept it any more.
        let proposed = failures == 0 ? known.flatMap { known in known.user.map { ($0, known.password ?? "") } } : nil
        let first = FirstDecision()
        let answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = { [self] disposition, credential in
            guard first.isThis else { return }
            state.withLock { $0.waitsForDelegate = false }
            switch disposition {
            case .useCredential:
                guard let credential, let user = credential.user else { return acceptDetour() }
                if credential.persistence != .none { storage?.setDefaultCredential(credential, for: space) }
                use(user, credential.password ?? "")
            case .cancelAuthenticationChallenge: finish(URLError(.cancelled))
            case .performDefaultHandling:
                if let proposed { use(proposed.0, proposed.1) } else { acceptDetour() }
            case .rejectProtectionSpace: acceptDetour()
            }
        }
        guard let delegate = HeldDelegate(task.receiver(or: engine.delegate)) else { return answer(.performDefaultHandling, nil) }
        let (session, task) = (task.session, task)
        session.onDelegateQueue { [self] in
            guard let delegate = delegate.object as? any URLSessionTaskDelegate, !state.withLock({ $0.isOver }) else { return }
            delegate.urlSession(session, task: task, didReceive: challenge, completionHandler: answer)
        }
    }

    /// Passes a challenge of the app's protocol class to the delegate, and passes the delegate's decision to the challenge's
    /// sender.
    func forward(_ challenge: URLAuthenticationChallenge) {
        let answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = { disposition, credential in
            switch disposition {
            case .useCredential:
                if let credential {
                    challenge.sender?.use(credential, for: challenge)
                } else {
                    challenge.sender?.continueWithoutCredential(for: challenge)
                }
            case .cancelAuthenticationChallenge: challenge.sender?.cancel(challenge)
            case .performDefaultHandling: challenge.sender?.performDefaultHandling(for: challenge)
            case .rejectProtectionSpace: challenge.sender?.rejectProtectionSpaceAndContinue(with: challenge)
            }
        }
        guard let delegate = HeldDelegate(task.receiver(or: engine.delegate)) else { return answer(.performDefaultHandling, nil) }
        let (session, task) = (task.session, task)
        session.onDelegateQueue {
            guard let delegate = delegate.object as? any URLSessionTaskDelegate else { return }
            delegate.urlSession(session, task: task, didReceive: challenge, completionHandler: answer)
        }
    }
}

extension URLCredentialStorage {
    /// Returns the stored protection space with equal properties, because Foundation's store finds credentials only if the caller
    /// passes the same object.
    fileprivate func space(like space: URLProtectionSpace) -> URLProtectionSpace? {
        allCredentials.keys.first { known in
            (known.host, known.port, known.protocol, known.realm, known.authenticationMethod)
                == (space.host, space.port, space.protocol, space.realm, space.authenticationMethod)
        }
    }
}

/// A sender whose methods have no effect. `URLAuthenticationChallenge` requires a sender, but the delegate passes the decision to
/// a completion handler.
private final class ChallengeSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}

/// A flag that shows whether a decision of the delegate is the first decision about one question.
final class FirstDecision: Sendable {
    private let isAnswered = Mutex(false)

    /// Returns `true` at the first read, and `false` at each later read.
    var isThis: Bool {
        isAnswered.withLock { isAnswered in
            defer { isAnswered = true }
            return !isAnswered
        }
    }
}
