import Foundation

/// The states of one notification, and the number by which the notification server identifies the notification.
///
/// Only this type has rules about this state. The type is pure: the input is an event, and the output is a list of commands. The
/// ledger stores the state in the columns of the notification's row. The app, the commands and the agent report events to the
/// ledger. Only this type changes the state.
package struct NoticeLife: Equatable, Sendable {
    /// The phases of a notification. The raw values are stored in the ledger.
    package enum Phase: String, Codable, Sendable {
        /// The notification waits for its time, or for a notification server.
        case pending
        /// The notification was passed to the presenter, which has not responded.
        case presenting
        case delivered
        /// The notification is combined with others in a summary. The summary is on the screen instead of the notification.
        case gathered
        /// The server removed the notification from the screen because the user did not press it. Possibly the user has not seen
        /// the notification.
        case expired
        /// The user removed the notification from the screen.
        case closed
        /// The expiration date of the notification has passed, and the agent removed the notification from the screen.
        case over
        /// The notification was withdrawn, but the agent has not yet removed it from the screen.
        case withdrawing
        case withdrawn
    }

    package enum Event: Equatable, Sendable {
        /// The app added the notification, or added it again. If an earlier version is on the screen, it is replaced, and the user
        /// is alerted.
        case added
        /// The app changed the content of the notification. The user is not alerted.
        case changed
        /// The presenter was asked to show the notification.
        case handedOver
        /// The server accepted the notification. `hiddenBy` is the reason why the server does not show the notification, or `nil`
        /// if the server shows the notification.
        case presented(serverID: UInt32, now: Date, hiddenBy: String? = nil)
        /// The do-not-disturb mode ended. The server shows new notifications again, but not the notifications that this mode has
        /// hidden.
        case doNotDisturbEnded
        /// The notification could not be shown. `isAnswerOpen` is `true` if the server received the notification but did not
        /// respond. In this case the server may still show the notification.
        case failed(why: String, isAnswerOpen: Bool)
        /// The server responds to other calls, but has lost this notification.
        case answerLost
        case closed(serverID: UInt32, now: Date)
        /// The server removed the notification from the screen because the user had not pressed it for some time.
        case expired(serverID: UInt32, now: Date)
        /// A summary combines the notification with others.
        case gathered(into: String, now: Date)
        /// The user pressed the summary, so the notification is shown alone.
        case released
        /// The summary that included the notification was removed from the screen.
        case summaryLeft(isSeen: Bool, now: Date)
        /// The expiration date of the notification has passed.
        case timeIsOver(now: Date)
        /// The notification was removed too early, because the clock was wrong. The expiration date has not passed.
        case timeIsNotOver
        /// The user pressed the notification, or one of its buttons. The notification is removed from the screen, also on servers
        /// that keep pressed notifications.
        case pressed(serverID: UInt32, now: Date)
        /// No process receives the presses of the notification's buttons any more. The notification is shown again, in place of the
        /// notification on the screen.
        case buttonsLost(serverID: UInt32)
        /// The app withdrew the notification, or all background work was ended.
        case takenBack(now: Date)
        /// The agent removes the notification if it is on the screen. `isAnswerOpen` is `true` if a server received the
        /// notification but does not respond. In this case the server may still show the notification.
        case takenOff(now: Date, isAnswerOpen: Bool = false)
        /// The app's delegate decided that this notification is not shown.
        case notWanted(now: Date)
        /// The server received the request to remove the notification from the screen.
        case withdrawn(serverID: UInt32)
        /// The server ended, so the notifications of this server are not on the screen any more. The numbers of this server are not
        /// valid on the next server. The next server shows the notification again.
        case serverLost(isAnswerOpen: Bool)
        /// The earlier agent was killed before it recorded whether the notification was shown. The notification is shown again. On
        /// servers that support identifiers, the new showing replaces the earlier showing.
        case agentDied
    }

    package enum Command: Equatable, Sendable {
        /// Removes the notification from the screen. With ``unknownNumber``, only the identifier is used, on servers that support
        /// identifiers.
        case withdraw(serverID: UInt32)
    }

    /// A number that servers never assign.
    package static let unknownNumber: UInt32 = 0

    package private(set) var phase: Phase
    /// The server's number for the notification. The number is set while a version of the notification may be on the screen.
    package private(set) var serverID: UInt32?
    /// The server's number of a notification that the agent removes from the screen. The number is stored until the server has
    /// received the request to remove the notification, because the agent may be killed before that.
    package private(set) var leavingID: UInt32?
    /// `true` if the notification may be on the screen under a number that was not recorded, because the agent was killed before it
    /// could record the number.
    package private(set) var mayStand: Bool
    /// The summary that includes the notification.
    package private(set) var summary: String?
    /// The reason why the notification could not be shown yet, or why the server hides it.
    package private(set) var trouble: String?
    /// The date at which the current content was first shown to the user. `nil` if the content was not shown yet.
    package private(set) var deliveredAt: Date?
    package private(set) var endedAt: Date?

    /// Creates the state of a notification that was just added.
    package init() { (phase, mayStand) = (.pending, false) }

    /// Creates a state from its stored fields.
    package init(
        phase: Phase, serverID: UInt32?, trouble: String?, deliveredAt: Date?, endedAt: Date?, summary: String? = nil,
        leavingID: UInt32? = nil, mayStand: Bool = false
    ) {
        (self.phase, self.serverID, self.trouble, self.summary) = (phase, serverID, trouble, summary)
        (self.deliveredAt, self.endedAt, self.leavingID, self.mayStand) = (deliveredAt, endedAt, leavingID, mayStand)
    }

    /// `true` if the app withdrew the notification.
    package var isWithdrawn: Bool { phase == .withdrawing || phase == .withdrawn }

    /// `true` if the notification was shown to the user, or if the server hides it. The notification may wait for a server that
    /// shows the notification again.
    package var wasReported: Bool {
        switch phase {
        case .delivered, .gathered, .expired, .closed: true
        case .over: deliveredAt != nil
        case .pending, .presenting: isShownAgain
        case .withdrawing, .withdrawn: false
        }
    }

    /// `true` if the notification is being shown for the second time. The user is not alerted again.
    package var isShownAgain: Bool { (phase == .pending || phase == .presenting) && deliveredAt != nil }

    /// `true` if the notification waits to be shown for the first time.
    package var isUnreported: Bool { (phase == .pending || phase == .presenting) && deliveredAt == nil }

    /// `true` if the notification waits to be shown for the first time, and was not passed to a presenter.
    package var isWaiting: Bool { phase == .pending && deliveredAt == nil }

    /// `true` if the server received the notification but did not show it.
    package var isHidden: Bool { phase == .delivered && deliveredAt == nil }

    /// `true` if the app can still change the content. The old content is shown, waits, was removed before the user responded, or
    /// has expired.
    package var isChangeable: Bool { isUnanswered || isUnreported || phase == .over }

    /// Returns whether a press with this server number belongs to the notification. A press on a server that has ended may arrive
    /// late.
    package func isPressable(as id: UInt32) -> Bool { serverID == id || serverID == nil && isShownAgain }

    /// `true` if the notification has to be removed from the screen but its number is unknown. The notification is then shown once
    /// more, because the server reports the number of each notification that it shows. The new showing replaces the earlier
    /// showing.
    package var needsNumber: Bool { phase == .withdrawing && serverID == nil && mayStand }

    /// `true` if the notification is on the screen or will be shown again, alone or in a summary.
    package var isStillShown: Bool { phase == .delivered || phase == .gathered || isShownAgain }

    /// `true` if the notification was shown and the user has not responded. The notification is on the screen, or the server
    /// removed the notification from the screen.
    package var isUnanswered: Bool { isStillShown || phase == .expired }

    /// Applies an event. An event without a meaning in this phase changes nothing and returns no commands.
    package mutating func handle(_ event: Event) -> [Command] {
        switch event {
        case .added: add()
        case .changed: if phase == .delivered { phase = .pending }
        case .handedOver: if phase == .pending { (phase, trouble) = (.presenting, nil) }
        case .presented(let id, let now, let why): return present(id, now, hiddenBy: why)
        case .doNotDisturbEnded: if isHidden { (phase, trouble) = (.pending, nil) }
        case .failed(let why, let isAnswerOpen):
            // No server shows the notification, so no version of the notification is on the screen.
            if phase != .presenting, !isAnswerOpen { mayStand = false }
            guard phase == .presenting else { break }
            trouble = why
            if !isAnswerOpen { phase = .pending }
        case .answerLost: if phase == .presenting { phase = .pending }
        case .closed(let id, let now):
            if leavingID == id { leavingID = nil }
            if serverID == id { leftScreen(.closed, now) }
        case .expired(let id, let now):
            if leavingID == id { leavingID = nil }
            if serverID == id { leftScreen(.expired, now) }
        case .withdrawn(let id): if leavingID == id { leavingID = nil }
        case .gathered(let summary, let now): gather(summary, now)
        case .released: if phase == .gathered { (phase, summary) = (.pending, nil) }
        case .summaryLeft(let isSeen, let now): if phase == .gathered { end(isSeen ? .closed : .expired, now) }
        case .timeIsOver(let now): return endNotification(now)
        case .timeIsNotOver: if phase == .over { (phase, endedAt) = (.pending, nil) }
        case .pressed(let id, let now): return press(id, now)
        case .buttonsLost(let id): if phase == .delivered, serverID == id { phase = .pending }
        case .takenBack(let now): retract(now)
        case .takenOff(let now, let isAnswerOpen): return removeFromDesktop(now, isAnswerOpen)
        case .notWanted(let now): cancelShowing(now)
        case .serverLost(let isAnswerOpen): loseServer(isAnswerOpen)
        case .agentDied:
            if phase == .presenting { (phase, mayStand) = (.pending, true) }
            if phase == .withdrawing, serverID == nil { mayStand = true }
            // The server had not responded when the agent was killed, so the number is unknown.
            if phase == .withdrawn || phase == .over, mayStand { phase = .withdrawing }
        }
        return []
    }

    private mutating func add() {
        // The number may belong to another notification by now.
        switch phase {
        case .closed, .expired, .over, .withdrawn: serverID = nil
        // The server has the notification and has not reported its number. The agent may be killed before the response arrives.
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
        // The number belongs to the earlier content. The app's new content replaces the earlier content on the screen.
        case .pending, .withdrawing: serverID = id
        // This response is late. The app withdrew the notification before the presenter responded, or a summary includes the
        // notification by now.
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
        // The user pressed the notification on a server that has ended. When the next server confirms that it shows the
        // notification, the notification is removed from the screen.
        case .pending where serverID == nil, .presenting where serverID == nil:
            end(.closed, now)
            return []
        case .presenting where isShownAgain: end(.closed, now)
        // The number belongs to newer content by now. The newer content stays on the screen.
        case .presenting: return []
        default: leftScreen(.closed, now)
        }
        return withdraw(id)
    }

    /// Records that the notification was removed from the screen. New content that was not shown yet stays pending.
    private mutating func leftScreen(_ last: Phase, _ now: Date) {
        switch phase {
        case .delivered: end(last, now)
        case .pending: if isShownAgain { end(last, now) } else { serverID = nil }
        // The server has not yet responded to the request that replaces the notification.
        case .presenting, .gathered, .expired, .closed, .over: break
        case .withdrawing, .withdrawn: serverID = nil
        }
    }

    private mutating func retract(_ now: Date) {
        switch phase {
        // Changed content may wait while the old content is on the screen.
        case .pending: phase = serverID == nil && !mayStand ? .withdrawn : .withdrawing
        case .presenting, .delivered: phase = .withdrawing
        // If the app adds the notification again, the user is alerted again.
        case .gathered, .expired, .closed, .over: (phase, summary) = (.withdrawn, nil)
        case .withdrawing, .withdrawn: return
        }
        endedAt = now
    }

    private mutating func removeFromDesktop(_ now: Date, _ isAnswerOpen: Bool) -> [Command] {
        guard phase == .withdrawing else { return [] }
        let commands = serverID.map { withdraw($0) } ?? (isAnswerOpen ? [.withdraw(serverID: Self.unknownNumber)] : [])
        mayStand = serverID == nil && isAnswerOpen
        (phase, serverID, endedAt) = (.withdrawn, nil, now)
        return commands
    }

    /// Cancels a showing, because the app's delegate decided that the notification is not shown. An earlier version of the
    /// notification stays on the screen.
    private mutating func cancelShowing(_ now: Date) {
        guard isWaiting else { return }
        if serverID == nil { retract(now) } else { (phase, deliveredAt) = (.delivered, now) }
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

    /// Records that a summary includes the notification. If an earlier version may be on the screen, the new content replaces the
    /// earlier version, and no summary includes the notification.
    private mutating func gather(_ summary: String, _ now: Date) {
        guard isWaiting && serverID == nil && !mayStand || phase == .gathered else { return }
        (phase, self.summary, deliveredAt, trouble) = (.gathered, summary, deliveredAt ?? now, nil)
    }

    private mutating func endNotification(_ now: Date) -> [Command] {
        switch phase {
        case .pending where serverID == nil && mayStand:
            retract(now)
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
