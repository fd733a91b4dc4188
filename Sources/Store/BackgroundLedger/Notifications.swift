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

    // What is no JSON was written by somebody else.
    private static let comesAgain =
        "state != 'over' AND CASE WHEN json_valid(schedule) THEN json_extract(schedule, '$.next') END IS NOT NULL"
    private static let hasEnd = "CASE WHEN json_valid(content) THEN json_extract(content, '$.until') END IS NOT NULL"

    /// Removes rows that nobody can read, as somebody else has written them.
    ///
    /// - Returns: how they are called.
    package func removeUnreadableNotifications() throws -> [String] {
        var removed: [String] = []
        for row in try Row.fetchAll(database.cachedStatement(sql: "SELECT rowid AS row, * FROM notification"))
        where (try? NotificationRecord(row: row)) == nil {
            try database.run(sql: "DELETE FROM notification WHERE rowid = ?", arguments: [row["row"] as Int64])
            removed.append(String.fromDatabaseValue(row["identifier"]) ?? "?")
        }
        return removed
    }

    /// Those that something is still to be done about. Thousands that were told are not read.
    package func notificationsToHandle() throws -> [NotificationRecord] {
        try memo.rows("notificationsToHandle", database) {
            try NotificationRecord.fetchReadable(
                database.cachedStatement(
                    sql: """
                        SELECT * FROM notification
                        WHERE state IN ('pending', 'withdrawing') OR \(Self.comesAgain)
                            OR state IN ('presenting', 'delivered', 'gathered', 'over') AND \(Self.hasEnd)
                        ORDER BY createdAt, identifier
                        """))
        }
    }

    /// Somebody has to be there for one: it waits, stands on the screen, or is on its way off. What a summary tells of stands there with it. Thousands
    /// of rows are not read for this.
    func hasLiveNotifications() throws -> Bool {
        try Bool.fetchOne(
            database.cachedStatement(
                sql: """
                    SELECT EXISTS (SELECT 1 FROM notification
                        WHERE state IN ('pending', 'presenting', 'delivered', 'withdrawing') OR leavingID IS NOT NULL OR \(Self.comesAgain))
                    """)) ?? false
    }

    /// Those that a summary tells of, newest first.
    ///
    /// - Parameter limit: so many of them; -1: all.
    package func notifications(in summary: String, limit: Int = -1) throws -> [NotificationRecord] {
        try NotificationRecord.fetchReadable(
            database.cachedStatement(
                sql: "SELECT * FROM notification WHERE summary = ? ORDER BY createdAt DESC, identifier LIMIT ?"),
            arguments: [summary, limit])
    }

    /// How many a summary tells of, and the highest interruption level among them.
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

    /// Whose identifiers begin so.
    package func notifications(beginning: String) throws -> [NotificationRecord] {
        try memo.rows("notifications \(beginning)", database) {
            try NotificationRecord.fetchReadable(
                database.cachedStatement(
                    sql: """
                        SELECT * FROM notification WHERE identifier >= ? AND identifier < ? ORDER BY createdAt, identifier
                        """), arguments: [beginning, beginning + "\u{10FFFF}"])
        }
    }

    /// Takes them back, those on the screen too.
    ///
    /// - Returns: as they were.
    @discardableResult
    package func takeBackNotifications(now: Date, _ isMeant: (NotificationRecord) throws -> Bool) throws -> [NotificationRecord] {
        try takeBack(notifications().filter(isMeant), now: now)
    }

    /// The same of these alone.
    @discardableResult
    package func takeBack(_ meant: [NotificationRecord], now: Date) throws -> [NotificationRecord] {
        try save(meant) { notice in
            notice.handle(.takenBack(now: now))
            notice.schedule?.cancel()
        }
        return meant
    }

    /// Nothing more comes of these; what stands on the screen stays.
    package func cancelComing(_ meant: [NotificationRecord], now: Date) throws {
        try save(meant) { notice in
            if notice.life.isUntold { notice.handle(.takenBack(now: now)) }
            notice.schedule?.cancel()
        }
    }

    /// Takes these off the screen; one that repeats comes again.
    package func takeOffScreen(_ meant: [NotificationRecord], now: Date) throws {
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

    /// Adds a notification. It replaces one of the same identifier, on the screen too, and alerts again; one that waits already waits
    /// on.
    ///
    /// - Parameters:
    ///   - oncePerContent: equal content is told already: nothing changes, also after the person has closed it. Its files do not count: a picture is drawn anew by whoever adds it again.
    ///   - heldUntil: it waits for an answer so long.
    /// - Returns: whether it is this content, with its files, that is kept; `false`: an equal one was there.
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
        guard isNew || record.life.isTakenBack || isChanged || record.life.isTold && !oncePerContent else { return false }
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

    /// Holds one whose instant is about to come, so that its delegate can be asked.
    ///
    /// - Returns: `nil`: nothing comes then, or somebody else asks.
    package func holdNotification(_ identifier: String, dueAt due: Date, now: Date) throws -> NotificationRecord? {
        guard var record = try notification(identifier), record.isComing, record.schedule?.next == due, !record.isHeld(now: now)
        else { return nil }
        record.heldUntil = due.addingTimeInterval(NoticePresentation.patience)
        try save(record)
        return record
    }

    /// One that was held for an answer is shown at once, as far as that wants.
    ///
    /// - Parameter revision: that it was held with. With another one the app has added it again meanwhile.
    package func settleNotification(
        _ identifier: String, revision: Int, _ wish: NoticePresentation, now: Date, zone: TimeZone
    ) throws {
        guard var record = try notification(identifier), record.heldUntil != nil, record.revision == revision else { return }
        record.settle(wish, now: now, zone: zone)
        try save(record)
    }

    /// Those of which something more comes by a trigger.
    package func notificationsToCome() throws -> [NotificationRecord] {
        try NotificationRecord.fetchReadable(
            database.cachedStatement(sql: "SELECT * FROM notification WHERE \(Self.comesAgain) ORDER BY createdAt, identifier"))
    }

    /// Says something else in the place of what stands on the screen, or waits, without an alert.
    ///
    /// - Returns: `false`: nothing of it is there, or it says so already.
    package func changeNotification(_ identifier: String, _ content: NotificationContent) throws -> Bool {
        guard var record = try notification(identifier), record.life.isChangeable, record.content != content else { return false }
        // The person saw it leave, as its time was over; by now it is about another.
        record.handle(record.state == .over ? .added : .changed)
        record.content = content
        record.revision += 1
        try save(record)
        return true
    }

    /// Files in the spool that notifications need: those that are, or will be, on a screen, and those whose press no app has heard of yet.
    func noticeFiles() throws -> [String] {
        try String.fetchAll(
            database,
            sql: """
                SELECT json_extract(attachment.value, '$.file') FROM notification,
                        json_each(CASE WHEN json_valid(content) THEN content ELSE '{}' END, '$.attachments') AS attachment
                    WHERE state NOT IN ('closed', 'expired', 'withdrawn') OR \(Self.comesAgain)
                UNION SELECT json_extract(attachment.value, '$.file')
                    FROM notificationResponse,
                        json_each(CASE WHEN json_valid(content) THEN content ELSE '{}' END, '$.attachments') AS attachment WHERE deliveredAt IS NULL
                """)
    }

    static let endedNotificationLimit = 200

    /// Ended notifications are kept for a month: they are what "told already" rests on. The latest stay however old they are, as a clock
    /// may have been ahead by a year.
    private func pruneNotifications(now: Date) throws {
        let monthAgo = now.timeIntervalSince1970 - 30 * 86_400
        try database.run(
            sql: """
                DELETE FROM notification WHERE endedAt < ? AND NOT (\(Self.comesAgain)) AND identifier NOT IN (
                    SELECT identifier FROM notification WHERE endedAt IS NOT NULL ORDER BY endedAt DESC LIMIT ?)
                """, arguments: [monthAgo, Self.endedNotificationLimit])
        try database.run(sql: "DELETE FROM notificationResponse WHERE deliveredAt < ?", arguments: [monthAgo])
    }
}
