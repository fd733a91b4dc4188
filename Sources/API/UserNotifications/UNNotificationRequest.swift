import BackgroundLedger
import Foundation

/// A notification to be shown, under an identifier of the app's choice.
public final class UNNotificationRequest: NSObject, NSCopying, @unchecked Sendable {  // because it is immutable
    /// The app's name for it: the same one again replaces it, and alerts again.
    public let identifier: String
    /// What is shown.
    public let content: UNNotificationContent
    /// When it is shown; `nil`: at once.
    public let trigger: UNNotificationTrigger?
    /// Adding it again with the content that was told already changes nothing, also after the person closed it. Beyond Apple: an app
    /// that may be killed between adding a notification and writing down that it did can add it again, and nobody is told twice. Its
    /// attachments do not count as content here.
    public let alertsOncePerContent: Bool

    /// - Parameters:
    ///   - identifier: the app's name for it: the same one again replaces it, and alerts again.
    ///   - content: what is shown; copied.
    ///   - trigger: when; `nil`: at once.
    public convenience init(identifier: String, content: UNNotificationContent, trigger: UNNotificationTrigger?) {
        self.init(identifier: identifier, content: content, trigger: trigger, alertsOncePerContent: false)
    }

    /// The same, with ``alertsOncePerContent``. Beyond Apple.
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

    /// It never changes.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationRequest else { return false }
        return identifier == other.identifier && content == other.content && trigger == other.trigger
    }
    public override var hash: Int { identifier.hashValue }
}

/// A notification that was shown.
public final class UNNotification: NSObject, NSCopying, @unchecked Sendable {  // because it is immutable
    /// When it was shown.
    public let date: Date
    /// What was added.
    public let request: UNNotificationRequest

    init(date: Date, request: UNNotificationRequest) {
        self.date = date
        self.request = request
    }

    /// It never changes.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotification else { return false }
        return date == other.date && request == other.request
    }
    public override var hash: Int { request.hash }
}
