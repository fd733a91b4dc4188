import Foundation
import Testing

@testable import TransferMachines

@Suite struct TransferLifeTests {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)
    private let now = Self.start
    private let trouble = TransferLife.Reason(code: -1005, message: "The connection broke.")

    static func facts(
        isUpload: Bool = false, mayBeRepeated: Bool = true, mayBeCut: Bool = true, hasBody: Bool = false,
        hasResumablePart: Bool = false,
        hasAnswer: Bool = false
    ) -> TransferLife.Facts {
        TransferLife.Facts(
            isUpload: isUpload, mayBeRepeated: mayBeRepeated, mayBeCut: mayBeCut, hasBody: hasBody,
            hasResumablePart: hasResumablePart,
            hasAnswer: hasAnswer, newToken: "token")
    }

    /// If the server sends no response to a form, the agent cannot check the upload. A running upload by form is therefore
    /// completed, like a POST of the app.
    @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
    func `a running transfer that may not be interrupted continues during a pause`(_ mayBeRepeated: Bool, _ mayBeCut: Bool) {
        var life = Self.begun()
        let facts = Self.facts(isUpload: true, mayBeRepeated: mayBeRepeated, mayBeCut: mayBeCut, hasBody: true)
        _ = life.handle(.paused, facts)
        #expect((life == Self.begun()) == !(mayBeRepeated && mayBeCut))
        // If all work is ended, a transfer whose request may be repeated is interrupted. An interrupted transfer waits until
        // the user resumes it.
        _ = life.handle(.shelved, facts)
        #expect((life == Self.begun()) == !mayBeRepeated)
        _ = life.handle(.stopped, facts)
        #expect(life.phase == (mayBeRepeated ? .held(by: .person, next: .queued) : .running))
    }

    static func begun(adopted: Bool = true) -> TransferLife {
        TransferLife(
            phase: .running, wish: adopted ? .adopted : .awaited, kept: .nothing, isProven: false, reason: nil, idleSince: start,
            triedSince: start)
    }

    private func after(_ events: TransferLife.Event..., facts: TransferLife.Facts = facts()) -> (
        TransferLife, [TransferLife.Command]
    ) {
        var life = Self.begun()
        var commands: [TransferLife.Command] = []
        for event in events { commands = life.handle(event, facts) }
        return (life, commands)
    }

    // MARK: Holding

    @Test func `a transfer that the app suspended continues in its previous state`() {
        let due = now + 60
        let (life, _) = after(.waits(until: due, trouble), .suspended, .released(notBefore: nil, now: now + 5))
        #expect(life.phase == .waiting(until: due))
        #expect(life.idleSince == now + 5)
    }

    @Test func `a transfer that the user resumes is queued at once`() {
        let (paused, _) = after(.waits(until: now + 60, trouble), .paused)
        #expect(paused.phase == .held(by: .person, next: .queued))
        #expect(after(.waits(until: now + 60, trouble), .paused, .resumed(now: now)).0.phase == .queued)
    }

    @Test func `a task that resumes does not end a pause by the user, and a resume by the user ends both`() {
        #expect(after(.suspended, .paused).0.phase == .held(by: [.app, .person], next: .queued))
        #expect(after(.suspended, .paused, .released(notBefore: nil, now: now)).0.phase == .held(by: .person, next: .queued))
        #expect(after(.suspended, .paused, .unpaused(now: now)).0.phase == .held(by: .app, next: .queued))
        #expect(after(.suspended, .paused, .resumed(now: now)).0.phase == .queued)
    }

    /// The attempt of a suspended transfer failed. When the transfer is resumed, it waits for its next attempt.
    @Test func `a suspended transfer whose attempt failed waits after its release`() {
        let (life, _) = after(.suspended, .waits(until: now + 9, trouble))
        #expect(life.phase == .held(by: .app, next: .waiting(until: now + 9)))
    }

    @Test func `an event without meaning changes nothing`() {
        for event: TransferLife.Event in [.resumed(now: now + 1), .retried(now: now + 1), .unpaused(now: now + 1), .began] {
            #expect(after(event).0 == Self.begun())
        }
        let (ended, _) = after(.ended(.completed, nil, now: now))
        for event: TransferLife.Event in [
            .paused, .suspended, .resumed(now: now), .retried(now: now), .cancelled(message: nil, now: now), .stopped,
        ] {
            var life = ended
            #expect(life.handle(event, Self.facts()) == [])
            #expect(life == ended)
        }
    }

    // MARK: A POST

    @Test func `a request that may not be repeated is not queued again`() {
        let post = Self.facts(mayBeRepeated: false)
        // The agent exits. The next agent decides about the request.
        #expect(after(.stopped, facts: post).0.phase == .running)
        let (life, commands) = after(.stopped, .agentDied(now: now), facts: post)
        #expect(life.phase == .ended(.failed, at: now) && life.reason?.code == -1005)
        #expect(commands.contains(.reportEnd))
        #expect(after(.stopped, .agentDied(now: now)).0.phase == .queued)
    }

    /// The response is complete, but its file does not have the final name yet. The file gets this name without another
    /// request.
    @Test func `a complete response to a POST is finished after the agent died`() {
        let (life, _) = after(.proven, .agentDied(now: now), facts: Self.facts(mayBeRepeated: false))
        #expect(life.phase == .queued && life.isProven)
    }

    /// If the death of an agent interrupted an upload, the user can retry it, like other failed uploads.
    @Test func `an interrupted upload is kept for another try`() {
        let upload = Self.facts(isUpload: true, mayBeRepeated: false, hasBody: true)
        let (life, commands) = after(.agentDied(now: now), facts: upload)
        #expect(life.kept == .body(until: .distantFuture), "the original may be gone")
        #expect(!commands.contains(.removeBody))
        #expect(after(.agentDied(now: now), .retried(now: now), facts: upload).0.phase == .queued)
        let (cancelled, told) = after(.agentDied(now: now), .cancelled(message: nil, now: now), facts: upload)
        #expect(cancelled.phase == .ended(.cancelled, at: now) && cancelled.kept == .nothing && told.isEmpty)
    }

    /// If the user pauses and resumes the transfer, its request is not interrupted. If a complete response was lost, it is not
    /// requested again.
    @Test func `a request that may not be repeated is not interrupted by a pause`() {
        let post = Self.facts(mayBeRepeated: false)
        #expect(after(.paused, facts: post).0.phase == .running)
        #expect(after(.suspended, .resumed(now: now), facts: post).0.phase == .running)
        let (life, commands) = after(.proven, .agentDied(now: now), .disproven(now: now), facts: post)
        #expect(life.phase == .ended(.failed, at: now) && life.reason?.code == -1005 && commands.contains(.reportEnd))
    }

    /// While a file gets its final name, no attempt is running. The resume data must be reported immediately, because no later
    /// report would follow.
    @Test func `resume data is reported at once while a file gets its name`() {
        #expect(after(.proven, .cancelledKeepingPart(token: "t", now: now)).1 == [.reportEnd])
    }

    // MARK: Ends

    @Test func `a failed transfer keeps only the files that are still useful`() {
        let week = now + 7 * 86_400
        let failed = TransferLife.Event.ended(.failed, trouble, now: now)
        #expect(after(failed, facts: Self.facts(hasResumablePart: true)).0.kept == .part(token: "token", until: week))
        #expect(after(failed).0.kept == .nothing && after(failed).1.contains(.removeFiles))
        #expect(after(.proven, failed).0.kept == .part(token: nil, until: week))
        #expect(!after(.proven, failed).1.contains(.removeFiles))
        // The server's response to an upload is delivered, for every status.
        #expect(!after(failed, facts: Self.facts(isUpload: true, hasBody: true, hasAnswer: true)).1.contains(.removeFiles))
        // The body of a download belongs only to this one request.
        #expect(after(failed, facts: Self.facts(hasBody: true)).1.contains(.removeBody))
    }

    @Test func `resume data is reported when the agent has stopped the attempt`() {
        let week = now + 7 * 86_400
        let (leaving, first) = after(.cancelledKeepingPart(token: "t", now: now))
        #expect(leaving.kept == .leaving(token: "t", until: week) && first == [])
        let (left, second) = after(.cancelledKeepingPart(token: "t", now: now), .stopped)
        #expect(left.kept == .part(token: "t", until: week) && second == [.reportEnd])
        // If no attempt is running, the resume data is reported immediately.
        #expect(after(.waits(until: week, trouble), .cancelledKeepingPart(token: "t", now: now)).1 == [.reportEnd])
    }

    @Test func `a transfer that no app wants is collected`() {
        var life = Self.begun(adopted: false)
        _ = life.handle(.left(until: now + 5), Self.facts())
        #expect(life.wish == .graceful(until: now + 5))
        let commands = life.handle(.collected(now: now + 5), Self.facts(hasBody: true))
        #expect(life.phase == .ended(.cancelled, at: now + 5) && life.wish == .unwanted)
        #expect(Set(commands.map { "\($0)" }) == ["removeFiles", "removeBody", "forgetSecrets"])
    }

    @Test func `a transfer that is handed over after its end is reported`() {
        var life = Self.begun(adopted: false)
        #expect(life.handle(.ended(.completed, nil, now: now), Self.facts()) == [.forgetSecrets])
        #expect(life.handle(.adopted(suspended: false), Self.facts()) == [.reportEnd])
    }

    // MARK: Generated sequences

    /// Sends random events in a random order.
    @Test func `every transfer keeps the rules for any sequence of events`() {
        for seed in 0..<2_000 {
            var dice = Dice(seed)
            let facts = Self.facts(
                isUpload: .random(using: &dice), mayBeRepeated: .random(using: &dice), hasBody: .random(using: &dice),
                hasResumablePart: .random(using: &dice), hasAnswer: .random(using: &dice))
            var life = Self.begun(adopted: .random(using: &dice))
            for step in 0..<40 {
                let before = life
                let event = TransferLife.Event.any(at: now + Double(step), isUpload: facts.isUpload, &dice)
                let commands = life.handle(event, facts)
                check(before, event, life, commands, facts, "seed \(seed), step \(step): \(event)")
            }
        }
    }

    private func check(
        _ before: TransferLife, _ event: TransferLife.Event, _ life: TransferLife, _ commands: [TransferLife.Command],
        _ facts: TransferLife.Facts, _ place: String
    ) {
        if !facts.mayBeRepeated, Self.wasOrIsSent(before), Self.willBeSent(life) {
            // Only two events can cause another request: an error after which the server cannot have acted, and a retry by the
            // user.
            var mayBe = false
            switch event {
            case .waits, .retried: mayBe = true
            default: break
            }
            #expect(mayBe, "\(place): sent twice")
        }
        if before.hasEnded, !life.hasEnded {
            var isRetried = false
            if case .retried = event, case .ended(.failed, _) = before.phase { isRetried = true }
            #expect(isRetried, "\(place): it came back")
        }
        if before.hasEnded, life.hasEnded, case .ended = event {
        } else if case .cancelled = event, case .ended(.failed, _) = before.phase, case .body = before.kept {
            #expect(life.kept == .nothing && commands.isEmpty, "\(place): a cancelled transfer keeps no file for a retry")
        } else if before.hasEnded, life.hasEnded {
            #expect(before.phase == life.phase, "\(place): it ended twice")
        }
        if commands.contains(.reportEnd) {
            #expect(life.hasEnded && life.wish == .adopted, "\(place): an end without interest is reported")
        }
        if life.kept != .nothing { #expect(life.hasEnded, "\(place): a running transfer keeps a file for a retry") }
        switch life.phase {
        case .running: #expect(!life.isProven, "\(place): proven, and running")
        case .finishing: #expect(life.isProven, "\(place): the transfer is finishing without a proof")
        case .held(by: let holders, next: let next):
            #expect(!holders.isEmpty, "\(place): nobody holds it")
            if holders.contains(.person) { #expect(next == .queued, "\(place): paused, and next \(next)") }
        case .queued, .waiting, .ended: break
        }
        if before.wish == .adopted { #expect(life.wish == .adopted, "\(place): an adopted transfer is not adopted any more") }
    }
}

extension TransferLifeTests {
    /// Returns `true` if the server may have acted on the request of the transfer.
    private static func wasOrIsSent(_ life: TransferLife) -> Bool {
        switch life.phase {
        case .running, .finishing, .held(by: _, next: .running): true
        case .held, .queued, .waiting, .ended: life.isProven
        }
    }

    /// Returns `true` if an attempt will begin.
    private static func willBeSent(_ life: TransferLife) -> Bool {
        switch life.phase {
        case .queued, .waiting, .held(by: _, next: .queued), .held(by: _, next: .waiting): !life.isProven
        case .held, .running, .finishing, .ended: false
        }
    }
}

extension TransferLife.Event {
    /// Returns a random event at the given time.
    static func any(at now: Date, isUpload: Bool, _ dice: inout Dice) -> TransferLife.Event {
        let reason = TransferLife.Reason(code: -1005, message: "trouble")
        let later = now + Double(Int.random(in: 0..<90, using: &dice))
        var events: [TransferLife.Event] = [
            .awaited(now: now), .left(until: later), .adopted(suspended: .random(using: &dice)), .suspended,
            .released(notBefore: .random(using: &dice) ? later : nil, now: now), .paused, .shelved, .unpaused(now: now),
            .resumed(now: now),
            .retried(now: now), .scheduled(for: .random(using: &dice) ? later : nil, now: now),
            .cancelled(message: "by hand", now: now), .resumeDataMade(hasPart: .random(using: &dice), now: now), .began, .stopped,
            .progressed(now: now), .waits(until: later, reason), .proven, .disproven(now: now), .ended(.completed, nil, now: now),
            .ended(.failed, reason, now: now), .agentDied(now: now), .collected(now: now), .partTaken,
        ]
        if !isUpload { events.append(.cancelledKeepingPart(token: "t", now: now)) }
        return events.randomElement(using: &dice)!
    }
}
