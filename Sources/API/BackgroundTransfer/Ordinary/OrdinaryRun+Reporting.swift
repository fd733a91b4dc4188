import Foundation
import FoundationNetworking
import TransferMachines

// Calls the delegate, and ends a task.
extension OrdinaryRun {
    /// Calls the delegate on the delegate's queue, in the order of the calls of this method.
    func callDelegate<Hearer>(_ kind: Hearer.Type, _ body: @escaping @Sendable (URLSession, Hearer) -> Void) {
        guard let hearer = task.receiver(as: kind, or: engine.delegate) else { return }
        nonisolated(unsafe) let delegate = hearer
        let session = task.session
        post { body(session, delegate) }
    }

    /// Reports the response headers. No byte of the body is reported before the delegate has decided.
    func deliverResponse(_ response: URLResponse) {
        guard let task = task as? URLSessionDataTask else { return }
        if let feed = task.facts.withLock({ $0.feed }) { return feed.receive(response) }
        guard task.facts.withLock({ $0.completion == nil }),
            let hearer = task.receiver(as: (any URLSessionDataDelegate).self, or: engine.delegate)
        else { return }
        nonisolated(unsafe) let delegate = hearer
        let session = task.session
        let ask: Call = {
            let first = FirstDecision()
            delegate.urlSession(session, dataTask: task, didReceive: response) { disposition in
                guard first.isThis else { return }
                switch disposition {
                case .allow: break
                case .cancel:
                    self.state.withLock { ($0.body, $0.copy) = (.rejected, nil) }
                    task.cancel()
                case .becomeDownload: self.becomeDownload(task)
                case .becomeStream: self.refuse(URLError(.unsupportedURL, userInfo: URLSessionStreamTask.leftOut))
                }
                self.openGate()
            }
        }
        // Deliveries that come before the delegate's decision have to wait for the decision.
        state.withLock { $0.deferred.waitForDecision() }
        engine.cookies.whenStored { self.post(isHead: true, ask) }
    }

    /// Ends the task with an error. Bytes that still arrive are ignored.
    private func refuse(_ error: URLError) {
        let attempt = state.withLock { state in
            (state.body, state.copy) = (.rejected, nil)
            return state.attempt
        }
        finish(error)
        if let attempt { stop(attempt) }
    }

    /// Converts a data task to a download: all bytes of the body are written to a file. Bytes that arrived before the delegate's
    /// decision are also written to the file, because these bytes wait for the decision.
    private func becomeDownload(_ dataTask: URLSessionDataTask) {
        guard let request = dataTask.originalRequest, let file = try? PartFile() else {
            return refuse(URLError(.cannotCreateFile))
        }
        let download = URLSessionDownloadTask(session: dataTask.session, source: .request(request))
        let old = dataTask.facts.withLock { $0 }
        download.facts.withLock { facts in
            (facts.description, facts.priority, facts.delegate, facts.currentRequest) = (
                old.description, old.priority, old.delegate, old.currentRequest
            )
        }
        // If the app cancelled the task before the delegate's decision, the task does not become a download.
        let isWanted = state.withLock { state in
            if !state.wasCancelled { state.becomes = file }
            return !state.wasCancelled
        }
        guard isWanted, engine.replace(dataTask, by: download) else { return file.remove() }
        pass(to: download)
        download.facts.withLock { $0.last = old.last }
        dataTask.facts.withLock { ($0.isCompleted, $0.last) = (true, TaskStatus(state: .completed)) }
        guard let hearer = dataTask.receiver(as: (any URLSessionDataDelegate).self, or: engine.delegate) else { return }
        nonisolated(unsafe) let delegate = hearer
        // The delegate receives this call before the waiting deliveries.
        dataTask.session.onDelegateQueue {
            delegate.urlSession(dataTask.session, dataTask: dataTask, didBecome: download)
        }
    }

    /// Passes bytes of a body to the app's reader (``URLSession/bytes(for:delegate:)``) or to the delegate.
    func deliverBytes(_ data: Data) {
        if let feed = task.facts.withLock({ $0.feed }) { return feed.receive(data) }
        post(.bytes(data))
    }

    /// Passes bytes of a body to the delegate, or writes them to a file. Called on the delegate's queue.
    func deliver(_ data: Data, cost: Int) {
        let isWanted = state.withLock { state in
            if let file = state.becomes, !data.withUnsafeBytes({ file.write($0) }) {
                state.detour = .refused(URLError(.cannotWriteToFile))
            }
            return state.wantsBody && state.becomes == nil
        }
        if isWanted, let task = task as? URLSessionDataTask {
            task.receiver(as: (any URLSessionDataDelegate).self, or: engine.delegate)?
                .urlSession(task.session, dataTask: task, didReceive: data)
        }
        let shouldContinue = state.withLock { state in
            let wasFull = state.backlog > Self.backlogLimit
            state.backlog -= cost
            return wasFull && state.backlog <= Self.backlogLimit
        }
        if shouldContinue { continueWork() }
    }

    func reportProgress(sent: Int64, before: Int64, _ status: TaskStatus) {
        if sent > before {
            callDelegate((any URLSessionTaskDelegate).self) { session, delegate in
                delegate.urlSession(
                    session, task: self.task, didSendBodyData: sent - before, totalBytesSent: sent,
                    totalBytesExpectedToSend: status.bytesExpectedToSend)
            }
        }
        let before = state.withLock { state in
            defer { state.reportedReceived = status.bytesReceived }
            return min(state.reportedReceived, status.bytesReceived)
        }
        if let download = task as? URLSessionDownloadTask, status.bytesReceived > before {
            callDelegate((any URLSessionDownloadDelegate).self) { session, delegate in
                delegate.urlSession(
                    session, downloadTask: download, didWriteData: status.bytesReceived - before,
                    totalBytesWritten: status.bytesReceived,
                    totalBytesExpectedToWrite: status.bytesExpectedToReceive)
            }
        }
    }

    func reportResumed(_ offset: Int64) {
        guard let download = task as? URLSessionDownloadTask else { return }
        let total = status.bytesExpectedToReceive
        callDelegate((any URLSessionDownloadDelegate).self) { session, delegate in
            delegate.urlSession(
                session, downloadTask: download, didResumeAtOffset: offset, expectedTotalBytes: total)
        }
    }

    /// Records the metrics of an ended attempt or of a cached response.
    func recordTransaction(_ timing: WireTiming?, response: URLResponse?, from type: URLSessionTaskMetrics.ResourceFetchType) {
        state.withLock { state in
            guard let request = state.request else { return }
            state.transactions.append(
                URLSessionTaskTransactionMetrics(
                    request: request, response: response ?? state.headResponse ?? state.status.response,
                    fetchStartDate: state.attemptBegan,
                    responseEndDate: state.runtime.now, received: state.status.bytesReceived, sent: state.status.bytesSent,
                    type: type, timing: timing))
        }
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
        var error = error?.concerning(ended.request?.url ?? task.originalRequest?.url)
        var resume: Data?
        if let failed = error, let data = resumeData(ended) {
            if !ended.partContinuations.isEmpty || failed.code != .cancelled { resume = data }
            var info = failed.userInfo
            if let resume { info[NSURLSessionDownloadTaskResumeData] = resume }
            error = URLError(failed.code, userInfo: info)
        }
        if resume == nil, error != nil { ended.file?.remove() }
        for waiting in ended.partContinuations { waiting.resume(returning: resume) }
        let final = error
        task.facts.withLock { facts in
            facts.error = final
            facts.last = ended.status
        }
        if final == nil { task.progress.totalUnitCount = max(task.progress.totalUnitCount, task.progress.completedUnitCount) }
        if final == nil { offerToCache(ended) }
        // If a protocol class is still loading a response, the load is cancelled, because the response is not needed any more.
        ended.load?.cancel()
        let session = task.session
        let sessionDelegate = HeldDelegate(engine.delegate)
        if let feed = task.facts.withLock({ $0.feed }) { feed.end(final) }
        let end: @Sendable (URLError?) -> Void = { [self] cancelled in
            deliverEnd(ended, final ?? cancelled?.concerning(ended.request?.url), sessionDelegate?.object, session)
        }
        state.withLock { ($0.end, $0.load) = (end, nil) }
        post { end(nil) }
        state.withLock { $0.isEndPosted = true }
    }

    private func deliverEnd(
        _ ended: State, _ error: URLError?, _ sessionDelegate: (any URLSessionDelegate)?, _ session: URLSession
    ) {
        let delegate = task.receiver(or: sessionDelegate)
        // The task can still fail at this point. The delegate may have refused the response after all bytes had arrived. If the
        // delegate changed the task to a download, the file may not have been written completely.
        let late = state.withLock { state -> URLError? in
            if case .rejected = state.body { return URLError(.cancelled).concerning(ended.request?.url) }
            if state.becomes != nil, case .refused(let error) = state.detour { return error.concerning(ended.request?.url) }
            return nil
        }
        let error = error ?? late
        let file = ended.file ?? state.withLock { $0.becomes }
        let (isFirst, completion) = task.facts.withLock { facts in
            defer { facts.completion = nil }
            guard !facts.isCompleted else { return (false, facts.completion) }
            (facts.isCompleted, facts.error) = (true, error)
            return (true, facts.completion)
        }
        guard isFirst else { return }
        state.withLock { $0.end = nil }
        // The task is removed from the session's list of tasks before the app receives the result.
        engine.forget(task)
        if let completion {
            delegate?.urlSession(session, task: task, didFinishCollecting: metrics(ended))
            completion(
                TransferEnd(file: error == nil ? file?.url : nil, response: ended.status.response, error: error, data: ended.data)
            )
        } else {
            if error == nil, let download = task as? URLSessionDownloadTask, let file = file?.url {
                task.receiver(as: (any URLSessionDownloadDelegate).self, or: sessionDelegate)?
                    .urlSession(session, downloadTask: download, didFinishDownloadingTo: file)
            }
            delegate?.urlSession(session, task: task, didFinishCollecting: metrics(ended))
            delegate?.urlSession(session, task: task, didCompleteWithError: error)
        }
        // The partial file is removed, unless resume data refers to it.
        if error?.userInfo[NSURLSessionDownloadTaskResumeData] == nil { file?.remove() }
        engine.ended(task)
        setCounted(false)
    }

    private func metrics(_ ended: State) -> URLSessionTaskMetrics {
        URLSessionTaskMetrics(
            taskInterval: DateInterval(start: ended.began, end: max(ended.runtime.now, ended.began)),
            attemptCount: ended.attempts, transactions: ended.transactions, redirectCount: ended.redirects)
    }

    private func resumeData(_ ended: State) -> Data? {
        // The resume data contains the app's own request, and not the request after a redirect. A new download sends the
        // configuration's headers with this request, and these headers may contain secrets that only the first server may
        // receive. The first server then redirects again.
        guard let file = ended.file, let order = ended.firstOrder, let held = ended.heldPart else { return nil }
        return ResumeData(token: file.token, order: order, partial: held, taskDescription: task.taskDescription).data
    }

    // MARK: The cache

    private func offerToCache(_ ended: State) {
        guard let task = task as? URLSessionDataTask, let request = ended.request, let order = ended.order else { return }
        let cache = SessionCache(configuration, request)
        if !["GET", "HEAD", "OPTIONS"].contains(order.method) { return post { cache.forget(request) } }
        guard order.method == "GET", !(task is URLSessionUploadTask), !ended.isDetourTheAnswer, ended.credential == nil,
            let head = ended.head, ended.asksAbout == nil,
            let response = ended.status.response as? HTTPURLResponse,
            let data = ended.copy ?? (isStreaming ? nil : ended.data),
            let proposal = cache.proposal(
                response, head, data, headers: ended.sentHeaders, received: ended.runtime.now)
        else { return }
        // A delegate can decide about the cached response. If only a completion handler receives the response, the proposed
        // response is stored without a decision. The response is stored before the app receives the result. The store operation
        // runs on the delegate's queue, because the disk may be slow.
        guard isStreaming, let hearer = task.receiver(as: (any URLSessionDataDelegate).self, or: engine.delegate) else {
            return post { cache.store(proposal, for: request) }
        }
        nonisolated(unsafe) let delegate = hearer
        let session = task.session
        let now = ended.runtime.now
        post {
            delegate.urlSession(session, dataTask: task, willCacheResponse: proposal) { chosen in
                if let chosen = chosen.flatMap({ CachedResponse($0, for: request) }).flatMap({
                    CachedResponse.kept($0.response, $0.data, received: now)
                }) {
                    cache.store(chosen, for: request)
                }
            }
        }
    }
}
