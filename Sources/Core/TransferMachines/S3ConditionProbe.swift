import Foundation

/// A test whether a bucket supports `If-None-Match: *`. The test is made before the first photo is sent to the bucket.
///
/// A bucket that ignores the condition responds with 200 and replaces an existing object, so the response to a photo does not show
/// this. A HEAD before the PUT is not sufficient, because another computer can store a photo of the same name between the two
/// requests.
///
/// The test uses an empty object under a name that only this upload has: PUT with the condition, the same PUT again, then DELETE.
/// The second response is the result. The result is stored for the bucket (``ServerKnowledge/lacksConditions``). The first PUT also
/// has the condition, because the policy of a bucket can require the condition.
///
/// In a bucket without conditions, the names of photos contain a part of the digest, so that no other photo has the same name.
extension S3Upload {
    enum ProbeStep {
        /// PUT of the empty object.
        case create
        /// PUT of the empty object again.
        case again
        /// DELETE of the empty object. The result is remembered after the DELETE, so that a crash before the DELETE leaves no
        /// object.
        case remove(lacksConditions: Bool?)
    }

    var probeAddress: String { address?.file(RemoteName.temporary(token: plan.order.token)) ?? plan.collectionURL }

    /// The remark about a bucket without conditions.
    var remark: String? {
        guard isMarked, knowledge.lacksConditions == true else { return nil }
        return
            "the bucket ignores If-None-Match, so the name has a part of the photo's digest and no other photo can be overwritten"
    }

    mutating func afterProbe(_ head: ResponseHead, _ step: ProbeStep, for index: Int, _ pauses: Pauses) -> UploadOutcome {
        var found: Bool?
        switch (step, head.status) {
        // If the DELETE fails, the object remains. The object is empty, and each bucket has at most one such object.
        case (.remove(let lacksConditions), _):
            hasProbed = true
            knowledge.lacksConditions = lacksConditions
            return begin(index)
        // The first PUT can also be refused, because an earlier response to it can be lost.
        case (.create, 412), (.again, 412): found = false
        case (.create, 200..<300):
            state = .probing(index, .again)
            return .continue
        // A captive portal responds with 200 to every request. S3 sends a tag, and moto's empty response is also labeled as HTML.
        case (.again, 200..<300): found = head.mayBeOfAPortal && head["ETag"] == nil ? nil : true
        // Some credentials permit only photos to be written. The photo is then sent without the result of the probe.
        case (.create, 403), (.again, 403): break
        case (.create, _), (.again, _): if let common = CommonResponse(head, pauses)?.outcome { return common }
        }
        state = .probing(index, .remove(lacksConditions: found))
        return .continue
    }

    /// Handles a server that does not support the condition (501).
    mutating func afterRefusedCondition() {
        if case .probing(let index, _) = state {
            state = .probing(index, .remove(lacksConditions: true))
            return
        }
        knowledge.lacksConditions = true
        switch state {
        // The parts on the server belong to one object key, so the object key is not changed.
        case .completing(let index): state = .queryingAgain(index)
        case .sendingWhole(let index): state = .querying(index, isTaken: false)
        case .querying, .doubting, .probing, .creating, .listing, .sendingPart, .queryingAgain, .aborting, .confirming,
            .readingBack:
            break
        }
    }
}
