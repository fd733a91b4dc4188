import BackgroundNotices
import Foundation
import GRDB

/// A file that belongs to a notification: a copy in the spool.
package struct NoticeAttachment: Codable, Sendable, Equatable {
    /// The app's name for it.
    package var identifier: String
    /// Its kind, as Apple names them: "public.png".
    package var type: String
    /// Inside the spool.
    package var file: String
    /// Of the file; hex, lower case.
    package var sha256: String

    package init(identifier: String, type: String, file: String, sha256: String) {
        (self.identifier, self.type, self.file, self.sha256) = (identifier, type, file, sha256)
    }

    package var isPicture: Bool { Self.pictureTypes.contains(type) }

    package static let pictureTypes: Set<String> = ["public.png", "public.jpeg", "com.compuserve.gif", "org.webmproject.webp"]

    /// Of equal content each copy says the same.
    package static func == (one: NoticeAttachment, other: NoticeAttachment) -> Bool {
        (one.identifier, one.type, one.sha256) == (other.identifier, other.type, other.sha256)
    }
}

/// What an app gives a notification for itself: nothing of it is shown.
package struct KeptContent: Codable, Sendable, Equatable {
    package var target: String?
    package var launchImage = ""
    package var relevance = 0.0
    package var filter: String?
    package var summaryArgument = ""
    package var summaryCount = 0

    package init(
        target: String? = nil, launchImage: String = "", relevance: Double = 0, filter: String? = nil,
        summaryArgument: String = "",
        summaryCount: Int = 0
    ) {
        (self.target, self.launchImage, self.relevance) = (target, launchImage, relevance)
        (self.filter, self.summaryArgument, self.summaryCount) = (filter, summaryArgument, summaryCount)
    }
}

/// What a notification says, as the app gave it. Compared as a whole: adding equal content again changes nothing.
package struct NotificationContent: Codable, Sendable, Equatable {
    package var title: String
    package var subtitle: String
    package var body: String
    package var categoryIdentifier: String
    package var threadIdentifier: String
    /// Property list, as JSON text with sorted keys.
    package var userInfo: String
    /// Name of a theme sound; `nil`: silent.
    package var sound: String?
    /// 0 passive, 1 active, 2 time sensitive, 3 critical.
    package var interruptionLevel: Int
    package var badge: Int?
    /// `nil`: none. Rows of earlier versions have none.
    package var attachments: [NoticeAttachment]?
    package var kept: KeptContent?
    /// What a person can do instead, where a desktop has no buttons.
    package var withoutButtons: String?
    /// The agent takes it off the screen then, in seconds since 1970; `nil`: it has no end.
    package var until: Double?

    package init(
        title: String, subtitle: String, body: String, categoryIdentifier: String, threadIdentifier: String, userInfo: String,
        sound: String?, interruptionLevel: Int, badge: Int?, attachments: [NoticeAttachment] = []
    ) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
        self.categoryIdentifier = categoryIdentifier
        self.threadIdentifier = threadIdentifier
        self.userInfo = userInfo
        self.sound = sound
        self.interruptionLevel = interruptionLevel
        self.badge = badge
        self.attachments = attachments.isEmpty ? nil : attachments
    }
}

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
                    SELECT COUNT(*), MAX(CASE WHEN json_valid(content)
                        THEN CAST(json_extract(content, '$.interruptionLevel') AS INTEGER) END)
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
    ///   - isHeld: `schedule` is no wish of the app's: it waits for an answer so long.
    /// - Returns: whether it is this content, with its files, that is kept; `false`: an equal one was there.
    @discardableResult
    package func addNotification(
        _ identifier: String, _ content: NotificationContent, dueAt: Date?, schedule: NoticeSchedule? = nil,
        oncePerContent: Bool = false, isHeld: Bool = false, now: Date
    ) throws -> Bool {
        var record =
            try notification(identifier)
            ?? NotificationRecord(identifier, content, createdAt: now, dueAt: dueAt)
        let isNew = record.revision == 0
        var compared = content
        if oncePerContent { compared.attachments = record.content.attachments }
        let dueAt = schedule?.next ?? dueAt
        let isAtAnotherTime = record.dueAt != dueAt || record.schedule?.trigger != schedule?.trigger
        let isChanged = record.content != compared || isAtAnotherTime && !isHeld
        guard isNew || record.life.isTakenBack || isChanged || record.life.isTold && !oncePerContent else { return false }
        record.handle(.added)
        record.addedAt = now
        record.content = content
        (record.dueAt, record.schedule) = (dueAt, schedule)
        record.revision += 1
        try save(record)
        try pruneNotifications(now: now)
        return true
    }

    /// One that was held for an answer is shown at once.
    ///
    /// - Parameters:
    ///   - trigger: that it was held with. With another one the app has added it again meanwhile.
    ///   - limit: what is shown of it; `nil`: nothing, and it is taken back.
    package func settleNotification(
        _ identifier: String, heldBy trigger: NoticeTrigger, now: Date, _ limit: (NotificationContent) -> NotificationContent?
    ) throws {
        guard var record = try notification(identifier), record.life.isWaiting, record.schedule?.trigger == trigger else {
            return
        }
        record.schedule = nil
        if let content = limit(record.content) {
            (record.content, record.dueAt) = (content, nil)
        } else {
            record.handle(.takenBack(now: now))
        }
        try save(record)
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
