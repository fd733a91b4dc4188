import BackgroundLedger
import BackgroundRuntime
import Foundation

/// What an app asks of its agent: how long its launches may take, and when the person is not to be disturbed. Beyond Apple, where the system
/// alone decides.
public struct BackgroundSettings: Sendable, Equatable {
    /// Seconds that an app refresh, and a launch for a session or a button, may take. Default: 30.
    public var refreshBudget: Double
    /// Seconds that a processing task may take. Default: 600.
    public var processingBudget: Double
    /// Seconds between the warning and the kill; also how long a cancelled await can still be adopted by a task. Default: 5.
    public var grace: Double
    /// The maximum number of seconds that a launch continues after its handlers returned, while an attempt at a transfer that it began is
    /// under way. The launch then ends as completed, and the memory of the app is lost. At 0 a launch ends when its handlers returned. A
    /// process that a user started waits as long for the requests that it makes itself.
    /// Default: 30.
    public var continuation: Double
    /// `false`: no notification is shown. Each is kept for a day from its time on, and shown if this is `true` by then. Default: `true`.
    public var notificationsEnabled: Bool
    /// Minutes of the day, from and until, in which notifications wait; over midnight where `until` is the smaller. `nil`, the default: none.
    public var quietHours: (from: Int, until: Int)?

    /// How urgent a notification has to be to be shown in quiet hours too.
    public enum QuietHoursPass: Int, Sendable {
        /// Those of `UNNotificationInterruptionLevel.timeSensitive` and above.
        case timeSensitive = 2
        /// Those of `UNNotificationInterruptionLevel.critical`.
        case critical = 3
    }

    /// Which notifications are shown in quiet hours too; `nil`: none. Default: critical ones.
    public var quietHoursPass: QuietHoursPass? = .critical
    /// Identifiers of categories whose notifications are not shown. A notification is kept for a day from its time on, and shown if its category is taken
    /// out of here meanwhile.
    /// Default: none.
    public var silencedCategories: Set<String> = []

    /// Files that a launch may fail for, such as a configuration: when one of them changes, a launch that was abandoned
    /// (``BGTaskScheduler/abandonCurrentLaunch(_:)``) is tried again at once. Read when the agent starts. Default: none.
    public var retriesWhenFilesChange: [URL] = []

    /// The defaults.
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

    /// Makes them the app's, durably at the latest with the next request, transfer or notification.
    ///
    /// - Throws: when the ledger is open and cannot be written.
    public func apply() throws { try AppRuntime.shared.configure(recorded) }
}
