import Foundation
import FoundationNetworking
import TransferMachines

// Provides the request body, receives the response, and decides on the next step after an attempt.
extension OrdinaryRun: BodySink {
    // MARK: The request's body

    /// Passes the request body to `continueWork`. If the body is a stream, the delegate may have to provide the stream first.
    func withBody(
        _ attempt: AttemptID, _ request: URLRequest, _ order: WireOrder,
        _ continueWork: @escaping @Sendable ((any BodySource)?) -> Void
    ) {
        let (dropsBody, isStreamUsed) = state.withLock { state in
            defer { if request.httpBodyStream != nil { state.isStreamUsed = true } }
            return (state.dropsBody, state.isStreamUsed)
        }
        if !dropsBody, let body = (task as? URLSessionUploadTask)?.body {
            switch body {
            case .file(let file):
                guard let source = FileSource(file) else { return fail(attempt, URLError(.fileDoesNotExist)) }
                return continueWork(source)
            case .data(let data): return continueWork(DataSource(data))
            case .stream: return askForStream(attempt, continueWork)
            }
        }
        if let data = order.body { return continueWork(DataSource(data)) }
        guard let stream = request.httpBodyStream else { return continueWork(nil) }
        if isStreamUsed { askForStream(attempt, continueWork) } else { continueWork(source(of: stream)) }
    }

    private func askForStream(_ attempt: AttemptID, _ continueWork: @escaping @Sendable ((any BodySource)?) -> Void) {
        guard let delegate = HeldDelegate(task.receiver(or: engine.delegate)) else {
            return fail(attempt, URLError(.requestBodyStreamExhausted))
        }
        let (session, task) = (task.session, task)
        session.onDelegateQueue { [self] in
            guard let delegate = delegate.object as? any URLSessionTaskDelegate, !self.state.withLock({ $0.isOver }) else {
                return
            }
            delegate.urlSession(
                session, task: task,
                needNewBodyStream: { stream in
                    if let stream {
                        continueWork(self.source(of: stream))
                    } else {
                        self.fail(attempt, URLError(.requestBodyStreamExhausted))
                    }
                })
        }
    }

    private func source(of stream: InputStream) -> StreamSource {
        let announced = state.withLock { $0.order }?.headers.first { $0.name.lowercased() == "content-length" }
        return StreamSource(stream, length: announced.flatMap { Int64($0.value) }) { [weak self] in self?.continueWork() }
    }

    // MARK: The cache

    private var usesCache: Bool { task is URLSessionDataTask && !(task is URLSessionUploadTask) }

    func cached(_ request: URLRequest, _ order: WireOrder) -> SessionCache.Finding {
        let cache = SessionCache(configuration, request)
        guard usesCache, order.method == "GET" else { return cache.mayAsk ? .askTheServer(adding: []) : .missing }
        return cache.find(
            for: request, headers: order.headers, now: state.withLock { $0.storesRuntime.now })
    }

    func answerFromCache(_ attempt: AttemptID, _ answer: CachedResponse) {
        guard isCurrent(attempt) else { return }
        recordTransaction(nil, response: answer.response, from: .localCache)
        answerWith(answer.response, answer.data)
        finish(nil)
    }

    // MARK: The received response, on the engine's thread or a protocol's queue

    var isFull: Bool { state.withLock { $0.backlog > Self.backlogLimit } || task.facts.withLock { $0.feed?.isFull == true } }

    func receive(head: ResponseHead) -> Bool {
        saveResponseCookies(of: head)
        let (response, offset) = state.withLock { state -> (URLResponse?, Int64?) in
            guard let order = state.order, let request = state.request else { return (nil, nil) }
            state.head = head
            if head.status == 304, let held = state.asksAbout {
                state.detour = .notModified(held)
                return (nil, nil)
            }
            state.asksAbout = nil
            if let detour = Detour.read(head, order, request, challenges: state.challenges) {
                state.detour = detour
                return (nil, nil)
            }
            let response = head.response(asked: order.url)
            state.status.response = response
            guard state.machine != nil else {
                state.status.bytesExpectedToReceive = head.contentLength ?? -1
                if usesCache, isStreaming, CacheRule.mayKeep(head, request: state.sentHeaders) {
                    (state.copy, state.copyLimit) = (Data(), SessionCache(configuration, request).limit)
                }
                return (response, nil)
            }
            var offset: Int64?
            let now = state.storesRuntime.now
            switch state.machine?.received(head, now: now) {
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
        if let response { deliverResponse(response) }
        if let offset { reportResumed(offset) }
        return true
    }

    private func saveResponseCookies(of head: ResponseHead) {
        let (order, request, now) = state.withLock { ($0.order, $0.request, $0.storesRuntime.now) }
        guard let order, let request, let url = URL(string: order.url) else { return }
        guard SessionCookies.areSet(by: head), let cookies = SessionCookies(configuration) else { return }
        engine.cookies.store { cookies.store(head, from: url, of: request, now: now) }
    }

    /// Receives the response of a protocol class.
    func receive(_ response: URLResponse, of attempt: AttemptID) {
        let isAwaited = state.withLock { state in
            guard state.attempt == attempt else { return false }
            state.status.response = response
            state.status.bytesExpectedToReceive = response.expectedContentLength
            state.status.bytesReceived = 0
            state.file?.truncate()
            return true
        }
        if isAwaited { deliverResponse(response) }
    }

    /// `true` if the delegate or the app's reader receives the bytes as they arrive.
    var isStreaming: Bool { original is URLSessionDataTask && original.facts.withLock { $0.completion == nil } }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Empty data is ignored, because a protocol class of the app may report empty data.
        guard !bytes.isEmpty else { return true }
        let limit = Self.memoryLimit(configuration)
        let isStreaming = isStreaming
        let feedCount = isStreaming ? original.facts.withLock { $0.feed?.waitingCount ?? 0 } : 0
        let piece = state.withLock { state -> (isTaken: Bool, data: Data?, detour: DetourBody?) in
            if state.detour != nil {
                state.detourBody.append(bytes)
                return (true, nil, state.detourBody)
            }
            if !state.wantsBody { return (true, nil, nil) }
            if let file = state.file {
                guard file.write(bytes) else {
                    state.detour = .refused(URLError(.cannotWriteToFile))
                    return (false, nil, nil)
                }
                state.status.bytesReceived = file.count
                return (true, nil, nil)
            }
            state.status.bytesReceived += Int64(bytes.count)
            if isStreaming {
                // A compressed response cannot be paused, because libcurl would store the decoded bytes in memory.
                guard state.backlog + feedCount <= Self.longestBacklog else {
                    state.detour = .refused(URLError(.dataLengthExceedsMaximum))
                    return (false, nil, nil)
                }
                if let count = state.copy?.count {
                    if count + bytes.count > state.copyLimit { state.copy = nil } else { state.copy?.append(contentsOf: bytes) }
                }
                return (true, Data(bytes), nil)
            }
            state.data.append(contentsOf: bytes)
            let fits = Int64(state.data.count) <= limit
            if !fits { state.detour = .refused(URLError(.dataLengthExceedsMaximum)) }
            return (fits, nil, nil)
        }
        // The response is a redirect or a challenge, so the body is probably not needed. If the body is too long or too slow, the
        // rest is skipped.
        if let detour = piece.detour { return detour.isWanted(mayBeAnswer: task.receiver(or: engine.delegate) != nil) }
        if let data = piece.data { deliverBytes(data) }
        return piece.isTaken
    }

    /// Records that the response of a protocol class is a redirect or an error.
    func recordDetour(_ detour: Detour, response: URLResponse?, of attempt: AttemptID) {
        state.withLock { state in
            guard state.attempt == attempt else { return }
            state.detour = detour
            if let response { state.status.response = response }
        }
    }

    func moved(_ attempt: AttemptID, sent: Int64, received: Int64) {
        let (status, before) = state.withLock { state in
            defer { state.status.bytesSent = max(state.status.bytesSent, sent) }
            return (state.status, state.status.bytesSent)
        }
        task.progress.totalUnitCount = status.bytesExpectedToSend > 0 ? status.bytesExpectedToSend : status.bytesExpectedToReceive
        task.progress.completedUnitCount = status.bytesExpectedToSend > 0 ? sent : status.bytesReceived
        reportProgress(sent: sent, before: before, status)
    }

    // MARK: The end of an attempt

    /// Marks an attempt as ended. Returns `false` if the attempt is not the current attempt.
    private func isCurrent(_ attempt: AttemptID) -> Bool {
        state.withLock { state in
            guard state.attempt == attempt, !state.isOver else { return false }
            (state.attempt, state.load) = (nil, nil)
            return true
        }
    }

    /// Ends the task if an attempt cannot begin.
    func fail(_ attempt: AttemptID, _ error: URLError) { if isCurrent(attempt) { finish(error) } }

    func ended(_ attempt: AttemptID, _ end: WireEnd) {
        let isCustom = state.withLock { $0.load != nil }
        guard isCurrent(attempt) else { return }
        recordTransaction(end.timing, response: nil, from: isCustom ? .unknown : .networkLoad)
        let (detour, isHeld, isCancelled, shouldContinue) = state.withLock { state in
            let isHeld = state.isHeld && state.file != nil
            return (state.detour, isHeld, state.isCancelling, !isHeld && state.file != nil && end.failure == .cancelled)
        }
        if isCancelled { return finish(URLError(.cancelled)) }
        if isHeld || shouldContinue {
            state.withLock { state in
                // The next attempt requests only the bytes that the partial file does not contain.
                guard let order = state.order, state.file != nil else { return }
                state.machine = machine(order, state.heldPart)
            }
            return shouldContinue ? self.attempt() : ()
        }
        switch detour {
        case .redirect(let request): return askAboutRedirect(request)
        case .challenge(let demand): return askForCredential(demand)
        case .notModified(let held): return renew(held)
        case .refused(let error): return finish(error)
        case nil: break
        }
        // Reports the bytes that were transferred after the last progress report.
        if end.failure == nil, !isCustom { moved(attempt, sent: end.bytesSent, received: end.bytesReceived) }
        if let failure = end.failure, waits(for: failure) { return }
        if case .badAnswer = end.failure, requestsRawBody(end.head) { return self.attempt() }
        if task is URLSessionDownloadTask, !isCustom, state.withLock({ $0.machine != nil }) { return endDownload(end) }
        if let failure = end.failure { return finish(TransferTrouble(failure).urlError) }
        finish(nil)
    }

    /// Returns whether a download must be requested again and stored without decoding, because the content coding is unknown. A
    /// download is requested again only once for this reason.
    private func requestsRawBody(_ head: ResponseHead?) -> Bool {
        guard let coding = head?.contentCoding, !ContentCoding.known.contains(coding) else { return false }
        return state.withLock { state in
            defer { state.isStoredRaw = true }
            return state.file != nil && !state.isStoredRaw
        }
    }

    private func renew(_ held: CachedResponse) {
        let known = state.withLock { state in state.head.flatMap { head in state.request.map { (head, $0, state.runtime.now) } } }
        guard let (head, request, now) = known,
            let response = CacheRule.renewed(held.head, by: head, received: now).response(asked: held.head.url)
        else { return finish(URLError(.badServerResponse)) }
        let cache = SessionCache(configuration, request)
        if let renewed = CachedResponse.kept(response, held.data, received: now) { cache.store(renewed, for: request) }
        answerWith(response, held.data)
        finish(nil)
    }

    /// Delivers a response whose body is already complete.
    private func answerWith(_ response: URLResponse, _ data: Data) {
        let isStreaming = isStreaming
        state.withLock { state in
            state.detour = nil
            state.status.response = response
            state.status.bytesExpectedToReceive = Int64(data.count)
            state.status.bytesReceived = Int64(data.count)
            if let file = state.file {
                file.truncate()
                if !data.withUnsafeBytes({ file.write($0) }) { state.detour = .refused(URLError(.cannotWriteToFile)) }
            } else if !isStreaming {
                state.data = data
            }
        }
        deliverResponse(response)
        if isStreaming, !data.isEmpty { deliverBytes(data) }
    }

    /// Uses the redirect or challenge as the task's response, because the delegate did not follow the redirect or provided no
    /// credential.
    func acceptDetour() {
        let (isWanted, taken) = state.withLock { state -> (Bool, (URLResponse?, Data?)) in
            // The phase is checked, because the delegate may also have cancelled the task.
            guard case .active = state.phase else { return (false, (nil, nil)) }
            state.isDetourTheAnswer = true
            return (true, (state.headResponse ?? state.status.response, state.detourBody.data))
        }
        guard isWanted else { return finish(URLError(.cancelled)) }
        guard let response = taken.0 else { return finish(URLError(.badServerResponse)) }
        guard let data = taken.1 else { return finish(URLError(.dataLengthExceedsMaximum)) }
        answerWith(response, data)
        if case .refused(let error) = state.withLock({ $0.detour }) { return finish(error) }
        finish(nil)
    }

    /// Returns whether the task waits for a network, because the server cannot be reached and `waitsForConnectivity` is set.
    private func waits(for failure: WireFailure) -> Bool {
        guard configuration.waitsForConnectivity, TransferTrouble(failure).isWaitingForNetwork else { return false }
        let isFirst = state.withLock { state in
            defer { state.hasReportedWaiting = true }
            return !state.hasReportedWaiting
        }
        if isFirst {
            callDelegate((any URLSessionTaskDelegate).self) { $1.urlSession($0, taskIsWaitingForConnectivity: self.task) }
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + 2) { [weak self] in self?.attempt() }
        return true
    }

    /// Ends a download attempt. If a partial response does not match the partial file, the complete file is requested again, up
    /// to a limit of attempts. The caller handles all other errors.
    private func endDownload(_ end: WireEnd) {
        let command = state.withLock { state in state.endAttempt(end) }
        switch command {
        case .finish, nil: finish(nil)
        case .restart where state.withLock({ $0.attempts < 5 }): attempt()
        case .retry(_, let trouble), .restart(_, let trouble), .fail(let trouble):
            // A response with a status that asks for a later retry (for example 503) is also delivered to the app.
            if trouble.status != nil, end.head != nil, end.failure == nil {
                state.withLock { $0.file?.truncate() }
                return finish(nil)
            }
            finish(trouble.urlError)
        }
    }
}
