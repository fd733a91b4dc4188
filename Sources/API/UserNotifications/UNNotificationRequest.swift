import BackgroundLedger
import Foundation

/// A request to show a notification. The app chooses the identifier of the request.
public final class UNNotificationRequest: NSObject, NSCopying, @unchecked Sendable {  // because the object is immutable
    /// The app's name for the notification. A new request with the same identifier replaces the notification and alerts the user
    /// again.
    public let identifier: String
    /// The content that is shown.
    public let content: UNNotificationContent
    /// The trigger that decides when the notification is shown. If `nil`, the notification is shown immediately.
    public let trigger: UNNotificationTrigger?
    /// A Boolean value that indicates whether a repeated request has no effect. If the value is `true`, the request changes
    /// nothing if a notification with equal identifier and content was already shown. The request also changes nothing if the
    /// user has closed the notification. An app that was killed can therefore add a notification again, and the user sees the
    /// notification only once. Attachments are not compared. Apple's API has no equivalent.
    public let alertsOncePerContent: Bool

    /// - Parameters:
    ///   - identifier: the app's name for the notification. A new request with the same identifier replaces the notification and
    ///     alerts the user again.
    ///   - content: the content that is shown. The content is copied.
    ///   - trigger: the trigger that decides when the notification is shown. If `nil`, the notification is shown immediately.
    public convenience init(identifier: String, content: UNNotificationContent, trigger: UNNotificationTrigger?) {
        self.init(identifier: identifier, content: content, trigger: trigger, alertsOncePerContent: false)
    }

    /// Creates a request with ``alertsOncePerContent``. Apple's API has no equivalent.
    public init(
        identifier: String, content: UNNotificationContent, trigger: UNNotificationTrigger?, alertsOncePerContent: Bool
    ) {
        self.identifier = identifier
        self.content = content.copy() as? UNNotificationContent ?? content
        self.trigger = trigger
        self.alertsOncePerContent = alertsOncePerContent
    }

    convenience init(_ record: NotificationRecord) {
        self.init(
            identifier: record.identifier, content: .make(from: record.content),
            trigger: record.schedule.map { UNNotificationTrigger.make(from: $0.trigger) })
    }

    /// Returns the same object, because it is immutable.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationRequest else { return false }
        return identifier == other.identifier && content == other.content && trigger == other.trigger
    }
    public override var hash: Int { identifier.hashValue }
}

/// A notification that was shown.
public final class UNNotification: NSObject, NSCopying, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The date at which the notification was shown.
    public let date: Date
    /// The request that was added.
    public let request: UNNotificationRequest

    init(date: Date, request: UNNotificationRequest) {
        self.date = date
        self.request = request
    }

    /// Returns the same object, because it is immutable.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotification else { return false }
        return date == other.date && request == other.request
    }
    public override var hash: Int { request.hash }
}
