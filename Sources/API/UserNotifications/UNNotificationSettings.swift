import Foundation

/// Whether one kind of notification is switched on.
public enum UNNotificationSetting: Int, Sendable {
    /// There is none here.
    case notSupported = 0
    case disabled = 1
    case enabled = 2
}

/// How a notification is shown.
public enum UNAlertStyle: Int, Sendable {
    case none = 0
    /// It goes by itself.
    case banner = 1
    /// It stays until the person acts.
    case alert = 2
}

/// When the content of a notification is shown.
public enum UNShowPreviewsSetting: Int, Sendable {
    case always = 0
    case whenAuthenticated = 1
    case never = 2
}

/// What the person allows, as configured. Differs from Apple: one switch for everything that a desktop can show.
open class UNNotificationSettings: NSObject, @unchecked Sendable {  // because it is immutable
    /// Whether the person lets the app notify.
    public let authorizationStatus: UNAuthorizationStatus

    init(authorizationStatus: UNAuthorizationStatus) { self.authorizationStatus = authorizationStatus }

    private var isOn: UNNotificationSetting { authorizationStatus == .authorized ? .enabled : .disabled }

    /// Sounds.
    public var soundSetting: UNNotificationSetting { isOn }
    /// Numbers on the app's icon, where the desktop has them.
    public var badgeSetting: UNNotificationSetting { isOn }
    /// On the screen.
    public var alertSetting: UNNotificationSetting { isOn }
    /// In the desktop's list.
    public var notificationCenterSetting: UNNotificationSetting { isOn }
    /// Desktops have a rule of their own for it.
    public var lockScreenSetting: UNNotificationSetting { .notSupported }
    /// In a car.
    public var carPlaySetting: UNNotificationSetting { .notSupported }
    /// What may be heard in quiet hours. Differs from Apple: nobody grants it, and quiet hours hold everything back.
    public var criticalAlertSetting: UNNotificationSetting { .notSupported }
    /// Read aloud.
    public var announcementSetting: UNNotificationSetting { .notSupported }
    /// What stays until the person acts.
    public var timeSensitiveSetting: UNNotificationSetting { isOn }
    /// Gathered for a time of the day.
    public var scheduledDeliverySetting: UNNotificationSetting { .notSupported }
    /// Of other people.
    public var directMessagesSetting: UNNotificationSetting { .notSupported }
    /// Each server has its own; `.none` where the person switched them off.
    public var alertStyle: UNAlertStyle { authorizationStatus == .authorized ? .banner : .none }
    /// Desktops have a rule of their own for the lock screen.
    public var showPreviewsSetting: UNShowPreviewsSetting { .always }
    /// No desktop has a way to settings of the app.
    public var providesAppNotificationSettings: Bool { false }

    open override func isEqual(_ other: Any?) -> Bool {
        (other as? UNNotificationSettings)?.authorizationStatus == authorizationStatus
    }
    open override var hash: Int { authorizationStatus.rawValue }
}
