import BackgroundNotices
import BackgroundRuntime
import Foundation

/// The trigger that decides when a notification is shown. Abstract; `nil` in a request means at once.
open class UNNotificationTrigger: NSObject, NSCopying, @unchecked Sendable {  // because subclasses are immutable
    /// A Boolean value that indicates whether the notification is shown repeatedly.
    public let repeats: Bool

    init(repeats: Bool) { self.repeats = repeats }

    /// The rule of the trigger, or `nil` for an event that does not exist on a desktop.
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

/// Shows a notification some seconds after it is added, and then repeatedly if the trigger repeats.
///
/// A notification that was missed because the computer was off is shown when the computer is on. If several were missed, one is
/// shown.
public final class UNTimeIntervalNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because immutable
    /// The number of seconds between the adding and the showing, and between two showings.
    public let timeInterval: TimeInterval

    /// - Precondition: The interval is more than 0 s, and at least 60 s if the trigger repeats.
    public init(timeInterval: TimeInterval, repeats: Bool) {
        precondition(timeInterval > 0, "a time interval trigger needs an interval above 0")
        precondition(!repeats || timeInterval >= 60, "a repeating trigger needs at least 60 s")
        self.timeInterval = timeInterval
        super.init(repeats: repeats)
    }

    /// Returns the date at which the notification would be shown if it were added now.
    public func nextTriggerDate() -> Date? { nextDate() }

    override var rule: NoticeTrigger? { .interval(timeInterval, repeats: repeats) }
}

/// Shows a notification when the local clock matches these components, and then at each match if the trigger repeats.
///
/// The trigger is a rule, not an instant. The next date is computed again when the time zone or the clock changes, unless the
/// components contain a time zone. A time that a clock change skips is served at the end of the change. If a time occurs twice,
/// the first counts. A notification that was missed because the computer was off is shown when the computer is on. If several
/// were missed, one is shown.
public final class UNCalendarNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because immutable
    /// The components to match. Components without a value are not compared.
    public let dateComponents: DateComponents

    /// Creates a trigger. If no date matches the components, a request with the trigger is refused when it is added.
    public init(dateMatching dateComponents: DateComponents, repeats: Bool) {
        self.dateComponents = dateComponents
        super.init(repeats: repeats)
    }

    /// Returns the next instant that matches, or `nil` if no instant matches. A request with such a trigger is refused.
    public func nextTriggerDate() -> Date? { nextDate() }

    override var rule: NoticeTrigger? { .calendar(dateComponents, repeats: repeats) }
}

/// A trigger for a place. Declared so that code compiles. Differs from Apple: a request with this trigger is refused, because
/// desktops do not report places.
public final class UNLocationNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because immutable
    /// Creates a trigger from any region object.
    public init(region: AnyObject, repeats: Bool) { super.init(repeats: repeats) }
}

/// A trigger for a notification that a server sent. Declared so that code compiles. Differs from Apple: push notifications do not
/// exist here.
public final class UNPushNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {}  // because immutable
