import BackgroundLedger
import BackgroundNotices
import Foundation

/// Summaries of notifications. A summary combines the notifications of quiet hours, or the notifications of a short time in which
/// too many notifications arrived. This type is a part of ``NotificationPlanner``.
struct Summaries {
    private var flow = NoticeFlow()

    /// The maximum number of notifications whose texts a summary contains.
    private static let longestText = 5
    /// The maximum number of notifications that are shown individually after the user pressed the summary.
    private static let maximumShownAlone = 5
    /// The key of the summary's button that shows the combined notifications.
    static let showAction = "show"

    private static let prefix = NotificationRecord.agentPrefix + "summary."

    static func isSummary(_ identifier: String) -> Bool { identifier.hasPrefix(prefix) }

    /// Returns the beginning of the identifiers of a group's summaries. The summaries of a group are numbered, because a summary
    /// is not updated after the user pressed it.
    private static func prefix(of group: NoticeFlow.Group) -> String {
        switch group {
        case .quietHours: prefix + "quiet."
        case .many: prefix + "many."
        // The name of a thread can have any length and contain any characters.
        case .thread(let name):
            prefix + "thread." + name.utf8.prefix(64).map { String($0, radix: 16) }.joined(separator: "-") + "."
        }
    }

    // MARK: Gathering

    /// Combines notifications in summaries.
    ///
    /// - Parameter waiting: the notifications that can be shown now and were not shown before.
    /// - Returns: The notifications that are shown individually.
    mutating func gather(_ waiting: [NotificationRecord], _ pass: inout Pass) throws -> [NotificationRecord] {
        guard !waiting.isEmpty else { return [] }
        let (now, zone, rules) = (pass.now, pass.zone, pass.settings.noticeRules)
        let values = waiting.map { record in
            NoticeFlow.Waiting(
                identifier: record.identifier, thread: record.content.threadIdentifier,
                wasHeldBack: Self.wasHeldBack(record, rules, now: now, zone: zone))
        }
        var gathering: Set<NoticeFlow.Group> = []
        let groups = Set([.quietHours, .many] + values.map { NoticeFlow.Group.thread($0.thread) })
        for group in groups where try standing(group, pass) != nil { gathering.insert(group) }
        let decision = flow.decide(values, gathering: gathering, awake: pass.moment.awake)
        let byIdentifier = Dictionary(uniqueKeysWithValues: waiting.map { ($0.identifier, $0) })
        for (group, identifiers) in decision.gather {
            try gather(identifiers.compactMap { byIdentifier[$0] }, into: group, &pass)
        }
        if let pause = decision.pause { pass.wake(at: pass.moment.date(atAwake: pass.moment.awake + pause)) }
        return decision.show.compactMap { byIdentifier[$0] }
    }

    /// Returns `true` if the notification arrived or became due during quiet hours, and these quiet hours have ended.
    private static func wasHeldBack(_ record: NotificationRecord, _ rules: NoticeRules, now: Date, zone: TimeZone) -> Bool {
        guard let quiet = rules.quietHours, quiet.end(covering: now, in: zone) == nil,
            record.shownContent.interruptionLevel < rules.loudLevel ?? .max
        else { return false }
        return quiet.end(covering: record.dueAt ?? record.addedAt ?? record.createdAt, in: zone) != nil
    }

    /// Records that a notification could not be shown individually.
    mutating func handleShowFailure() { flow.revert() }

    private func gather(_ records: [NotificationRecord], into group: NoticeFlow.Group, _ pass: inout Pass) throws {
        let known = try standing(group, pass)
        let summary = try known?.identifier ?? next(group, pass)
        for var record in records {
            record.handle(.gathered(into: summary, now: pass.now))
            record.consumeFireDate(now: pass.now, zone: pass.zone)
            try pass.transaction.save(record)
            if let badge = record.shownContent.badge { try pass.transaction.setFact(.badge, badge) }
        }
        // A summary of quiet hours always alerts the user, because the summary of the previous night may still be on the screen.
        try write(summary, &pass, alerts: known == nil || group == .quietHours)
        pass.log(.notificationsGathered, (.notification, summary), (.count, "\(records.count)"))
    }

    private func standing(_ group: NoticeFlow.Group, _ pass: Pass) throws -> NotificationRecord? {
        try pass.transaction.notifications(beginning: Self.prefix(of: group)).first {
            $0.life.isStillShown || $0.life.isUnreported
        }
    }

    private func next(_ group: NoticeFlow.Group, _ pass: Pass) throws -> String {
        let prefix = Self.prefix(of: group)
        let numbers = try pass.transaction.notifications(beginning: prefix).compactMap {
            Int($0.identifier.dropFirst(prefix.count))
        }
        return prefix + "\((numbers.max() ?? 0) &+ 1)"
    }

    // MARK: Content

    /// Updates the content of a summary to its current notifications. If a summary has no notifications any more, it is
    /// withdrawn.
    private func write(_ summary: String, _ pass: inout Pass, alerts: Bool, isQuiet: Bool = false) throws {
        let newest = try pass.transaction.notifications(in: summary, limit: Self.longestText)
        guard !newest.isEmpty else {
            if let record = try pass.transaction.notification(summary) { try pass.transaction.retract([record], now: pass.now) }
            return
        }
        // The summary contains the name of the app, because some servers do not draw this name.
        let app = try pass.transaction.fact(.app)?.displayName ?? pass.directories.appIdentifier
        var content = Self.content(of: newest, try pass.transaction.gathered(in: summary), summary, app)
        if isQuiet { content.sound = nil }
        if alerts {
            try pass.transaction.addNotification(summary, content, dueAt: nil, now: pass.now)
        } else if let known = try pass.transaction.notification(summary) {
            content.sound = known.content.sound
            _ = try pass.transaction.changeNotification(summary, content)
        }
    }

    private static func content(
        of newest: [NotificationRecord], _ all: (count: Int, level: Int), _ summary: String, _ app: String
    ) -> NotificationContent {
        let isOfQuietHours = summary.hasPrefix(prefix(of: .quietHours))
        let titles = newest.map { record in
            [record.content.title, record.content.subtitle, record.content.body].first { !$0.isEmpty } ?? record.identifier
        }
        let rest = all.count - titles.count
        return NotificationContent(
            title: (isOfQuietHours ? "During quiet hours: " : "")
                + "\(all.count) notification\(all.count == 1 ? "" : "s") of \(app)",
            subtitle: "", body: (titles + (rest > 0 ? ["and \(rest) more"] : [])).joined(separator: "\n"),
            categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: newest.compactMap(\.shownContent.sound).first,
            interruptionLevel: min(max(all.level, 0), 2), badge: nil)
    }

    /// Updates all summaries, because the app may have withdrawn or changed their notifications.
    func plan(_ pass: inout Pass) throws {
        for record in try pass.transaction.notifications(beginning: Self.prefix)
        where record.life.isStillShown || record.life.isUnreported {
            try write(record.identifier, &pass, alerts: false)
        }
    }

    // MARK: The user's actions

    /// Handles the event that the user pressed a summary. The newest notifications are shown individually. The other
    /// notifications go into a new summary without a sound.
    func handleSummaryPress(_ summary: String, _ pass: inout Pass) throws {
        let records = try pass.transaction.notifications(in: summary)
        for var record in records.prefix(Self.maximumShownAlone) {
            record.handle(.released)
            try pass.transaction.save(record)
        }
        let left = records.dropFirst(Self.maximumShownAlone)
        guard !left.isEmpty else { return }
        let group: NoticeFlow.Group = summary.hasPrefix(Self.prefix(of: .quietHours)) ? .quietHours : .many
        let other = try next(group, pass)
        for var record in left {
            record.handle(.gathered(into: other, now: pass.now))
            try pass.transaction.save(record)
        }
        try write(other, &pass, alerts: true, isQuiet: true)
    }

    /// Handles the removal of a summary from the screen. The user closed the summary, or the server removed it.
    func handleSummaryRemoval(_ summary: String, isSeen: Bool, _ pass: inout Pass) throws {
        for var record in try pass.transaction.notifications(in: summary) {
            record.handle(.summaryLeft(isSeen: isSeen, now: pass.now))
            try pass.transaction.save(record)
        }
    }
}
