import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The settings of an app's agent: how long launches may take, and when the user must not be disturbed. Beyond Apple, where only
/// the system decides.
public struct BackgroundSettings: Sendable, Equatable {
    /// The time limit in seconds of an app refresh, and of a launch for a session or a button. Default: 30.
    public var refreshBudget: Double
    /// The time limit in seconds of a processing task. Default: 600.
    public var processingBudget: Double
    /// The number of seconds between the warning and the kill. A cancelled await can be adopted by a task for the same time.
    /// Default: 5.
    public var grace: Double
    /// The maximum number of seconds that a launch continues after its handlers returned, while an attempt at a transfer that it
    /// began is under way. The launch then ends as completed, and the memory of the app is lost. If the value is 0, a launch ends
    /// when its handlers returned. A process that a user started waits for the same time for the requests that it makes itself.
    /// Default: 30.
    public var continuation: Double
    /// A Boolean value that indicates whether notifications are shown. If `false`, each notification is kept for a day from its
    /// time, and is shown if the value is `true` again by then. Default: `true`.
    public var notificationsEnabled: Bool
    /// The minutes of the day, from and until, in which notifications wait. The hours pass midnight if `until` is smaller.
    /// Default: `nil`, no quiet hours.
    public var quietHours: (from: Int, until: Int)?

    /// The urgency that a notification needs to be shown in quiet hours.
    public enum QuietHoursPass: Int, Sendable {
        /// Notifications with `UNNotificationInterruptionLevel.timeSensitive` and above.
        case timeSensitive = 2
        /// Notifications with `UNNotificationInterruptionLevel.critical`.
        case critical = 3
    }

    /// The notifications that are also shown in quiet hours, or `nil` for none. Default: critical notifications.
    public var quietHoursPass: QuietHoursPass? = .critical
    /// The identifiers of categories whose notifications are not shown. A notification is kept for a day from its time, and is
    /// shown if its category is removed from this set by then.
    /// Default: none.
    public var silencedCategories: Set<String> = []

    /// Files that may be the cause of a failed launch, for example a configuration. When one of them changes, a launch that was
    /// abandoned (``BGTaskScheduler/abandonCurrentLaunch(_:)``) is retried at once. Read when the agent starts. Default: none.
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

    /// Applies the settings to the app. They are durable at the latest with the next request, transfer or notification.
    ///
    /// - Throws: an error if the ledger is open and cannot be written.
    public func apply() throws { try AppRuntime.shared.configure(recorded) }
}
