import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The settings of an app's agent: the time limits of launches, and the times in which no notifications are shown. Beyond Apple: on
/// iOS only the system decides these values.
public struct BackgroundSettings: Sendable, Equatable {
    /// The time limit in seconds of an app refresh, and of a launch for a session or a button. Default: 30.
    public var refreshBudget: Double
    /// The time limit in seconds of a processing task. Default: 600.
    public var processingBudget: Double
    /// The grace time: the number of seconds between the warning to a launch and the kill. During this time after a cancelled
    /// await, a task can also adopt the transfer. Default: 5.
    public var grace: Double
    /// The maximum number of seconds that a launch continues after its handlers returned, while an attempt at a transfer that the
    /// launch began is running. The launch then ends as completed, and values in variables of the app are lost. If the value is 0,
    /// a launch ends when its handlers have returned. A process that a user started waits at most this long for the requests that
    /// this process sends. Default: 30.
    public var continuation: Double
    /// A Boolean value that indicates whether notifications are shown. If `false`, each notification is kept for a day after its
    /// time. If the value becomes `true` during that day, the notification is shown. Default: `true`.
    public var notificationsEnabled: Bool
    /// The quiet hours, in which notifications wait, as minutes since midnight. If `until` is smaller than `from`, the quiet hours
    /// end on the next day. Default: `nil`, no quiet hours.
    public var quietHours: (from: Int, until: Int)?

    /// The minimum urgency of notifications that are shown in quiet hours.
    public enum QuietHoursPass: Int, Sendable {
        /// Notifications with `UNNotificationInterruptionLevel.timeSensitive` and above.
        case timeSensitive = 2
        /// Notifications with `UNNotificationInterruptionLevel.critical`.
        case critical = 3
    }

    /// The notifications that are also shown in quiet hours, or `nil` if no notifications are shown. Default: critical
    /// notifications.
    public var quietHoursPass: QuietHoursPass? = .critical
    /// The identifiers of categories whose notifications are not shown. A notification is kept for a day after its time. If its
    /// category is removed from this set during that day, the notification is shown. Default: none.
    public var silencedCategories: Set<String> = []

    /// Files that may be the cause of a failed launch, for example a configuration file. When one of these files changes, a launch
    /// that was abandoned (``BGTaskScheduler/abandonCurrentLaunch(_:)``) is retried at once. The agent reads this list when it
    /// starts. Default: none.
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

    /// Applies the settings to the app. The settings are stored at the latest together with the next request, transfer or
    /// notification.
    ///
    /// - Throws: an error if the ledger is open and cannot be written.
    public func apply() throws { try AppRuntime.shared.configure(recorded) }
}
