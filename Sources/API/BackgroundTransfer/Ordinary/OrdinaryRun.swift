import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// The work of a resumed task of an ordinary session: the attempts, the redirects and the challenges. The transport calls the run
/// on the transport's thread, and the run calls the delegate on the delegate's queue.
final class OrdinaryRun: TaskRun {
    let engine: OrdinarySession
    let state = Mutex(State())
    /// The task with which the run began.
    let original: URLSessionTask
    /// The current task of the run, because a data task may become a download.
    private let owner: Mutex<URLSessionTask>
    /// The transport that was current at the start of the task. If the task continues after the end of a test, the task must not
    /// change to the network of another test.
    private let transport = InProcessTransport.shared
    private let number: Int64
    /// The launch that began the task.
    private let launch = LaunchContext.currentNumber
    /// Counts the runs that must end before the process of this launch exits, or before this process exits if it is not a launch.
    private let counter = ActiveTransfers.current.ordinary
    private let isOnTestHost = AppRuntime.isOnTestHost

    /// The maximum number of bytes of a response that is stored in memory for a completion handler or an await.
    private static let memoryLimit: Int64 = 256 << 20
    /// The maximum number of received bytes that wait until they are passed to the delegate. If more bytes wait, the session
    /// stops receiving bytes from the server.
    static let backlogLimit = 1 << 20
    /// The maximum number of received bytes that wait, if the session cannot stop receiving the response. If more bytes wait, the
    /// task fails.
    static let longestBacklog = 256 << 20

    init(_ task: URLSessionTask, _ engine: OrdinarySession) {
        original = task
        owner = Mutex(task)
        self.engine = engine
        configuration = engine.configuration.resolved()
        number = transport.nextNumber()
    }

    var task: URLSessionTask { owner.withLock { $0 } }
    var status: TaskStatus { state.withLock { $0.status } }
    let configuration: URLSessionConfiguration

    /// Replaces the task of the run.
    func pass(to task: URLSessionTask) { owner.withLock { $0 = task } }

    // MARK: Beginning

    func begin() {
        setCounted(true)
        if let refused = task.facts.withLock({ $0.error }) { return finish(refused) }
        do {
            try prepare()
        } catch {
            return finish(URLError(bridging: error))
        }
        let limit = configuration.resourcePatience
        if limit < 86_400 {
            DispatchQueue.global().asyncAfter(deadline: .now() + limit) { [weak self] in self?.timeOut() }
        }
        attempt()
    }

    /// Adds this run to ``counter``, or removes the run. The counter contains the run from `resume()` until `suspend()`, or until
    /// the app has received the result.
    func setCounted(_ isCounted: Bool) {
        let ends = state.withLock { state in
            if isCounted, !state.isCounted { counter.enter() }
            defer { state.isCounted = isCounted }
            return state.isCounted && !isCounted
        }
        if ends { counter.leave() }
    }

    private func prepare() throws {
        var request = task.originalRequest
        if let upload = task as? URLSessionUploadTask {
            guard upload.body != nil else { throw BackgroundSession.badResumeData }
        }
        var part: PartFile?
        var partial: PartialFile?
        if let download = task as? URLSessionDownloadTask {
            switch download.source {
            case .request: part = try PartFile()
            case .resumeData(let data):
                guard let resume = ResumeData(data), let known = resume.request else { throw BackgroundSession.badResumeData }
                request = known
                let taken = resume.partial.flatMap { PartFile(token: resume.token, holding: $0.durableBytes) }
                partial = taken == nil ? nil : resume.partial
                part = try taken ?? PartFile()
            }
        }
        guard let request else { throw URLError(.badURL) }
        let made = (part, partial)
        let order = try order(of: request, adding: configuration)
        state.withLock { state in
            (state.request, state.order, state.firstOrder, state.file) = (request, order, order, made.0)
            if let order, made.0 != nil { state.machine = machine(order, made.1) }
        }
    }

    /// Returns the request to send, or `nil` if a protocol class responds.
    ///
    /// - Parameter adding: the configuration. A value of the configuration is added only if the request does not contain this
    ///   value.
    func order(of request: URLRequest, adding configuration: URLSessionConfiguration) throws -> WireOrder? {
        if try engine.protocolClass(for: request, task) != nil { return nil }
        // The default method of an upload is PUT. The request after a redirect always has an explicit method.
        let isUpload = task is URLSessionUploadTask && state.withLock { $0.redirects == 0 }
        return try WireOrder(request, configuration, defaultMethod: isUpload ? "PUT" : "GET", streams: true)
    }

    func machine(_ order: WireOrder, _ partial: PartialFile?) -> DownloadMachine {
        var request = TransferRequest(
            method: order.method, url: order.url, headers: order.headers, idleTimeout: order.idleTimeout,
            maximumBodyBytes: configuration.maximumBodyBytes, rateLimit: configuration.maximumBytesPerSecond)
        request.decodesContent = decodes(order)
        return DownloadMachine(request: request, partial: partial)
    }

    private func decodes(_ order: WireOrder) -> Bool {
        !configuration.keepsCoding && ContentCoding.isDecoded(inResponseTo: order.headers)
    }

    /// Begins an attempt. This method is also called after the delegate has decided about a redirect.
    func attempt() {
        let begun = state.withLock { state -> (AttemptID, URLRequest, WireOrder?)? in
            guard let request = state.request, state.attempt == nil, !state.waitsForDelegate, case .active = state.phase,
                !state.isHeld || state.file == nil
            else { return nil }
            state.attempts += 1
            let attempt = AttemptID(transfer: number, number: state.attempts)
            (state.attempt, state.isUnderWay, state.isDetourTheAnswer) = (attempt, false, false)
            (state.head, state.detour, state.detourBody, state.data) = (nil, nil, DetourBody(), Data())
            (state.copy, state.asksAbout, state.attemptBegan) = (nil, nil, state.runtime.now)
            if case .unwanted = state.body { state.body = .wanted }
            return (attempt, request, state.order)
        }
        guard let (attempt, request, order) = begun else { return }
        guard let order else { return load(attempt, request) }
        switch cached(request, order) {
        case .use(let answer): answerFromCache(attempt, answer)
        case .missing: fail(attempt, URLError(.resourceUnavailable))
        case .askWhether(let answer, let validators):
            state.withLock { $0.asksAbout = answer }
            withBody(attempt, request, order) { self.sendLater(attempt, request, order, validators, $0) }
        case .askTheServer(let headers):
            withBody(attempt, request, order) { self.sendLater(attempt, request, order, headers, $0) }
        }
    }

    private func load(_ attempt: AttemptID, _ request: URLRequest) {
        guard let kind = (try? engine.protocolClass(for: request, task)) ?? nil else {
            return fail(attempt, URLError(.unsupportedURL))
        }
        let load = CustomLoad(self, attempt, limit: configuration.maximumBodyBytes)
        let isWanted = state.withLock { state in
            guard state.mayBegin(attempt) else { return false }
            (state.load, state.isUnderWay) = (load, true)
            return true
        }
        guard isWanted else { return }
        load.begin(kind, asSeenByProtocol(request), idleTimeout: WireOrder.idleTimeout(request, configuration))
    }

    /// Returns the request that a protocol class receives. As on iOS, the body is a stream. The headers of the configuration are
    /// added only before the first redirect, because they are meant only for the first server.
    private func asSeenByProtocol(_ request: URLRequest) -> URLRequest {
        var seen = request
        let (redirects, dropsBody) = state.withLock { ($0.redirects, $0.dropsBody) }
        if redirects == 0 { seen.allHTTPHeaderFields = WireOrder.headers(request, configuration) }
        guard let upload = task as? URLSessionUploadTask, let body = upload.body, !dropsBody else {
            if let body = request.httpBody { seen.httpBodyStream = InputStream(data: body) }
            return seen
        }
        switch body {
        case .data(let data): seen.httpBodyStream = InputStream(data: data)
        case .file(let file): seen.httpBodyStream = InputStream(url: file)
        case .stream: break
        }
        return seen
    }

    /// Sends the request as soon as the cookies of earlier responses are stored.
    private func sendLater(
        _ attempt: AttemptID, _ request: URLRequest, _ order: WireOrder, _ added: [HeaderField], _ source: (any BodySource)?
    ) { engine.cookies.whenStored { self.send(attempt, request, order, added, source) } }

    private func send(
        _ attempt: AttemptID, _ request: URLRequest, _ order: WireOrder, _ added: [HeaderField], _ source: (any BodySource)?
    ) {
        let begun = state.withLock { state -> WireRequest? in
            // The delegate may have needed a long time to provide the body, so the task may have been cancelled or suspended, or
            // may have ended.
            guard state.mayBegin(attempt) else { return nil }
            state.isUnderWay = true
            var wire = state.machine?.begin() ?? WireRequest(method: order.method, url: order.url)
            (wire.url, wire.method) = (order.url, order.method)
            wire.headers =
                order.headers
                + (state.machine == nil
                    ? []
                    : wire.headers.filter { own in
                        Self.own.contains(own.name) && !order.headers.contains { $0.name.lowercased() == own.name.lowercased() }
                    }) + added
            if let url = URL(string: order.url), let cookies = SessionCookies(configuration) {
                wire.headers = cookies.added(to: wire.headers, for: url, of: request, now: state.storesRuntime.now)
            }
            if !wire.headers.contains(where: { $0.name.lowercased() == "accept-language" }) {
                wire.headers.append(HeaderField("Accept-Language", UserLocale.acceptLanguage))
            }
            (wire.idleTimeout, wire.connectTimeout) = (order.idleTimeout, order.idleTimeout)
            wire.maximumRedirects = 0
            wire.maximumBodyBytes = configuration.maximumBodyBytes
            wire.rateLimit = configuration.maximumBytesPerSecond
            wire.leastTLS = configuration.leastTLS
            wire.authorityFile = configuration.authorityFile
            wire.decodesContent = !state.isStoredRaw && decodes(order)
            wire.credential = state.credential
            if let source { state.status.bytesExpectedToSend = max(-1, source.byteCount) }
            state.sentHeaders = wire.headers
            return wire
        }
        guard let wire = begun else { return }
        transport.start(attempt, wire, source: source, sink: self, launch: launch, isOnTestHost: isOnTestHost) { [self] event in
            switch event {
            case .progress(let attempt, let sent, let received): moved(attempt, sent: sent, received: received)
            // An ordinary session does not resume uploads.
            case .resumption: break
            // The cookies of the response are stored before the attempt counts as ended.
            case .ended(let attempt, let end): engine.cookies.whenStored { self.ended(attempt, end) }
            }
        }
        // Another thread may have stopped the task between the check in `mayBegin` and the start of the transport. The transport
        // had nothing to stop then, so the attempt is stopped now.
        if state.withLock({ $0.attempt == attempt && !$0.canContinueWork }) { transport.cancel(attempt) }
    }

    /// The headers that the download machine adds to the app's headers.
    private static let own: Set<String> = ["Range", "If-Range", "Accept-Encoding"]

    /// Continues to receive a response that waited, from a server or from a protocol class.
    func continueWork() {
        let (attempt, load) = state.withLock { ($0.attempt, $0.load) }
        load?.continueWork()
        if let attempt { transport.continueWork(attempt) }
    }

    // MARK: Stopping

    func cancel() {
        let (attempt, end) = state.withLock { state -> (AttemptID?, (@Sendable (URLError?) -> Void)?) in
            guard state.isOver else {
                state.phase = .cancelling
                return (state.cancelPreparation() ? nil : state.attempt, nil)
            }
            // The result is known, but the app has not received it yet. The app receives an error with the code `.cancelled`
            // instead, and no other waiting deliveries.
            state.phase = .over(wasCancelled: true)
            state.deferred = DeferredDeliveries()
            return (nil, state.end)
        }
        if let end { return enqueue(.call { end(URLError(.cancelled)) }) }
        if let attempt { stop(attempt) } else { finish(URLError(.cancelled)) }
    }

    func stop(_ attempt: AttemptID) {
        if let load = state.withLock({ $0.load }) { load.cancel() } else { transport.cancel(attempt) }
    }

    /// Calls the delegate on the delegate's queue, in order. If the task is suspended, or if the delegate has not decided about
    /// the response headers, the call waits.
    ///
    /// - Parameter isHead: `true` if the call asks for the delegate's decision.
    func post(isHead: Bool = false, _ call: @escaping Call) { post(.call(call), isHead: isHead) }

    func post(_ delivery: Delivery, isHead: Bool = false) {
        // The call is put on the delegate's queue while the lock is held, so that calls of two threads keep their order.
        state.withLock { state in
            // No delivery follows the end of the task. Response headers are an exception, because they may have waited until
            // cookies were stored. Such headers are still delivered, unless the app cancelled the task.
            if state.isEndPosted, !isHead || state.wasCancelled { return }
            if isHead { state.deferred.waitForDecision() }
            // If the task was cancelled, the delegate is not asked for a decision any more. Bytes that would wait for this
            // decision are dropped.
            if case .bytes = delivery, state.wasCancelled, state.deferred.isUndecided { return }
            let (isKept, cost) = state.wasCancelled ? (false, delivery.cost) : state.deferred.keep(delivery, isHead: isHead)
            state.backlog += cost
            if !isKept { enqueue(delivery) }
        }
    }

    private func enqueue(_ delivery: Delivery) {
        let calls = OutstandingCalls.shared
        calls.enter()
        task.session.onDelegateQueue { [self] in
            switch delivery {
            case .call(let call): call()
            case .bytes(let data): deliver(data, cost: delivery.cost)
            }
            calls.leave()
        }
    }

    /// Passes on the waiting deliveries, because the delegate has decided about the response.
    func openGate() {
        state.withLock { state in
            let due = state.deferred.answer()
            // If the app cancelled the task, the app has already received the end of the task, so nothing else is delivered.
            if !state.wasCancelled { due.forEach(enqueue) }
        }
    }

    func cancelKeepingPart() async -> Data? {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.partContinuations.append(continuation) }
                return state.isOver
            }
            // The result is already known, so no resume data is created, even if the app has not received the result yet.
            if isOver { continuation.resume(returning: nil) }
            cancel()
        }
    }

    func suspend() {
        let attempt = state.withLock { state -> AttemptID? in
            guard !state.isOver else { return nil }
            state.deferred.hold()
            state.status.state = .suspended
            // If the response is stored in memory, its remaining bytes still arrive, and the delegate receives the bytes after
            // `resume()`. If the task is a download, the current attempt is stopped. After `resume()`, the next attempt requests
            // only the bytes that the partial file does not contain.
            return state.file == nil || state.cancelPreparation() ? nil : state.attempt
        }
        if let attempt { stop(attempt) }
        if state.withLock({ $0.isHeld }) { setCounted(false) }
    }

    func release() {
        if state.withLock({ $0.isHeld }) { setCounted(true) }
        let mustBegin = state.withLock { state in
            guard state.isHeld else { return false }
            let due = state.deferred.release()
            if !state.isOver { state.status.state = .running }
            if !state.wasCancelled { due.forEach(enqueue) }
            // If the stopped attempt has not ended yet, the next attempt begins when the stopped attempt ends.
            return state.file != nil && state.attempt == nil && !state.isOver
        }
        if mustBegin { attempt() }
    }

    private func timeOut() {
        guard !state.withLock({ $0.isOver }) else { return }
        let (attempt, load) = state.withLock { ($0.attempt, $0.load) }
        finish(URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: "The task exceeded its time limit."]))
        load?.cancel()
        if let attempt { transport.cancel(attempt) }
    }

    static func memoryLimit(_ configuration: URLSessionConfiguration) -> Int64 { configuration.maximumBodyBytes ?? memoryLimit }
}
