import Foundation

/// The name of a sound of the desktop's sound theme.
public struct UNNotificationSoundName: RawRepresentable, Hashable, Sendable {
    /// The name in the desktop's sound theme.
    public let rawValue: String
    /// A sound of the desktop's theme, by its name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A sound of the desktop's theme, by its name.
    public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A sound. Differs from Apple: names are those of the freedesktop sound theme, and the desktop has its own volume.
open class UNNotificationSound: NSObject, @unchecked Sendable {  // because it is immutable
    let name: String

    /// A sound of the desktop's theme; one that it does not have is silence.
    public init(named name: UNNotificationSoundName) { self.name = name.rawValue }

    /// The sound of a new message.
    public static let `default` = UNNotificationSound(named: UNNotificationSoundName("message-new-instant"))
    /// The sound of an alert.
    public static let defaultCritical = UNNotificationSound(named: UNNotificationSoundName("dialog-warning"))
    /// The sound of a call.
    public static let defaultRingtone = UNNotificationSound(named: UNNotificationSoundName("phone-incoming-call"))

    /// The sound of an alert. The volume, 0 to 1, is the desktop's own here.
    public static func defaultCriticalSound(withAudioVolume volume: Float) -> UNNotificationSound { defaultCritical }
    /// A sound of an alert, by its name.
    public static func criticalSoundNamed(_ name: UNNotificationSoundName) -> UNNotificationSound {
        UNNotificationSound(named: name)
    }
    /// A sound of an alert, by its name. The volume, 0 to 1, is the desktop's own here.
    public static func criticalSoundNamed(_ name: UNNotificationSoundName, withAudioVolume volume: Float) -> UNNotificationSound {
        UNNotificationSound(named: name)
    }
    /// A sound of a call, by its name.
    public static func ringtoneSoundNamed(_ name: UNNotificationSoundName) -> UNNotificationSound {
        UNNotificationSound(named: name)
    }

    open override func isEqual(_ other: Any?) -> Bool { (other as? UNNotificationSound)?.name == name }
    open override var hash: Int { name.hashValue }
}
