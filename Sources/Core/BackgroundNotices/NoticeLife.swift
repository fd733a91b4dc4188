import Foundation

/// The states of one notification, and the number by which the notification server identifies the notification.
///
/// Only this type changes the state of a notification. The app, the user's shell commands and the agent report the events. The
/// type is pure: it receives an event and returns a list of commands. The ledger stores the state in the columns of the
/// notification's row.
package struct NoticeLife: Equatable, Sendable {
    /// The phases of a notification. The raw values are stored in the ledger.
    package enum Phase: String, Codable, Sendable {
        /// The notification waits for its time, or for a notification server.
        case pending
        /// The agent passed the notification to the presenter, and the presenter has not responded.
        case presenting
        case delivered
        /// A summary combines the notification with other notifications. The summary is on the screen instead of the
        /// notification.
        case gathered
        /// The server removed the notification from the screen because the user did not press it. The user possibly did not see
        /// the notification.
        case expired
        /// The user removed the notification from the screen.
        case closed
        /// The expiration date of the notification has passed, and the agent removed the notification from the screen.
        case over
        /// The app withdrew the notification, but the agent has not yet removed the notification from the screen.
        case withdrawing
        case withdrawn
    }

    package enum Event: Equatable, Sendable {
        /// The app added the notification, possibly not for the first time. If an earlier version of the notification is on the
        /// screen, the new version replaces the earlier version, and the user is alerted.
        case added
        /// The app changed the content of the notification without an alert for the user.
        case changed
        /// The agent asked the presenter to show the notification.
        case handedOver
        /// The server accepted the notification. `hiddenBy` is the reason why the server does not show the notification, or `nil`
        /// if the server shows the notification.
        case presented(serverID: UInt32, now: Date, hiddenBy: String? = nil)
        /// The do-not-disturb mode ended. The server shows new notifications again. The server does not show the notifications
        /// that the mode has hidden.
        case doNotDisturbEnded
        /// The notification could not be shown. `isAnswerOpen` is `true` if the server received the notification but did not
        /// respond. The server may then still show the notification.
        case failed(why: String, isAnswerOpen: Bool)
        /// The server did not respond to this notification, but has responded to later calls.
        case answerLost
        case closed(serverID: UInt32, now: Date)
        /// The server removed the notification from the screen because the user had not pressed it for some time.
        case expired(serverID: UInt32, now: Date)
        /// A summary combines the notification with other notifications.
        case gathered(into: String, now: Date)
        /// The user pressed the summary, so the notification is shown individually.
        case released
        /// The summary that included the notification was removed from the screen.
        case summaryLeft(isSeen: Bool, now: Date)
        /// The expiration date of the notification has passed.
        case timeIsOver(now: Date)
        /// The notification was removed too early because the clock was wrong. Its expiration date has not passed.
        case timeIsNotOver
        /// The user pressed the notification, or one of its buttons. The notification is then removed from the screen. The agent
        /// also removes it from servers that keep pressed notifications.
        case pressed(serverID: UInt32, now: Date)
        /// No process receives the button presses of the notification any more. The agent then shows the notification again, in
        /// place of the notification on the screen.
        case buttonsLost(serverID: UInt32)
        /// The app withdrew the notification, or the user ended all background work.
        case takenBack(now: Date)
        /// The agent removes the notification if it is on the screen. `isAnswerOpen` is `true` if a server received the
        /// notification but did not respond. The server may then still show the notification.
        case takenOff(now: Date, isAnswerOpen: Bool = false)
        /// The app's delegate decided that this notification is not shown.
        case notWanted(now: Date)
        /// The server received the request to remove the notification from the screen.
        case withdrawn(serverID: UInt32)
        /// The server ended, so its notifications are not on the screen any more. The numbers that this server assigned to
        /// notifications are not valid on the next server. The next server shows the notification again.
        case serverLost(isAnswerOpen: Bool)
        /// The earlier agent was killed before it recorded whether the notification was shown. The agent shows the notification
        /// again. On servers that support identifiers, the repeated notification replaces the earlier notification.
        case agentDied
    }

    package enum Command: Equatable, Sendable {
        /// Removes the notification from the screen. If `serverID` is ``unknownNumber``, the server finds the notification by its
        /// identifier, which only some servers support.
        case withdraw(serverID: UInt32)
    }

    /// The value of a server number that is unknown. Servers never assign this value to a notification.
    package static let unknownNumber: UInt32 = 0

    package private(set) var phase: Phase
    /// The server's number for the notification. The number is set if the notification may be on the screen, with its current
    /// content or with earlier content.
    package private(set) var serverID: UInt32?
    /// The server's number of a notification that the agent is removing from the screen. The number is stored until the server
    /// has received the request to remove the notification, because the agent may be killed earlier.
    package private(set) var leavingID: UInt32?
    /// `true` if the notification may be on the screen with an unknown number, because an agent was killed before it recorded the
    /// number.
    package private(set) var mayStand: Bool
    /// The summary that includes the notification.
    package private(set) var summary: String?
    /// The reason why the notification could not be shown yet, or why the server hides it.
    package private(set) var trouble: String?
    /// The date at which the current content was first shown to the user. `nil` if the content has not been shown.
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

    /// `true` if the notification was shown to the user, or if the server hides it. The value is also `true` while the
    /// notification waits until the next server shows it again.
    package var wasReported: Bool {
        switch phase {
        case .delivered, .gathered, .expired, .closed: true
        case .over: deliveredAt != nil
        case .pending, .presenting: isShownAgain
        case .withdrawing, .withdrawn: false
        }
    }

    /// `true` if the notification was shown before and is being shown again. The user is not alerted again.
    package var isShownAgain: Bool { (phase == .pending || phase == .presenting) && deliveredAt != nil }

    /// `true` if the notification waits for its first display.
    package var isUnreported: Bool { (phase == .pending || phase == .presenting) && deliveredAt == nil }

    /// `true` if the notification waits for its first display and was not yet passed to a presenter.
    package var isWaiting: Bool { phase == .pending && deliveredAt == nil }

    /// `true` if the server received the notification but did not show it.
    package var isHidden: Bool { phase == .delivered && deliveredAt == nil }

    /// `true` if the app can still change the content. This is the case if the notification is shown, waits, has expired, or was
    /// removed before the user responded.
    package var isChangeable: Bool { isUnanswered || isUnreported || phase == .over }

    /// Returns whether the user's press on a notification with this server number is a press on this notification. The report of
    /// a press can arrive late, after the server that sent the report has ended.
    package func isPressable(as id: UInt32) -> Bool { serverID == id || serverID == nil && isShownAgain }

    /// `true` if the notification has to be removed from the screen, but the server's number for the notification is unknown. The
    /// agent then shows the notification once more, because the server reports the number of each notification that it shows. The
    /// repeated notification replaces the earlier notification.
    package var needsNumber: Bool { phase == .withdrawing && serverID == nil && mayStand }

    /// `true` if the notification is on the screen or will be shown again, individually or in a summary.
    package var isStillShown: Bool { phase == .delivered || phase == .gathered || isShownAgain }

    /// `true` if the notification was shown and the user has not responded. The notification is on the screen, or the server
    /// removed it from the screen.
    package var isUnanswered: Bool { isStillShown || phase == .expired }

    /// Applies an event. If the event has no effect in the current phase, nothing changes and the result is empty.
    package mutating func handle(_ event: Event) -> [Command] {
        switch event {
        case .added: add()
        case .changed: if phase == .delivered { phase = .pending }
        case .handedOver: if phase == .pending { (phase, trouble) = (.presenting, nil) }
        case .presented(let id, let now, let why): return present(id, now, hiddenBy: why)
        case .doNotDisturbEnded: if isHidden { (phase, trouble) = (.pending, nil) }
        case .failed(let why, let isAnswerOpen):
            // Without a server, the notification cannot be on the screen.
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
            // The agent was killed before the server responded, so the number that the server assigned to the notification is
            // unknown.
            if phase == .withdrawn || phase == .over, mayStand { phase = .withdrawing }
        }
        return []
    }

    private mutating func add() {
        // If the notification has left the screen, the server may have assigned its number to another notification.
        switch phase {
        case .closed, .expired, .over, .withdrawn: serverID = nil
        // The server received the notification but has not reported its number. The agent may be killed before the server
        // responds.
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
        // The number belongs to the earlier content on the screen. The app's new content will replace the earlier content.
        case .pending, .withdrawing: serverID = id
        // This response is late: since the request, the app withdrew the notification, or a summary combined it with other
        // notifications.
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
        // The user pressed the notification on a server that has ended. The notification is removed from the screen after the
        // next server confirms that it shows the notification.
        case .pending where serverID == nil, .presenting where serverID == nil:
            end(.closed, now)
            return []
        case .presenting where isShownAgain: end(.closed, now)
        // The number now belongs to newer content, which stays on the screen.
        case .presenting: return []
        default: leftScreen(.closed, now)
        }
        return withdraw(id)
    }

    /// Records that the notification was removed from the screen. New content that was not yet shown stays pending.
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
        // The changed content was not shown yet, but the old content may be on the screen and has to be removed.
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

    /// Stops waiting for the first display, because the app's delegate decided that the notification is not shown. If earlier
    /// content of the notification is on the screen, it stays there.
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

    /// Records that a summary combines the notification with other notifications. The event has no effect if earlier content may
    /// be on the screen, because the new content then replaces the earlier content.
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
