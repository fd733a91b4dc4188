import Foundation
import FoundationNetworking
import TransferMachines

// What arrives, and who hears of it.
extension OrdinaryRun: BodySink {
    // MARK: On the engine's thread

    func receive(head: ResponseHead) -> Bool {
        let (response, offset) = state.withLock { state -> (URLResponse?, Int64?) in
            guard let order = state.order else { return (nil, nil) }
            state.head = head
            if let detour = Self.detour(head, order, state) {
                state.detour = detour
                return (nil, nil)
            }
            let response = head.response(asked: order.url)
            state.status.response = response
            guard state.machine != nil else {
                state.status.bytesExpectedToReceive = head.announced
                return (response, nil)
            }
            var offset: Int64?
            switch state.machine?.received(head, now: state.runtime.now) {
            case .append(let place):
                state.file?.truncate(to: place)
                offset = place
            case .rewrite: state.file?.truncate()
            case .discard, nil: state.body = .unwanted
            }
            guard state.wantsBody else { return (response, nil) }
            state.status.bytesExpectedToReceive = state.machine?.partial?.totalBytes ?? -1
            state.status.bytesReceived = state.file?.count ?? 0
            return (response, offset)
        }
        if let response, task is URLSessionDataTask { tellHead(response) }
        if let offset { tellResumed(offset) }
        return true
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let limit = Self.memoryLimit(engine.configuration)
        let isStreaming = task is URLSessionDataTask && task.facts.withLock { $0.completion == nil }
        let piece = state.withLock { state -> (isTaken: Bool, data: Data?) in
            if state.detour != nil || !state.wantsBody { return (true, nil) }
            if let file = state.file {
                guard file.write(bytes) else {
                    state.detour = .refused(URLError(.cannotWriteToFile))
                    return (false, nil)
                }
                state.status.bytesReceived = file.count
                return (true, nil)
            }
            state.status.bytesReceived += Int64(bytes.count)
            if isStreaming { return (true, Data(bytes)) }
            state.data.append(contentsOf: bytes)
            let fits = Int64(state.data.count) <= limit
            if !fits { state.detour = .refused(URLError(.dataLengthExceedsMaximum)) }
            return (fits, nil)
        }
        if let data = piece.data {
            tell((any URLSessionDataDelegate).self) { session, delegate in
                guard self.state.withLock({ $0.wantsBody }), let task = self.task as? URLSessionDataTask else { return }
                delegate.urlSession(session, dataTask: task, didReceive: data)
            }
        }
        return piece.isTaken
    }

    private static func detour(_ head: ResponseHead, _ order: WireOrder, _ state: State) -> Detour? {
        do {
            let next = try RedirectRule.next(method: order.method, url: order.url, headers: order.headers, head: head)
            if let next { return .redirect(method: next.method, url: next.url, headers: next.headers) }
        } catch {
            return .refused(Self.error(for: error == .otherScheme ? .redirectToOtherScheme : .badAnswer("a malformed redirect")))
        }
        if state.challenges < 3, let demand = AuthenticationDemand.read(head) { return .challenge(demand) }
        return nil
    }

    func moved(_ attempt: AttemptID, sent: Int64, received: Int64) {
        let (status, before) = state.withLock { state in
            defer { state.status.bytesSent = max(state.status.bytesSent, sent) }
            return (state.status, state.status.bytesSent)
        }
        task.progress.totalUnitCount = status.bytesExpectedToSend > 0 ? status.bytesExpectedToSend : status.bytesExpectedToReceive
        task.progress.completedUnitCount = status.bytesExpectedToSend > 0 ? sent : status.bytesReceived
        if sent > before, status.bytesExpectedToSend >= 0 {
            tell((any URLSessionTaskDelegate).self) { session, delegate in
                delegate.urlSession(
                    session, task: self.task, didSendBodyData: sent - before, totalBytesSent: sent,
                    totalBytesExpectedToSend: status.bytesExpectedToSend)
            }
        }
        if let download = task as? URLSessionDownloadTask, received > 0 {
            tell((any URLSessionDownloadDelegate).self) { session, delegate in
                delegate.urlSession(
                    session, downloadTask: download, didWriteData: received, totalBytesWritten: status.bytesReceived,
                    totalBytesExpectedToWrite: status.bytesExpectedToReceive)
            }
        }
    }

    // MARK: The delegate

    /// On its queue, in order.
    func tell<Hearer: Sendable>(_ kind: Hearer.Type, _ body: @escaping @Sendable (URLSession, Hearer) -> Void) {
        guard let delegate = task.hearer(as: kind, or: engine.delegate) else { return }
        let session = task.session
        post { body(session, delegate) }
    }

    /// Not a byte of the body is told before the delegate has answered.
    private func tellHead(_ response: URLResponse) {
        guard task.facts.withLock({ $0.completion == nil }), let task = task as? URLSessionDataTask,
            let delegate = task.hearer(as: (any URLSessionDataDelegate).self, or: engine.delegate)
        else { return }
        let session = task.session
        post(isHead: true) {
            delegate.urlSession(session, dataTask: task, didReceive: response) { disposition in
                if disposition == .cancel {
                    self.state.withLock { $0.body = .rejected }
                    task.cancel()
                }
                self.openGate()
            }
        }
    }

    private func tellResumed(_ offset: Int64) {
        guard let download = task as? URLSessionDownloadTask else { return }
        let total = status.bytesExpectedToReceive
        tell((any URLSessionDownloadDelegate).self) { session, delegate in
            delegate.urlSession(
                session, downloadTask: download, didResumeAtOffset: offset, expectedTotalBytes: total)
        }
    }

    // MARK: Redirects and challenges

    func askAboutRedirect(_ method: String, _ url: String, _ headers: [HeaderField]) {
        let (count, head) = state.withLock { state in
            state.redirects += 1
            return (state.redirects, state.head)
        }
        guard count <= RedirectRule.limit else { return finish(Self.error(for: .tooManyRedirects)) }
        guard let proposed = URLRequest(method: method, url: url, headers: headers) else { return finish(URLError(.badURL)) }
        let goOn: @Sendable (URLRequest?) -> Void = { [self] chosen in
            guard let chosen else {
                // Not followed: the redirect itself is the answer.
                state.withLock { state in
                    if let head, let order = state.order { state.status.response = head.response(asked: order.url) }
                }
                return finish(nil)
            }
            follow(chosen)
        }
        guard let head, let delegate = task.hearer(or: engine.delegate),
            let response = state.withLock({ $0.order }).flatMap({ head.response(asked: $0.url) })
        else { return goOn(proposed) }
        let session = task.session
        session.delegateQueue.addOperation {
            delegate.urlSession(
                session, task: self.task, willPerformHTTPRedirection: response, newRequest: proposed, completionHandler: goOn)
        }
    }

    private func follow(_ request: URLRequest) {
        do {
            // Nothing of the session's own is added: its secrets do not go to another host either.
            let next = try WireOrder(request, URLSessionConfiguration.default)
            state.withLock { state in
                if next.method != state.order?.method { state.leavesBody = true }
                let (body, timeout) = (state.order?.body, state.order?.idleTimeout)
                state.order = next
                state.order?.body = body
                state.order?.idleTimeout = timeout ?? next.idleTimeout
                // Of the host that asked for it, not of another.
                state.credential = nil
            }
            attempt()
        } catch {
            finish(error as? URLError ?? URLError(.badURL))
        }
    }

    func askForCredential(_ demand: AuthenticationDemand) {
        let (failures, head, order) = state.withLock { state in
            defer { state.challenges += 1 }
            return (state.challenges, state.head, state.order)
        }
        guard let order, let url = URL(string: order.url), let host = url.host else { return finish(URLError(.badURL)) }
        let space = URLProtectionSpace(
            host: host, port: url.port ?? (url.scheme == "https" ? 443 : 80), protocol: url.scheme, realm: demand.realm,
            authenticationMethod: demand.scheme == .digest
                ? NSURLAuthenticationMethodHTTPDigest : NSURLAuthenticationMethodHTTPBasic)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: nil, previousFailureCount: failures,
            failureResponse: head?.response(asked: order.url), error: nil, sender: ChallengeSender())
        let answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = { [self] disposition, credential in
            switch disposition {
            case .useCredential:
                guard let user = credential?.user else { return deliverChallenge() }
                state.withLock {
                    $0.credential = WireCredential(
                        user: user, password: credential?.password ?? "", isDigest: demand.scheme == .digest)
                }
                attempt()
            case .cancelAuthenticationChallenge: finish(URLError(.cancelled))
            case .performDefaultHandling, .rejectProtectionSpace: deliverChallenge()
            }
        }
        guard let delegate = task.hearer(or: engine.delegate) else {
            return deliverChallenge()
        }
        let session = task.session
        session.delegateQueue.addOperation {
            delegate.urlSession(session, task: self.task, didReceive: challenge, completionHandler: answer)
        }
    }

    /// Nobody has a credential: the 401 is the answer. Asked for once more, so that its body is there too.
    private func deliverChallenge() {
        state.withLock { $0.challenges = .max }
        attempt()
    }

    // MARK: The end

    func finish(_ error: URLError?) {
        let ended = state.withLock { state -> State? in
            guard !state.isOver else { return nil }
            state.phase = .over(wasCancelled: state.isCancelling)
            state.status.state = .completed
            return state
        }
        guard let ended else { return }
        var error = error
        var resume: Data?
        if let failed = error, let data = resumeData(ended) {
            if !ended.keepPart.isEmpty || failed.code != .cancelled { resume = data }
            var info = failed.userInfo
            if let resume { info[NSURLSessionDownloadTaskResumeData] = resume }
            error = URLError(failed.code, userInfo: info)
        }
        if resume == nil, error != nil { ended.file?.remove() }
        for waiting in ended.keepPart { waiting.resume(returning: resume) }
        let final = error
        task.facts.withLock { facts in
            facts.error = final
            facts.last = ended.status
        }
        if final == nil { task.progress.totalUnitCount = max(task.progress.totalUnitCount, task.progress.completedUnitCount) }
        let session = task.session
        let sessionDelegate = engine.delegate
        post { [self] in tellEnd(ended, final, sessionDelegate, session) }
    }

    private func tellEnd(
        _ ended: State, _ error: URLError?, _ sessionDelegate: (any URLSessionDelegate)?, _ session: URLSession
    ) {
        let delegate = task.hearer(or: sessionDelegate)
        // Refused by its head when all of it had arrived.
        let isRejected = state.withLock { if case .rejected = $0.body { true } else { false } }
        let error = error ?? (isRejected ? URLError(.cancelled) : nil)
        let completion = task.facts.withLock { facts in
            (facts.isCompleted, facts.error) = (true, error)
            defer { facts.completion = nil }
            return facts.completion
        }
        if let completion {
            completion(
                TransferEnd(
                    file: error == nil ? ended.file?.url : nil, response: ended.status.response, error: error, data: ended.data))
        } else {
            if error == nil, let download = task as? URLSessionDownloadTask, let file = ended.file?.url {
                task.hearer(as: (any URLSessionDownloadDelegate).self, or: sessionDelegate)?
                    .urlSession(session, downloadTask: download, didFinishDownloadingTo: file)
            }
            if let request = task.originalRequest {
                let transaction = URLSessionTaskTransactionMetrics(
                    request: request, response: ended.status.response, fetchStartDate: ended.began,
                    responseEndDate: ended.runtime.now,
                    received: ended.status.bytesReceived, sent: ended.status.bytesSent)
                let metrics = URLSessionTaskMetrics(
                    taskInterval: DateInterval(start: ended.began, end: max(ended.runtime.now, ended.began)),
                    attemptCount: ended.attempts,
                    transaction: transaction, redirectCount: ended.redirects)
                delegate?.urlSession(session, task: task, didFinishCollecting: metrics)
            }
            delegate?.urlSession(session, task: task, didCompleteWithError: error)
        }
        if error == nil { ended.file?.remove() }
        engine.ended(task)
    }

    private func resumeData(_ ended: State) -> Data? {
        guard let file = ended.file, let order = ended.order, let held = ended.heldPart else { return nil }
        return ResumeData(token: file.token, order: order, partial: held, taskDescription: task.taskDescription).data
    }
}

extension ResponseHead {
    var announced: Int64 { self["Content-Length"].flatMap { Int64($0) } ?? -1 }
}

/// Challenges are answered through their completion handler; the sender of old is there for its type.
private final class ChallengeSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
