import Foundation

/// One notification's life: where it is, and under which number the server knows it.
///
/// Every rule about these is here, and nowhere else. Pure: an event comes in, what else has to be done comes out. The ledger keeps the life in
/// the columns of a row; the app, the commands and the agent tell the ledger what happened, and none of them writes a state.
package struct NoticeLife: Equatable, Sendable {
    /// How far it is. The raw values stand in the ledger.
    package enum Phase: String, Codable, Sendable {
        /// Waiting for its time, or for a server.
        case pending
        /// Handed to the presenter, which has not answered.
        case presenting
        case delivered
        /// Told as one of many by a summary, which stands there in its place.
        case gathered
        /// It left the screen by itself, as servers take off what nobody presses: perhaps nobody has seen it.
        case expired
        /// Gone from the screen by the person.
        case closed
        /// The time that it is about is over; the agent took it off the screen.
        case over
        /// Taken back; the agent has still to take it off the screen.
        case withdrawing
        case withdrawn
    }

    package enum Event: Equatable, Sendable {
        /// The app adds it, new or once more. What stands on the screen is replaced, and alerts.
        case added
        /// The app says something else in its place, of which nobody has to be alerted.
        case changed
        /// The presenter was asked to show it.
        case handedOver
        /// `hiddenBy`: why the server does not draw it; `nil` if the server draws it.
        case presented(serverID: UInt32, now: Date, hiddenBy: String? = nil)
        /// The server draws notifications again, but not the notifications that do-not-disturb hid.
        case doNotDisturbEnded
        /// It could not be shown. `isAnswerOpen`: the server has it and did not answer; it may still show it.
        case failed(why: String, isAnswerOpen: Bool)
        /// A server that answers other calls has lost this one.
        case answerLost
        case closed(serverID: UInt32, now: Date)
        /// The server took it off the screen, as nobody had pressed it for so long.
        case expired(serverID: UInt32, now: Date)
        /// A summary tells of it, with others.
        case gathered(into: String, now: Date)
        /// The person wants to see it after the summary.
        case released
        /// The summary that told of it left the screen.
        case summaryLeft(isSeen: Bool, now: Date)
        /// The time that it is about is over.
        case timeIsOver(now: Date)
        /// The clock that said so was wrong.
        case timeIsNotOver
        /// The person pressed it, or one of its buttons: that is answered, and it leaves the screen, also where servers let it stand.
        case pressed(serverID: UInt32, now: Date)
        /// Nobody will hear its buttons: it is shown again, in its place.
        case buttonsLost(serverID: UInt32)
        /// The app takes it back, or all background work was ended.
        case takenBack(now: Date)
        /// The agent takes it off the screen, as far as it is there. `isAnswerOpen`: a server has it, does not answer, and may show it yet.
        case takenOff(now: Date, isAnswerOpen: Bool = false)
        /// Its app wants nothing of this showing.
        case notWanted(now: Date)
        /// The server was told to take it off.
        case withdrawn(serverID: UInt32)
        /// The server is gone, and what it showed: its numbers mean nothing to the next one, which shows it again.
        case serverLost(isAnswerOpen: Bool)
        /// Shown or not, the earlier agent could not say. Shown again it replaces itself where a server can.
        case agentDied
    }

    package enum Command: Equatable, Sendable {
        /// ``unknownNumber``: by its identifier alone, where a server knows it by that.
        case withdraw(serverID: UInt32)
    }

    /// No server gives this number.
    package static let unknownNumber: UInt32 = 0

    package private(set) var phase: Phase
    /// What the server calls it, as long as something of it may stand on the screen.
    package private(set) var serverID: UInt32?
    /// What the agent takes off the screen under this number, until the server has heard that: an agent may die in between.
    package private(set) var leavingID: UInt32?
    /// It may stand on the screen under a number that nobody wrote down: the agent died before it could.
    package private(set) var mayStand: Bool
    /// The notification that tells of it, where that is a summary.
    package private(set) var summary: String?
    /// Why it could not be shown yet, or was not drawn.
    package private(set) var trouble: String?
    /// When the person was first told of what it says now; `nil`: not yet.
    package private(set) var deliveredAt: Date?
    package private(set) var endedAt: Date?

    /// One that was just added.
    package init() { (phase, mayStand) = (.pending, false) }

    /// A life as it was written down.
    package init(
        phase: Phase, serverID: UInt32?, trouble: String?, deliveredAt: Date?, endedAt: Date?, summary: String? = nil,
        leavingID: UInt32? = nil, mayStand: Bool = false
    ) {
        (self.phase, self.serverID, self.trouble, self.summary) = (phase, serverID, trouble, summary)
        (self.deliveredAt, self.endedAt, self.leavingID, self.mayStand) = (deliveredAt, endedAt, leavingID, mayStand)
    }

    /// Taken back by the app.
    package var isTakenBack: Bool { phase == .withdrawing || phase == .withdrawn }

    /// The user was shown it, or the server hides it. It may wait for a server to show it again.
    package var isTold: Bool {
        switch phase {
        case .delivered, .gathered, .expired, .closed: true
        case .over: deliveredAt != nil
        case .pending, .presenting: isShownAgain
        case .withdrawing, .withdrawn: false
        }
    }

    /// It is on its way to the screen for the second time: nobody has to be alerted.
    package var isShownAgain: Bool { (phase == .pending || phase == .presenting) && deliveredAt != nil }

    /// It waits to be told for the first time.
    package var isUntold: Bool { (phase == .pending || phase == .presenting) && deliveredAt == nil }

    /// The same, and nobody has been given it.
    package var isWaiting: Bool { phase == .pending && deliveredAt == nil }

    /// The server has it, and did not draw it.
    package var isHidden: Bool { phase == .delivered && deliveredAt == nil }

    /// Other words mean something to the person: those before stand there, wait, were taken off unanswered, or were about a time that is over.
    package var isChangeable: Bool { isUnanswered || isUntold || phase == .over }

    /// A press of what the server calls so is one of this. The word of a server that is gone by now may come late.
    package func isPressable(as id: UInt32) -> Bool { serverID == id || serverID == nil && isShownAgain }

    /// It is to leave the screen, and its number has to be found first: shown once more in its place, the server tells it.
    package var needsNumber: Bool { phase == .withdrawing && serverID == nil && mayStand }

    /// It stands on the screen, or will again, by itself or in a summary.
    package var isStanding: Bool { phase == .delivered || phase == .gathered || isShownAgain }

    /// The person was told of it and has not answered: it stands there, or the server took it off.
    package var isUnanswered: Bool { isStanding || phase == .expired }

    /// Something happened to it. An event that means nothing in this phase changes nothing and asks for nothing.
    package mutating func handle(_ event: Event) -> [Command] {
        switch event {
        case .added: add()
        case .changed: if phase == .delivered { phase = .pending }
        case .handedOver: if phase == .pending { (phase, trouble) = (.presenting, nil) }
        case .presented(let id, let now, let why): return present(id, now, hiddenBy: why)
        case .doNotDisturbEnded: if isHidden { (phase, trouble) = (.pending, nil) }
        case .failed(let why, let isAnswerOpen):
            // Nobody shows it: nothing stands there either.
            if phase != .presenting, !isAnswerOpen { mayStand = false }
            guard phase == .presenting else { break }
            trouble = why
            if !isAnswerOpen { phase = .pending }
        case .answerLost: if phase == .presenting { phase = .pending }
        case .closed(let id, let now):
            if leavingID == id { leavingID = nil }
            if serverID == id { leave(.closed, now) }
        case .expired(let id, let now):
            if leavingID == id { leavingID = nil }
            if serverID == id { leave(.expired, now) }
        case .withdrawn(let id): if leavingID == id { leavingID = nil }
        case .gathered(let summary, let now): gather(summary, now)
        case .released: if phase == .gathered { (phase, summary) = (.pending, nil) }
        case .summaryLeft(let isSeen, let now): if phase == .gathered { end(isSeen ? .closed : .expired, now) }
        case .timeIsOver(let now): return beOver(now)
        case .timeIsNotOver: if phase == .over { (phase, endedAt) = (.pending, nil) }
        case .pressed(let id, let now): return press(id, now)
        case .buttonsLost(let id): if phase == .delivered, serverID == id { phase = .pending }
        case .takenBack(let now): takeBack(now)
        case .takenOff(let now, let isAnswerOpen): return takeOff(now, isAnswerOpen)
        case .notWanted(let now): beNotWanted(now)
        case .serverLost(let isAnswerOpen): loseServer(isAnswerOpen)
        case .agentDied:
            if phase == .presenting { (phase, mayStand) = (.pending, true) }
            if phase == .withdrawing, serverID == nil { mayStand = true }
            // A server answered no agent: the number is unknown.
            if phase == .withdrawn || phase == .over, mayStand { phase = .withdrawing }
        }
        return []
    }

    private mutating func add() {
        // That number may be somebody else's by now.
        switch phase {
        case .closed, .expired, .over, .withdrawn: serverID = nil
        // The server has it and has not told the number. The agent may die before it hears the number.
        case .presenting, .withdrawing: if serverID == nil { mayStand = true }
        case .pending, .delivered, .gathered: break
        }
        (phase, deliveredAt, endedAt, summary) = (.pending, nil, nil, nil)
    }

    private mutating func present(_ id: UInt32, _ now: Date, hiddenBy why: String?) -> [Command] {
        mayStand = false
        switch phase {
        case .presenting:
            (phase, serverID, deliveredAt) = (.delivered, id, deliveredAt ?? (why == nil ? now : nil))
            if isHidden { trouble = why }
        // Of what was there before: the app has other content by now, which takes its place on the screen.
        case .pending, .withdrawing: serverID = id
        // The app took it back before the presenter had answered: by now it stands on the screen.
        // A late answer to what a summary tells of by now.
        case .gathered, .closed, .withdrawn, .over: return withdraw(id)
        case .delivered, .expired: break
        }
        return []
    }

    private mutating func withdraw(_ id: UInt32) -> [Command] {
        leavingID = id
        return [.withdraw(serverID: id)]
    }

    private mutating func end(_ last: Phase, _ now: Date) { (phase, serverID, summary, endedAt) = (last, nil, nil, now) }

    private mutating func press(_ id: UInt32, _ now: Date) -> [Command] {
        guard isPressable(as: id) else { return [] }
        switch phase {
        // Of a server that is gone by now; what the next one is about to show is taken off when it stands there.
        case .pending where serverID == nil, .presenting where serverID == nil:
            end(.closed, now)
            return []
        case .presenting where isShownAgain: end(.closed, now)
        // By now the number is that of other words, which stay.
        case .presenting: return []
        default: leave(.closed, now)
        }
        return withdraw(id)
    }

    /// What stood on the screen left it. New content that waits, and that the person has to be told of, waits on.
    private mutating func leave(_ last: Phase, _ now: Date) {
        switch phase {
        case .delivered: end(last, now)
        case .pending: if isShownAgain { end(last, now) } else { serverID = nil }
        // The answer to the showing that takes its place is on its way.
        case .presenting, .gathered, .expired, .closed, .over: break
        case .withdrawing, .withdrawn: serverID = nil
        }
    }

    private mutating func takeBack(_ now: Date) {
        switch phase {
        // Changed content may wait while the old stands on the screen.
        case .pending: phase = serverID == nil && !mayStand ? .withdrawn : .withdrawing
        case .presenting, .delivered: phase = .withdrawing
        // Forgotten: told again, it alerts again.
        case .gathered, .expired, .closed, .over: (phase, summary) = (.withdrawn, nil)
        case .withdrawing, .withdrawn: return
        }
        endedAt = now
    }

    private mutating func takeOff(_ now: Date, _ isAnswerOpen: Bool) -> [Command] {
        guard phase == .withdrawing else { return [] }
        let commands = serverID.map { withdraw($0) } ?? (isAnswerOpen ? [.withdraw(serverID: Self.unknownNumber)] : [])
        mayStand = serverID == nil && isAnswerOpen
        (phase, serverID, endedAt) = (.withdrawn, nil, now)
        return commands
    }

    /// What stands there of an earlier showing stays.
    private mutating func beNotWanted(_ now: Date) {
        guard isWaiting else { return }
        if serverID == nil { takeBack(now) } else { (phase, deliveredAt) = (.delivered, now) }
    }

    private mutating func loseServer(_ isAnswerOpen: Bool) {
        (leavingID, mayStand) = (nil, false)
        guard serverID != nil || isAnswerOpen else { return }
        serverID = nil
        switch phase {
        case .presenting: if isAnswerOpen { phase = .pending }
        case .delivered: phase = .pending
        case .pending, .gathered, .expired, .closed, .over, .withdrawing, .withdrawn: break
        }
    }

    /// What stands on the screen of an earlier showing is replaced there, and not told of elsewhere.
    private mutating func gather(_ summary: String, _ now: Date) {
        guard isWaiting && serverID == nil && !mayStand || phase == .gathered else { return }
        (phase, self.summary, deliveredAt, trouble) = (.gathered, summary, deliveredAt ?? now, nil)
    }

    private mutating func beOver(_ now: Date) -> [Command] {
        switch phase {
        case .pending where serverID == nil && mayStand:
            takeBack(now)
            return []
        case .presenting: mayStand = serverID == nil
        case .pending, .delivered, .gathered: break
        case .expired, .closed, .over, .withdrawing, .withdrawn: return []
        }
        let commands = serverID.map { withdraw($0) } ?? []
        end(.over, now)
        return commands
    }
}
