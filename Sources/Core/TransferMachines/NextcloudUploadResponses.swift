import Foundation

/// Handles the responses to the steps of the upload.
extension NextcloudUpload {
    mutating func handleUncertainty() {
        switch state {
        case .sendingChunk(let index, _): state = .querying(index)
        case .moving(let index):
            doubt.open()
            state = .queryingPlace(index, wasRefused: false)
        case .choosingName, .doubting, .makingPlace, .makingFolder, .querying, .queryingPlace, .queryingTarget, .readingBack,
            .checking:
            break
        }
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch state {
        case .makingFolder(let index, let level, let goingDown) where head.status == 403:
            return afterFolder(head, index, level: level, goingDown: goingDown, pauses)
        case .readingBack(let index, let question): return afterReadBack(head, end.comparison, index, question, pauses)
        // The server accepted the file. If the server refuses a check, the upload still continues.
        case .checking(let index) where NameDoubt.isRefusedCheck(head): return afterCheck(head, index, pauses)
        case .doubting(let index): return afterDoubt(head, index, pauses)
        case .choosingName, .makingPlace, .makingFolder, .querying, .sendingChunk, .moving, .queryingPlace,
            .queryingTarget, .checking:
            break
        }
        if isOther(head, end) {
            doubt.close()
            state = .choosingName(0)
            return .continue
        }
        // The server refused the name, so the server would refuse the name again even if the chunks were sent again.
        if case .moving = state, ForbiddenCharacters.isRefusal(head, end.body) { return pauses.afterOther(head) }
        if let common = CommonResponse(head, pauses) {
            if common.mayHaveActed { handleUncertainty() }
            return common.outcome
        }
        switch state {
        case .choosingName(let index): return afterName(head, index, pauses)
        case .doubting(let index): return afterDoubt(head, index, pauses)
        case .makingPlace(let index): return afterPlace(head, index, pauses)
        case .makingFolder(let index, let level, let goingDown):
            return afterFolder(head, index, level: level, goingDown: goingDown, pauses)
        case .querying(let index): return afterQuestion(head, end, index, pauses)
        case .sendingChunk(let index, let number): return afterChunk(head, index, number, pauses)
        case .moving(let index): return afterMove(head, index, pauses)
        case .queryingPlace(let index, let wasRefused): return afterPlaceCheck(head, index, wasRefused: wasRefused, pauses)
        case .queryingTarget(let index, let wasRefused): return afterTarget(head, index, wasRefused: wasRefused, pauses)
        case .readingBack(let index, let question): return afterReadBack(head, end.comparison, index, question, pauses)
        case .checking(let index): return afterCheck(head, index, pauses)
        }
    }

    /// Checks whether the server refused the characters of the name. If so, the name changes and the chunks are kept.
    private mutating func isOther(_ head: ResponseHead, _ end: WireEnd) -> Bool {
        switch state {
        case .makingPlace(let index), .sendingChunk(let index, _), .moving(let index):
            forbidden.read(head, end.body, for: name(index))
        case .choosingName, .doubting, .makingFolder, .querying, .queryingPlace, .queryingTarget, .readingBack, .checking: false
        }
    }

    private mutating func afterName(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300 where head.isPage(inPlaceOf: plan): return pauses.page(head)
        case 200..<300
        where (doubt.isOpen || stored.isEmpty) && !search.distrustsHead && head.contentLength == plan.order.byteCount:
            return compareContent(head, index)
        case 200..<300 where !search.distrustsHead:
            guard search.recordTaken() else { return tryName(after: index) }
            state = .doubting(index)
            return .continue
        case 404 where search.refused == index, 409 where search.refused == index, 410 where search.refused == index:
            return .freeNamesAreRefused
        case 200..<300, 404, 405, 409, 410: return useName(index)
        // Nextcloud responds with 400 to HEAD for a forbidden name and does not send the reason. The response to the next request
        // contains the reason.
        case 400 where ForbiddenCharacters.areLikely(in: name(index)): return useName(index)
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterDoubt(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch search.finding(head, of: plan, pauses) {
        case .namesAreTaken: return tryName(after: index)
        case .continues: return .continue
        case .headIsNoAnswer: return useName(0)
        case .waits(let outcome):
            state = .doubting(0)
            return outcome
        case .startsOver:
            state = .choosingName(0)
            return .continue
        }
    }

    private mutating func useName(_ index: Int) -> UploadOutcome {
        // If an earlier name was taken, the chunks are already on the server.
        state = stored.isEmpty ? .makingPlace(index) : .querying(index)
        return .continue
    }

    private mutating func tryName(after index: Int) -> UploadOutcome {
        guard index < RemoteName.maximumIndex else { return .everyNameIsTaken }
        doubt.close()
        state = .choosingName(index + 1)
        return .continue
    }

    /// Handles a MOVE that the server refused with 412. After several refused names, HEAD is sent again for the last refused
    /// name.
    private mutating func afterRefusedName(_ index: Int) -> UploadOutcome {
        guard search.recordRefusal(of: index) else { return tryName(after: index) }
        state = .choosingName(index)
        return .continue
    }

    private mutating func afterPlace(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            creations += 1
            stored = []
            return continueWork(index)
        // The folder exists. An earlier process made the folder, or this request arrived at the server twice.
        case 405:
            state = .querying(index)
            return .continue
        case 404, 409:
            guard let folderLevel else {
                return .fail(head, -1100, "The server has no folder for chunked uploads at this address.")
            }
            state = .makingFolder(index, level: folderLevel, goingDown: false)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterFolder(
        _ head: ResponseHead, _ index: Int, level: Int, goingDown: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        // Another upload may have made the folder just before. The next request shows whether the folder exists.
        case 200..<300, 405, 403:
            guard let address, level < address.segments.count else {
                guard creations < UploadPlace.maximumCreations else {
                    return .fail(head, -1100, "The server has no folder for chunked uploads at this address.")
                }
                creations += 1
                state = stored.isEmpty ? .makingPlace(index) : .moving(index)
                return .continue
            }
            state = .makingFolder(index, level: level + 1, goingDown: true)
            return .continue
        case 404, 409:
            guard !goingDown, let files = filesLevel, level > files + 3 else {
                return .fail(head, -1100, CommonResponse.noFolderMade)
            }
            state = .makingFolder(index, level: level - 1, goingDown: false)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterQuestion(
        _ head: ResponseHead, _ end: WireEnd, _ index: Int, _ pauses: Pauses
    ) -> UploadOutcome {
        if [404, 410].contains(head.status) { return startOver(head, index, pauses) }
        guard (200..<300).contains(head.status) else { return pauses.afterOther(head) }
        guard let answer = ResponseXML.read(end.body), answer.name == "multistatus" else {
            return pauses.retry(head, "The server does not report which parts of the file were received.")
        }
        var sizes: [Int: Int64] = [:]
        for response in answer.all("response") {
            guard let number = (response["href"]?.text.split(separator: "/").last).flatMap({ Int($0) }),
                let size = response.first("getcontentlength").flatMap({ Int64($0.text) })
            else { continue }
            sizes[number] = size
        }
        stored = parts.whole(sizes)
        return continueWork(index)
    }

    private mutating func continueWork(_ index: Int) -> UploadOutcome {
        let missing = (1...parts.count).first { !stored.contains($0) }
        state = missing.map { .sendingChunk(index, $0) } ?? .moving(index)
        return .continue
    }

    private mutating func startOver(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        guard creations < UploadPlace.maximumCreations else {
            return .fail(head, -1011, "\(UploadPlace.thrownAway) This happened \(creations) times.")
        }
        stored = []
        state = .makingPlace(index)
        return pauses.retry(head, UploadPlace.thrownAway)
    }

    private mutating func afterChunk(_ head: ResponseHead, _ index: Int, _ number: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            stored.insert(number)
            return continueWork(index)
        case 404, 409, 410: return startOver(head, index, pauses)
        default:
            handleUncertainty()
            return pauses.afterOther(head)
        }
    }

    private mutating func afterMove(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 201, 204, 200:
            doubt.open()
            state = .checking(index)
            return .continue
        case 412:
            // The status 412 has two possible meanings. The name is taken, or this MOVE request arrived at the server twice and
            // the server carried out the first MOVE.
            state = .queryingPlace(index, wasRefused: true)
            return .continue
        case 409:
            guard let folderLevel else {
                return .fail(head, -1100, CommonResponse.noFolderMade)
            }
            state = .makingFolder(index, level: folderLevel, goingDown: false)
            return .continue
        case 400:
            guard creations < UploadPlace.maximumCreations else { return pauses.afterOther(head) }
            creations += 1
            state = .querying(index)
            return pauses.retry(head, "The server could not combine the chunks.")
        case 404, 410:
            doubt.open()
            state = .queryingTarget(index, wasRefused: false)
            return pauses.retry(head, UploadPlace.thrownAway)
        // A part of the operation failed, for example because the file is locked, or the server continues after the response.
        case 202, 207:
            handleUncertainty()
            return pauses.retry(head)
        default:
            handleUncertainty()
            return pauses.afterOther(head)
        }
    }

    private mutating func afterPlaceCheck(
        _ head: ResponseHead, _ index: Int, wasRefused: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            // An earlier MOVE may have made the file, and the chunks may have been sent after that MOVE.
            if wasRefused, !doubt.isOpen { return afterRefusedName(index) }
            state = wasRefused ? .queryingTarget(index, wasRefused: true) : .moving(index)
            return .continue
        case 404, 410:
            // The chunks do not exist any more. Possibly a MOVE succeeded, because a successful MOVE removes the chunks.
            doubt.open()
            state = .queryingTarget(index, wasRefused: false)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    /// Handles the check of the final name if the chunks do not exist any more or a proxy hides them. At the previous check, the
    /// name was free. Another file may have the name if the MOVE was not carried out. So the file is read back even if the server
    /// shows no length.
    private mutating func afterTarget(
        _ head: ResponseHead, _ index: Int, wasRefused: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        case 200..<300 where !search.distrustsHead:
            if head.isPage(inPlaceOf: plan) { return pauses.page(head) }
            let length = head["Content-Encoding"] == nil ? head.contentLength : nil
            guard let length, length != plan.order.byteCount else { return compareContent(head, index) }
            return doubt.shouldCheckAgain() ? pauses.retry(head, NameDoubt.kept(length, of: plan)) : tryName(after: index)
        case 200..<300, 404, 405, 409, 410, 501:
            // Another program in front of the server may have sent 405 or 501.
            if head.status >= 400, doubt.shouldCheckAgain() { return pauses.retry(head, NameDoubt.notShown) }
            if wasRefused { return afterRefusedName(index) }
            state = .querying(index)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func compareContent(_ head: ResponseHead, _ index: Int) -> UploadOutcome {
        let isMeasured = head["Content-Encoding"] == nil && head.contentLength == plan.order.byteCount
        if plan.order.byteCount == 0 { return finish(index, isMeasured ? .length : .answer) }
        switch NameDoubt.hasOurDigest(head, plan) {
        case true?: return finish(index, .digest)
        case false?: return tryName(after: index)
        case nil:
            state = .readingBack(index, ReadBack(plan.order.byteCount, wasSent: doubt.isOpen, isMeasured: isMeasured))
            return .continue
        }
    }

    private mutating func afterReadBack(
        _ head: ResponseHead, _ comparison: BodyComparison?, _ index: Int, _ question: ReadBack, _ pauses: Pauses
    ) -> UploadOutcome {
        let lengthIsProof = doubt.isOpen && question.isMeasured
        switch doubt.verdict(question, head, comparison, of: plan, lengthIsProof: lengthIsProof, pauses) {
        case .ours(let found): return finish(index, found)
        case .another: return tryName(after: index)
        case .next(let next):
            state = .readingBack(index, next)
            return .continue
        case .changed(let outcome):
            state = doubt.isOpen ? .queryingTarget(index, wasRefused: true) : .choosingName(index)
            return outcome
        case .again(let outcome): return outcome
        }
    }

    private mutating func afterCheck(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch doubt.confirmation(head, of: plan, isTrusted: !search.distrustsHead, pauses) {
        case .stored(isMeasured: true):
            if let checksum, let kept = head["OC-Checksum"], kept.uppercased().hasPrefix("SHA256:"),
                kept.caseInsensitiveCompare(checksum) != .orderedSame
            {
                return .fail(head, -1011, "The server stored different bytes: the SHA-256 differs.")
            }
            // An equal checksum proves only the length, because the server may return the checksum that it received.
            return finish(index, .length)
        case .stored, .hidden: return finish(index, .answer)
        case .again(let outcome): return outcome
        case .otherLength(let length):
            let next = doubt.recordTruncation() ? tryName(after: index) : nil
            return NameDoubt.afterCut(length, head, of: plan, next: next, pauses)
        case .missing:
            state = .querying(index)
            return pauses.retry(head, NameDoubt.notShown)
        case .other: return pauses.afterOther(head)
        }
    }

    private mutating func finish(_ index: Int, _ proof: UploadProof) -> UploadOutcome {
        self.proof = proof
        return .finished(remoteURL: address?.publicFile(name(index)) ?? plan.collectionURL)
    }
}
