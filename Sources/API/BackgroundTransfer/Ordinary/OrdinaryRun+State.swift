import BackgroundRuntime
import Foundation
import FoundationNetworking
import TransferMachines

// The state of a task. This state is changed only under the run's lock.
extension OrdinaryRun {
    typealias Call = @Sendable () -> Void

    enum Phase {
        case active
        case cancelling
        /// The end is known. The report of the end may still be delayed, unless the task was cancelled.
        case over(wasCancelled: Bool)
    }

    enum Body {
        case wanted
        /// The download machine needs no body of this response.
        case unwanted
        /// The delegate refused the response after its headers.
        case rejected
    }

    struct State {
        /// The current request: the task's request, or the request after a redirect.
        var request: URLRequest?
        /// The current request in the form in which it is sent.
        var order: WireOrder?
        /// The task's first request, before any redirect. Resume data uses this request.
        var firstOrder: WireOrder?
        var attempt: AttemptID?
        /// `true` if the transport or a protocol has started the attempt. Before that, the body may be requested from the
        /// delegate.
        var isUnderWay = false
        /// `true` if the end was passed to the delegate's queue, or its report is delayed. No other call follows the end.
        var isEndPosted = false
        /// The number of bytes of a download that was reported to its delegate.
        var reportedReceived: Int64 = 0
        /// Reports the end once. The report may be delayed.
        var end: (@Sendable (URLError?) -> Void)?
        /// `true` if a redirect or challenge was not followed, so that the response is not stored in the cache.
        var isDetourTheAnswer = false
        /// `true` if the content coding is not known, so that the bytes are stored without decoding.
        var isStoredRaw = false
        /// The load that responds instead of the network.
        var load: CustomLoad?
        var attempts = 0
        /// `true` if the process does not end before this run ends.
        var isCounted = false
        var status = TaskStatus(state: .running)
        var machine: DownloadMachine?
        var file: PartFile?
        /// The file of a data task that became a download. Bytes are written to this file at the time at which they would be
        /// reported.
        var becomes: PartFile?
        var head: ResponseHead?
        var data = Data()
        /// The copy of the response for the cache, if the response is reported in pieces.
        var copy: Data?
        /// The maximum number of bytes of the copy.
        var copyLimit = 0
        /// The cached response, while the server is asked whether it is still valid.
        var asksAbout: CachedResponse?
        /// The headers that the current attempt sent to the server.
        var sentHeaders: [HeaderField] = []
        /// `true` if the stream of the request was read.
        var isStreamUsed = false
        var detour: Detour?
        var detourBody = DetourBody()
        /// `true` if a redirect changed the method (for example from POST to GET) or the body, so that the upload's body is not
        /// sent again.
        var dropsBody = false
        /// `true` while the app is asked about a redirect or a credential. The next attempt begins only after the app's decision.
        var waitsForDelegate = false
        var redirects = 0
        var challenges = 0
        var credential: WireCredential?
        var phase = Phase.active
        /// The calls that the delegate receives later.
        var deferred = DeferredDeliveries()
        var body = Body.wanted
        /// The number of bytes that were not passed to the delegate yet, and the cost of their pieces.
        var backlog = 0
        var partContinuations: [CheckedContinuation<Data?, Never>] = []
        /// The runtime at the start of the task. A task that continues after its test keeps the clock with which it began.
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

        /// `true` if the task was cancelled, so that the end is reported at once.
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
    /// Returns whether the attempt can start, because it was not stopped during its preparation.
    func mayBegin(_ attempt: AttemptID) -> Bool { self.attempt == attempt && !isUnderWay && canContinueWork }

    /// `true` if the task is active. A download must also not be suspended.
    var canContinueWork: Bool { if case .active = phase { !isHeld || file == nil } else { false } }

    /// Ends an attempt that is being prepared and was not passed to the transport yet. Returns `true` if no attempt has to be
    /// stopped.
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

    /// Passes the end of an attempt and the number of bytes on disk to the machine, and returns the machine's command.
    @discardableResult
    mutating func endAttempt(_ end: WireEnd) -> DownloadCommand? {
        guard let file else { return nil }
        let now = runtime.now
        return machine?.ended(end, durableBytes: file.count, now: now, attemptsWithoutProgress: 0, jitter: 0.5)
    }
}
