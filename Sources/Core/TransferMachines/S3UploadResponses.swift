import Foundation

/// Handles the responses to the steps of the upload, and S3's error codes.
extension S3Upload {
    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        // The removal of the test object must not delay a photo, so every response to the removal has the same effect.
        if case .probing(let index, .remove(let found)) = state {
            return afterProbe(head, .remove(lacksConditions: found), for: index, pauses)
        }
        if case .readingBack(let index, let question, let isTaken) = state {
            return afterReadBack(head, end.comparison, index, question, isTaken: isTaken, pauses)
        }
        if head.status >= 300, let outcome = beforeAll(head, S3Error(end.body), pauses) { return outcome }
        // A success means that the signature was valid for the bucket's region.
        if (200..<300).contains(head.status) { rememberRegion() }
        switch state {
        case .querying(let index, let isTaken): return afterKeyCheck(head, index, isTaken: isTaken, pauses)
        case .doubting(let index): return afterDoubt(head, index, pauses)
        case .probing(let index, let step): return afterProbe(head, step, for: index, pauses)
        case .confirming(let index): return afterConfirmation(head, index, pauses)
        case .sendingWhole(let index): return afterWhole(head, end, index, pauses)
        case .creating(let index): return afterCreation(head, end, index, pauses)
        case .listing(let index, let marker): return afterList(head, end, index, marker, pauses)
        case .sendingPart(let index, let number): return afterPart(head, end, index, number, pauses)
        case .queryingAgain(let index): return afterFinalCheck(head, index, pauses)
        case .completing(let index): return afterCompletion(head, end, index, pauses)
        case .aborting(let index):
            // The result of the removal is ignored, because the stored parts do not affect the photo.
            (uploadID, tags) = (nil, [:])
            guard doubt.isOpen || search.recordRefusal(of: index) else { return tryName(after: index) }
            state = .querying(index, isTaken: true)
            return .continue
        case .readingBack(let index, let question, let isTaken):
            return afterReadBack(head, end.comparison, index, question, isTaken: isTaken, pauses)
        }
    }

    /// Handles errors that concern the bucket or the signature, and that can occur after every request.
    private mutating func beforeAll(_ head: ResponseHead, _ error: S3Error?, _ pauses: Pauses) -> UploadOutcome? {
        if [301, 307, 308, 400].contains(head.status), let region = head["x-amz-bucket-region"] ?? error?.region,
            Self.isRegion(region), region != access.region, moves < 3
        {
            moves += 1
            access.region = region
            return .continue
        }
        // The response to HEAD contains no reason. A wrong clock of this computer is one of the possible reasons.
        if head.status == 403, error == nil, adoptServerClock(of: head, from: Self.allowedSkew, pauses) { return .continue }
        switch error?.code {
        case "RequestTimeTooSkewed" where adoptServerClock(of: head, from: 60, pauses): return .continue
        case "NotImplemented" where knowledge.lacksConditions != true && hasCondition:
            afterRefusedCondition()
            return .continue
        case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthorizationHeaderMalformed":
            return .fail(head, -1013, "Not permitted, because the server requires other credentials (\(error?.code ?? "")).")
        case "NoSuchBucket": return .fail(head, -1100, "The bucket does not exist on the server.")
        case "EntityTooLarge": return .fail(head, -1103, "The file is too large for the server.")
        default:
            guard let pause = error?.pause(head, pauses) else { return nil }
            handleUncertainty()
            return pause
        }
    }

    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool {
        S3Error(end.body).map(\.isAboutBytes) ?? head.hasNoMeaningForUploads
    }

    /// Returns whether the text is a region name. The text is checked, because every later request contains this text in a
    /// header.
    private static func isRegion(_ text: String) -> Bool {
        (1...32).contains(text.utf8.count)
            && text.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
    }

    /// `true` if the last request contained a condition, which the server may not support.
    private var hasCondition: Bool {
        switch state {
        case .sendingWhole, .completing, .probing: true
        case .querying, .doubting, .creating, .listing, .sendingPart, .queryingAgain, .aborting, .confirming, .readingBack: false
        }
    }

    private func other(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        if let common = CommonResponse(head, pauses)?.outcome { return common }
        let words = S3Error(end.body).map { ": \($0.code)\($0.message.isEmpty ? "" : " (\($0.message))")" } ?? "."
        return .fail(head, -1011, "The server responded with status \(head.status)\(words)")
    }

    // MARK: Steps

    private mutating func afterKeyCheck(_ answer: ResponseHead, _ index: Int, isTaken: Bool, _ pauses: Pauses) -> UploadOutcome {
        let isByGet = checksByGet
        checksByGet = false
        let head = isByGet ? answer.ofCompleteObject : answer
        switch head.status {
        case 200..<300 where head.isPage(inPlaceOf: plan): return pauses.page(head)
        // The digest in the metadata is the digest that the sender reported. A check reads the object.
        case 200..<300 where isOurs(head):
            return plan.order.onlyChecks == true ? compareContent(index, isTaken: isTaken) : finish(index, .length)
        case 200..<300 where search.distrustsHead: return isMarked ? begin(index) : beginWithMarkedName()
        // The server possibly does not store metadata, so the content of the object is compared.
        case 200..<300 where head["x-amz-meta-sha256"] == nil && head.contentLength == plan.order.byteCount:
            return compareContent(index, isTaken: isTaken)
        case 200..<300 where mayBeOurs(head) && doubt.shouldCheckAgain():
            return pauses.retry(head, NameDoubt.kept(head.contentLength ?? 0, of: plan))
        case 200..<300 where mayBeOurs(head) && doubt.isPartial:
            return .fail(head, -1011, NameDoubt.kept(head.contentLength ?? 0, of: plan))
        case 200..<300 where !isMarked && knowledge.lacksConditions == true: return beginWithMarkedName()
        case 200..<300:
            guard search.recordTaken() else { return tryName(after: index) }
            state = .doubting(index)
            return .continue
        case 404 where (isTaken || isInParts) && doubt.shouldCheckAgain(): return pauses.retry(head, NameDoubt.notShown)
        case 404 where isTaken: return search.recordRefusal(of: index) ? .freeNamesAreRefused : tryName(after: index)
        case 404: return begin(index)
        case 400, 403, 405, 501: return afterRefusedCheck(head, index, isTaken: isTaken, isByGet: isByGet, pauses)
        default: return pauses.afterOther(head)
        }
    }

    /// Handles a refused check of a key. If the object was sent to this key, the check is repeated, because the object would be
    /// stored twice under another key. The response to a GET contains the reason, for example an expired session token.
    private mutating func afterRefusedCheck(
        _ head: ResponseHead, _ index: Int, isTaken: Bool, isByGet: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        // If the name contains the digest, a second object with the same content replaces the first object.
        if isMarked { return begin(index) }
        // Some credentials only permit writing, so they cannot check objects. Without the right to list objects, the server
        // refuses even the check of a free name.
        guard doubt.isOpen || isTaken && !isByGet else { return beginWithMarkedName() }
        if isByGet { return pauses.retry(head, "The server does not show whether it has the file (\(head.status)).") }
        checksByGet = true
        return .continue
    }

    private mutating func afterDoubt(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch search.finding(head, of: plan, pauses) {
        case .namesAreTaken: return tryName(after: index)
        case .continues: return .continue
        case .headIsNoAnswer: return beginWithMarkedName()
        case .waits(let outcome):
            state = .doubting(0)
            return outcome
        case .startsOver:
            state = .querying(0, isTaken: false)
            return .continue
        }
    }

    /// Uses the server's clock for later signatures, if the time in the last signature differs from the server's clock by more
    /// than `seconds`. The clock of this computer may be set during an upload.
    private mutating func adoptServerClock(of head: ResponseHead, from seconds: Double, _ pauses: Pauses) -> Bool {
        guard let skew = head["Date"].flatMap({ HTTPDate.parse($0) })?.timeIntervalSince(pauses.now),
            abs(skew - clockSkew) > seconds
        else { return false }
        clockSkew = skew
        return true
    }

    /// The number of seconds by which the time in a signature may differ from the server's clock. Amazon refuses a signature if
    /// the difference is a quarter of an hour.
    private static let allowedSkew = 600.0

    /// Returns whether the metadata of the object contains the digest of this upload's file.
    private func isOurs(_ head: ResponseHead) -> Bool {
        guard let digest = plan.sha256 else { return false }
        return head["x-amz-meta-sha256"]?.lowercased() == digest && head.contentLength == plan.order.byteCount
    }

    /// Returns whether an earlier request of this upload may have made the object. If the object's metadata contains a digest,
    /// the digest must be equal to the digest of this upload's file.
    private func mayBeOurs(_ head: ResponseHead) -> Bool {
        doubt.isOpen && head.contentLength != nil && (head["x-amz-meta-sha256"] ?? plan.sha256)?.lowercased() == plan.sha256
    }

    private mutating func afterConfirmation(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        if (200..<300).contains(head.status) {
            if search.distrustsHead, isOurs(head) { return finish(index, .length) }
            // If the server does not support conditions, another upload may have replaced the object.
            if !search.distrustsHead, let theirs = head["x-amz-meta-sha256"], let ours = plan.sha256, theirs.lowercased() != ours
            {
                return tryName(after: index)
            }
        }
        switch doubt.confirmation(head, of: plan, isTrusted: !search.distrustsHead, pauses) {
        case .stored(let isMeasured): return finish(index, isMeasured ? .length : .answer)
        case .hidden: return finish(index, .answer)
        case .again(let outcome): return outcome
        case .otherLength(let length):
            let next = doubt.recordTruncation() ? tryName(after: index) : nil
            return NameDoubt.afterCut(length, head, of: plan, next: next, pauses)
        case .missing:
            // The list of the parts is requested first, because the parts may still exist.
            state = uploadID == nil ? .querying(index, isTaken: false) : .listing(index, marker: 0)
            return pauses.retry(head, NameDoubt.notShown)
        case .other: return pauses.afterOther(head)
        }
    }

    /// Compares the content of the object. A marked name (with a part of the digest) needs no comparison, because no other
    /// computer uses this name.
    private mutating func compareContent(_ index: Int, isTaken: Bool) -> UploadOutcome {
        if isMarked || plan.order.byteCount == 0 { return finish(index, .length) }
        state = .readingBack(index, ReadBack(plan.order.byteCount, wasSent: doubt.isOpen), isTaken: isTaken)
        return .continue
    }

    private mutating func afterReadBack(
        _ head: ResponseHead, _ comparison: BodyComparison?, _ index: Int, _ question: ReadBack, isTaken: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch doubt.verdict(question, head, comparison, of: plan, lengthIsProof: doubt.isOpen, pauses) {
        case .ours(let found): return finish(index, found)
        case .another: return tryName(after: index)
        case .next(let next):
            state = .readingBack(index, next, isTaken: isTaken)
            return .continue
        case .changed(let outcome):
            state = .querying(index, isTaken: isTaken)
            return outcome
        case .again(let outcome): return outcome
        }
    }

    /// Handles the check directly before the completion, if the server does not support conditions.
    private mutating func afterFinalCheck(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            if isOurs(head) { return finish(index, .length) }
            state = search.distrustsHead ? .completing(index) : .aborting(index)
            return .continue
        // The upload continues, because the response to the next request contains the reason.
        case 400, 403, 404, 405, 501:
            state = .completing(index)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterWhole(
        _ head: ResponseHead, _ end: WireEnd, _ index: Int, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            doubt.open()
            state = .confirming(index)
            return .continue
        case 412:
            // If the response to the first PUT was lost, this upload made the existing object.
            state = .querying(index, isTaken: true)
            return .continue
        default:
            if head.status >= 500 { handleUncertainty() }
            return other(head, end, pauses)
        }
    }

    private mutating func afterCreation(
        _ head: ResponseHead, _ end: WireEnd, _ index: Int, _ pauses: Pauses
    ) -> UploadOutcome {
        guard (200..<300).contains(head.status) else { return other(head, end, pauses) }
        guard let made = ResponseXML.read(end.body)?["UploadId"]?.text, !made.isEmpty else {
            if end.failure != nil { return pauses.retry(head, "The server's response was cut off.") }
            return .fail(head, -1011, "The server started an upload in parts, but sent no UploadId.")
        }
        guard creations < UploadPlace.maximumCreations else {
            return .fail(head, -1011, "The server has discarded the parts of the file \(creations) times.")
        }
        creations += 1
        (uploadID, tags) = (made, [:])
        return continueWork(index)
    }

    private mutating func afterList(
        _ head: ResponseHead, _ end: WireEnd, _ index: Int, _ marker: Int, _ pauses: Pauses
    ) -> UploadOutcome {
        // The server does not have the parts any more, or the credentials do not permit a list of the parts. All parts are then
        // sent again.
        if [403, 404, 405, 501].contains(head.status) { return startOver(index) }
        guard (200..<300).contains(head.status) else { return other(head, end, pauses) }
        // Two names of the XML element are accepted, because the test server moto uses the second name.
        guard let answer = ResponseXML.read(end.body), ["ListPartsResult", "ListPartsResponse"].contains(answer.name) else {
            return pauses.retry(head, "The server does not report which parts of the file were received.")
        }
        for part in answer.all("Part") {
            guard let number = part["PartNumber"].flatMap({ Int($0.text) }), let size = part["Size"].flatMap({ Int64($0.text) }),
                let tag = part["ETag"]?.text, !tag.isEmpty, parts.whole([number: size]).contains(number)
            else { continue }
            tags[number] = tag
        }
        if answer["IsTruncated"]?.text.lowercased() == "true",
            let next = answer["NextPartNumberMarker"].flatMap({ Int($0.text) }), next > marker, next < parts.count
        {
            state = .listing(index, marker: next)
            return .continue
        }
        return continueWork(index)
    }

    /// Starts over after the upload in parts was removed, or may have been completed. A check of the object shows whether the
    /// upload was completed.
    private mutating func startOver(_ index: Int) -> UploadOutcome {
        (uploadID, tags) = (nil, [:])
        state = .querying(index, isTaken: false)
        return .continue
    }

    private mutating func afterPart(
        _ head: ResponseHead, _ end: WireEnd, _ index: Int, _ number: Int, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            guard let tag = head["ETag"], !tag.isEmpty else {
                handleUncertainty()
                return pauses.retry(head, "The server accepted a part of the file, but sent no ETag.")
            }
            tags[number] = tag
            return continueWork(index)
        case 404: return startOver(index)
        default:
            handleUncertainty()
            return other(head, end, pauses)
        }
    }

    private mutating func afterCompletion(
        _ head: ResponseHead, _ end: WireEnd, _ index: Int, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            // S3 may respond with a status of success and an error in the body.
            if let error = S3Error(end.body) {
                handleUncertainty()
                return pauses.retry(head, "The server could not combine the parts: \(error.code).")
            }
            if end.failure != nil {
                handleUncertainty()
                return pauses.retry(head, "The server's response was cut off.")
            }
            doubt.open()
            state = .confirming(index)
            return .continue
        case 404: return startOver(index)
        case 412:
            state = .aborting(index)
            return .continue
        case 400 where ["InvalidPart", "InvalidPartOrder"].contains(S3Error(end.body)?.code):
            handleUncertainty()
            return pauses.retry(head, "The server has lost a part of the file.")
        default:
            handleUncertainty()
            return other(head, end, pauses)
        }
    }
}
