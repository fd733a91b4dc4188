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
    public let timeInterval: TimeInterval
    public let repeats: Bool

    /// - Precondition: more than 0 s; at least 60 s when it repeats.
    public init(timeInterval: TimeInterval, repeats: Bool) {
        precondition(timeInterval > 0, "a time interval trigger needs an interval above 0")
        precondition(!repeats || timeInterval >= 60, "a repeating trigger needs at least 60 s")
        self.timeInterval = timeInterval
        self.repeats = repeats
        super.init()
    }

    public func nextTriggerDate() -> Date? { AppRuntime.shared.now.addingTimeInterval(timeInterval) }

    override func dueDate(now: Date) -> Date? { now.addingTimeInterval(timeInterval) }
}

/// A notification to be shown, under an identifier of the app's choice.
public final class UNNotificationRequest: Sendable {
    public let identifier: String
    public let content: UNNotificationContent
    public let trigger: UNNotificationTrigger?

    public init(identifier: String, content: UNNotificationContent, trigger: UNNotificationTrigger?) {
        self.identifier = identifier
        self.content = content
        self.trigger = trigger
    }
}

/// A notification that was shown.
public final class UNNotification: Sendable {
    public let date: Date
    public let request: UNNotificationRequest

    init(date: Date, request: UNNotificationRequest) {
        self.date = date
        self.request = request
    }
}

/// What a person did with a notification.
public final class UNNotificationResponse: Sendable {
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

public struct UNNotificationActionOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let authenticationRequired = UNNotificationActionOptions(rawValue: 1)
    public static let destructive = UNNotificationActionOptions(rawValue: 2)
    public static let foreground = UNNotificationActionOptions(rawValue: 4)
}

/// A button.
public final class UNNotificationAction: Hashable, Sendable {
    public let identifier: String
    public let title: String
    public let options: UNNotificationActionOptions

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

public struct UNNotificationCategoryOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let customDismissAction = UNNotificationCategoryOptions(rawValue: 1)
}

/// The buttons of a kind of notification.
public final class UNNotificationCategory: Hashable, Sendable {
    public let identifier: String
    public let actions: [UNNotificationAction]
    public let intentIdentifiers: [String]
    public let options: UNNotificationCategoryOptions

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
    public enum Code: Int, Sendable {
        case notificationsNotAllowed = 1
        case notificationInvalidNoDate = 1400
        case notificationInvalidNoContent = 1401
    }

    public let code: Code
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
