import Foundation

/// The probe whether a bucket heeds `If-None-Match: *`, before the first photo is sent to the bucket.
///
/// A bucket that ignores the condition answers 200 and replaces what is there, so nothing in the response to a photo shows it. HEAD before
/// the PUT leaves a moment in which another computer can store a photo of the same name. The probe is an empty object under a name that only
/// this upload has: PUT with the condition, the same PUT again, DELETE. The second response is the answer, and it is remembered for the bucket
/// (``ServerKnowledge/lacksConditions``). The first PUT has the condition as well, because a bucket's policy can require it.
///
/// Photos in a bucket without conditions get a name with a part of the digest, which no other photo has.
extension S3Upload {
    enum ProbeStep {
        /// PUT the empty object.
        case create
        /// PUT the empty object again.
        case again
        /// DELETE the empty object. The finding is remembered after the DELETE, so that a crash before the DELETE leaves no object.
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
        // An object that stays is empty, and there is one for each bucket.
        case (.remove(let lacksConditions), _):
            hasProbed = true
            knowledge.lacksConditions = lacksConditions
            return begin(index)
        // The first PUT as well, because an earlier response to it can be lost.
        case (.create, 412), (.again, 412): found = false
        case (.create, 200..<300):
            state = .probing(index, .again)
            return .continue
        // A network's log-in page answers 200 to everything. S3 sends a tag, and moto's empty response is called HTML as well.
        case (.again, 200..<300): found = head.mayBeOfAPortal && head["ETag"] == nil ? nil : true
        // A key may be allowed to write photos only. Then the photo is sent without the knowledge.
        case (.create, 403), (.again, 403): break
        case (.create, _), (.again, _): if let common = CommonAnswer(head, pauses)?.outcome { return common }
        }
        state = .probing(index, .remove(lacksConditions: found))
        return .continue
    }

    /// The server refused the condition as unknown (501).
    mutating func afterRefusedCondition() {
        if case .probing(let index, _) = state {
            state = .probing(index, .remove(lacksConditions: true))
            return
        }
        knowledge.lacksConditions = true
        switch state {
        // The parts belong to their key.
        case .completing(let index): state = .lookingAgain(index)
        case .sendingWhole(let index): state = .looking(index, isTaken: false)
        case .looking, .doubting, .probing, .creating, .listing, .sendingPart, .lookingAgain, .aborting, .confirming,
            .readingBack:
            break
        }
    }
}
