import Foundation

/// A test that shows whether a bucket supports `If-None-Match: *`. The upload runs this test before it sends the first photo to
/// the bucket.
///
/// A bucket that ignores the condition replaces an existing object and responds with 200. So the response to a photo does not
/// show whether the bucket supports the condition. A HEAD before the PUT is not sufficient, because another computer can store a
/// photo with the same name between the two requests.
///
/// The test uses an empty object under a name that only this upload has. The test sends a PUT with the condition, an equal PUT,
/// and a DELETE. The response to the second PUT is the result. The result is stored for the bucket
/// (``ServerKnowledge/lacksConditions``). The first PUT also contains the condition, because the policy of a bucket can require
/// the condition.
///
/// If the bucket does not support conditions, the name of each photo contains a part of the photo's digest. No other photo then
/// has this name.
extension S3Upload {
    enum ProbeStep {
        /// The test sends the empty object by PUT.
        case create
        /// The test sends the empty object by PUT a second time.
        case again
        /// The test removes the empty object by DELETE. The result is stored only after the DELETE, so that a crash before the
        /// DELETE leaves no object.
        case remove(lacksConditions: Bool?)
    }

    var probeAddress: String { address?.file(RemoteName.temporary(token: plan.order.token)) ?? plan.collectionURL }

    /// The remark about a bucket that does not support conditions.
    var remark: String? {
        guard isMarked, knowledge.lacksConditions == true else { return nil }
        return
            "the bucket ignores If-None-Match, so a part of the photo's digest was added to the name. "
            + "No other photo is overwritten"
    }

    mutating func afterProbe(_ head: ResponseHead, _ step: ProbeStep, for index: Int, _ pauses: Pauses) -> UploadOutcome {
        var found: Bool?
        switch (step, head.status) {
        // If the DELETE fails, the empty object stays in the bucket. A bucket contains at most one such object.
        case (.remove(let lacksConditions), _):
            hasProbed = true
            knowledge.lacksConditions = lacksConditions
            return begin(index)
        // The server may also refuse the first PUT with 412, because an earlier PUT succeeded and its response was lost.
        case (.create, 412), (.again, 412): found = false
        case (.create, 200..<300):
            state = .probing(index, .again)
            return .continue
        // A captive portal responds to every request with 200, but without an ETag. S3 sends an ETag. The tag is checked because
        // the test server moto also labels its empty response as HTML.
        case (.again, 200..<300): found = head.mayBeOfAPortal && head["ETag"] == nil ? nil : true
        // Some credentials only permit the writing of photos. The photo is then sent without a result of the test.
        case (.create, 403), (.again, 403): break
        case (.create, _), (.again, _): if let common = CommonResponse(head, pauses)?.outcome { return common }
        }
        state = .probing(index, .remove(lacksConditions: found))
        return .continue
    }

    /// Handles a response with 501, which means that the server does not support the condition.
    mutating func afterRefusedCondition() {
        if case .probing(let index, _) = state {
            state = .probing(index, .remove(lacksConditions: true))
            return
        }
        knowledge.lacksConditions = true
        switch state {
        // The parts on the server belong to a single object key, so the object key is not changed.
        case .completing(let index): state = .queryingAgain(index)
        case .sendingWhole(let index): state = .querying(index, isTaken: false)
        case .querying, .doubting, .probing, .creating, .listing, .sendingPart, .queryingAgain, .aborting, .confirming,
            .readingBack:
            break
        }
    }
}
