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
        /// Gone from the screen by itself or by the person.
        case closed
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
        case presented(serverID: UInt32, now: Date)
        /// It could not be shown. `isAnswerOpen`: the server has it and did not answer; it may still show it.
        case failed(why: String, isAnswerOpen: Bool)
        /// A server that answers other calls has lost this one.
        case answerLost
        case closed(serverID: UInt32, now: Date)
        /// The person pressed it, or one of its buttons: that is answered, and it leaves the screen, also where servers let it stand.
        case pressed(serverID: UInt32, now: Date)
        /// Nobody will hear its buttons: it is shown again, in its place.
        case buttonsLost(serverID: UInt32)
        /// The app takes it back, or all background work was ended.
        case takenBack(now: Date)
        /// The agent takes it off the screen, as far as it is there.
        case takenOff(now: Date)
        /// The server is gone, and what it showed: its numbers mean nothing to the next one, which shows it again.
        case serverLost(isAnswerOpen: Bool)
        /// Shown or not, the earlier agent could not say. Shown again it replaces itself where a server can.
        case agentDied
    }

    package enum Command: Equatable, Sendable {
        case withdraw(serverID: UInt32)
    }

    package private(set) var phase: Phase
    /// What the server calls it, as long as something of it may stand on the screen.
    package private(set) var serverID: UInt32?
    /// Why it could not be shown yet.
    package private(set) var trouble: String?
    /// When the person was first told of what it says now; `nil`: not yet.
    package private(set) var deliveredAt: Date?
    package private(set) var endedAt: Date?

    /// One that was just added.
    package init() { phase = .pending }

    /// A life as it was written down.
    package init(phase: Phase, serverID: UInt32?, trouble: String?, deliveredAt: Date?, endedAt: Date?) {
        (self.phase, self.serverID, self.trouble) = (phase, serverID, trouble)
        (self.deliveredAt, self.endedAt) = (deliveredAt, endedAt)
    }

    /// Taken back by the app.
    package var isTakenBack: Bool { phase == .withdrawing || phase == .withdrawn }

    /// The person was told of it. It may wait for a server to show it again.
    package var isTold: Bool { phase == .delivered || phase == .closed || isShownAgain }

    /// It is on its way to the screen for the second time: nobody has to be alerted.
    package var isShownAgain: Bool { (phase == .pending || phase == .presenting) && deliveredAt != nil }

    /// It waits to be told for the first time.
    package var isUntold: Bool { (phase == .pending || phase == .presenting) && deliveredAt == nil }

    /// The same, and nobody has been given it.
    package var isWaiting: Bool { phase == .pending && deliveredAt == nil }

    /// It stands on the screen, or will again.
    package var isStanding: Bool { phase == .delivered || isShownAgain }

    /// Something happened to it. An event that means nothing in this phase changes nothing and asks for nothing.
    package mutating func handle(_ event: Event) -> [Command] {
        switch event {
        case .added: add()
        case .changed: if phase == .delivered { phase = .pending }
        case .handedOver: if phase == .pending { (phase, trouble) = (.presenting, nil) }
        case .presented(let id, let now): return present(id, now)
        case .failed(let why, let isAnswerOpen):
            guard phase == .presenting else { break }
            trouble = why
            if !isAnswerOpen { phase = .pending }
        case .answerLost: if phase == .presenting { phase = .pending }
        case .closed(let id, let now): if serverID == id { leave(now) }
        case .pressed(let id, let now): return press(id, now)
        case .buttonsLost(let id): if phase == .delivered, serverID == id { phase = .pending }
        case .takenBack(let now): takeBack(now)
        case .takenOff(let now): return takeOff(now)
        case .serverLost(let isAnswerOpen): loseServer(isAnswerOpen)
        case .agentDied: if phase == .presenting { phase = .pending }
        }
        return []
    }

    private mutating func add() {
        // That number may be somebody else's by now.
        if phase == .closed || phase == .withdrawn { serverID = nil }
        (phase, deliveredAt, endedAt) = (.pending, nil, nil)
    }

    private mutating func present(_ id: UInt32, _ now: Date) -> [Command] {
        switch phase {
        case .presenting: (phase, serverID, deliveredAt) = (.delivered, id, deliveredAt ?? now)
        // Of what was there before: the app has other content by now, which takes its place on the screen.
        case .pending, .withdrawing: serverID = id
        // The app took it back before the presenter had answered: by now it stands on the screen.
        case .withdrawn: return [.withdraw(serverID: id)]
        case .delivered, .closed: break
        }
        return []
    }

    private mutating func close(_ now: Date) { (phase, serverID, endedAt) = (.closed, nil, now) }

    private mutating func press(_ id: UInt32, _ now: Date) -> [Command] {
        guard serverID == id else { return [] }
        leave(now)
        return [.withdraw(serverID: id)]
    }

    /// What stood on the screen left it. New content that waits, and that the person has to be told of, waits on.
    private mutating func leave(_ now: Date) {
        switch phase {
        case .delivered: close(now)
        case .pending: if isShownAgain { close(now) } else { serverID = nil }
        // The answer to the showing that takes its place is on its way.
        case .presenting, .closed: break
        case .withdrawing, .withdrawn: serverID = nil
        }
    }

    private mutating func takeBack(_ now: Date) {
        switch phase {
        // Changed content may wait while the old stands on the screen.
        case .pending: phase = serverID == nil ? .withdrawn : .withdrawing
        case .presenting, .delivered: phase = .withdrawing
        // Forgotten: told again, it alerts again.
        case .closed: phase = .withdrawn
        case .withdrawing, .withdrawn: return
        }
        endedAt = now
    }

    private mutating func takeOff(_ now: Date) -> [Command] {
        guard phase == .withdrawing else { return [] }
        let commands = serverID.map { [Command.withdraw(serverID: $0)] } ?? []
        (phase, serverID, endedAt) = (.withdrawn, nil, now)
        return commands
    }

    private mutating func loseServer(_ isAnswerOpen: Bool) {
        guard serverID != nil || isAnswerOpen else { return }
        serverID = nil
        switch phase {
        case .presenting: if isAnswerOpen { phase = .pending }
        case .delivered: phase = .pending
        case .pending, .closed, .withdrawing, .withdrawn: break
        }
    }
}
