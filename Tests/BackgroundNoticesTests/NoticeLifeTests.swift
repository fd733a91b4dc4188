import BackgroundNotices
import Foundation
import Testing

/// Tests of the life of one notification, event by event.
@Suite struct NoticeLifeTests {
    private let now = Date(timeIntervalSince1970: 1_800_000_000)

    private func life(_ phase: NoticeLife.Phase, _ serverID: UInt32? = nil) -> NoticeLife {
        NoticeLife(phase: phase, serverID: serverID, trouble: nil, deliveredAt: nil, endedAt: nil)
    }

    @Test func `a notification is shown and closed`() {
        var notice = NoticeLife()
        #expect(notice.handle(.handedOver) == [])
        #expect(notice.phase == .presenting)
        #expect(notice.handle(.presented(serverID: 7, now: now)) == [])
        #expect((notice.phase, notice.serverID, notice.deliveredAt) == (.delivered, 7, now))
        #expect(notice.wasReported)
        _ = notice.handle(.closed(serverID: 3, now: now))
        #expect(notice.phase == .delivered, "the number belongs to another notification")
        _ = notice.handle(.closed(serverID: 7, now: now))
        #expect((notice.phase, notice.serverID, notice.endedAt) == (.closed, nil, now))
    }

    /// The app has changed the content. The new content may wait, for example for the end of quiet hours, while the old content
    /// is on the screen.
    @Test func `a removed notification leaves the screen`() {
        for phase in [NoticeLife.Phase.pending, .delivered] {
            var notice = life(phase, 7)
            _ = notice.handle(.takenBack(now: now))
            #expect(notice.phase == .withdrawing)
            #expect(notice.handle(.takenOff(now: now)) == [.withdraw(serverID: 7)])
            #expect(notice.phase == .withdrawn)
        }
        var unseen = life(.pending)
        _ = unseen.handle(.takenBack(now: now))
        #expect(unseen.phase == .withdrawn)
    }

    /// The app removed the notification and added it again before the agent's next pass.
    @Test func `a notification that is added again replaces the earlier one`() {
        var notice = life(.delivered, 7)
        _ = notice.handle(.takenBack(now: now))
        _ = notice.handle(.added)
        #expect((notice.phase, notice.serverID) == (.pending, 7))
        _ = notice.handle(.takenBack(now: now))
        _ = notice.handle(.takenOff(now: now))
        _ = notice.handle(.added)
        #expect((notice.phase, notice.serverID) == (.pending, nil), "no part of the notification is on the screen")
    }

    /// The server froze before it had shown the notification, and then the agent exited. If the server shows the notification
    /// later, no agent receives the response, and the next agent removes the notification.
    @Test func `a removed notification that a frozen server may show is withdrawn later`() {
        var notice = life(.presenting)
        _ = notice.handle(.takenBack(now: now))
        #expect(notice.handle(.takenOff(now: now, isAnswerOpen: true)) == [.withdraw(serverID: NoticeLife.unknownNumber)])
        #expect(notice.phase == .withdrawn && notice.mayStand)
        var late = notice
        #expect(late.handle(.presented(serverID: 9, now: now)) == [.withdraw(serverID: 9)])
        #expect(!late.mayStand && late.phase == .withdrawn)
        _ = notice.handle(.agentDied)
        #expect(notice.needsNumber)
        _ = notice.handle(.serverLost(isAnswerOpen: false))
        #expect(!notice.needsNumber)
    }

    /// The server may show the notification although its response has not arrived. The agent, or the next agent, removes this
    /// earlier notification.
    @Test(arguments: [[NoticeLife.Event.added], [.takenBack(now: Date(timeIntervalSince1970: 1_800_000_000)), .added]])
    func `a notification that the server may show is removed although the app added it again`(_ changes: [NoticeLife.Event]) {
        var notice = life(.presenting)
        for change in changes { _ = notice.handle(change) }
        #expect(notice.phase == .pending)
        var answered = notice
        _ = answered.handle(.presented(serverID: 9, now: now))
        #expect((answered.phase, answered.serverID, answered.mayStand) == (.pending, 9, false))
        var refused = notice
        _ = refused.handle(.failed(why: "busy", isAnswerOpen: false))
        _ = refused.handle(.takenBack(now: now))
        #expect(refused.phase == .withdrawn && !refused.mayStand)
        _ = notice.handle(.agentDied)
        _ = notice.handle(.takenBack(now: now))
        #expect(notice.needsNumber)
    }

    @Test func `a notification that the server may show is removed when its time is over`() {
        var notice = life(.presenting)
        _ = notice.handle(.timeIsOver(now: now))
        #expect(notice.phase == .over && notice.mayStand)
        var answered = notice
        #expect(answered.handle(.presented(serverID: 9, now: now)) == [.withdraw(serverID: 9)])
        #expect(answered.phase == .over && !answered.mayStand)
        _ = notice.handle(.agentDied)
        #expect(notice.needsNumber)

        var inherited = life(.presenting)
        _ = inherited.handle(.agentDied)
        _ = inherited.handle(.timeIsOver(now: now))
        #expect(inherited.needsNumber)
    }

    @Test func `a showing that the app does not want keeps the earlier showing`() {
        var notice = life(.delivered, 7)
        _ = notice.handle(.added)
        _ = notice.handle(.notWanted(now: now))
        #expect((notice.phase, notice.serverID) == (.delivered, 7))
        var first = life(.pending)
        _ = first.handle(.notWanted(now: now))
        #expect(first.isWithdrawn)
    }

    @Test func `a response after the removal withdraws the notification`() {
        var notice = life(.presenting)
        _ = notice.handle(.takenBack(now: now))
        #expect(notice.handle(.takenOff(now: now)) == [])
        #expect(notice.handle(.presented(serverID: 9, now: now)) == [.withdraw(serverID: 9)])
    }

    @Test func `a notification waits for an open response`() {
        var notice = life(.presenting)
        _ = notice.handle(.failed(why: "frozen", isAnswerOpen: true))
        #expect((notice.phase, notice.trouble) == (.presenting, "frozen"))
        _ = notice.handle(.answerLost)
        #expect(notice.phase == .pending)
    }

    /// The notification was shown before, so it is shown again without an alert. Until the next server has shown the
    /// notification, it still counts as shown.
    @Test func `the next server shows a notification again without an alert`() {
        var notice = life(.presenting)
        _ = notice.handle(.presented(serverID: 7, now: now))
        _ = notice.handle(.serverLost(isAnswerOpen: false))
        #expect((notice.phase, notice.serverID, notice.endedAt) == (.pending, nil, nil))
        #expect(notice.isShownAgain && notice.wasReported && notice.isStillShown && !notice.isUnreported)
        _ = notice.handle(.handedOver)
        _ = notice.handle(.presented(serverID: 1, now: now + 60))
        #expect((notice.phase, notice.serverID, notice.deliveredAt) == (.delivered, 1, now))
        _ = notice.handle(.added)
        #expect(notice.isUnreported, "a notification that is added again alerts")
        var closed = life(.closed)
        _ = closed.handle(.serverLost(isAnswerOpen: false))
        #expect(closed.phase == .closed)
        var other = life(.presenting)
        _ = other.handle(.serverLost(isAnswerOpen: false))
        #expect(other.phase == .presenting, "the response of the server may still come")
        _ = other.handle(.serverLost(isAnswerOpen: true))
        #expect(other.phase == .pending)
    }

    /// Changed text replaces the shown text without an alert. A closed notification stays closed.
    @Test func `changed text replaces the shown notification without an alert`() {
        var notice = NoticeLife(phase: .delivered, serverID: 7, trouble: nil, deliveredAt: now, endedAt: nil)
        _ = notice.handle(.changed)
        #expect((notice.phase, notice.serverID) == (.pending, 7))
        #expect(notice.isShownAgain && !notice.isUnreported)
        for phase in [NoticeLife.Phase.pending, .presenting, .closed, .withdrawing, .withdrawn] {
            var other = life(phase, phase == .closed ? nil : 7)
            let before = other
            _ = other.handle(.changed)
            #expect(other == before)
        }
    }

    @Test func `a pressed notification leaves the screen`() {
        var notice = life(.delivered, 7)
        #expect(notice.handle(.pressed(serverID: 3, now: now)) == [])
        #expect(notice.phase == .delivered, "the number belongs to another notification")
        #expect(notice.handle(.pressed(serverID: 7, now: now)) == [.withdraw(serverID: 7)])
        #expect((notice.phase, notice.serverID, notice.endedAt) == (.closed, nil, now))
        #expect(notice.handle(.pressed(serverID: 7, now: now)) == [])
    }

    /// The new text waits, for example for the end of quiet hours. The old text is on the screen, and its buttons work.
    @Test func `a shown notification can be closed and pressed while new text waits`() {
        for event in [NoticeLife.Event.closed(serverID: 7, now: now), .pressed(serverID: 7, now: now)] {
            var notice = NoticeLife(phase: .delivered, serverID: 7, trouble: nil, deliveredAt: now, endedAt: nil)
            _ = notice.handle(.changed)
            _ = notice.handle(event)
            #expect((notice.phase, notice.serverID) == (.closed, nil), "\(event)")
            // New content with an alert must still be shown to the user.
            var again = NoticeLife(phase: .delivered, serverID: 7, trouble: nil, deliveredAt: now, endedAt: nil)
            _ = again.handle(.added)
            _ = again.handle(event)
            #expect((again.phase, again.serverID) == (.pending, nil), "\(event)")
            #expect(again.handle(event) == [])
        }
    }

    /// The user presses the notification while the agent shows it again.
    @Test func `a press during another showing closes the notification unless its text is new`() {
        // The server is already showing new text under the same number. The new text stays on the screen.
        var other = NoticeLife(phase: .presenting, serverID: 7, trouble: nil, deliveredAt: nil, endedAt: nil)
        #expect(other.isPressable(as: 7) && other.handle(.pressed(serverID: 7, now: now)) == [])
        #expect(other.phase == .presenting)
        // The server is showing the same text again. The user therefore pressed the notification with this text.
        var same = NoticeLife(phase: .presenting, serverID: 7, trouble: nil, deliveredAt: now, endedAt: nil)
        #expect(same.handle(.pressed(serverID: 7, now: now)) == [.withdraw(serverID: 7)])
        #expect(same.phase == .closed)
        // The notification server ended after the user pressed the notification. The next server already shows the notification.
        for phase in [NoticeLife.Phase.pending, .presenting] {
            var late = NoticeLife(phase: phase, serverID: nil, trouble: nil, deliveredAt: now, endedAt: nil)
            #expect(late.isPressable(as: 7) && late.handle(.pressed(serverID: 7, now: now)) == [])
            #expect(late.phase == .closed)
            #expect(late.handle(.presented(serverID: 2, now: now)) == [.withdraw(serverID: 2)])
        }
        #expect(!life(.pending).isPressable(as: 7) && !life(.closed).isPressable(as: 7))
    }

    /// The agent records that the notification has to be removed, and dies before it sends the request to the server. The next
    /// agent sends this request.
    @Test func `a withdrawal is kept until the server confirms it`() {
        func leaving(_ event: NoticeLife.Event, from phase: NoticeLife.Phase) -> NoticeLife {
            var notice = NoticeLife(phase: phase, serverID: 7, trouble: nil, deliveredAt: now, endedAt: nil)
            _ = notice.handle(event)
            return notice
        }
        let all = [
            leaving(.pressed(serverID: 7, now: now), from: .delivered), leaving(.takenOff(now: now), from: .withdrawing),
            leaving(.timeIsOver(now: now), from: .delivered),
        ]
        for notice in all {
            #expect(notice.leavingID == 7 && notice.serverID == nil)
            for event in [
                NoticeLife.Event.withdrawn(serverID: 7), .closed(serverID: 7, now: now), .serverLost(isAnswerOpen: false),
            ] {
                var heard = notice
                _ = heard.handle(event)
                #expect(heard.leavingID == nil && heard.phase == notice.phase, "\(event)")
            }
            var other = notice
            _ = other.handle(.withdrawn(serverID: 3))
            #expect(other.leavingID == 7)
        }
    }

    @Test func `a notification with lost buttons is shown again in its place`() {
        var notice = life(.delivered, 7)
        _ = notice.handle(.buttonsLost(serverID: 3))
        #expect(notice.phase == .delivered)
        _ = notice.handle(.buttonsLost(serverID: 7))
        #expect((notice.phase, notice.serverID) == (.pending, 7))
        // The notification number is not valid for the next server.
        _ = notice.handle(.serverLost(isAnswerOpen: false))
        #expect((notice.phase, notice.serverID) == (.pending, nil))
    }

    /// The test compares the state with a model of the screen, for events in random order. At the end, a removed notification is
    /// not on the screen. A notification is never on the screen twice.
    @Test(arguments: 0..<200) func `the state matches a model of the screen for random events`(_ seed: UInt64) {
        var dice = Dice(seed)
        var notice = NoticeLife()
        var screen: Set<UInt32> = []
        // The call that waits for the server's response, with the number of the notification that the call replaces. Like the
        // agent, the test makes one call at a time.
        var call: (replacing: UInt32?, isOpen: Bool)?
        var next: UInt32 = 1
        func perform(_ commands: [NoticeLife.Command]) {
            for case .withdraw(let id) in commands { screen.remove(id) }
        }
        func answer() {
            guard let given = call else { return }
            call = nil
            let id = given.replacing.flatMap { screen.contains($0) ? $0 : nil } ?? next
            next += 1
            screen.insert(id)
            perform(notice.handle(.presented(serverID: id, now: now)))
        }
        for _ in 0..<60 {
            switch Int.random(in: 0..<11, using: &dice) {
            case 0: _ = notice.handle(.added)
            case 1: _ = notice.handle(.takenBack(now: now))
            case 2 where call == nil && notice.phase == .pending:
                _ = notice.handle(.handedOver)
                call = (notice.serverID, false)
            case 3: answer()
            case 4 where call == nil: perform(notice.handle(.takenOff(now: now)))
            case 5:
                guard let id = screen.randomElement(using: &dice), call == nil else { continue }
                screen.remove(id)
                _ = notice.handle(.closed(serverID: id, now: now))
            case 7:
                guard let id = screen.randomElement(using: &dice), call == nil else { continue }
                perform(notice.handle(.pressed(serverID: id, now: now)))
            case 8:
                if let id = screen.first { _ = notice.handle(.buttonsLost(serverID: id)) }
            case 9 where call == nil:
                screen = []
                _ = notice.handle(.serverLost(isAnswerOpen: false))
            case 6 where call != nil && screen.isEmpty:
                call = nil
                _ = notice.handle(.failed(why: "refused", isAnswerOpen: false))
            default: continue
            }
            #expect(screen.count <= 1, "two of one")
        }
        answer()
        _ = notice.handle(.takenBack(now: now))
        perform(notice.handle(.takenOff(now: now)))
        #expect(screen.isEmpty)
    }
}

/// Tests of notifications that are in a summary, that the server has removed after a timeout, or whose expiration date has
/// passed.
@Suite struct OtherEndsOfNoticesTests {
    private let now = Date(timeIntervalSince1970: 1_800_000_000)

    private func gathered() -> NoticeLife {
        var notice = NoticeLife()
        _ = notice.handle(.gathered(into: "summary", now: now))
        return notice
    }

    private func delivered() -> NoticeLife {
        NoticeLife(phase: .delivered, serverID: 7, trouble: nil, deliveredAt: now, endedAt: nil)
    }

    @Test func `a notification in a summary counts as shown`() {
        var notice = gathered()
        #expect(notice.wasReported && notice.isStillShown && !notice.isUnreported && notice.summary == "summary")
        _ = notice.handle(.released)
        #expect(notice.isShownAgain && notice.summary == nil, "the notification does not alert again")
        var seen = gathered()
        _ = seen.handle(.summaryLeft(isSeen: true, now: now))
        #expect(seen.phase == .closed && seen.summary == nil)
        var unseen = gathered()
        _ = unseen.handle(.summaryLeft(isSeen: false, now: now))
        #expect(unseen.phase == .expired && unseen.isUnanswered)
        var again = gathered()
        _ = again.handle(.added)
        #expect(again.isUnreported && again.summary == nil)
        var taken = gathered()
        _ = taken.handle(.takenBack(now: now))
        #expect(taken.phase == .withdrawn && taken.summary == nil)
    }

    @Test func `only a notification that was never shown is added to a summary`() {
        for phase in [NoticeLife.Phase.presenting, .delivered, .closed, .withdrawing, .withdrawn] {
            var notice = NoticeLife(phase: phase, serverID: nil, trouble: nil, deliveredAt: nil, endedAt: nil)
            _ = notice.handle(.gathered(into: "summary", now: now))
            #expect(notice.phase == phase)
        }
        var changed = NoticeLife(phase: .pending, serverID: 7, trouble: nil, deliveredAt: nil, endedAt: nil)
        _ = changed.handle(.gathered(into: "summary", now: now))
        #expect(changed.phase == .pending, "the pending notification replaces the notification on the screen")
    }

    @Test func `an expired notification is unanswered and not shown again`() {
        var notice = delivered()
        _ = notice.handle(.expired(serverID: 3, now: now))
        #expect(notice.phase == .delivered, "the number belongs to another notification")
        _ = notice.handle(.expired(serverID: 7, now: now))
        #expect(notice.phase == .expired && notice.isUnanswered && !notice.isStillShown && notice.wasReported)
        _ = notice.handle(.serverLost(isAnswerOpen: false))
        #expect(notice.phase == .expired)
        _ = notice.handle(.added)
        #expect(notice.isUnreported)
    }

    @Test func `a hidden notification waits for the end of do-not-disturb`() {
        var notice = NoticeLife()
        _ = notice.handle(.handedOver)
        _ = notice.handle(.presented(serverID: 7, now: now, hiddenBy: "do not disturb is on"))
        #expect(notice.isHidden && notice.isStillShown && !notice.isUnreported && notice.deliveredAt == nil)
        var ended = notice
        _ = ended.handle(.doNotDisturbEnded)
        #expect(ended.isUnreported && ended.serverID == 7 && ended.trouble == nil)
        var over = notice
        #expect(over.handle(.timeIsOver(now: now)) == [.withdraw(serverID: 7)] && !over.wasReported)
        var seen = delivered()
        _ = seen.handle(.doNotDisturbEnded)
        #expect(seen == delivered())
    }

    @Test func `a notification leaves the screen when its time is over`() {
        var notice = delivered()
        #expect(notice.handle(.timeIsOver(now: now)) == [.withdraw(serverID: 7)])
        #expect(notice.phase == .over && notice.wasReported)
        // The clock was a day ahead.
        _ = notice.handle(.timeIsNotOver)
        #expect(notice.isShownAgain)
        var untold = NoticeLife()
        _ = untold.handle(.timeIsOver(now: now))
        #expect(untold.phase == .over && !untold.wasReported)
        var late = NoticeLife()
        _ = late.handle(.handedOver)
        #expect(late.handle(.timeIsOver(now: now)) == [])
        #expect(
            late.handle(.presented(serverID: 9, now: now)) == [.withdraw(serverID: 9)], "the response of the server arrived late")
        for phase in [NoticeLife.Phase.closed, .expired, .withdrawing, .withdrawn] {
            var ended = NoticeLife(phase: phase, serverID: nil, trouble: nil, deliveredAt: now, endedAt: now)
            #expect(ended.handle(.timeIsOver(now: now)) == [] && ended.phase == phase)
        }
    }
}
