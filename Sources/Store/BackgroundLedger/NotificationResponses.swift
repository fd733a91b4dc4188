import Foundation
import GRDB

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
    package func addResponse(_ action: String, to notification: NotificationRecord, userText: String? = nil, now: Date) throws {
        var record = NotificationResponseRecord(
            id: nil, notification: notification.identifier, action: action, content: notification.content, createdAt: now,
            deliveredAt: nil, userText: userText)
        try record.insert(database)
    }

    package func undeliveredResponses() throws -> [NotificationResponseRecord] {
        try NotificationResponseRecord.fetchReadable(
            database.cachedStatement(sql: "SELECT * FROM notificationResponse WHERE deliveredAt IS NULL ORDER BY id"))
    }

    package func responseWasDelivered(_ id: Int64, now: Date) throws {
        try database.run(
            sql: "UPDATE notificationResponse SET deliveredAt = ? WHERE id = ?",
            arguments: [now.timeIntervalSince1970, id])
    }
}
