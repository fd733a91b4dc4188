import BackgroundNotices
import BackgroundRuntime
import Foundation

/// A trigger that decides when a notification is shown. This class is abstract. If a request has no trigger, the notification is
/// shown immediately.
open class UNNotificationTrigger: NSObject, NSCopying, @unchecked Sendable {  // Unchecked, because subclasses are immutable
    /// A Boolean value that indicates whether the notification is shown repeatedly.
    public let repeats: Bool

    init(repeats: Bool) { self.repeats = repeats }

    /// The rule of the trigger, or `nil` for a trigger that does not exist on a desktop (a region or a push).
    var rule: NoticeTrigger? { nil }

    /// Returns the same object, because it is immutable.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    open override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationTrigger, let rule else { return other as? UNNotificationTrigger === self }
        return other.rule == rule
    }
    open override var hash: Int { repeats ? 1 : 0 }

    static func make(from rule: NoticeTrigger) -> UNNotificationTrigger {
        switch rule {
        case .interval(let seconds, let repeats): UNTimeIntervalNotificationTrigger(timeInterval: seconds, repeats: repeats)
        case .calendar(let components, let repeats): UNCalendarNotificationTrigger(dateMatching: components, repeats: repeats)
        }
    }

    fileprivate func nextDate() -> Date? { rule?.next(after: AppRuntime.shared.now, zone: AppRuntime.shared.zone) }
}

/// A trigger that shows a notification a number of seconds after the app adds the notification. If the trigger repeats, the
/// notification is shown again after each interval.
///
/// If the computer was off at the time of a notification, the notification is shown when the computer is on again. If several
/// times were missed, the notification is shown once.
public final class UNTimeIntervalNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because it is immutable
    /// The number of seconds until the notification is shown, and the number of seconds between two repetitions.
    public let timeInterval: TimeInterval

    /// - Precondition: The interval is more than 0 s, and at least 60 s if the trigger repeats.
    public init(timeInterval: TimeInterval, repeats: Bool) {
        precondition(timeInterval > 0, "a time interval trigger needs an interval above 0")
        precondition(!repeats || timeInterval >= 60, "a repeating trigger needs an interval of at least 60 s")
        self.timeInterval = timeInterval
        super.init(repeats: repeats)
    }

    /// Returns the date at which the notification would be shown if it were added now.
    public func nextTriggerDate() -> Date? { nextDate() }

    override var rule: NoticeTrigger? { .interval(timeInterval, repeats: repeats) }
}

/// A trigger that shows a notification when the local time matches date components. If the trigger repeats, the notification is
/// shown at each match.
///
/// The trigger is a rule and not a fixed date. If the components contain no time zone, the next date is computed again when the
/// time zone or the clock changes. If a change to daylight saving time skips a matching time, the notification is shown at the
/// end of the skipped period. If a matching time occurs twice, the notification is shown at the first of the two times. If the
/// computer was off at the time of a notification, the notification is shown when the computer is on again. If several times were
/// missed, the notification is shown once.
public final class UNCalendarNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because the object is immutable
    /// The components to match. Components without a value are not compared.
    public let dateComponents: DateComponents

    /// Creates a trigger. If no future date matches the components, the notification center refuses a request with this trigger.
    public init(dateMatching dateComponents: DateComponents, repeats: Bool) {
        self.dateComponents = dateComponents
        super.init(repeats: repeats)
    }

    /// Returns the next date that matches, or `nil` if no date matches. If no date matches, the notification center refuses a
    /// request with this trigger.
    public func nextTriggerDate() -> Date? { nextDate() }

    override var rule: NoticeTrigger? { .calendar(dateComponents, repeats: repeats) }
}

/// A trigger that shows a notification in a region. The declaration exists only so that code for iOS compiles. Differs from
/// Apple: the notification center refuses a request with this trigger, because desktops do not report when the user enters or
/// leaves a region.
public final class UNLocationNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because the object is immutable
    /// Creates a trigger from any region object.
    public init(region: AnyObject, repeats: Bool) { super.init(repeats: repeats) }
}

/// A trigger for a notification that a server sent. The declaration exists only so that code for iOS compiles. Differs from
/// Apple: this module does not support push notifications.
public final class UNPushNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {}  // because the object is immutable
