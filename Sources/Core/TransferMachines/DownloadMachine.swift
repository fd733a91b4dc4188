import Foundation

/// One download's life over any number of attempts: which bytes to ask for, what to do with an answer, what follows
/// an end. The result is one version of the file, byte for byte, or no result.
///
/// `begin` → (`received`) → `ended`, and again from `begin` on `.retry` and `.restart`.
package struct DownloadMachine: Equatable, Sendable {
    private enum State: Equatable, Sendable {
        case idle
        case asked(from: Int64)
        case taking(ResponseHead, from: Int64, total: Int64?)
        case refused(ResponseHead, Refusal)
    }

    private enum Refusal: Equatable, Sendable {
        case retryableStatus
        case startOver(String)
        /// A part nobody asked for: the same request may be answered properly next time.
        case unaskedPart
        /// All bytes seem to be here; the next attempt proves it with the last one.
        case checkLastByte
        case tooLarge
        /// An answer, but no file.
        case noFile
        /// A page of somebody else, perhaps: the bytes held stay.
        case portal
        /// Nobody can tell where it ends.
        case brokenLength
    }

    private let request: TransferRequest
    private let policy: RetryPolicy
    private var state: State = .idle

    /// What to commit: changes in `received` (before a byte is written) and in `ended`.
    package private(set) var partial: PartialFile?
    /// What became of the bytes held, of this attempt.
    package private(set) var report: ResumeReport = .fresh

    /// - Parameter partial: as committed; its `durableBytes` must be on disk.
    package init(request: TransferRequest, partial: PartialFile?, policy: RetryPolicy = .standard) {
        self.request = request
        self.partial = partial
        self.policy = policy
    }

    /// The bytes that are said to be here are not: the next attempt asks for the whole.
    package mutating func forgetPartial() { partial = nil }

    /// The next attempt's request.
    package mutating func begin() -> WireRequest {
        var wire = WireRequest(
            method: request.method, url: request.url, headers: request.headers, idleTimeout: request.idleTimeout,
            maximumBodyBytes: request.maximumBodyBytes, rateLimit: request.rateLimit)
        wire.leastRate = min(request.leastRate, request.rateLimit.map { $0 / 2 } ?? .max)
        if !request.names(anyOf: ["accept-encoding"]) {
            // A coded body has another length and another validator than the file: it could not be gone on with.
            wire.headers.append(HeaderField("Accept-Encoding", "identity"))
        }
        wire.decodesContent = request.decodesContent
        if request.isResumable, let partial, let validator = partial.validator, let offset = partial.resumeOffset {
            wire.headers.append(HeaderField("Range", "bytes=\(offset)-"))
            wire.headers.append(HeaderField("If-Range", validator.ifRange))
            report = .resumed(at: offset)
            state = .asked(from: offset)
            return wire
        }
        if let partial, partial.durableBytes > 0 {
            report = .startedOver(
                !request.isResumable ? .notResumable : partial.validator == nil ? .noValidator : .badPart)
        } else if case .resumed = report {
            report = .fresh
        }
        state = .asked(from: 0)
        return wire
    }

    /// The final head arrived. Commit `partial` before the first byte is written.
    /// - Parameter now: lets a `Last-Modified` count when the server sends no `Date`.
    package mutating func received(_ head: ResponseHead, now: Date? = nil) -> BodyDisposition {
        guard case .asked(let from) = state else { return .discard }
        if mayRetry(status: head.status) { return refuse(head, .retryableStatus) }
        if mayBeOfAPortal(head) || head.status == 511 && request.isIdempotent && policy.suspicionDelay != nil {
            return refuse(head, .portal)
        }
        if from > 0 {
            switch head.status {
            case 206:
                return judgePart(head, from: from)
            case 416:
                return judgeUnsatisfied(head, from: from)
            case 412:
                return startOver(head, .changed)
            case 304:
                // Nothing we sent asks for a 304; whatever it means, it is not these bytes.
                return startOver(head, .badPart)
            default:
                let same = head.status == 200 && partial?.validator?.matches(head) == true
                report = .startedOver(same ? .rangeIgnored : .changed)
            }
        }
        return takeWhole(head, now: now)
    }

    /// An attempt ended.
    /// - Parameters:
    ///   - durableBytes: bytes of the file now on disk for good; at a whole answer's end, all of them.
    ///   - attemptsWithoutProgress: attempts since the last one that brought a byte.
    ///   - jitter: 0..<1, a random number.
    package mutating func ended(
        _ end: WireEnd, durableBytes: Int64, now: Date, attemptsWithoutProgress: Int, jitter: Double
    ) -> DownloadCommand {
        let ending = state
        state = .idle
        if end.failure == .cancelled { return .fail(TransferTrouble(.cancelled)) }
        switch ending {
        case .idle, .asked:
            return afterFailure(
                end.failure ?? .badAnswer("no headers"), bytesLost: false, attemptsWithoutProgress, jitter)
        case .refused(let head, let refusal):
            return afterRefusal(head, refusal, now: now, attemptsWithoutProgress, jitter)
        case .taking(let head, let from, let total):
            // Where a length was announced it decides, whatever libcurl thought of the end.
            let isWhole = total.map { durableBytes == $0 } ?? (end.failure == nil)
            if isWhole { return .finish(head: head, resumedFrom: from > 0 ? from : nil) }
            if let total, durableBytes > total {
                partial = nil
                let trouble = TransferTrouble(.badAnswer("more bytes than announced"))
                return .restart(after: pause(attemptsWithoutProgress, jitter), trouble)
            }
            partial?.durableBytes = durableBytes
            let bytesLost = durableBytes > 0 && partial?.resumeOffset == nil
            if bytesLost {
                report = .startedOver(request.isResumable ? .noValidator : .notResumable)
            }
            return afterFailure(end.failure ?? .connectionLost, bytesLost: bytesLost, attemptsWithoutProgress, jitter)
        }
    }
}

// MARK: - Proving the whole

extension DownloadMachine {
    /// What must hold of the whole file before `.finish` is carried out. An answer that is no file needs no proof.
    package func requiredDigests(of head: ResponseHead) -> [RequiredDigest] {
        guard request.method == "GET", head.status == 200 || head.status == 206 else { return [] }
        // What the server announces is of the bytes as they are sent.
        let announced = isDecoded(head) ? nil : RequiredDigest.announced(in: head)
        return [request.expectedSHA256.flatMap(RequiredDigest.init(askedSHA256:)), announced].compactMap { $0 }
    }

    /// The bytes that arrive are not those that are sent: nobody knows their number, and no validator is theirs.
    private func isDecoded(_ head: ResponseHead) -> Bool {
        request.decodesContent && head.contentCoding != nil
    }

    /// A required digest did not hold. Bytes of two connections start over: the fault may lie in either. Bytes of one will
    /// be the same again.
    /// - Parameter found: hex, of what is there.
    package mutating func refute(
        _ digest: RequiredDigest, found: String, resumedFrom: Int64?, attemptsWithoutProgress: Int, jitter: Double
    ) -> DownloadCommand {
        let trouble = digest.mismatch(found: found)
        guard resumedFrom != nil else { return .fail(trouble) }
        partial = nil
        report = .startedOver(.damaged)
        return .restart(after: pause(attemptsWithoutProgress, jitter), trouble)
    }
}

// MARK: - Judging a head

extension DownloadMachine {
    private func mayRetry(status: Int) -> Bool {
        guard RetryPolicy.isRetryable(status: status) || request.wantsOnlyFile && RetryPolicy.mayPass(status: status) else {
            return false
        }
        // 500, 502 and 504 may come after a POST was carried out: then the status is the app's business.
        return request.isIdempotent || [408, 429, 503].contains(status)
    }

    /// Over http a network with a log-in page answers in the server's place. An answer that is a page is suspected where
    /// - a part is here already, and that is no page;
    /// - it comes from another host, and the file asked for is by its name no page;
    /// - it would replace a person's file that is by its name no page.
    private func mayBeOfAPortal(_ head: ResponseHead) -> Bool {
        guard policy.suspicionDelay != nil, request.isResumable, head.isPage, (200..<300).contains(head.status),
            let asked = URL(string: request.url), asked.scheme?.lowercased() == "http"
        else { return false }
        if let partial, partial.durableBytes > 0 { return partial.isPage == false }
        let answering = URL(string: head.url)
        if answering?.scheme?.lowercased() == "http", answering?.host?.lowercased() != asked.host?.lowercased() {
            return FileEnding.isOfAFile(asked.lastPathComponent) || request.fileName.map(FileEnding.isOfAFile) == true
        }
        // The host itself, or who answers in its place. Who serves a file as a page by mistake says which version it is; programs that
        // make texts call them pages often.
        return head["ETag"] == nil && head["Last-Modified"] == nil && request.fileName.map(FileEnding.isOfAFileButText) == true
    }

    private mutating func refuse(_ head: ResponseHead, _ refusal: Refusal) -> BodyDisposition {
        state = .refused(head, refusal)
        return .discard
    }

    private mutating func startOver(_ head: ResponseHead, _ reason: ResumeReport.Reason) -> BodyDisposition {
        report = .startedOver(reason)
        return refuse(head, .startOver("The download has to start over: \(reason.rawValue)."))
    }

    private mutating func takeWhole(_ head: ResponseHead, now: Date?) -> BodyDisposition {
        if head.hasBrokenLength { return refuse(head, .brokenLength) }
        // 202: the server prepares the file (RFC 9110 §15.3.3).
        if request.wantsOnlyFile, head.status == 202 { return refuse(head, .retryableStatus) }
        if request.wantsOnlyFile, ![200, 203, 206].contains(head.status) { return refuse(head, .noFile) }
        let hasBody = request.method != "HEAD" && head.status != 204 && head.status != 304
        var total = hasBody ? head.announcedLength : 0
        if request.method == "HEAD" { total = nil }
        if head.status == 206, request.isResumable {
            guard case .part(let first, _, let whole)? = head["Content-Range"].flatMap(ContentRange.init), first == 0,
                let whole
            else { return refuse(head, .unaskedPart) }
            total = whole
        }
        if let total, let maximum = request.maximumBodyBytes, total > maximum { return refuse(head, .tooLarge) }
        if isDecoded(head) { total = nil }
        let isFile = request.isResumable && (head.status == 200 || head.status == 206) && !isDecoded(head)
        partial = PartialFile(
            durableBytes: 0, validator: isFile ? Validator.from(head, receivedAt: now) : nil, totalBytes: total,
            url: head.url, coding: head.contentCoding)
        partial?.isPage = head.isPage
        state = .taking(head, from: 0, total: total)
        return .rewrite
    }

    /// A 206 is taken only if everything about it says: the rest of exactly the bytes held.
    private mutating func judgePart(_ head: ResponseHead, from: Int64) -> BodyDisposition {
        guard var held = partial, let validator = held.validator else { return startOver(head, .noValidator) }
        guard head["Content-Type"]?.lowercased().hasPrefix("multipart/") != true,
            case .part(let first, let last, let total)? = head["Content-Range"].flatMap(ContentRange.init),
            first == from, head.announcedLength.map({ $0 == last - first + 1 }) ?? true
        else { return startOver(head, .badPart) }
        // The validator belongs to the URL that gave it; another one may use the same words for other bytes.
        guard held.belongs(to: head.url) else { return startOver(head, .otherAddress) }
        guard validator.matches(head) else { return startOver(head, .changed) }
        // Servers that code on the fly without changing the validator exist: coded and plain bytes do not go together.
        guard head.contentCoding == held.coding else { return startOver(head, .badPart) }
        if let total, let known = held.totalBytes, total != known { return startOver(head, .changed) }
        // Without any total the end of the file cannot be told from the end of a part.
        guard let whole = total ?? held.totalBytes, last < whole else { return startOver(head, .badPart) }
        if let maximum = request.maximumBodyBytes, whole > maximum { return refuse(head, .tooLarge) }
        held.totalBytes = whole
        partial = held
        state = .taking(head, from: from, total: whole)
        return .append(at: from)
    }

    private mutating func judgeUnsatisfied(_ head: ResponseHead, from: Int64) -> BodyDisposition {
        guard case .unsatisfied(let total)? = head["Content-Range"].flatMap(ContentRange.init),
            let held = partial?.durableBytes, total == held, from == held, total > 1
        else { return startOver(head, .notSatisfiable) }
        partial?.totalBytes = total
        return refuse(head, .checkLastByte)
    }
}

// MARK: - After the end

extension DownloadMachine {
    private func pause(_ attempts: Int, _ jitter: Double) -> Double {
        policy.backoff(attemptsWithoutProgress: attempts, jitter: jitter)
    }

    private mutating func afterRefusal(
        _ head: ResponseHead, _ refusal: Refusal, now: Date, _ attempts: Int, _ jitter: Double
    ) -> DownloadCommand {
        switch refusal {
        case .retryableStatus:
            let trouble = TransferTrouble(head: head, now: now, policy: policy)
            let after = policy.delay(
                retryAfter: trouble.retryAfter, attemptsWithoutProgress: attempts, jitter: jitter)
            return .retry(after: after, trouble)
        case .startOver(let why):
            partial = nil
            // The next request has no range, so the first time there is nothing to wait for.
            let trouble = TransferTrouble(head: head, now: now, policy: policy, message: why)
            return .restart(after: attempts == 0 ? 0 : pause(attempts, jitter), trouble)
        case .unaskedPart:
            let trouble = TransferTrouble(head: head, now: now, policy: policy, message: "The server sent an unasked part.")
            return .retry(after: pause(attempts, jitter), trouble)
        case .checkLastByte:
            let trouble = TransferTrouble(head: head, now: now, policy: policy, message: "Every byte seems to be here.")
            return .retry(after: 0, trouble)
        case .tooLarge:
            return .fail(TransferTrouble(.bodyTooLarge))
        case .brokenLength:
            return .retry(after: pause(attempts, jitter), TransferTrouble(.badAnswer("its Content-Length is no length")))
        case .portal:
            let message = head.status == 511 ? CommonAnswer.logIn : CommonAnswer.page
            var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
            (trouble.code, trouble.suspicion) = (-1010, .portal)
            return .retry(after: policy.suspicionPause(trouble, jitter: jitter) ?? policy.cap, trouble)
        case .noFile:
            let trouble = TransferTrouble(head: head, now: now, policy: policy)
            // The server had the file. A proxy answers for a server that restarts.
            let hadFile = (partial?.durableBytes ?? 0) > 0 && ![401, 407].contains(head.status)
            guard hadFile || (200..<300).contains(head.status), attempts < RetryPolicy.maximumRefusals else {
                return .fail(trouble)
            }
            return .retry(after: pause(attempts, jitter), trouble)
        }
    }

    private mutating func afterFailure(
        _ failure: WireFailure, bytesLost: Bool, _ attempts: Int, _ jitter: Double
    ) -> DownloadCommand {
        var trouble = TransferTrouble(failure)
        if failure == .tooManyRedirects, request.isResumable, request.url.lowercased().hasPrefix("http:") {
            // A captive portal waits for its cookie.
            trouble.suspicion = .portal
        }
        if let pause = policy.suspicionPause(trouble, jitter: jitter) { return .retry(after: pause, trouble) }
        guard failure.isWorthRetrying, request.isIdempotent || !failure.mayHaveActed else { return .fail(trouble) }
        let after =
            trouble.isWaitingForNetwork
            ? policy.networkPause(attemptsWithoutProgress: attempts, jitter: jitter) : pause(attempts, jitter)
        guard bytesLost else { return .retry(after: after, trouble) }
        partial = nil
        return .restart(after: after, trouble)
    }
}
