import BackgroundNotices
import Foundation
import GRDB

extension LedgerTransaction {
    package func notification(_ identifier: String) throws -> NotificationRecord? {
        try NotificationRecord.fetchReadable(
            database.cachedStatement(sql: "SELECT * FROM notification WHERE identifier = ?"), arguments: [identifier]
        ).first
    }

    package func notifications() throws -> [NotificationRecord] {
        try memo.rows("notifications", database) {
            try NotificationRecord.fetchReadable(
                database.cachedStatement(sql: "SELECT * FROM notification ORDER BY createdAt, identifier"))
        }
    }

    // The statement checks that the value is JSON, because another program may have written another value.
    private static let repeatsLater =
        "state != 'over' AND CASE WHEN json_valid(schedule) THEN json_extract(schedule, '$.next') END IS NOT NULL"
    private static let hasEnd = "CASE WHEN json_valid(content) THEN json_extract(content, '$.until') END IS NOT NULL"

    /// Removes rows of notifications that cannot be decoded. Another program may have written such rows.
    ///
    /// - Returns: the identifiers of the removed rows.
    package func removeUnreadableNotifications() throws -> [String] {
        var removed: [String] = []
        for row in try Row.fetchAll(database.cachedStatement(sql: "SELECT rowid AS row, * FROM notification"))
        where (try? NotificationRecord(row: row)) == nil {
            try database.run(sql: "DELETE FROM notification WHERE rowid = ?", arguments: [row["row"] as Int64])
            removed.append(String.fromDatabaseValue(row["identifier"]) ?? "?")
        }
        return removed
    }

    /// Returns the notifications that still need an action of the agent. The query does not read other notifications, because the
    /// ledger may contain thousands of them.
    package func notificationsToHandle() throws -> [NotificationRecord] {
        try memo.rows("notificationsToHandle", database) {
            try NotificationRecord.fetchReadable(
                database.cachedStatement(
                    sql: """
                        SELECT * FROM notification
                        WHERE state IN ('pending', 'withdrawing') OR \(Self.repeatsLater)
                            OR state IN ('presenting', 'delivered', 'gathered', 'over') AND \(Self.hasEnd)
                        ORDER BY createdAt, identifier
                        """))
        }
    }

    /// Returns whether an agent is needed, because a notification is waiting, is on the screen, or is being removed from the
    /// screen. Notifications in a summary are not checked, because the summary itself is checked.
    func hasLiveNotifications() throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM notification
                        WHERE state IN ('pending', 'presenting', 'delivered', 'withdrawing') OR leavingID IS NOT NULL OR \(Self.repeatsLater))
                    """)) ?? false
    }

    /// Returns the notifications in a summary, newest first.
    ///
    /// - Parameter limit: the maximum number of notifications, or -1 for all.
    package func notifications(in summary: String, limit: Int = -1) throws -> [NotificationRecord] {
        try NotificationRecord.fetchReadable(
            database.cachedStatement(
                sql: "SELECT * FROM notification WHERE summary = ? ORDER BY createdAt DESC, identifier LIMIT ?"),
            arguments: [summary, limit])
    }

    /// Returns the number of notifications in a summary, and the highest interruption level of these notifications.
    package func gathered(in summary: String) throws -> (count: Int, level: Int) {
        let row = try Row.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT COUNT(*), MAX(CASE
                        WHEN presentation IS NOT NULL AND NOT presentation & \(NoticePresentation.banner.rawValue) THEN 0
                        WHEN json_valid(content) THEN CAST(json_extract(content, '$.interruptionLevel') AS INTEGER) END)
                    FROM notification WHERE summary = ?
                    """), arguments: [summary])
        return (row?[0] ?? 0, row?[1] ?? 1)
    }

    /// Returns the notifications whose identifiers begin with this text.
    package func notifications(beginning: String) throws -> [NotificationRecord] {
        try memo.rows("notifications \(beginning)", database) {
            try NotificationRecord.fetchReadable(
                database.cachedStatement(
                    sql: """
                        SELECT * FROM notification WHERE identifier >= ? AND identifier < ? ORDER BY createdAt, identifier
                        """), arguments: [beginning, beginning + "\u{10FFFF}"])
        }
    }

    /// Withdraws the notifications for which `isMeant` returns `true`, including notifications on the screen.
    ///
    /// - Returns: the notifications before the change.
    @discardableResult
    package func withdrawMatching(now: Date, _ isMeant: (NotificationRecord) throws -> Bool) throws -> [NotificationRecord] {
        try retract(notifications().filter(isMeant), now: now)
    }

    /// Withdraws these notifications, including notifications on the screen.
    @discardableResult
    package func retract(_ meant: [NotificationRecord], now: Date) throws -> [NotificationRecord] {
        try save(meant) { notice in
            notice.handle(.takenBack(now: now))
            notice.schedule?.cancel()
        }
        return meant
    }

    /// Cancels future repetitions of these notifications, and withdraws notifications that were not shown yet. Notifications on
    /// the screen are not removed.
    package func cancelComing(_ meant: [NotificationRecord], now: Date) throws {
        try save(meant) { notice in
            if notice.life.isUnreported { notice.handle(.takenBack(now: now)) }
            notice.schedule?.cancel()
        }
    }

    /// Removes these notifications from the screen. A repeating notification is shown again at its next time.
    package func removeFromScreen(_ meant: [NotificationRecord], now: Date) throws {
        try save(meant) { $0.handle(.takenBack(now: now)) }
    }

    private func save(_ notices: [NotificationRecord], _ change: (inout NotificationRecord) -> Void) throws {
        for var notice in notices {
            change(&notice)
            try save(notice)
        }
    }

    package func save(_ notification: NotificationRecord) throws {
        var notification = notification
        try notification.save(database)
    }

    /// Adds a notification. The new notification replaces a notification with the same identifier, also on the screen, and the
    /// user is alerted again. If the earlier notification was waiting, the new notification also waits.
    ///
    /// - Parameters:
    ///   - oncePerContent: `true` to change nothing if equal content was shown before, even if the user has closed the
    ///     notification. Attachments are not compared, because a caller may create the same picture again for each call.
    ///   - heldUntil: the latest time until which the notification waits for the delegate.
    /// - Returns: `true` if the ledger now contains this content and its files, `false` if an equal notification existed.
    @discardableResult
    package func addNotification(
        _ identifier: String, _ content: NotificationContent, dueAt: Date?, schedule: NoticeSchedule? = nil,
        oncePerContent: Bool = false, heldUntil: Date? = nil, now: Date
    ) throws -> Bool {
        var record =
            try notification(identifier)
            ?? NotificationRecord(identifier, content, createdAt: now, dueAt: dueAt)
        let isNew = record.revision == 0
        var compared = content
        if oncePerContent { compared.attachments = record.content.attachments }
        let dueAt = schedule?.next ?? dueAt
        let isAtAnotherTime = record.dueAt != dueAt || record.schedule?.trigger != schedule?.trigger
        let isChanged = record.content != compared || isAtAnotherTime
        guard isNew || record.life.isWithdrawn || isChanged || record.life.wasReported && !oncePerContent else { return false }
        record.handle(.added)
        record.addedAt = now
        record.content = content
        (record.dueAt, record.schedule, record.heldUntil) = (dueAt, schedule, heldUntil)
        (record.presentation, record.silencedAt) = (nil, nil)
        record.revision += 1
        try save(record)
        try pruneNotifications(now: now)
        return true
    }

    /// Holds a notification shortly before it is due. The notification is not shown until the app's delegate has decided whether
    /// to show it.
    ///
    /// - Returns: `nil` if no notification is due at this time, or if the delegate of another process already decides about it.
    package func holdNotification(_ identifier: String, dueAt due: Date, now: Date) throws -> NotificationRecord? {
        guard var record = try notification(identifier), record.willBeShown, record.schedule?.next == due,
            !record.isHeld(now: now)
        else { return nil }
        record.heldUntil = due.addingTimeInterval(NoticePresentation.patience)
        try save(record)
        return record
    }

    /// Shows a held notification immediately, with the parts that the delegate chose.
    ///
    /// - Parameter revision: the revision of the notification when it was held. If the revision has changed, the app has added
    ///   the notification again.
    package func applyPresentation(
        _ identifier: String, revision: Int, _ wish: NoticePresentation, now: Date, zone: TimeZone
    ) throws {
        guard var record = try notification(identifier), record.heldUntil != nil, record.revision == revision else { return }
        record.apply(wish, now: now, zone: zone)
        try save(record)
    }

    /// Returns the notifications whose triggers have a next date.
    package func notificationsToCome() throws -> [NotificationRecord] {
        try NotificationRecord.fetchReadable(
            database.cachedStatement(sql: "SELECT * FROM notification WHERE \(Self.repeatsLater) ORDER BY createdAt, identifier"))
    }

    /// Replaces the content of a notification that is waiting or on the screen, without alerting the user.
    ///
    /// - Returns: `false` if the notification does not exist, or already has equal content.
    package func changeNotification(_ identifier: String, _ content: NotificationContent) throws -> Bool {
        guard var record = try notification(identifier), record.life.isChangeable, record.content != content else { return false }
        // In the state `over`, the notification was removed from the screen because the notification had expired. The new content
        // is shown like a new notification.
        record.handle(record.state == .over ? .added : .changed)
        record.content = content
        record.revision += 1
        try save(record)
        return true
    }

    /// Returns the names of the files in the spool that notifications need. A notification needs its files while it is or will be
    /// on the screen, and until the app has received the user's response.
    func noticeFiles() throws -> [String] {
        try String.fetchAll(
            database,
            sql: """
                SELECT json_extract(attachment.value, '$.file') FROM notification,
                        json_each(CASE WHEN json_valid(content) THEN content ELSE '{}' END, '$.attachments') AS attachment
                    WHERE state NOT IN ('closed', 'expired', 'withdrawn') OR \(Self.repeatsLater)
                UNION SELECT json_extract(attachment.value, '$.file')
                    FROM notificationResponse,
                        json_each(CASE WHEN json_valid(content) THEN content ELSE '{}' END, '$.attachments') AS attachment WHERE deliveredAt IS NULL
                """)
    }

    static let endedNotificationLimit = 200

    /// Deletes notifications a month after their end. During this month, an ended notification prevents equal content from being
    /// shown twice. The latest notifications are always kept, because the clock may have been a year ahead.
    private func pruneNotifications(now: Date) throws {
        let monthAgo = now.timeIntervalSince1970 - 30 * 86_400
        try database.run(
            sql: """
                DELETE FROM notification WHERE endedAt < ? AND NOT (\(Self.repeatsLater)) AND identifier NOT IN (
                    SELECT identifier FROM notification WHERE endedAt IS NOT NULL ORDER BY endedAt DESC LIMIT ?)
                """, arguments: [monthAgo, Self.endedNotificationLimit])
        try database.run(sql: "DELETE FROM notificationResponse WHERE deliveredAt < ?", arguments: [monthAgo])
    }
}
