import BackgroundNotices
import Foundation
import GRDB

/// A notification of the app or of the agent. Only ``handle(_:)`` changes the state of the notification.
package struct NotificationRecord: Codable, Sendable, Equatable {
    package typealias State = NoticeLife.Phase

    /// The prefix of the identifiers of the agent's own notifications.
    package static let agentPrefix = "background-agent.notice."
    /// The identifier of the notification that `notify --test` shows. No app receives a response to this notification.
    package static let testIdentifier = "notification-test"

    package let identifier: String
    package internal(set) var content: NotificationContent
    package internal(set) var state: State
    package let createdAt: Date
    /// The time at which the app last added the notification, or `nil` if an earlier version of the program stored the
    /// notification.
    package internal(set) var addedAt: Date?
    /// The time at which the notification is due, or `nil` if the notification is shown immediately.
    package internal(set) var dueAt: Date?
    /// The schedule of a notification with a trigger. The schedule contains the trigger, so the schedule is kept even after the
    /// notification was shown.
    package internal(set) var schedule: NoticeSchedule?
    package internal(set) var deliveredAt: Date?
    package internal(set) var endedAt: Date?
    package internal(set) var serverID: UInt32?
    /// The reason why the notification could not be shown yet.
    package internal(set) var trouble: String?
    /// The identifier of the summary that contains the notification.
    package internal(set) var summary: String?
    /// The number that the notification server assigned, if the notification is being removed from the screen.
    package internal(set) var leavingID: UInt32?
    /// `true` if the notification may be on the screen, but the number that the notification server assigned was not recorded.
    package internal(set) var mayStand: Bool?
    package internal(set) var revision: Int
    /// The latest time until which the notification waits for the app's delegate, or `nil` if the notification does not wait.
    package internal(set) var heldUntil: Date?
    /// The parts of the notification that the delegate chose, or `nil` to show all parts.
    package internal(set) var presentation: NoticePresentation?
    /// The time since which the notification is not shown, because its category is switched off. `nil` if the category is not
    /// switched off, or was not checked.
    package internal(set) var silencedAt: Date?

    init(_ identifier: String, _ content: NotificationContent, createdAt: Date, dueAt: Date?) {
        (self.identifier, self.content, self.createdAt, self.dueAt) = (identifier, content, createdAt, dueAt)
        (state, revision) = (.pending, 0)
    }

    /// `true` for a notification of the agent, `false` for a notification of the app.
    package var isAgents: Bool { identifier.hasPrefix(Self.agentPrefix) }

    /// The expiration date of the notification.
    package var until: Date? { content.until.map(Date.init(timeIntervalSince1970:)) }

    /// `true` if the notification will be shown in the future, for the first time or again.
    package var willBeShown: Bool { life.isUnreported || state != .over && schedule?.next != nil }

    /// Returns whether the notification still waits for the delegate's decision. The time limit is necessary, because the process
    /// of the delegate may have been killed. If the clock is set back, the wait does not become longer.
    package func isHeld(now: Date) -> Bool {
        guard let heldUntil else { return false }
        return heldUntil > now && heldUntil.timeIntervalSince(now) <= 2 * NoticePresentation.patience
    }

    /// The content with only the parts that the delegate chose.
    package var shownContent: NotificationContent {
        guard let presentation else { return content }
        var content = content
        if !presentation.contains(.sound) { content.sound = nil }
        if !presentation.contains(.badge) { content.badge = nil }
        // Without a banner, the notification is shown with the lowest interruption level.
        if !presentation.contains(.banner) { content.interruptionLevel = 0 }
        return content
    }

    /// Makes a repeating notification pending again when its next repetition is due. Before the repetition is due, a notification
    /// on the screen is not changed. If the notification server has not responded yet, the repetition waits for the response.
    package mutating func startNextRepetition(now: Date) {
        guard !life.isUnreported, let next = schedule?.next, next <= now, state != .presenting, state != .withdrawing else {
            return
        }
        handle(.added)
        (dueAt, presentation, silencedAt) = (next, nil, nil)
    }

    /// Applies the decision of the delegate.
    mutating func apply(_ wish: NoticePresentation, now: Date, zone: TimeZone) {
        // The app's delegate decided whether the notification is shown at one specific fire date. The clock may have been set
        // back a little since the decision, so the fire date may be in the future.
        let instant = max(now, heldUntil.flatMap { isHeld(now: now) ? $0 - NoticePresentation.patience : nil } ?? now)
        startNextRepetition(now: instant)
        heldUntil = nil
        guard life.isWaiting else { return }
        guard wish.isNothing else { return presentation = wish }
        handle(.notWanted(now: now))
        consumeFireDate(now: instant, zone: zone)
    }

    /// Records that the category was switched off when the notification was due.
    ///
    /// - Returns: the time until which the notification is kept, or `nil` if the notification is dropped now. If the category is
    ///   switched on before this time, the notification is shown.
    package mutating func recordSilenced(now: Date, zone: TimeZone) -> Date? {
        let since = silencedAt ?? now
        silencedAt = since
        // The absolute difference is compared, because the clock may have been ahead.
        if abs(now.timeIntervalSince(since)) < NoticeTiming.longestSilence { return since + NoticeTiming.longestSilence }
        handle(.takenBack(now: now))
        consumeFireDate(now: now, zone: zone)
        return nil
    }

    /// `true` if the notification was dropped, because its category was switched off for too long.
    package var wasDropped: Bool { life.isWithdrawn && deliveredAt == nil && silencedAt != nil }

    /// Replaces the schedule after the trigger was evaluated again.
    package mutating func change(schedule new: NoticeSchedule) {
        schedule = new
        if life.isUnreported { dueAt = new.next ?? dueAt }
    }

    /// Consumes the trigger's fire date after the notification was shown or withdrawn.
    package mutating func consumeFireDate(now: Date, zone: TimeZone) {
        guard state == .delivered || state == .gathered || life.isWithdrawn, let next = schedule?.next, next <= now else {
            return
        }
        schedule?.consume(now: now, zone: zone)
    }

    /// The notification as a state machine, which receives events.
    package var life: NoticeLife {
        NoticeLife(
            phase: state, serverID: serverID, trouble: trouble, deliveredAt: deliveredAt, endedAt: endedAt, summary: summary,
            leavingID: leavingID, mayStand: mayStand ?? false)
    }

    /// Applies an event to the notification.
    ///
    /// - Returns: the actions that the caller must perform.
    @discardableResult
    package mutating func handle(_ event: NoticeLife.Event) -> [NoticeLife.Command] {
        var life = life
        let commands = life.handle(event)
        (state, serverID, trouble) = (life.phase, life.serverID, life.trouble)
        (deliveredAt, endedAt, summary, leavingID) = (life.deliveredAt, life.endedAt, life.summary, life.leavingID)
        mayStand = life.mayStand ? true : nil
        return commands
    }
}

extension NotificationRecord: LedgerRecord {
    package static let databaseTableName = "notification"
}
