import Foundation
import GRDB

/// A response of the user to a notification, for example a pressed button. The app is launched to receive the response.
package struct NotificationResponseRecord: Codable, Sendable, Equatable {
    package var id: Int64?
    package var notification: String
    package var action: String
    package var content: NotificationContent
    package var createdAt: Date
    package var deliveredAt: Date?
    /// The text that the user typed into the notification, or `nil` if the button has no text field.
    package var userText: String?
    /// The token with which the app can raise a window, for some seconds after the user pressed the button. `nil` if the desktop
    /// supplied no token.
    package var activationToken: String?
}

extension NotificationResponseRecord: LedgerRecord {
    package static let databaseTableName = "notificationResponse"

    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension LedgerTransaction {
    package func addResponse(
        _ action: String, to notification: NotificationRecord, userText: String? = nil, activationToken: String? = nil, now: Date
    ) throws {
        var record = NotificationResponseRecord(
            id: nil, notification: notification.identifier, action: action, content: notification.content, createdAt: now,
            deliveredAt: nil, userText: userText, activationToken: activationToken)
        try record.insert(database)
    }

    package func undeliveredResponses() throws -> [NotificationResponseRecord] {
        try NotificationResponseRecord.fetchReadable(
            database.cachedStatement(sql: "SELECT * FROM notificationResponse WHERE deliveredAt IS NULL ORDER BY id"))
    }

    /// Returns the newest response to a notification, even if the app has already received the response.
    package func lastResponse(to notification: String) throws -> NotificationResponseRecord? {
        try NotificationResponseRecord.fetchReadable(
            database.cachedStatement(
                sql: "SELECT * FROM notificationResponse WHERE notification = ? ORDER BY id DESC LIMIT 1"),
            arguments: [notification]
        ).first
    }

    /// Returns the token with which the process of a launch can raise a window. Returns `nil` if the user pressed the button too
    /// long ago, or if the desktop supplied no token.
    package func activationToken(ofLaunch id: Int64, now: Date) throws -> String? {
        guard let launch = try launch(id), launch.kind == .notificationResponse else { return nil }
        return try undeliveredResponses().last { response in
            response.notification == launch.identifier && response.activationToken != nil
                && abs(now.timeIntervalSince(response.createdAt)) < Self.longestActivation
        }?.activationToken
    }

    /// The time in seconds for which desktops accept a token.
    private static let longestActivation: Double = 30

    package func responseWasDelivered(_ id: Int64, now: Date) throws {
        try database.run(
            sql: "UPDATE notificationResponse SET deliveredAt = ? WHERE id = ?",
            arguments: [now.timeIntervalSince1970, id])
    }
}
