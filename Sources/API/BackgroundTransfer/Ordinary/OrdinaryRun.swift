import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// One task of an ordinary session while it runs: its attempts, redirects and challenges. The engine's thread calls it; the
/// delegate is called on its own queue.
final class OrdinaryRun: Sendable {
    /// What an answer that is not the last one leads to.
    enum Detour: Sendable {
        case redirect(method: String, url: String, headers: [HeaderField])
        case challenge(AuthenticationDemand)
        /// It is not taken, or not in full.
        case refused(URLError)
    }

    typealias Call = @Sendable () -> Void

    enum Phase {
        case active
        case cancelling
        /// Its end is known. Who hears of it may still be held, unless it was cancelled.
        case over(wasCancelled: Bool)
    }

    /// Whether the app holds it.
    enum Hold {
        case none
        /// With what its delegate will hear.
        case held(withheld: [Call])
    }

    /// Whether the delegate has said that it wants the body.
    enum Gate {
        case open
        /// It was asked, and will hear this when it has answered.
        case asked(waiting: [Call])
    }

    enum Body {
        case wanted
        /// It goes nowhere: the machine wants none.
        case unwanted
        /// Nor does it here: the delegate refused the answer by its head.
        case rejected
    }

    struct State {
        var order: WireOrder?
        var attempt: AttemptID?
        var attempts = 0
        var status = TaskStatus(state: .running)
        var machine: DownloadMachine?
        var file: PartFile?
        var head: ResponseHead?
        var data = Data()
        var detour: Detour?
        /// A redirect that turns a POST into a GET leaves the body behind.
        var leavesBody = false
        var redirects = 0
        var challenges = 0
        var credential: WireCredential?
        var phase = Phase.active
        var hold = Hold.none
        var gate = Gate.open
        var body = Body.wanted
        var keepPart: [CheckedContinuation<Data?, Never>] = []
        /// Kept: what outlives its test goes on by the clock that it began by.
        let runtime = AppRuntime.shared
        let began: Date
        var hasSaidWaiting = false

        init() { began = runtime.now }

        var isOver: Bool { if case .over = phase { true } else { false } }

        /// Its end is told at once.
        var wasCancelled: Bool {
            switch phase {
            case .active: false
            case .cancelling: true
            case .over(let wasCancelled): wasCancelled
            }
        }

        var isCancelling: Bool { if case .cancelling = phase { true } else { false } }

        var isHeld: Bool { if case .held = hold { true } else { false } }

        var wantsBody: Bool { if case .wanted = body { true } else { false } }
    }

    let task: URLSessionTask
    let engine: OrdinarySession
    let state = Mutex(State())
    /// Kept: what outlives its test must not find another network.
    private let transport = InProcessTransport.shared
    private let number: Int64
    /// The launch that began it.
    private let launch = LaunchContext.current?.id
    private let isOnTestHost = AppRuntime.isOnTestHost

    /// Bytes of an answer kept in memory for a handler or an await.
    private static let memoryLimit: Int64 = 256 << 20

    init(_ task: URLSessionTask, _ engine: OrdinarySession) {
        self.task = task
        self.engine = engine
        number = transport.nextNumber()
    }

    var status: TaskStatus { state.withLock { $0.status } }
    private var configuration: URLSessionConfiguration { engine.configuration }

    // MARK: Beginning

    func begin() {
        if let refused = task.facts.withLock({ $0.error }) { return finish(refused) }
        do {
            try prepare()
        } catch {
            return finish(error as? URLError ?? URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "\(error)"]))
        }
        let limit = configuration.timeoutIntervalForResource
        if limit < 86_400 {
            DispatchQueue.global().asyncAfter(deadline: .now() + limit) { [weak self] in self?.timeOut() }
        }
        attempt()
    }

    private func prepare() throws {
        var request = task.originalRequest
        var method = "GET"
        if let upload = task as? URLSessionUploadTask {
            guard upload.body != nil else { throw BackgroundSession.badResumeData }
            method = "PUT"
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
        let order = try WireOrder(request, configuration, defaultMethod: method)
        let made = (part, partial)
        state.withLock { state in
            state.order = order
            state.file = made.0
            guard made.0 != nil else { return }
            state.machine = machine(order, made.1)
        }
    }

    private func machine(_ order: WireOrder, _ partial: PartialFile?) -> DownloadMachine {
        DownloadMachine(
            request: TransferRequest(
                method: order.method, url: order.url, headers: order.headers, idleTimeout: order.idleTimeout,
                maximumBodyBytes: configuration.maximumBodyBytes, rateLimit: configuration.maximumBytesPerSecond),
            partial: partial)
    }

    /// One request. Redirects come back here: the delegate is asked about each.
    func attempt() {
        let begun = state.withLock { state -> (AttemptID, WireRequest, WireOrder)? in
            guard let order = state.order, state.attempt == nil, case .active = state.phase, !state.isHeld || state.file == nil
            else { return nil }
            state.attempts += 1
            let attempt = AttemptID(transfer: number, number: state.attempts)
            state.attempt = attempt
            (state.head, state.detour, state.data) = (nil, nil, Data())
            if case .unwanted = state.body { state.body = .wanted }
            var wire = state.machine?.begin() ?? WireRequest(method: order.method, url: order.url)
            wire.url = order.url
            wire.method = order.method
            wire.headers = order.headers + (state.machine == nil ? [] : wire.headers.filter { Self.own.contains($0.name) })
            wire.idleTimeout = order.idleTimeout
            wire.connectTimeout = order.idleTimeout
            wire.maximumRedirects = 0
            wire.maximumBodyBytes = configuration.maximumBodyBytes
            wire.rateLimit = configuration.maximumBytesPerSecond
            wire.decodesContent = state.machine == nil && !order.headers.contains { $0.name.lowercased() == "accept-encoding" }
            wire.credential = state.credential
            return (attempt, wire, order)
        }
        guard let (attempt, wire, order) = begun else { return }
        let source: (any BodySource)?
        switch (task as? URLSessionUploadTask)?.body {
        case .file(let file):
            guard let opened = FileSource(file) else { return finish(URLError(.fileDoesNotExist)) }
            source = opened
        case .data(let data): source = DataSource(data)
        case nil: source = order.body.map(DataSource.init)
        }
        if let source { state.withLock { $0.status.bytesExpectedToSend = source.byteCount } }
        let leavesBody = state.withLock { $0.leavesBody }
        transport.start(
            attempt, wire, source: leavesBody ? nil : source, sink: self, launch: launch, isOnTestHost: isOnTestHost
        ) { [self] event in
            switch event {
            case .progress(let attempt, let sent, let received): moved(attempt, sent: sent, received: received)
            // Nobody here goes on with an upload.
            case .resumption: break
            case .ended(let attempt, let end): ended(attempt, end)
            }
        }
    }

    /// Headers that the machine adds to the app's own.
    private static let own: Set<String> = ["Range", "If-Range", "Accept-Encoding"]

    // MARK: Stopping

    func cancel() {
        let attempt = state.withLock { state -> AttemptID? in
            state.phase = state.isOver ? .over(wasCancelled: true) : .cancelling
            return state.attempt
        }
        if let attempt { transport.cancel(attempt) } else { finish(URLError(.cancelled)) }
    }

    /// On the delegate's queue, in order; of a held task, or one whose delegate has not decided, later.
    ///
    /// - Parameter isHead: what the delegate decides by.
    func post(isHead: Bool = false, _ call: @escaping @Sendable () -> Void) {
        // Queued under the lock: what comes from two threads keeps its order.
        state.withLock { state in
            if isHead, case .open = state.gate { state.gate = .asked(waiting: []) }
            if state.wasCancelled { return enqueue(call) }
            if !isHead, case .asked(let waiting) = state.gate { return state.gate = .asked(waiting: waiting + [call]) }
            if case .held(let withheld) = state.hold { return state.hold = .held(withheld: withheld + [call]) }
            enqueue(call)
        }
    }

    private func enqueue(_ call: @escaping Call) {
        let calls = OutstandingCalls.shared
        calls.enter()
        task.session.delegateQueue.addOperation {
            call()
            calls.leave()
        }
    }

    /// The delegate has decided about the body.
    func openGate() {
        state.withLock { state in
            guard case .asked(let waiting) = state.gate else { return }
            state.gate = .open
            if !state.wasCancelled, case .held(let withheld) = state.hold {
                state.hold = .held(withheld: withheld + waiting)
            } else {
                waiting.forEach(enqueue)
            }
        }
    }

    func cancelKeepingPart() async -> Data? {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.isOver { state.keepPart.append(continuation) }
                return state.isOver
            }
            if isOver { return continuation.resume(returning: nil) }
            cancel()
        }
    }

    func hold() {
        let attempt = state.withLock { state -> AttemptID? in
            guard !state.isOver else { return nil }
            if !state.isHeld { state.hold = .held(withheld: []) }
            state.status.state = .suspended
            // What goes to memory goes on to arrive, and is withheld; a download goes on from its part.
            return state.file == nil ? nil : state.attempt
        }
        if let attempt { transport.cancel(attempt) }
    }

    func release() {
        let mustBegin = state.withLock { state in
            guard case .held(let withheld) = state.hold else { return false }
            state.hold = .none
            if !state.isOver { state.status.state = .running }
            withheld.forEach(enqueue)
            // Its attempt may not have ended yet: that end begins the next one.
            return state.file != nil && state.attempt == nil && !state.isOver
        }
        if mustBegin { attempt() }
    }

    private func timeOut() {
        guard !state.withLock({ $0.isOver }) else { return }
        let attempt = state.withLock { $0.attempt }
        finish(URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: "The task took longer than it may."]))
        if let attempt { transport.cancel(attempt) }
    }

    // MARK: The end of an attempt

    private func ended(_ attempt: AttemptID, _ end: WireEnd) {
        let (isOurs, detour, isHeld, isCancelled, goesOn) = state.withLock { state in
            let isOurs = state.attempt == attempt && !state.isOver
            if isOurs { state.attempt = nil }
            let isHeld = state.isHeld && state.file != nil
            return (isOurs, state.detour, isHeld, state.isCancelling, !isHeld && end.failure == .cancelled)
        }
        guard isOurs else { return }
        if isCancelled { return finish(URLError(.cancelled)) }
        if isHeld || goesOn {
            state.withLock { state in
                // The next attempt goes on from here.
                guard let order = state.order, state.file != nil else { return }
                state.machine = machine(order, state.heldPart)
            }
            return goesOn ? self.attempt() : ()
        }
        switch detour {
        case .redirect(let method, let url, let headers): return askAboutRedirect(method, url, headers)
        case .challenge(let demand): return askForCredential(demand)
        case .refused(let error): return finish(error)
        case nil: break
        }
        if let failure = end.failure, waits(for: failure) { return }
        if task is URLSessionDownloadTask { return endDownload(end) }
        if let failure = end.failure { return finish(Self.error(for: failure)) }
        finish(nil)
    }

    /// Nobody can be reached, and the session would rather wait.
    private func waits(for failure: WireFailure) -> Bool {
        guard configuration.waitsForConnectivity, TransferTrouble(failure).isWaitingForNetwork else { return false }
        let isFirst = state.withLock { state in
            defer { state.hasSaidWaiting = true }
            return !state.hasSaidWaiting
        }
        if isFirst {
            tell((any URLSessionTaskDelegate).self) { $1.urlSession($0, taskIsWaitingForConnectivity: self.task) }
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + 2) { [weak self] in self?.attempt() }
        return true
    }

    /// A part that does not fit is asked for again from the start, a few times: everything else is the caller's affair.
    private func endDownload(_ end: WireEnd) {
        let command = state.withLock { state in state.settle(end) }
        switch command {
        case .finish, nil: finish(nil)
        case .restart where state.withLock({ $0.attempts < 5 }): attempt()
        case .retry(_, let trouble), .restart(_, let trouble), .fail(let trouble):
            // A status that asks for patience is an answer all the same.
            if trouble.status != nil, let head = end.head, end.failure == nil { return finishWithStatus(head) }
            finish(Self.error(for: trouble))
        }
    }

    private func finishWithStatus(_ head: ResponseHead) {
        state.withLock { $0.file?.truncate() }
        finish(nil)
    }

    static func error(for failure: WireFailure) -> URLError { error(for: TransferTrouble(failure)) }

    private static func error(for trouble: TransferTrouble) -> URLError {
        URLError(URLError.Code(rawValue: trouble.code) ?? .unknown, userInfo: [NSLocalizedDescriptionKey: trouble.message])
    }

    static func memoryLimit(_ configuration: URLSessionConfiguration) -> Int64 { configuration.maximumBodyBytes ?? memoryLimit }
}

extension OrdinaryRun.State {
    /// What is here and can be added to.
    var heldPart: PartialFile? {
        guard let file, var partial = machine?.partial else { return nil }
        partial.durableBytes = file.count
        return partial.isResumable ? partial : nil
    }

    /// Asks the machine what an ended attempt means, with what is on disk.
    @discardableResult
    mutating func settle(_ end: WireEnd) -> DownloadCommand? {
        guard let file else { return nil }
        return machine?.ended(end, durableBytes: file.count, now: runtime.now, attemptsWithoutProgress: 0, jitter: 0.5)
    }
}
