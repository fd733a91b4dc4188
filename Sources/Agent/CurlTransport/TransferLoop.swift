import CLibcurl
import Glibc
import TransferMachines

/// The loop of the transport's thread, which handles commands, runs libcurl, and reports when attempts end. The thread sleeps in
/// a single call.
final class TransferLoop {
    /// The maximum number of easy handles that are kept for the next transfers.
    private static let maximumSpares = 8
    /// The maximum number of connections that are kept open for the next transfers.
    private static let maximumIdleConnections = 16

    private let queue: CommandQueue
    private let handler: @Sendable (TransportEvent) -> Void
    private let options: RequestOptions
    private var running: [AttemptID: RunningAttempt] = [:]
    private var attemptOfHandle: [UnsafeMutableRawPointer: AttemptID] = [:]
    private var spares: [UnsafeMutableRawPointer] = []
    private var sharedRates: [String: SharedRate] = [:]
    private var requiredLines = RequiredLines()

    init(
        queue: CommandQueue, handler: @escaping @Sendable (TransportEvent) -> Void, userAgent: String,
        certificateAuthorities: String?
    ) {
        self.queue = queue
        self.handler = handler
        options = RequestOptions(userAgent: userAgent, certificateAuthorities: certificateAuthorities)
        _ = clibcurl_multi_set_long(queue.multi, CURLMOPT_MAXCONNECTS, Self.maximumIdleConnections)
    }

    func run() {
        while true {
            let (commands, isStopping) = queue.drain()
            for command in commands { perform(command) }
            if isStopping { break }
            resumeRateLimited()
            var count: Int32 = 0
            let moved = curl_multi_perform(queue.multi, &count)
            collectEnded()
            endStalled()
            let waited = queue.wait(milliseconds: waitMilliseconds())
            if moved != CURLM_OK || waited != CURLM_OK {
                // This error occurs only if the machine's memory is exhausted. All attempts are ended, because otherwise this
                // loop would run without a pause.
                endAll(.other(code: (moved == CURLM_OK ? waited : moved).code, message: "libcurl's multi handle failed"))
            }
        }
        endAll(.cancelled)
        for easy in spares { curl_easy_cleanup(easy) }
        curl_multi_cleanup(queue.multi)
    }

    private func perform(_ command: TransportCommand) {
        switch command {
        case .start(let id, let request, let source, let sink):
            start(id, request, source, sink)
        case .cancel(let id):
            if let attempt = running[id] { end(attempt, .cancelled) }
        case .continueWork(let id):
            running[id]?.continueWork()
        }
    }

    private func start(_ id: AttemptID, _ request: WireRequest, _ source: (any BodySource)?, _ sink: any BodySink) {
        guard running[id] == nil else { return }
        guard request.hasUsableURL else { return refuse(id, .unsupportedURL) }
        guard !request.hasBrokenHeader else {
            return refuse(id, .other(code: CURLE_BAD_FUNCTION_ARGUMENT.code, message: "A header has more than one line"))
        }
        if request.scheme == "https", let file = request.authorityFile, !Self.isReadableFile(file) {
            return refuse(id, .authoritiesUnreadable(path: file))
        }
        for required in request.requiredLines {
            switch requiredLines.absence(of: required) {
            case nil: break
            case .notThere?: return refuse(id, .requiredLineMissing(required, reason: nil))
            case .unreadable(let reason)?: return refuse(id, .requiredLineMissing(required, reason: reason))
            }
        }
        guard let easy = spares.popLast() ?? curl_easy_init() else {
            return refuse(id, .other(code: CURLE_OUT_OF_MEMORY.code, message: "Not enough memory for a transfer"))
        }
        let attempt = RunningAttempt(
            id: id, request: request, source: source, sink: sink, easy: easy, sharedRate: sharedRate(of: request),
            handler: handler)
        options.apply(to: attempt)
        running[id] = attempt
        attemptOfHandle[easy] = id
        let added = curl_multi_add_handle(queue.multi, easy)
        if added != CURLM_OK { end(attempt, .other(code: added.code, message: "libcurl did not accept the transfer")) }
    }

    /// Returns `true` if the path belongs to a readable regular file. For a named pipe, libcurl would wait for a writer. libcurl
    /// also does not check the file again while a connection is open.
    private static func isReadableFile(_ path: String) -> Bool {
        var information = stat()
        return stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFREG && access(path, R_OK) == 0
    }

    private func sharedRate(of request: WireRequest) -> SharedRate? {
        guard let group = request.rateGroup, let limit = request.rateLimit else { return nil }
        let now = monotonicSeconds()
        if let known = sharedRates[group] {
            known.bucket.set(bytesPerSecond: limit, now: now)
            return known
        }
        sharedRates = sharedRates.filter { _, rate in
            !rate.bucket.isFull(now: now) || running.values.contains { $0.sharedRate === rate }
        }
        let made = SharedRate(RateBucket(bytesPerSecond: limit, now: now))
        sharedRates[group] = made
        return made
    }

    /// Continues the attempts that can send again because their rate limit allows it.
    private func resumeRateLimited() {
        guard !sharedRates.isEmpty else { return }
        let now = monotonicSeconds()
        for rate in sharedRates.values {
            for id in rate.bucket.turns(now: now) { running[id]?.continueWork() }
        }
    }

    private func refuse(_ id: AttemptID, _ failure: WireFailure) {
        handler(.ended(id, WireEnd(head: nil, failure: failure, bytesSent: 0, bytesReceived: 0)))
    }

    private func collectEnded() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(queue.multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let id = attemptOfHandle[easy], let attempt = running[id]
            else { continue }
            // The result is read before the handle is removed, because the removal makes the message invalid.
            let code = clibcurl_message_result(message)
            end(attempt, attempt.failure(for: code))
        }
    }

    private func endStalled() {
        guard !running.isEmpty else { return }
        let now = monotonicSeconds()
        for attempt in running.values where attempt.idleDeadline.map({ $0 <= now }) == true { end(attempt, .stalled) }
    }

    /// Returns the time until the first attempt may have stalled or can send again. If no such attempt exists, the wait has no
    /// limit. libcurl shortens the wait for its own timers.
    private func waitMilliseconds() -> Int32 {
        let moments = running.values.compactMap(\.idleDeadline) + sharedRates.values.compactMap(\.bucket.nextTurn)
        guard let first = moments.min() else { return .max }
        return Int32(min(max(0, (first - monotonicSeconds()) * 1000).rounded(.up), 86_400_000))
    }

    private func endAll(_ failure: WireFailure) {
        for attempt in running.values { end(attempt, failure) }
    }

    private func end(_ attempt: RunningAttempt, _ failure: WireFailure?) {
        // The result is read before the handle is reset.
        let ended = attempt.end(failure)
        running[attempt.id] = nil
        attemptOfHandle[attempt.easy] = nil
        curl_multi_remove_handle(queue.multi, attempt.easy)
        if spares.count < Self.maximumSpares {
            // This call resets all options of the handle. Open connections and resolved names stay in the multi handle.
            curl_easy_reset(attempt.easy)
            spares.append(attempt.easy)
        } else {
            curl_easy_cleanup(attempt.easy)
        }
        handler(.ended(attempt.id, ended))
    }
}
