import BackgroundNotices
import BackgroundRuntime
import Foundation

/// When a notification is shown. Abstract; `nil` in a request means at once.
open class UNNotificationTrigger: NSObject, NSCopying, @unchecked Sendable {  // because subclasses are immutable
    /// Whether it is shown again and again.
    public let repeats: Bool

    init(repeats: Bool) { self.repeats = repeats }

    /// What it waits for; `nil`: nothing that comes on a desktop.
    var rule: NoticeTrigger? { nil }

    /// It never changes.
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

/// Shows a notification some seconds from when it is added, and then again and again where it repeats.
///
/// One that was missed, as the computer was off, is shown when it is on; of several that were missed, one.
public final class UNTimeIntervalNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because immutable
    /// Seconds from the adding to the showing, and between two showings.
    public let timeInterval: TimeInterval

    /// - Precondition: more than 0 s; at least 60 s when it repeats.
    public init(timeInterval: TimeInterval, repeats: Bool) {
        precondition(timeInterval > 0, "a time interval trigger needs an interval above 0")
        precondition(!repeats || timeInterval >= 60, "a repeating trigger needs at least 60 s")
        self.timeInterval = timeInterval
        super.init(repeats: repeats)
    }

    /// When it would be shown if it were added now.
    public func nextTriggerDate() -> Date? { nextDate() }

    override var rule: NoticeTrigger? { .interval(timeInterval, repeats: repeats) }
}

/// Shows a notification when clocks on the wall show these components, and then at each such instant where it repeats.
///
/// A rule, and not an instant: where the person travels, or the clock is set, it is read again, unless the components name a time zone. A
/// time that a change of clocks skips comes at its end; of one that comes twice the first counts. One that was missed, as the computer was
/// off, is shown when it is on; of several that were missed, one.
public final class UNCalendarNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because immutable
    /// Components that have a value are matched, and no others.
    public let dateComponents: DateComponents

    /// One that no date matches is refused when its request is added.
    public init(dateMatching dateComponents: DateComponents, repeats: Bool) {
        self.dateComponents = dateComponents
        super.init(repeats: repeats)
    }

    /// The next instant that matches; `nil`: none does, and a request with it is refused.
    public func nextTriggerDate() -> Date? { nextDate() }

    override var rule: NoticeTrigger? { .calendar(dateComponents, repeats: repeats) }
}

/// Of a place. Declared so that code compiles; differs from Apple: a request with it is refused, as no desktop tells of places.
public final class UNLocationNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {  // because immutable
    /// Takes whatever an app has for a region.
    public init(region: AnyObject, repeats: Bool) { super.init(repeats: repeats) }
}

/// Of a notification that a server sent. Declared so that code compiles; differs from Apple: there are none.
public final class UNPushNotificationTrigger: UNNotificationTrigger, @unchecked Sendable {}  // because immutable
