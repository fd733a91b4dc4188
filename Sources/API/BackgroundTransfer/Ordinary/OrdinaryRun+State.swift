import BackgroundRuntime
import Foundation
import FoundationNetworking
import TransferMachines

// The state of a run. A lock guards the state.
extension OrdinaryRun {
    typealias Call = @Sendable () -> Void

    enum Phase {
        case active
        case cancelling
        /// The task has a result. If the task was not cancelled, the app may receive the result later.
        case over(wasCancelled: Bool)
    }

    enum Body {
        case wanted
        /// The download machine does not need the body of the response.
        case unwanted
        /// The delegate refused the response after its headers.
        case rejected
    }

    struct State {
        /// The current request: the task's request, or the request after a redirect.
        var request: URLRequest?
        /// The current request in the form in which it is sent.
        var order: WireOrder?
        /// The task's first request, before any redirect. Resume data contains this request.
        var firstOrder: WireOrder?
        var attempt: AttemptID?
        /// `true` if the transport or a protocol class has started the attempt. Before the start, the delegate may have to
        /// provide the body.
        var isUnderWay = false
        /// `true` if the call that reports the end of the task to the app is on the delegate's queue, or waits. No other call
        /// follows.
        var isEndPosted = false
        /// The number of received bytes that the download's delegate was last notified about.
        var reportedReceived: Int64 = 0
        /// A closure that reports the end of the task to the app. The closure is called once, possibly long after the result is
        /// known.
        var end: (@Sendable (URLError?) -> Void)?
        /// `true` if a redirect or challenge is the final response. Such a response is not stored in the cache.
        var isDetourTheAnswer = false
        /// `true` if the bytes are stored without decoding, because the content coding is unknown.
        var isStoredRaw = false
        /// The load of a protocol class that responds instead of the network.
        var load: CustomLoad?
        var attempts = 0
        /// `true` if the process must not exit before this run has ended.
        var isCounted = false
        var status = TaskStatus(state: .running)
        var machine: DownloadMachine?
        var file: PartFile?
        /// The file of a data task that the delegate changed to a download. Bytes are written to this file, and are not passed to
        /// the delegate.
        var becomes: PartFile?
        var head: ResponseHead?
        var data = Data()
        /// A copy of the response body that will be stored in the cache. The copy is made only if the delegate receives the body
        /// in several calls.
        var copy: Data?
        /// The maximum size in bytes of the copy of the response that may be stored in the cache.
        var copyLimit = 0
        /// The cached response for which the request asks the server whether the response is still valid.
        var asksAbout: CachedResponse?
        /// The headers that the current attempt sent to the server.
        var sentHeaders: [HeaderField] = []
        /// `true` if the stream of the request was read.
        var isStreamUsed = false
        var detour: Detour?
        var detourBody = DetourBody()
        /// `true` if the upload's body must not be sent again, because a redirect changed the method (for example from POST to
        /// GET) or the body.
        var dropsBody = false
        /// `true` while the delegate decides about a redirect or a credential. The next attempt begins after the decision.
        var waitsForDelegate = false
        var redirects = 0
        var challenges = 0
        var credential: WireCredential?
        var phase = Phase.active
        /// The calls of the delegate that have to wait.
        var deferred = DeferredDeliveries()
        var body = Body.wanted
        /// The number of received bytes that were not passed to the delegate yet, plus the additional memory of each stored
        /// delivery.
        var backlog = 0
        var partContinuations: [CheckedContinuation<Data?, Never>] = []
        /// The runtime that was current at the start of the task. If the task continues after the end of a test, the task keeps
        /// the clock of the test.
        let runtime = AppRuntime.shared
        /// The runtime whose clock determines the age of cookies and cached responses.
        let storesRuntime = AppRuntime.ofWork
        let began: Date
        var transactions: [URLSessionTaskTransactionMetrics] = []
        var attemptBegan: Date
        var hasReportedWaiting = false

        init() {
            began = runtime.now
            attemptBegan = began
        }

        var isOver: Bool { if case .over = phase { true } else { false } }

        /// `true` if the app cancelled the task and therefore receives the end of the task immediately.
        var wasCancelled: Bool {
            switch phase {
            case .active: false
            case .cancelling: true
            case .over(let wasCancelled): wasCancelled
            }
        }

        var isCancelling: Bool { if case .cancelling = phase { true } else { false } }

        /// The response headers of the attempt, as the app sees them.
        var headResponse: HTTPURLResponse? {
            guard let order else { return nil }
            return head?.response(asked: order.url)
        }

        var isHeld: Bool { deferred.isHeld }

        var wantsBody: Bool { if case .wanted = body { true } else { false } }
    }
}

extension OrdinaryRun.State {
    /// Returns whether the attempt can start. An attempt can be stopped while it is being prepared.
    func mayBegin(_ attempt: AttemptID) -> Bool { self.attempt == attempt && !isUnderWay && canContinueWork }

    /// `true` if the task is active and is not a suspended download.
    var canContinueWork: Bool { if case .active = phase { !isHeld || file == nil } else { false } }

    /// Ends the current attempt if the transport has not started it yet. Returns `true` if the transport has no attempt to stop.
    mutating func cancelPreparation() -> Bool {
        guard attempt != nil, !isUnderWay else { return attempt == nil }
        attempt = nil
        return true
    }

    /// The state of the partial file with which the download can continue, or `nil` if no such file exists.
    var heldPart: PartialFile? {
        guard let file, var partial = machine?.partial else { return nil }
        partial.durableBytes = file.count
        return partial.isResumable ? partial : nil
    }

    /// Passes the end of an attempt and the length of the partial file to the download machine, and returns the machine's
    /// command.
    @discardableResult
    mutating func endAttempt(_ end: WireEnd) -> DownloadCommand? {
        guard let file else { return nil }
        let now = runtime.now
        return machine?.ended(end, durableBytes: file.count, now: now, attemptsWithoutProgress: 0, jitter: 0.5)
    }
}
