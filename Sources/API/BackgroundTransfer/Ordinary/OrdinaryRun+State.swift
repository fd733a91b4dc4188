import BackgroundRuntime
import Foundation
import FoundationNetworking
import TransferMachines

// Where a task stands. Changed under the run's lock alone.
extension OrdinaryRun {
    typealias Call = @Sendable () -> Void

    enum Phase {
        case active
        case cancelling
        /// Its end is known. Who hears of it may still be held, unless it was cancelled.
        case over(wasCancelled: Bool)
    }

    enum Body {
        case wanted
        /// It goes nowhere: the machine wants none.
        case unwanted
        /// Nor does it here: the delegate refused the answer by its head.
        case rejected
    }

    struct State {
        /// What is asked for now: the task's request, or where a redirect led.
        var request: URLRequest?
        /// The same as it goes to the wire.
        var order: WireOrder?
        /// The task's own, before any redirect: what resume data goes on with.
        var firstOrder: WireOrder?
        var attempt: AttemptID?
        /// The attempt is in the transport's hands, or a protocol's. Before that its body may be asked for.
        var isUnderWay = false
        /// The end is on its way to the delegate, or held back: nothing is told after it.
        var isEndPosted = false
        /// Bytes of a download that its delegate has heard of.
        var toldReceived: Int64 = 0
        /// Tells the end, which may be held back; once.
        var end: (@Sendable (URLError?) -> Void)?
        /// Nobody went where the answer led: it is no answer that others may get.
        var isDetourTheAnswer = false
        /// The server codes as nobody here knows: its bytes are taken as they are.
        var isTakenRaw = false
        /// Answers in the network's place.
        var load: CustomLoad?
        var attempts = 0
        /// Its process continues for this run.
        var isCounted = false
        var status = TaskStatus(state: .running)
        var machine: DownloadMachine?
        var file: PartFile?
        /// A data task's answer became a download: its bytes go there as they would be told.
        var becomes: PartFile?
        var head: ResponseHead?
        var data = Data()
        /// What the cache may get, of an answer that is told as it comes.
        var copy: Data?
        /// Bytes of it, at most.
        var copyLimit = 0
        /// What the cache has, while the server is asked whether it holds.
        var asksAbout: CachedAnswer?
        /// Of the attempt.
        var sentHeaders: [HeaderField] = []
        /// The request's own stream was read.
        var isStreamUsed = false
        var detour: Detour?
        var detourBody = DetourBody()
        /// A redirect that turns a POST into a GET, or has a body of its own, leaves the upload's behind.
        var leavesBody = false
        /// The app is asked about a redirect or a credential: its answer begins the next attempt, and nothing else does.
        var isAsking = false
        var redirects = 0
        var challenges = 0
        var credential: WireCredential?
        var phase = Phase.active
        /// What its delegate hears later.
        var deferred = DeferredDeliveries()
        var body = Body.wanted
        /// Bytes that the delegate was not called with yet, and what their pieces cost.
        var backlog = 0
        var keepPart: [CheckedContinuation<Data?, Never>] = []
        /// Kept: what outlives its test goes on by the clock that it began by.
        let runtime = AppRuntime.shared
        /// Tells how old cookies and answers are.
        let storesRuntime = AppRuntime.ofWork
        let began: Date
        var transactions: [URLSessionTaskTransactionMetrics] = []
        var attemptBegan: Date
        var hasSaidWaiting = false

        init() {
            began = runtime.now
            attemptBegan = began
        }

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

        /// The head of the attempt, as the app sees it.
        var headResponse: HTTPURLResponse? {
            guard let order else { return nil }
            return head?.response(asked: order.url)
        }

        var isHeld: Bool { deferred.isHeld }

        var wantsBody: Bool { if case .wanted = body { true } else { false } }
    }
}

extension OrdinaryRun.State {
    /// Nobody stopped the attempt while it was made ready.
    func mayBegin(_ attempt: AttemptID) -> Bool { self.attempt == attempt && !isUnderWay && mayGoOn }

    /// Neither cancelled nor over, nor a download that is held.
    var mayGoOn: Bool { if case .active = phase { !isHeld || file == nil } else { false } }

    /// An attempt that is made ready ends here: nobody else knows of it yet.
    mutating func takeIfPreparing() -> Bool {
        guard attempt != nil, !isUnderWay else { return attempt == nil }
        attempt = nil
        return true
    }

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
        let now = runtime.now
        return machine?.ended(end, durableBytes: file.count, now: now, attemptsWithoutProgress: 0, jitter: 0.5)
    }
}
