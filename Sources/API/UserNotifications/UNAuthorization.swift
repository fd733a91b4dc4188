/// The permissions that an app requests. Differs from Apple: a desktop grants all permissions or no permission.
public struct UNAuthorizationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The app may show a badge number on its icon.
    public static let badge = UNAuthorizationOptions(rawValue: 1)
    /// The app may play sounds with its notifications.
    public static let sound = UNAuthorizationOptions(rawValue: 2)
    /// The app may show notifications on the screen.
    public static let alert = UNAuthorizationOptions(rawValue: 4)
    /// The app may show notifications on the screen of a car. The value is stored and has no effect.
    public static let carPlay = UNAuthorizationOptions(rawValue: 8)
    /// The app may show critical alerts, which also play their sound in quiet hours.
    public static let criticalAlert = UNAuthorizationOptions(rawValue: 16)
    /// Asks the desktop to show a link to the app's notification settings. The value is stored and has no effect, because
    /// desktops do not offer such a link.
    public static let providesAppNotificationSettings = UNAuthorizationOptions(rawValue: 32)
    /// The app may show quiet notifications, and the user is not asked for permission.
    public static let provisional = UNAuthorizationOptions(rawValue: 64)
    /// The notifications of the app may be read aloud. Apple deprecated this option. The value is stored and has no effect.
    public static let announcement = UNAuthorizationOptions(rawValue: 128)
    /// The app may show time-sensitive notifications. Apple deprecated this option, because an interruption level needs no
    /// permission.
    public static let timeSensitive = UNAuthorizationOptions(rawValue: 256)
}

/// The state of the app's permission to notify.
public enum UNAuthorizationStatus: Int, Sendable {
    /// The permission was not requested yet. Differs from Apple: this value is never used, because a desktop needs no permission
    /// request.
    case notDetermined = 0
    /// The user switched the app's notifications off.
    case denied = 1
    case authorized = 2
    /// A provisional permission. Differs from Apple: this value is never used.
    case provisional = 3
    /// The permission of an App Clip. Differs from Apple: this value is never used.
    case ephemeral = 4
}

/// The parts of a notification that are shown if the notification arrives while the app is in front.
public struct UNNotificationPresentationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The badge number is shown on the app's icon.
    public static let badge = UNNotificationPresentationOptions(rawValue: 1)
    /// The sound of the notification is played.
    public static let sound = UNNotificationPresentationOptions(rawValue: 2)
    /// The combination of ``list`` and ``banner``. Apple deprecated this option. Use ``list`` and ``banner`` instead.
    public static let alert = UNNotificationPresentationOptions(rawValue: 4)
    /// The notification is added to the desktop's list of notifications.
    public static let list = UNNotificationPresentationOptions(rawValue: 8)
    /// The notification is shown as a banner on the screen.
    public static let banner = UNNotificationPresentationOptions(rawValue: 16)
}
