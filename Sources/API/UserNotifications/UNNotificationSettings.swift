import Foundation

/// The availability of one way to notify the user, for example sounds or badges.
public enum UNNotificationSetting: Int, Sendable {
    /// The desktop does not support this way to notify the user.
    case notSupported = 0
    case disabled = 1
    case enabled = 2
}

/// The form in which a notification appears on the screen: as a banner, as an alert, or not at all.
public enum UNAlertStyle: Int, Sendable {
    case none = 0
    /// The notification disappears after some time.
    case banner = 1
    /// The notification stays until the user acts.
    case alert = 2
}

/// The setting that decides whether the content of a notification is shown while the screen is locked.
public enum UNShowPreviewsSetting: Int, Sendable {
    case always = 0
    case whenAuthenticated = 1
    case never = 2
}

/// The permissions for the app's notifications, as configured. Differs from Apple: one setting (``authorizationStatus``) applies
/// to all ways to notify that a desktop supports.
open class UNNotificationSettings: NSObject, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The state of the app's permission to notify.
    public let authorizationStatus: UNAuthorizationStatus

    init(authorizationStatus: UNAuthorizationStatus) { self.authorizationStatus = authorizationStatus }

    private var isOn: UNNotificationSetting { authorizationStatus == .authorized ? .enabled : .disabled }

    /// The setting for sounds.
    public var soundSetting: UNNotificationSetting { isOn }
    /// The setting for numbers on the app's icon.
    public var badgeSetting: UNNotificationSetting { isOn }
    /// The setting for notifications on the screen.
    public var alertSetting: UNNotificationSetting { isOn }
    /// The setting for the desktop's list of notifications.
    public var notificationCenterSetting: UNNotificationSetting { isOn }
    /// The setting for the lock screen. The value is always `notSupported`, because the desktop decides what the lock screen
    /// shows.
    public var lockScreenSetting: UNNotificationSetting { .notSupported }
    /// The setting for notifications in a car. The value is always `notSupported`.
    public var carPlaySetting: UNNotificationSetting { .notSupported }
    /// The setting for critical alerts. Differs from Apple: this permission cannot be granted on a desktop. The app's settings
    /// decide which notifications are shown in quiet hours.
    public var criticalAlertSetting: UNNotificationSetting { .notSupported }
    /// The setting for notifications that are read aloud.
    public var announcementSetting: UNNotificationSetting { .notSupported }
    /// The setting for time-sensitive notifications.
    public var timeSensitiveSetting: UNNotificationSetting { isOn }
    /// The setting for notifications that are collected and shown at a time of the day.
    public var scheduledDeliverySetting: UNNotificationSetting { .notSupported }
    /// The setting for messages that other people send.
    public var directMessagesSetting: UNNotificationSetting { .notSupported }
    /// The alert style: `.none` if the user switched the notifications off, otherwise `.banner`. The notification server decides
    /// how a notification really looks.
    public var alertStyle: UNAlertStyle { authorizationStatus == .authorized ? .banner : .none }
    /// The setting for previews. The value is always `.always`, because the desktop decides what the lock screen shows.
    public var showPreviewsSetting: UNShowPreviewsSetting { .always }
    /// A Boolean value that is always `false`, because desktops do not offer a link to the app's settings.
    public var providesAppNotificationSettings: Bool { false }

    open override func isEqual(_ other: Any?) -> Bool {
        (other as? UNNotificationSettings)?.authorizationStatus == authorizationStatus
    }
    open override var hash: Int { authorizationStatus.rawValue }
}
