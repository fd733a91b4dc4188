import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The settings of an app's agent: the time limits of launches, and the times in which no notifications are shown. Apple's API
/// has no equivalent, because on iOS only the system decides these values.
public struct BackgroundSettings: Sendable, Equatable {
    /// The time limit in seconds of an app refresh, and of a launch for the events of a session or for a pressed button. Default:
    /// 30.
    public var refreshBudget: Double
    /// The time limit in seconds of a processing task. Default: 600.
    public var processingBudget: Double
    /// The grace time: the number of seconds between the warning to a launch and the kill of the launch's process. If the app
    /// cancels an await, a new task can continue the transfer within the same number of seconds. Default: 5.
    public var grace: Double
    /// The maximum number of seconds that a launch continues after the handlers returned. The launch continues while an attempt
    /// at a transfer that the launch began is running. After this time the launch ends as completed, and values in variables of
    /// the app are lost. If the value is 0, a launch ends when the handlers have returned. A process that a user started waits at
    /// most this number of seconds for running requests. Default: 30.
    public var continuation: Double
    /// A Boolean value that indicates whether notifications are shown. If `false`, the agent keeps each notification for a day
    /// after its due time. If the value becomes `true` during this day, the agent shows the notification. Default: `true`.
    public var notificationsEnabled: Bool
    /// The start and the end of the quiet hours, in minutes since midnight. Notifications wait until the quiet hours end. If
    /// `until` is smaller than `from`, the quiet hours end on the next day. Default: `nil` (no quiet hours).
    public var quietHours: (from: Int, until: Int)?

    /// The minimum urgency of notifications that are shown in quiet hours.
    public enum QuietHoursPass: Int, Sendable {
        /// Notifications with `UNNotificationInterruptionLevel.timeSensitive` and above.
        case timeSensitive = 2
        /// Notifications with `UNNotificationInterruptionLevel.critical`.
        case critical = 3
    }

    /// The kind of notifications that are also shown in quiet hours, or `nil` if no notifications are shown in quiet hours.
    /// Default: critical notifications.
    public var quietHoursPass: QuietHoursPass? = .critical
    /// The identifiers of categories whose notifications are not shown. The agent keeps such a notification for a day after its
    /// due time. If the app removes the category from this set during this day, the agent shows the notification. Default: an
    /// empty set.
    public var silencedCategories: Set<String> = []

    /// Files that may be the cause of a failed launch, for example a configuration file. When one of these files changes, the
    /// agent immediately retries an abandoned launch (``BGTaskScheduler/abandonCurrentLaunch(_:)``). The agent reads this list
    /// only when the agent starts. Default: an empty list.
    public var retriesWhenFilesChange: [URL] = []

    /// Creates the default settings.
    public init() {
        let settings = AgentSettings()
        (refreshBudget, processingBudget, grace) = (settings.refreshBudget, settings.processingBudget, settings.grace)
        continuation = settings.continuation
        (notificationsEnabled, quietHours) = (settings.notificationsEnabled, nil)
    }

    public static func == (one: BackgroundSettings, other: BackgroundSettings) -> Bool { one.recorded == other.recorded }

    private var recorded: AgentSettings {
        var settings = AgentSettings()
        (settings.refreshBudget, settings.processingBudget, settings.grace) = (refreshBudget, processingBudget, grace)
        settings.continuation = continuation
        settings.notificationsEnabled = notificationsEnabled
        if !retriesWhenFilesChange.isEmpty { settings.watchedFiles = retriesWhenFilesChange.map(\.path) }
        settings.loudLevel = quietHoursPass?.rawValue ?? 4
        if !silencedCategories.isEmpty { settings.silencedCategories = silencedCategories.sorted() }
        if let quietHours {
            func text(_ minute: Int) -> String { String(format: "%02d:%02d", minute / 60, minute % 60) }
            settings.quietHours = "\(text(quietHours.from))-\(text(quietHours.until))"
        }
        return settings
    }

    /// Applies the settings to the app. The ledger stores the settings at the latest together with the next request, transfer or
    /// notification.
    ///
    /// - Throws: an error if the ledger is open and cannot be written.
    public func apply() throws { try AppRuntime.shared.configure(recorded) }
}
