import Foundation

/// What a person did with a notification.
open class UNNotificationResponse: NSObject, @unchecked Sendable {  // because it is immutable
    /// The notification whose button was pressed.
    public let notification: UNNotification
    /// A button's identifier, or ``UNNotificationDefaultActionIdentifier``, or ``UNNotificationDismissActionIdentifier``.
    public let actionIdentifier: String

    init(notification: UNNotification, actionIdentifier: String) {
        self.notification = notification
        self.actionIdentifier = actionIdentifier
    }

    open override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationResponse else { return false }
        return notification == other.notification && actionIdentifier == other.actionIdentifier
    }
    open override var hash: Int { actionIdentifier.hashValue }
}

/// What a person typed into a notification.
public final class UNTextInputNotificationResponse: UNNotificationResponse, @unchecked Sendable {  // because it is immutable
    /// What was typed.
    public let userText: String

    init(notification: UNNotification, actionIdentifier: String, userText: String) {
        self.userText = userText
        super.init(notification: notification, actionIdentifier: actionIdentifier)
    }
}

/// The person clicked the notification itself.
public let UNNotificationDefaultActionIdentifier = "com.apple.UNNotificationDefaultActionIdentifier"
/// The person dismissed the notification.
public let UNNotificationDismissActionIdentifier = "com.apple.UNNotificationDismissActionIdentifier"
