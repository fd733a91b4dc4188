import Foundation

/// A response of the user to a notification.
open class UNNotificationResponse: NSObject, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The notification that the user responded to.
    public let notification: UNNotification
    /// The identifier of a button, or ``UNNotificationDefaultActionIdentifier``, or ``UNNotificationDismissActionIdentifier``.
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

/// A response with a text that the user typed into a notification.
public final class UNTextInputNotificationResponse: UNNotificationResponse, @unchecked Sendable {  // because it is immutable
    /// The text that the user typed.
    public let userText: String

    init(notification: UNNotification, actionIdentifier: String, userText: String) {
        self.userText = userText
        super.init(notification: notification, actionIdentifier: actionIdentifier)
    }
}

/// The action identifier if the user clicked the notification.
public let UNNotificationDefaultActionIdentifier = "com.apple.UNNotificationDefaultActionIdentifier"
/// The action identifier if the user dismissed the notification.
public let UNNotificationDismissActionIdentifier = "com.apple.UNNotificationDismissActionIdentifier"
