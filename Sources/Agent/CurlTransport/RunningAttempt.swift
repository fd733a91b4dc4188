import CLibcurl
import Foundation
import TransferMachines

/// Returns the seconds of the monotonic clock, which is never set.
func monotonicSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// A rate limit that several attempts share.
final class SharedRate {
    var bucket: RateBucket<AttemptID>

    init(_ bucket: RateBucket<AttemptID>) { self.bucket = bucket }
}

/// A running attempt. This object is used only on the transport's thread, on which libcurl calls its methods.
final class RunningAttempt {
    /// The number of seconds between two progress events of an attempt.
    private static let progressInterval = 0.25

    let id: AttemptID
    let request: WireRequest
    let easy: UnsafeMutableRawPointer
    /// The limit for the number of sent bytes per second, which several attempts share. `nil` if no limit applies, or if libcurl
    /// applies the limit.
    let sharedRate: SharedRate?
    /// The number of bytes that the attempt can send now.
    private var allowance = Int.max
    /// The list of request headers. The list must exist as long as libcurl uses the handle.
    var headerList: UnsafeMutablePointer<curl_slist>?
    /// libcurl's message for the error.
    let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    private let source: (any BodySource)?
    private let sink: any BodySink
    private let handler: @Sendable (TransportEvent) -> Void
    private var collector: HeadCollector
    private var sourceOffset: Int64 = 0

    /// The request headers that are also sent to another server after a redirect. `nil` if no such redirect occurred, or if no
    /// header may be sent to another server.
    private var harmlessHeaders: UnsafeMutablePointer<curl_slist>?
    /// The address of the request that is being sent. After a redirect, this is the address of the redirect.
    private lazy var address = request.url
    private(set) var head: ResponseHead?
    private(set) var hasSeenRedirect = false
    /// The watch for close_notify. The watch exists only if close_notify is needed to distinguish the end of the body from a lost
    /// connection.
    private var closeNotify: CloseNotify.Watch?
    /// The reason why a callback stopped the transfer. libcurl reports that a callback stopped the transfer, but does not report
    /// the reason.
    private(set) var stop: WireFailure?
    private(set) var sent: Int64 = 0
    private(set) var received: Int64 = 0
    /// The time of the last activity. `nil` while libcurl connects, because libcurl itself limits the time for connecting.
    private var lastActivity: Double?
    /// The time at which the current block of header lines began. `nil` if the last transferred data was not a header line.
    private var headersBegan: Double?
    /// `true` while the sink or the source makes the server wait. The server's silence is ignored during this pause.
    private var isPaused = false
    /// The number of bytes that arrived after the last activity and were too few to count as activity.
    private var trickle: Int64 = 0
    private var lastCounts: (Int64, Int64) = (0, 0)
    private var lastReport = (time: 0.0, sent: Int64(0), received: Int64(0))

    init(
        id: AttemptID, request: WireRequest, source: (any BodySource)?, sink: any BodySink,
        easy: UnsafeMutableRawPointer, sharedRate: SharedRate?, handler: @escaping @Sendable (TransportEvent) -> Void
    ) {
        self.id = id
        self.request = request
        self.source = source
        self.sink = sink
        self.easy = easy
        self.sharedRate = sharedRate
        self.handler = handler
        collector = HeadCollector(
            followsRedirects: request.followsRedirects, answersChallenge: request.credential?.isDigest == true)
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_slist_free_all(headerList)
        curl_slist_free_all(harmlessHeaders)
        errorText.deallocate()
    }

    var byteCount: Int64? { source?.byteCount }

    /// The time at which the attempt counts as stalled if nothing is transferred before.
    var idleDeadline: Double? {
        guard let lastActivity, !isPaused else { return nil }
        // If a rate limit applies, libcurl pauses after each complete buffer (up to 16 KiB). This pause does not count as silence
        // of the server.
        let pause = request.rateLimit.map { 2 * 16_384 / Double(max(1, $0)) } ?? 0
        return lastActivity + request.idleTimeout + pause
    }

    var isCutWithoutCloseNotify: Bool { closeNotify.map { !$0.wasReceived } ?? false }

    func end(_ failure: WireFailure?) -> WireEnd {
        sharedRate?.bucket.remove(id)
        var end = WireEnd(head: head, failure: failure, bytesSent: sent, bytesReceived: received)
        end.wasRedirected = hasSeenRedirect
        end.timing = TransferTiming.read(easy)
        return end
    }

    // MARK: Pauses

    func pausesForSink() -> Bool {
        // A compressed response is not paused. During a pause, libcurl would store the decoded data and end the transfer at an
        // internal limit.
        guard !(request.decodesContent && head?.contentCoding != nil), sink.isFull else { return false }
        isPaused = true
        return true
    }

    func pausesForSource() -> Bool {
        guard let source, !source.isReady else { return false }
        isPaused = true
        return true
    }

    func pausesForRate(_ count: Int) -> Bool {
        guard let sharedRate, let source else { return false }
        let left = source.byteCount < 0 ? count : Int(min(Int64(count), source.byteCount - sourceOffset))
        guard left > 0 else { return false }
        allowance = sharedRate.bucket.consume(left, for: id, now: monotonicSeconds())
        if allowance == 0 { isPaused = true }
        return allowance == 0
    }

    func continueWork() {
        guard isPaused else { return }
        (isPaused, lastActivity) = (false, monotonicSeconds())
        // During this call, libcurl may run a callback that pauses the attempt again.
        curl_easy_pause(easy, CURLPAUSE_CONT)
    }

    // MARK: libcurl's callbacks

    func connected() { lastActivity = monotonicSeconds() }

    /// Handles a header line. If the result is `false`, the transfer is stopped.
    func receive(headerLine line: UnsafeRawBufferPointer) -> Bool {
        recordHeaderLine()
        switch collector.add(line) {
        case .more:
            return true
        case .passing(let redirect):
            // The time limit continues after a redirect, because the redirect's body or the next connection may stall.
            if let redirect {
                hasSeenRedirect = true
                removeHeaders(for: redirect)
            }
            return true
        case .resumption(let headers):
            handler(.resumption(id, ResponseHead(status: 104, headers: headers, url: request.url)))
            return true
        case .refused(let why):
            stop = .badAnswer(why)
            return false
        case .final(let status, let headers):
            var place: UnsafeMutablePointer<CChar>?
            _ = clibcurl_get_string(easy, CURLINFO_EFFECTIVE_URL, &place)
            let head = ResponseHead(status: status, headers: headers, url: place.map { String(cString: $0) } ?? request.url)
            self.head = head
            if request.method == "GET", head.hasNoLength { closeNotify = CloseNotify.watch(easy) }
            guard sink.receive(head: head) else { return stopped(.stoppedByOwner) }
            if request.method != "HEAD", let limit = request.maximumBodyBytes, head["Transfer-Encoding"] == nil,
                let length = head["Content-Length"].flatMap({ Int64($0) }), length > limit
            {
                return stopped(.bodyTooLarge)
            }
            return true
        }
    }

    func receive(body: UnsafeRawBufferPointer) -> Bool {
        recordArrival(Int64(body.count))
        if let limit = request.maximumBodyBytes, received + Int64(body.count) > limit {
            return stopped(.bodyTooLarge)
        }
        guard sink.write(body) else { return stopped(.stoppedByOwner) }
        received += Int64(body.count)
        return true
    }

    /// Removes the app's headers before a redirect to another server. libcurl removes only some secret headers.
    private func removeHeaders(for place: String) {
        guard harmlessHeaders == nil else { return }
        // For safety, an address that cannot be parsed counts as the address of another server.
        if let base = URL(string: address), let target = URL(string: place, relativeTo: base)?.absoluteURL {
            address = target.absoluteString
            guard RedirectRule.origin(of: base) != RedirectRule.origin(of: target) else { return }
        }
        var line = headerList
        while let current = line {
            // The line has the form "Name: value". For a header without a value, it has the form "Name;".
            let text = String(cString: current.pointee.data)
            let name = text.prefix { $0 != ":" && $0 != ";" }
            if RedirectRule.isHarmless(String(name)) {
                harmlessHeaders = curl_slist_append(harmlessHeaders, text) ?? harmlessHeaders
            }
            line = current.pointee.next
        }
        _ = clibcurl_set_list(easy, CURLOPT_HTTPHEADER, harmlessHeaders)
    }

    /// Records a header line. A server that sends only header lines, for example interim responses with status 102, counts as
    /// silent after ten times the idle timeout. A gateway can send such lines without end while its server does not respond.
    private func recordHeaderLine() {
        let now = monotonicSeconds()
        let began = headersBegan ?? now
        headersBegan = began
        if request.leastRate == 0 || now - began < 10 * request.idleTimeout { lastActivity = now }
    }

    /// Records that data was received. If too little data arrived for the elapsed time, the data counts as silence.
    private func recordArrival(_ count: Int64) {
        let now = monotonicSeconds()
        trickle += count
        // The first data may take a long time, because the server may compute the response.
        if received > 0, let lastActivity, Double(trickle) < (now - lastActivity) * Double(request.leastRate) { return }
        (lastActivity, trickle, headersBegan) = (now, 0, nil)
    }

    /// Fills the buffer and returns the number of bytes. The result `nil` aborts the transfer.
    func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard let source else { return 0 }
        let isEndless = source.byteCount < 0
        // No more bytes than the announced length are sent, even if the file has become longer.
        let left = min(allowance, isEndless ? buffer.count : Int(min(Int64(buffer.count), source.byteCount - sourceOffset)))
        guard left > 0 else { return 0 }
        let count = source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<left]))
        if isEndless, count == 0 { return 0 }
        guard let count, count > 0 else {
            // If a source ends early, this is also an error, because libcurl and the server would wait for the missing bytes.
            stop = .stoppedByOwner
            return nil
        }
        sourceOffset += Int64(count)
        if sourceOffset == source.byteCount { sharedRate?.bucket.remove(id) }
        return count
    }

    func rewind(to offset: Int64) -> Bool {
        guard offset == 0, let source, source.rewind() else {
            stop = .stoppedByOwner
            return false
        }
        sourceOffset = 0
        return true
    }

    func counted(received downloaded: Int64, sent uploaded: Int64) {
        let now = monotonicSeconds()
        if (downloaded, uploaded) != lastCounts {
            let counts = uploaded != lastCounts.1 || request.leastRate == 0
            lastCounts = (downloaded, uploaded)
            if lastActivity != nil, counts { (lastActivity, trickle, headersBegan) = (now, 0, nil) }
        }
        sent = min(uploaded, source.map { $0.byteCount < 0 ? sourceOffset : $0.byteCount } ?? 0)
        guard (sent, received) != (lastReport.sent, lastReport.received), now - lastReport.time >= Self.progressInterval
        else { return }
        lastReport = (now, sent, received)
        handler(.progress(id, sent: sent, received: received))
    }

    private func stopped(_ failure: WireFailure) -> Bool {
        stop = failure
        return false
    }
}
