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

    /// Of what `notify --test` shows: its press is no app's.
    package static let testIdentifier = "notification-test"

    package let identifier: String
    package internal(set) var content: NotificationContent
    package internal(set) var state: State
    package let createdAt: Date
    /// `nil`: at once.
    package internal(set) var dueAt: Date?
    /// Of one with a trigger; kept when it was shown, as it says what the trigger was.
    package internal(set) var schedule: NoticeSchedule?
    package internal(set) var deliveredAt: Date?
    package internal(set) var endedAt: Date?
    package internal(set) var serverID: UInt32?
    /// Why it could not be shown yet.
    package internal(set) var trouble: String?
    package internal(set) var revision: Int

    init(_ identifier: String, _ content: NotificationContent, createdAt: Date, dueAt: Date?) {
        (self.identifier, self.content, self.createdAt, self.dueAt) = (identifier, content, createdAt, dueAt)
        (state, revision) = (.pending, 0)
    }

    /// It will be shown, and nobody has seen that yet: for the first time, or once more.
    package var isComing: Bool { life.isUntold || schedule?.next != nil }

    /// Its trigger was read again.
    package mutating func change(schedule new: NoticeSchedule) {
        schedule = new
        if life.isUntold { dueAt = new.next ?? dueAt }
    }

    /// It was shown: the instant that it waited for is over.
    package mutating func takeInstant(now: Date, zone: TimeZone) {
        guard state == .delivered, let next = schedule?.next, next <= now else { return }
        schedule?.take(now: now, zone: zone)
    }

    /// Where it is, and under which number the server knows it.
    package var life: NoticeLife {
        NoticeLife(phase: state, serverID: serverID, trouble: trouble, deliveredAt: deliveredAt, endedAt: endedAt)
    }

    /// Something happened to it.
    ///
    /// - Returns: what else has to be done.
    @discardableResult
    package mutating func handle(_ event: NoticeLife.Event) -> [NoticeLife.Command] {
        var life = life
        let commands = life.handle(event)
        (state, serverID, trouble) = (life.phase, life.serverID, life.trouble)
        (deliveredAt, endedAt) = (life.deliveredAt, life.endedAt)
        return commands
    }
}

extension NotificationRecord: LedgerRecord {
    package static let databaseTableName = "notification"
}

struct NotificationCategoryRecord: LedgerRecord {
    static let databaseTableName = "notificationCategory"
    var identifier: String
    var actions: [NoticeAction]
    /// What else the app says of it, as it wrote it.
    var details: String?
}

/// A button that was pressed, waiting for the app to be launched with it.
package struct NotificationResponseRecord: Codable, Sendable, Equatable {
    package var id: Int64?
    package var notification: String
    package var action: String
    package var content: NotificationContent
    package var createdAt: Date
    package var deliveredAt: Date?
    /// What the person typed.
    package var userText: String?
}

extension NotificationResponseRecord: LedgerRecord {
    package static let databaseTableName = "notificationResponse"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension LedgerTransaction {
    package func notification(_ identifier: String) throws -> NotificationRecord? {
        try NotificationRecord.fetchRareOne(
            database.cachedStatement(sql: "SELECT * FROM notification WHERE identifier = ?"), arguments: [identifier])
    }

    package func notifications() throws -> [NotificationRecord] {
        try memo.rows("notifications", database) {
            try NotificationRecord.fetchRare(
                database.cachedStatement(sql: "SELECT * FROM notification ORDER BY createdAt, identifier"))
        }
    }

    /// Those that something is still to be done about. Thousands that were told are not read.
    package func notificationsToHandle() throws -> [NotificationRecord] {
        try memo.rows("notificationsToHandle", database) {
            try NotificationRecord.fetchRare(
                database.cachedStatement(
                    sql: """
                        SELECT * FROM notification
                        WHERE state IN ('pending', 'withdrawing') OR json_extract(schedule, '$.next') IS NOT NULL
                        ORDER BY createdAt, identifier
                        """))
        }
    }

    /// Whose identifiers begin so.
    package func notifications(beginning: String) throws -> [NotificationRecord] {
        try memo.rows("notifications \(beginning)", database) {
            try NotificationRecord.fetchRare(
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
    /// - Parameter oncePerContent: equal content is told already: nothing changes, also after the person has closed it. Its files do not
    ///   count: a picture is drawn anew by whoever adds it again.
    /// - Returns: whether it is this content, with its files, that is kept; `false`: an equal one was there.
    @discardableResult
    package func addNotification(
        _ identifier: String, _ content: NotificationContent, dueAt: Date?, schedule: NoticeSchedule? = nil,
        oncePerContent: Bool = false, now: Date
    ) throws -> Bool {
        var record =
            try notification(identifier)
            ?? NotificationRecord(identifier, content, createdAt: now, dueAt: dueAt)
        let isNew = record.revision == 0
        var compared = content
        if oncePerContent { compared.attachments = record.content.attachments }
        let dueAt = schedule?.next ?? dueAt
        let isChanged = record.content != compared || record.dueAt != dueAt || record.schedule?.trigger != schedule?.trigger
        guard isNew || record.life.isTakenBack || isChanged || record.life.isTold && !oncePerContent else { return false }
        record.handle(.added)
        record.content = content
        (record.dueAt, record.schedule) = (dueAt, schedule)
        record.revision += 1
        try save(record)
        try pruneNotifications(now: now)
        return true
    }

    /// Says something else in the place of what stands on the screen, or waits, without an alert.
    ///
    /// - Returns: `false`: nothing of it is there, or it says so already.
    package func changeNotification(_ identifier: String, _ content: NotificationContent) throws -> Bool {
        guard var record = try notification(identifier), record.life.isStanding || record.life.isUntold, record.content != content
        else { return false }
        record.handle(.changed)
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
                SELECT json_extract(attachment.value, '$.file') FROM notification, json_each(content, '$.attachments') AS attachment
                    WHERE state NOT IN ('closed', 'withdrawn') OR json_extract(schedule, '$.next') IS NOT NULL
                UNION SELECT json_extract(attachment.value, '$.file')
                    FROM notificationResponse, json_each(content, '$.attachments') AS attachment WHERE deliveredAt IS NULL
                """)
    }

    static let endedNotificationLimit = 200

    /// Ended notifications are kept for a month: they are what "told already" rests on. The latest stay however old they are, as a clock
    /// may have been ahead by a year.
    private func pruneNotifications(now: Date) throws {
        let monthAgo = now.timeIntervalSince1970 - 30 * 86_400
        try database.run(
            sql: """
                DELETE FROM notification WHERE endedAt < ? AND json_extract(schedule, '$.next') IS NULL AND identifier NOT IN (
                    SELECT identifier FROM notification WHERE endedAt IS NOT NULL ORDER BY endedAt DESC LIMIT ?)
                """, arguments: [monthAgo, Self.endedNotificationLimit])
        try database.run(sql: "DELETE FROM notificationResponse WHERE deliveredAt < ?", arguments: [monthAgo])
    }

    /// - Parameter details: what else the app says of it, for itself.
    package func setCategory(_ identifier: String, actions: [NoticeAction], details: String? = nil) throws {
        if let known = try NotificationCategoryRecord.fetchOne(database, key: identifier), known.actions == actions,
            known.details == details
        {
            return
        }
        var record = NotificationCategoryRecord(identifier: identifier, actions: actions, details: details)
        try record.save(database)
    }

    /// The app wants to hear when the person dismisses a notification of this category.
    package func tellsDismissal(ofCategory identifier: String) throws -> Bool {
        struct Details: Decodable {
            let options: Int
        }
        let details = try details(ofCategory: identifier).flatMap { try? JSONDecoder().decode(Details.self, from: Data($0.utf8)) }
        // Apple's UNNotificationCategoryOptions.customDismissAction.
        return (details?.options ?? 0) & 1 != 0
    }

    /// Of every category what the app said of it.
    package func categoryDetails() throws -> [String] {
        try NotificationCategoryRecord.fetchAll(database).compactMap(\.details)
    }

    /// Of one category what the app said of it.
    package func details(ofCategory identifier: String) throws -> String? {
        try NotificationCategoryRecord.fetchOne(database, key: identifier)?.details
    }

    package func deleteCategories(except kept: Set<String>) throws {
        for record in try NotificationCategoryRecord.fetchAll(database) where !kept.contains(record.identifier) {
            try record.delete(database)
        }
    }

    package func actions(ofCategory identifier: String) throws -> [NoticeAction] {
        try NotificationCategoryRecord.fetchRareOne(
            database.cachedStatement(sql: "SELECT * FROM notificationCategory WHERE identifier = ?"), arguments: [identifier]
        )?.actions ?? []
    }

    package func addResponse(_ action: String, to notification: NotificationRecord, userText: String? = nil, now: Date) throws {
        var record = NotificationResponseRecord(
            id: nil, notification: notification.identifier, action: action, content: notification.content, createdAt: now,
            deliveredAt: nil, userText: userText)
        try record.insert(database)
    }

    package func undeliveredResponses() throws -> [NotificationResponseRecord] {
        try NotificationResponseRecord.fetchRare(
            database.cachedStatement(sql: "SELECT * FROM notificationResponse WHERE deliveredAt IS NULL ORDER BY id"))
    }

    package func responseWasDelivered(_ id: Int64, now: Date) throws {
        try database.run(
            sql: "UPDATE notificationResponse SET deliveredAt = ? WHERE id = ?",
            arguments: [now.timeIntervalSince1970, id])
    }
}
