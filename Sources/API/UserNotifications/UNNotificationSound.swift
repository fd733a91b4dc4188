import BackgroundLedger
import Foundation

/// The name of a sound: a name in the desktop's sound theme, or a file.
public struct UNNotificationSoundName: RawRepresentable, Hashable, Sendable {
    /// A name in the desktop's sound theme, a path, or the name of a file of the app with its extension.
    public let rawValue: String
    /// Creates a name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// Creates a name.
    public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A sound of a notification. Differs from Apple: a name without an extension is a name in the freedesktop sound theme. The
/// desktop sets the volume.
open class UNNotificationSound: NSObject, @unchecked Sendable {  // Unchecked, because the object is immutable
    let name: String

    /// Creates a sound from a name in the desktop's theme, or from a file. If the theme does not contain the name, the desktop
    /// plays no sound. To use a file, pass a path, or a file name with an extension ("ping.oga"). A file name is searched in the
    /// app's bundle and in the bundles of the app's targets. If the file does not exist, the default sound is used, as on iOS.
    /// The desktop decides which file formats can be played.
    public init(named name: UNNotificationSoundName) { self.name = name.rawValue }

    /// The sound of a new message.
    public static let `default` = UNNotificationSound(named: UNNotificationSoundName(NotificationContent.defaultSound))
    /// The sound of an alert.
    public static let defaultCritical = UNNotificationSound(named: UNNotificationSoundName("dialog-warning"))
    /// The sound of a call.
    public static let defaultRingtone = UNNotificationSound(named: UNNotificationSoundName("phone-incoming-call"))

    /// Returns the sound of an alert. The volume (0 to 1) is not used, because the desktop sets the volume.
    public static func defaultCriticalSound(withAudioVolume volume: Float) -> UNNotificationSound { defaultCritical }
    /// Returns the sound with this name, as ``init(named:)`` does.
    public static func criticalSoundNamed(_ name: UNNotificationSoundName) -> UNNotificationSound {
        UNNotificationSound(named: name)
    }
    /// Returns the sound with this name, as ``init(named:)`` does. The volume (0 to 1) is not used, because the desktop sets the
    /// volume.
    public static func criticalSoundNamed(_ name: UNNotificationSoundName, withAudioVolume volume: Float) -> UNNotificationSound {
        UNNotificationSound(named: name)
    }
    /// Returns the sound with this name, as ``init(named:)`` does.
    public static func ringtoneSoundNamed(_ name: UNNotificationSoundName) -> UNNotificationSound {
        UNNotificationSound(named: name)
    }

    /// The path of the sound's file, or `nil` if the sound has no file or the file does not exist.
    var file: String? {
        guard NotificationContent.isSoundFile(name) else { return nil }
        if name.hasPrefix("/") { return FileManager.default.fileExists(atPath: name) ? name : nil }
        // A relative path with a slash is refused, because it could lead to a file outside the bundle.
        guard !name.contains("/"), let folder = Bundle.main.resourceURL else { return nil }
        let entries = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        let places = [folder] + entries.filter { ["resources", "bundle"].contains($0.pathExtension) }
        return places.map { $0.appendingPathComponent(name).path }.first { FileManager.default.fileExists(atPath: $0) }
    }

    open override func isEqual(_ other: Any?) -> Bool { (other as? UNNotificationSound)?.name == name }
    open override var hash: Int { name.hashValue }
}
