import Foundation

/// The states of one download over any number of attempts. The machine decides which bytes are requested, how a response is
/// handled, and what follows after the end of an attempt. A complete file always consists of bytes from a single version of the
/// server's file.
///
/// The caller calls `begin`, `received` and `ended` in this order. `received` is not called if no response arrives. After
/// `.retry` and `.restart`, the caller starts again with `begin`.
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
        /// The server sent a part that was not requested. The next attempt may receive a correct response to the same request.
        case unaskedPart
        /// All bytes seem to be on the disk. The next attempt requests the last byte again to confirm this.
        case checkLastByte
        case tooLarge
        /// The response contains no file.
        case noFile
        /// The response is a page that may come from a captive portal. The stored bytes are kept.
        case portal
        /// The end of the response cannot be determined, because its length header is invalid.
        case brokenLength
    }

    private let request: TransferRequest
    private let policy: RetryPolicy
    private var state: State = .idle

    /// The state that the caller has to commit. The state changes in `received` (before a byte is written) and in `ended`.
    package private(set) var partial: PartialFile?
    /// Reports whether this attempt uses the stored bytes.
    package private(set) var report: ResumeReport = .fresh

    /// - Parameter partial: The committed state. The number `durableBytes` of this state must be the number of bytes on the disk.
    package init(request: TransferRequest, partial: PartialFile?, policy: RetryPolicy = .standard) {
        self.request = request
        self.partial = partial
        self.policy = policy
    }

    /// Forgets the stored bytes, because the disk does not contain these bytes any more. The next attempt requests the complete
    /// file.
    package mutating func forgetPartial() { partial = nil }

    /// Returns the request of the next attempt.
    package mutating func begin() -> WireRequest {
        var wire = WireRequest(
            method: request.method, url: request.url, headers: request.headers, idleTimeout: request.idleTimeout,
            maximumBodyBytes: request.maximumBodyBytes, rateLimit: request.rateLimit)
        wire.leastRate = min(request.leastRate, request.rateLimit.map { $0 / 2 } ?? .max)
        if !request.names(anyOf: ["accept-encoding"]) {
            // A compressed body has another length and another validator than the file. A download of a compressed body could
            // therefore not be resumed.
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
    /// - Parameter now: The date at which the response headers arrived. If the server sends no `Date`, `Last-Modified` is
    ///   compared with this date.
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
                // The request did not ask for a 304 response. Also, a 304 response does not describe the stored bytes.
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
    ///   - durableBytes: The number of bytes of the file that were synced to the disk. After a complete response, this is the
    ///     number of all bytes.
    ///   - attemptsWithoutProgress: The number of attempts after the last attempt that received a byte.
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
            // If the server announced a length, the file is complete when it has this length. An error that libcurl reports at
            // the end is ignored in this case.
            let isWhole = total.map { durableBytes == $0 } ?? (end.failure == nil)
            if isWhole { return .finish(head: head, resumedFrom: from > 0 ? from : nil) }
            if let total, durableBytes > total {
                partial = nil
                let trouble = TransferTrouble(.badAnswer("the response has more bytes than announced"))
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
    /// Returns the digests that the complete file must have before the caller carries out `.finish`. A response that is not
    /// stored as a file needs no digest.
    package func requiredDigests(of head: ResponseHead) -> [RequiredDigest] {
        guard request.method == "GET", head.status == 200 || head.status == 206 else { return [] }
        // The server announces the digest of the bytes that it sends. The digest of the decoded bytes is different.
        let announced = isDecoded(head) ? nil : RequiredDigest.announced(in: head)
        return [request.expectedSHA256.flatMap(RequiredDigest.init(askedSHA256:)), announced].compactMap { $0 }
    }

    /// Returns whether a decoder changed the received bytes. The number of sent bytes is then unknown, and no validator applies
    /// to the received bytes.
    private func isDecoded(_ head: ResponseHead) -> Bool {
        request.decodesContent && head.contentCoding != nil
    }

    /// Handles a digest that does not match. If two connections sent the bytes, either connection may have damaged its bytes, so
    /// the download starts again. If one connection sent all bytes, another attempt would receive the same bytes, so the download
    /// fails.
    ///
    /// - Parameter found: The hexadecimal digest of the file on the disk.
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
        // A server or gateway may send 500, 502 or 504 after it carried out a POST. The app then has to handle the status.
        return request.isIdempotent || [408, 429, 503].contains(status)
    }

    /// Returns whether a response may come from a captive portal. Over http, a captive portal responds in place of the server. A
    /// page is suspected in these cases:
    ///
    /// - A part of the file is already stored, and this part is not a page.
    /// - The page comes from another host, and the name of the requested file is not the name of a page.
    /// - The page would replace a user's file whose name is not the name of a page.
    private func mayBeOfAPortal(_ head: ResponseHead) -> Bool {
        guard policy.suspicionDelay != nil, request.isResumable, head.isPage, (200..<300).contains(head.status),
            let asked = URL(string: request.url), asked.scheme?.lowercased() == "http"
        else { return false }
        if let partial, partial.durableBytes > 0 { return partial.isPage == false }
        let answering = URL(string: head.url)
        if answering?.scheme?.lowercased() == "http", answering?.host?.lowercased() != asked.host?.lowercased() {
            return FileEnding.isOfAFile(asked.lastPathComponent) || request.fileName.map(FileEnding.isOfAFile) == true
        }
        // The response is from the host, or from a portal in place of the host. A server that labels a file as a page by mistake
        // usually sends a validator. Programs that generate texts often label these texts as pages.
        return head["ETag"] == nil && head["Last-Modified"] == nil && request.fileName.map(FileEnding.isOfAFileButText) == true
    }

    private mutating func refuse(_ head: ResponseHead, _ refusal: Refusal) -> BodyDisposition {
        state = .refused(head, refusal)
        return .discard
    }

    private mutating func startOver(_ head: ResponseHead, _ reason: ResumeReport.Reason) -> BodyDisposition {
        report = .startedOver(reason)
        return refuse(head, .startOver("The download must start over, because \(reason.rawValue)."))
    }

    private mutating func acceptWholeResponse(_ head: ResponseHead, now: Date?) -> BodyDisposition {
        if head.hasBrokenLength { return refuse(head, .brokenLength) }
        // The status 202 means that the server still prepares the file (RFC 9110 §15.3.3).
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

    /// Accepts a 206 response only if all headers describe the bytes after the stored bytes, from the same version of the file.
    private mutating func judgePart(_ head: ResponseHead, from: Int64) -> BodyDisposition {
        guard var held = partial, let validator = held.validator else { return startOver(head, .noValidator) }
        guard head["Content-Type"]?.lowercased().hasPrefix("multipart/") != true,
            case .part(let first, let last, let total)? = head["Content-Range"].flatMap(ContentRange.init),
            first == from, head.announcedLength.map({ $0 == last - first + 1 }) ?? true
        else { return startOver(head, .badPart) }
        // The validator belongs to the URL whose response contained it. Another URL may use an equal validator for other bytes.
        guard held.belongs(to: head.url) else { return startOver(head, .otherAddress) }
        guard validator.matches(head) else { return startOver(head, .changed) }
        // Some servers compress a response while they send it, and do not change the validator. Compressed bytes and plain bytes
        // must not be combined in one file.
        guard head.contentCoding == held.coding else { return startOver(head, .badPart) }
        if let total, let known = held.totalBytes, total != known { return startOver(head, .changed) }
        // If the total length is unknown, the end of the file cannot be distinguished from the end of a part.
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
            // The next request asks for the complete file instead of a part, so the first restart needs no pause.
            let trouble = TransferTrouble(head: head, now: now, policy: policy, message: why)
            return .restart(after: attempts == 0 ? 0 : pause(attempts, jitter), trouble)
        case .unaskedPart:
            let trouble = TransferTrouble(
                head: head, now: now, policy: policy, message: "The server sent a part of the file that was not requested.")
            return .retry(after: pause(attempts, jitter), trouble)
        case .checkLastByte:
            let trouble = TransferTrouble(head: head, now: now, policy: policy, message: "The download may be complete already.")
            return .retry(after: 0, trouble)
        case .tooLarge:
            return .fail(TransferTrouble(.bodyTooLarge))
        case .brokenLength:
            return .retry(after: pause(attempts, jitter), TransferTrouble(.badAnswer("the Content-Length is not valid")))
        case .portal:
            let message = head.status == 511 ? CommonResponse.logIn : CommonResponse.page
            var trouble = TransferTrouble(head: head, now: now, policy: policy, message: message)
            (trouble.code, trouble.suspicion) = (-1010, .portal)
            return .retry(after: policy.suspicionPause(trouble, jitter: jitter) ?? policy.cap, trouble)
        case .noFile:
            let trouble = TransferTrouble(head: head, now: now, policy: policy)
            // The server had the file earlier, so this response may come from a proxy while the server restarts.
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
            // A captive portal redirects each request without the portal's cookie, so a portal may be the cause of endless
            // redirects.
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
