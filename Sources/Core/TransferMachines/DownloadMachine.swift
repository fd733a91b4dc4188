import Foundation

/// The states of one download over any number of attempts. The machine decides which bytes are requested, how a response is
/// handled, and what follows the end of an attempt. A complete file always consists of the bytes of one version of the server's
/// file.
///
/// The order of the calls is `begin` → (`received`) → `ended`. After `.retry` and `.restart`, the order starts again with `begin`.
package struct DownloadMachine: Equatable, Sendable {
    private enum State: Equatable, Sendable {
        case idle
        case requested(from: Int64)
        case taking(ResponseHead, from: Int64, total: Int64?)
        case refused(ResponseHead, Refusal)
    }

    private enum Refusal: Equatable, Sendable {
        case retryableStatus
        case startOver(String)
        /// A part that was not requested. The same request may get a correct response next time.
        case unaskedPart
        /// All bytes seem to be on the disk. The next attempt proves this by requesting the last byte again.
        case checkLastByte
        case tooLarge
        /// A response without a file.
        case noFile
        /// A page that may come from a captive portal. The stored bytes are kept.
        case portal
        /// A response whose end cannot be determined.
        case brokenLength
    }

    private let request: TransferRequest
    private let policy: RetryPolicy
    private var state: State = .idle

    /// The state to commit. The state changes in `received` (before a byte is written) and in `ended`.
    package private(set) var partial: PartialFile?
    /// Whether the stored bytes are used in this attempt.
    package private(set) var report: ResumeReport = .fresh

    /// - Parameter partial: The committed state. The `durableBytes` of this state must be on the disk.
    package init(request: TransferRequest, partial: PartialFile?, policy: RetryPolicy = .standard) {
        self.request = request
        self.partial = partial
        self.policy = policy
    }

    /// Discards the record of stored bytes, because the bytes are missing. The next attempt requests the complete file.
    package mutating func forgetPartial() { partial = nil }

    /// Returns the next attempt's request.
    package mutating func begin() -> WireRequest {
        var wire = WireRequest(
            method: request.method, url: request.url, headers: request.headers, idleTimeout: request.idleTimeout,
            maximumBodyBytes: request.maximumBodyBytes, rateLimit: request.rateLimit)
        wire.leastRate = min(request.leastRate, request.rateLimit.map { $0 / 2 } ?? .max)
        if !request.names(anyOf: ["accept-encoding"]) {
            // A compressed body has another length and another validator than the file. So a download of a compressed body could
            // not be resumed.
            wire.headers.append(HeaderField("Accept-Encoding", "identity"))
        }
        wire.decodesContent = request.decodesContent
        if request.isResumable, let partial, let validator = partial.validator, let offset = partial.resumeOffset {
            wire.headers.append(HeaderField("Range", "bytes=\(offset)-"))
            wire.headers.append(HeaderField("If-Range", validator.ifRange))
            report = .resumed(at: offset)
            state = .requested(from: offset)
            return wire
        }
        if let partial, partial.durableBytes > 0 {
            report = .startedOver(
                !request.isResumable ? .notResumable : partial.validator == nil ? .noValidator : .badPart)
        } else if case .resumed = report {
            report = .fresh
        }
        state = .requested(from: 0)
        return wire
    }

    /// Handles the final response headers. The caller has to commit `partial` before the first byte is written.
    /// - Parameter now: The date of receipt. A `Last-Modified` is compared with this date if the server sends no `Date`.
    package mutating func received(_ head: ResponseHead, now: Date? = nil) -> BodyDisposition {
        guard case .requested(let from) = state else { return .discard }
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
                // No header of the request asks for a 304. In any case, a 304 does not describe these bytes.
                return startOver(head, .badPart)
            default:
                let same = head.status == 200 && partial?.validator?.matches(head) == true
                report = .startedOver(same ? .rangeIgnored : .changed)
            }
        }
        return acceptWholeResponse(head, now: now)
    }

    /// Handles the end of an attempt.
    ///
    /// - Parameters:
    ///   - durableBytes: The number of bytes of the file that were synced to the disk. At the end of a complete response, these are
    ///     all bytes.
    ///   - attemptsWithoutProgress: The number of attempts since the last attempt that received a byte.
    ///   - jitter: A random number in 0..<1.
    package mutating func ended(
        _ end: WireEnd, durableBytes: Int64, now: Date, attemptsWithoutProgress: Int, jitter: Double
    ) -> DownloadCommand {
        let ending = state
        state = .idle
        if end.failure == .cancelled { return .fail(TransferTrouble(.cancelled)) }
        switch ending {
        case .idle, .requested:
            return afterFailure(
                end.failure ?? .badAnswer("no headers"), bytesLost: false, attemptsWithoutProgress, jitter)
        case .refused(let head, let refusal):
            return afterRefusal(head, refusal, now: now, attemptsWithoutProgress, jitter)
        case .taking(let head, let from, let total):
            // If the server announced a length, the file is complete when it has this length, whatever libcurl reported about the
            // end.
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

// MARK: - Proof of the complete file

extension DownloadMachine {
    /// Returns the digests that the complete file must have before `.finish` is carried out. A response that is not stored as a
    /// file needs no digest.
    package func requiredDigests(of head: ResponseHead) -> [RequiredDigest] {
        guard request.method == "GET", head.status == 200 || head.status == 206 else { return [] }
        // The digest that the server announces is the digest of the bytes as they are sent.
        let announced = isDecoded(head) ? nil : RequiredDigest.announced(in: head)
        return [request.expectedSHA256.flatMap(RequiredDigest.init(askedSHA256:)), announced].compactMap { $0 }
    }

    /// Returns whether the received bytes differ from the sent bytes. The number of sent bytes is then unknown, and no validator
    /// applies to the received bytes.
    private func isDecoded(_ head: ResponseHead) -> Bool {
        request.decodesContent && head.contentCoding != nil
    }

    /// Handles a digest that did not match. If the bytes arrived in two connections, the download starts again, because either
    /// connection may have damaged them. If all bytes arrived in a single connection, another attempt would receive the same bytes.
    ///
    /// - Parameter found: The digest of the file on the disk, in hexadecimal.
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

// MARK: - Response headers

extension DownloadMachine {
    private func mayRetry(status: Int) -> Bool {
        guard RetryPolicy.isRetryable(status: status) || request.wantsOnlyFile && RetryPolicy.mayPass(status: status) else {
            return false
        }
        // 500, 502 and 504 may arrive after a POST was carried out. The app then has to handle the status.
        return request.isIdempotent || [408, 429, 503].contains(status)
    }

    /// Returns whether a response may come from a captive portal, which responds in place of the server over http. A page is
    /// suspected if
    ///
    /// - a part of the file is already stored, and that part is not a page;
    /// - the page comes from another host, and the requested file is not a page by its name;
    /// - the page would replace a user's file that is not a page by its name.
    private func mayBeOfAPortal(_ head: ResponseHead) -> Bool {
        guard policy.suspicionDelay != nil, request.isResumable, head.isPage, (200..<300).contains(head.status),
            let asked = URL(string: request.url), asked.scheme?.lowercased() == "http"
        else { return false }
        if let partial, partial.durableBytes > 0 { return partial.isPage == false }
        let answering = URL(string: head.url)
        if answering?.scheme?.lowercased() == "http", answering?.host?.lowercased() != asked.host?.lowercased() {
            return FileEnding.isOfAFile(asked.lastPathComponent) || request.fileName.map(FileEnding.isOfAFile) == true
        }
        // The response is from the host itself, or from a portal in place of the host. A server that mislabels a file as a page
        // usually sends a validator. Programs that generate texts often label them as pages.
        return head["ETag"] == nil && head["Last-Modified"] == nil && request.fileName.map(FileEnding.isOfAFileButText) == true
    }

    private mutating func refuse(_ head: ResponseHead, _ refusal: Refusal) -> BodyDisposition {
        state = .refused(head, refusal)
        return .discard
    }

    private mutating func startOver(_ head: ResponseHead, _ reason: ResumeReport.Reason) -> BodyDisposition {
        report = .startedOver(reason)
        return refuse(head, .startOver("The download must start over: \(reason.rawValue)."))
    }

    private mutating func acceptWholeResponse(_ head: ResponseHead, now: Date?) -> BodyDisposition {
        if head.hasBrokenLength { return refuse(head, .brokenLength) }
        // 202 means that the server still prepares the file (RFC 9110 §15.3.3).
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

    /// Accepts a 206 response only if all headers describe the bytes that follow the stored bytes of the same version.
    private mutating func judgePart(_ head: ResponseHead, from: Int64) -> BodyDisposition {
        guard var held = partial, let validator = held.validator else { return startOver(head, .noValidator) }
        guard head["Content-Type"]?.lowercased().hasPrefix("multipart/") != true,
            case .part(let first, let last, let total)? = head["Content-Range"].flatMap(ContentRange.init),
            first == from, head.announcedLength.map({ $0 == last - first + 1 }) ?? true
        else { return startOver(head, .badPart) }
        // The validator belongs to the URL that sent the validator. Another URL may use the same value for other bytes.
        guard held.belongs(to: head.url) else { return startOver(head, .otherAddress) }
        guard validator.matches(head) else { return startOver(head, .changed) }
        // Some servers compress a response while they send it, without a new validator. Compressed bytes and plain bytes must not
        // be combined.
        guard head.contentCoding == held.coding else { return startOver(head, .badPart) }
        if let total, let known = held.totalBytes, total != known { return startOver(head, .changed) }
        // Without a total, the end of the file cannot be distinguished from the end of a part.
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
            // The next request has no range, so no pause is necessary before the first restart.
            let trouble = TransferTrouble(head: head, now: now, policy: policy, message: why)
            return .restart(after: attempts == 0 ? 0 : pause(attempts, jitter), trouble)
        case .unaskedPart:
            let trouble = TransferTrouble(
                head: head, now: now, policy: policy, message: "The server sent a part that was not requested.")
            return .retry(after: pause(attempts, jitter), trouble)
        case .checkLastByte:
            let trouble = TransferTrouble(head: head, now: now, policy: policy, message: "The download may be complete already.")
            return .retry(after: 0, trouble)
        case .tooLarge:
            return .fail(TransferTrouble(.bodyTooLarge))
        case .brokenLength:
            return .retry(after: pause(attempts, jitter), TransferTrouble(.badAnswer("its Content-Length is not valid")))
        case .portal:
            let message = head.status == 511 ? CommonResponse.logIn : CommonResponse.page
            var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
            (trouble.code, trouble.suspicion) = (-1010, .portal)
            return .retry(after: policy.suspicionPause(trouble, jitter: jitter) ?? policy.cap, trouble)
        case .noFile:
            let trouble = TransferTrouble(head: head, now: now, policy: policy)
            // The server had the file earlier. A proxy may respond instead of a server that restarts.
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
            // A captive portal may cause endless redirects, because the portal redirects each request without the portal's cookie.
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
