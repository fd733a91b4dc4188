/// What an app asks for. Differs from Apple: a desktop grants all or nothing.
public struct UNAuthorizationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// A number on the app's icon.
    public static let badge = UNAuthorizationOptions(rawValue: 1)
    /// Sounds.
    public static let sound = UNAuthorizationOptions(rawValue: 2)
    /// Notifications on the screen.
    public static let alert = UNAuthorizationOptions(rawValue: 4)
    /// In a car. Without effect here.
    public static let carPlay = UNAuthorizationOptions(rawValue: 8)
    /// Alerts that are heard in quiet hours, too.
    public static let criticalAlert = UNAuthorizationOptions(rawValue: 16)
    /// The app has settings of its own. Kept, and without effect: no desktop has a way to them.
    public static let providesAppNotificationSettings = UNAuthorizationOptions(rawValue: 32)
    /// Quiet notifications, without a question.
    public static let provisional = UNAuthorizationOptions(rawValue: 64)
    /// Read aloud. Without effect here; deprecated by Apple.
    public static let announcement = UNAuthorizationOptions(rawValue: 128)
    /// Deprecated by Apple: a level of interruption needs no permission.
    public static let timeSensitive = UNAuthorizationOptions(rawValue: 256)
}

/// Whether the person lets the app notify.
public enum UNAuthorizationStatus: Int, Sendable {
    /// Not asked yet. Differs from Apple: never on a desktop, which asks nobody.
    case notDetermined = 0
    /// The person switched the app's notifications off.
    case denied = 1
    case authorized = 2
    /// Of a trial. Differs from Apple: never on a desktop.
    case provisional = 3
    /// Of an App Clip. Differs from Apple: never on a desktop.
    case ephemeral = 4
}

/// What is shown of a notification that comes while the app is in front.
public struct UNNotificationPresentationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// Its number on the app's icon.
    public static let badge = UNNotificationPresentationOptions(rawValue: 1)
    /// Its sound.
    public static let sound = UNNotificationPresentationOptions(rawValue: 2)
    /// Deprecated by Apple for ``list`` and ``banner``, and taken for both.
    public static let alert = UNNotificationPresentationOptions(rawValue: 4)
    /// In the desktop's list of notifications.
    public static let list = UNNotificationPresentationOptions(rawValue: 8)
    /// On the screen.
    public static let banner = UNNotificationPresentationOptions(rawValue: 16)
}
