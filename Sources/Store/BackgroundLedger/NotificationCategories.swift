import BackgroundNotices
import Foundation
import GRDB

/// A category of notifications, with its buttons.
struct NotificationCategoryRecord: LedgerRecord {
    static let databaseTableName = "notificationCategory"
    var identifier: String
    var actions: [NoticeAction]
    /// Additional data of the category, in the format of the module `UserNotifications`.
    var details: String?
}

extension LedgerTransaction {
    private func categories() throws -> [NotificationCategoryRecord] {
        try NotificationCategoryRecord.fetchReadable(database.cachedStatement(sql: "SELECT * FROM notificationCategory"))
    }

    private func category(_ identifier: String) throws -> NotificationCategoryRecord? {
        try NotificationCategoryRecord.fetchReadable(
            database.cachedStatement(sql: "SELECT * FROM notificationCategory WHERE identifier = ?"), arguments: [identifier]
        ).first
    }

    /// Stores a category.
    ///
    /// - Parameter details: additional data of the category, in the format of the module `UserNotifications`.
    package func setCategory(_ identifier: String, actions: [NoticeAction], details: String? = nil) throws {
        if let known = try category(identifier), known.actions == actions,
            known.details == details
        {
            return
        }
        var record = NotificationCategoryRecord(identifier: identifier, actions: actions, details: details)
        try record.save(database)
    }

    /// Returns whether the app is notified when the user dismisses a notification of this category.
    package func reportsDismissal(ofCategory identifier: String) throws -> Bool {
        struct Details: Decodable {
            let options: Int
        }
        let details = try details(ofCategory: identifier).flatMap { try? JSONDecoder().decode(Details.self, from: Data($0.utf8)) }
        // The value 1 is Apple's UNNotificationCategoryOptions.customDismissAction.
        return (details?.options ?? 0) & 1 != 0
    }

    /// Returns the stored details of all categories.
    package func categoryDetails() throws -> [String] {
        try categories().compactMap(\.details)
    }

    /// Returns the stored details of one category.
    package func details(ofCategory identifier: String) throws -> String? {
        try category(identifier)?.details
    }

    package func deleteCategories(except kept: Set<String>) throws {
        for record in try categories() where !kept.contains(record.identifier) {
            try record.delete(database)
        }
    }

    package func actions(ofCategory identifier: String) throws -> [NoticeAction] {
        try category(identifier)?.actions ?? []
    }
}
