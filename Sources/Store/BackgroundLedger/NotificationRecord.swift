import BackgroundNotices
import Foundation
import GRDB

/// A notification, as its app added it. Where it is changes by ``handle(_:)`` alone.
package struct NotificationRecord: Codable, Sendable, Equatable {
    package typealias State = NoticeLife.Phase

    /// Begins the identifiers of what the agent itself says.
    package static let agentPrefix = "background-agent.notice."
    /// Of what `notify --test` shows: its press is no app's.
    package static let testIdentifier = "notification-test"

    package let identifier: String
    package internal(set) var content: NotificationContent
    package internal(set) var state: State
    package let createdAt: Date
    /// When it was added last; `nil`: by an earlier version.
    package internal(set) var addedAt: Date?
    /// `nil`: at once.
    package internal(set) var dueAt: Date?
    /// Of one with a trigger; kept when it was shown, as it says what the trigger was.
    package internal(set) var schedule: NoticeSchedule?
    package internal(set) var deliveredAt: Date?
    package internal(set) var endedAt: Date?
    package internal(set) var serverID: UInt32?
    /// Why it could not be shown yet.
    package internal(set) var trouble: String?
    /// The identifier of the summary that tells of it.
    package internal(set) var summary: String?
    /// Under which number it is on its way off the screen.
    package internal(set) var leavingID: UInt32?
    /// It may stand on the screen under a number that nobody wrote down.
    package internal(set) var mayStand: Bool?
    package internal(set) var revision: Int
    /// Until when it waits for what a delegate says; `nil`: for nothing.
    package internal(set) var heldUntil: Date?
    /// What a delegate wants shown of it; `nil`: all.
    package internal(set) var presentation: NoticePresentation?
    /// Since when it is not shown because its kind is switched off; `nil`: it is not, or was not looked at.
    package internal(set) var silencedAt: Date?

    init(_ identifier: String, _ content: NotificationContent, createdAt: Date, dueAt: Date?) {
        (self.identifier, self.content, self.createdAt, self.dueAt) = (identifier, content, createdAt, dueAt)
        (state, revision) = (.pending, 0)
    }

    /// The agent itself says it, and no app.
    package var isAgents: Bool { identifier.hasPrefix(Self.agentPrefix) }

    /// When the time that it is about is over.
    package var until: Date? { content.until.map(Date.init(timeIntervalSince1970:)) }

    /// It will be shown, and nobody has seen that yet: for the first time, or once more.
    package var isComing: Bool { life.isUntold || state != .over && schedule?.next != nil }

    /// A delegate is asked about it. Who said so may have died, and a clock that was set makes the wait no longer.
    package func isHeld(now: Date) -> Bool {
        guard let heldUntil else { return false }
        return heldUntil > now && heldUntil.timeIntervalSince(now) <= 2 * NoticePresentation.patience
    }

    /// Its content, as far as it is to be shown.
    package var shownContent: NotificationContent {
        guard let presentation else { return content }
        var content = content
        if !presentation.contains(.sound) { content.sound = nil }
        if !presentation.contains(.badge) { content.badge = nil }
        // A list without a banner: as quietly as a desktop can.
        if !presentation.contains(.banner) { content.interruptionLevel = 0 }
        return content
    }

    /// One that repeats waits again when its instant has come; what stands there until then stays, and what it stands behind is answered first.
    package mutating func beginNext(now: Date) {
        guard !life.isUntold, let next = schedule?.next, next <= now, state != .presenting, state != .withdrawing else { return }
        handle(.added)
        (dueAt, presentation, silencedAt) = (next, nil, nil)
    }

    /// The delegate has answered.
    mutating func settle(_ wish: NoticePresentation, now: Date, zone: TimeZone) {
        // Of the instant that it was asked for, though a clock may have been slewed back by a little since.
        let instant = max(now, heldUntil.flatMap { isHeld(now: now) ? $0 - NoticePresentation.patience : nil } ?? now)
        beginNext(now: instant)
        heldUntil = nil
        guard life.isWaiting else { return }
        guard wish.isNothing else { return presentation = wish }
        handle(.notWanted(now: now))
        takeInstant(now: instant, zone: zone)
    }

    /// Its kind is switched off, and its time has come.
    ///
    /// - Returns: until when it is kept, to be shown if it is switched on again; `nil`: no longer.
    package mutating func beSilenced(now: Date, zone: TimeZone) -> Date? {
        let since = silencedAt ?? now
        silencedAt = since
        // A clock may have been ahead.
        if abs(now.timeIntervalSince(since)) < NoticeTiming.longestSilence { return since + NoticeTiming.longestSilence }
        handle(.takenBack(now: now))
        takeInstant(now: now, zone: zone)
        return nil
    }

    /// It was never shown, as its kind was switched off for too long.
    package var wasLetGo: Bool { life.isTakenBack && deliveredAt == nil && silencedAt != nil }

    /// Its trigger was read again.
    package mutating func change(schedule new: NoticeSchedule) {
        schedule = new
        if life.isUntold { dueAt = new.next ?? dueAt }
    }

    /// It was shown, or is not any more: the instant that it waited for is over.
    package mutating func takeInstant(now: Date, zone: TimeZone) {
        guard state == .delivered || state == .gathered || life.isTakenBack, let next = schedule?.next, next <= now else {
            return
        }
        schedule?.take(now: now, zone: zone)
    }

    /// Where it is, and under which number the server knows it.
    package var life: NoticeLife {
        NoticeLife(
            phase: state, serverID: serverID, trouble: trouble, deliveredAt: deliveredAt, endedAt: endedAt, summary: summary,
            leavingID: leavingID, mayStand: mayStand ?? false)
    }

    /// Something happened to it.
    ///
    /// - Returns: what else has to be done.
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
