import BackgroundLedger
import BackgroundRuntime
import Foundation

/// When a notification is shown. Abstract; `nil` in a request means at once.
open class UNNotificationTrigger: @unchecked Sendable {  // because subclasses are immutable
    init() {}

    func dueDate(now: Date) -> Date? { nil }
}

/// Shows a notification some seconds from when it is added.
///
/// Differs from Apple: `repeats` is not there yet; a repeating trigger is refused by `add`.
public final class UNTimeIntervalNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because immutable
    /// Seconds from the adding to the showing.
    public let timeInterval: TimeInterval
    /// Whether it is shown again and again.
    public let repeats: Bool

    /// - Precondition: more than 0 s; at least 60 s when it repeats.
    public init(timeInterval: TimeInterval, repeats: Bool) {
        precondition(timeInterval > 0, "a time interval trigger needs an interval above 0")
        precondition(!repeats || timeInterval >= 60, "a repeating trigger needs at least 60 s")
        self.timeInterval = timeInterval
        self.repeats = repeats
        super.init()
    }

    /// When it would be shown if it were added now.
    public func nextTriggerDate() -> Date? { AppRuntime.shared.now.addingTimeInterval(timeInterval) }

    override func dueDate(now: Date) -> Date? { now.addingTimeInterval(timeInterval) }
}

/// A notification to be shown, under an identifier of the app's choice.
public final class UNNotificationRequest: Sendable {
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
        self.content = content
        self.trigger = trigger
        self.alertsOncePerContent = alertsOncePerContent
    }
}

/// A notification that was shown.
public final class UNNotification: Sendable {
    /// When it was shown.
    public let date: Date
    /// What was added.
    public let request: UNNotificationRequest

    init(date: Date, request: UNNotificationRequest) {
        self.date = date
        self.request = request
    }
}

/// What a person did with a notification.
public final class UNNotificationResponse: Sendable {
    /// The notification whose button was pressed.
    public let notification: UNNotification
    /// A button's identifier, or ``UNNotificationDefaultActionIdentifier``.
    public let actionIdentifier: String

    init(notification: UNNotification, actionIdentifier: String) {
        self.notification = notification
        self.actionIdentifier = actionIdentifier
    }
}

/// The person clicked the notification itself.
public let UNNotificationDefaultActionIdentifier = "com.apple.UNNotificationDefaultActionIdentifier"
/// The person dismissed the notification.
public let UNNotificationDismissActionIdentifier = "com.apple.UNNotificationDismissActionIdentifier"

/// How a button behaves. Differs from Apple: kept, and without effect on a desktop.
public struct UNNotificationActionOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The person has to unlock the device first.
    public static let authenticationRequired = UNNotificationActionOptions(rawValue: 1)
    /// What it does cannot be undone.
    public static let destructive = UNNotificationActionOptions(rawValue: 2)
    /// It opens the app.
    public static let foreground = UNNotificationActionOptions(rawValue: 4)
}

/// A button.
public final class UNNotificationAction: Hashable, Sendable {
    /// What the response says when it is pressed.
    public let identifier: String
    /// What stands on it.
    public let title: String
    /// How it behaves.
    public let options: UNNotificationActionOptions

    /// - Parameters:
    ///   - identifier: what the response says when it is pressed.
    ///   - title: what stands on it.
    ///   - options: how it behaves.
    public init(identifier: String, title: String, options: UNNotificationActionOptions = []) {
        self.identifier = identifier
        self.title = title
        self.options = options
    }

    public static func == (one: UNNotificationAction, other: UNNotificationAction) -> Bool {
        one.identifier == other.identifier && one.title == other.title && one.options == other.options
    }
    public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}

/// What else is told of notifications of a category.
public struct UNNotificationCategoryOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// Its closing by the person is told as a response.
    public static let customDismissAction = UNNotificationCategoryOptions(rawValue: 1)
}

/// The buttons of a kind of notification.
public final class UNNotificationCategory: Hashable, Sendable {
    /// What contents name it by.
    public let identifier: String
    /// Its buttons, in their order.
    public let actions: [UNNotificationAction]
    /// Of Siri's intents: kept, and without effect.
    public let intentIdentifiers: [String]
    /// What else is told of its notifications.
    public let options: UNNotificationCategoryOptions

    /// - Parameters:
    ///   - identifier: what contents name it by.
    ///   - actions: its buttons, in their order.
    ///   - intentIdentifiers: of Siri's intents: kept, and without effect.
    ///   - options: what else is told of its notifications.
    public init(
        identifier: String, actions: [UNNotificationAction], intentIdentifiers: [String],
        options: UNNotificationCategoryOptions = []
    ) {
        self.identifier = identifier
        self.actions = actions
        self.intentIdentifiers = intentIdentifiers
        self.options = options
    }

    public static func == (one: UNNotificationCategory, other: UNNotificationCategory) -> Bool {
        one.identifier == other.identifier && one.actions == other.actions
    }
    public func hash(into hasher: inout Hasher) { hasher.combine(identifier) }
}

/// Why a notification was not accepted.
public struct UNError: Error, Sendable, Equatable, CustomNSError, LocalizedError {
    /// What is wrong, by Apple's numbers.
    public enum Code: Int, Sendable {
        case notificationsNotAllowed = 1
        case attachmentInvalidURL = 100
        case attachmentUnrecognizedType = 101
        case attachmentInvalidFileSize = 102
        case attachmentNotInDataStore = 103
        case attachmentMoveIntoDataStoreFailed = 104
        case attachmentCorrupt = 105
        case notificationInvalidNoDate = 1400
        case notificationInvalidNoContent = 1401
    }

    /// What is wrong.
    public let code: Code
    /// A sentence that says what is wrong.
    public let reason: String

    init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    public static var errorDomain: String { "UNErrorDomain" }
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: reason] }
    public var errorDescription: String? { reason }
}
