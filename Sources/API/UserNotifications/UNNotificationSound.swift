import BackgroundLedger
import Foundation

/// The name of a sound: of the desktop's sound theme, or of a file.
public struct UNNotificationSoundName: RawRepresentable, Hashable, Sendable {
    /// A name in the desktop's sound theme, a path, or the name of a file of the app's with its extension.
    public let rawValue: String
    /// A sound, by its name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A sound, by its name.
    public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A sound. Differs from Apple: a name without an extension is one of the freedesktop sound theme, and the desktop has its own volume.
open class UNNotificationSound: NSObject, @unchecked Sendable {  // because it is immutable
    let name: String

    /// A sound of the desktop's theme, which is silent where it has none of that name, or a file: a path, or a name with an extension ("ping.oga") of what lies
    /// in the app's bundle, or in that of one of its targets. A file that is not there is the default sound, as on iOS. Desktops play what they can.
    public init(named name: UNNotificationSoundName) { self.name = name.rawValue }

    /// The sound of a new message.
    public static let `default` = UNNotificationSound(named: UNNotificationSoundName(NotificationContent.defaultSound))
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

    /// The path of the file that it names; `nil`: none, or it is not there.
    var file: String? {
        guard NotificationContent.isSoundFile(name) else { return nil }
        if name.hasPrefix("/") { return FileManager.default.fileExists(atPath: name) ? name : nil }
        // A name, and no way out of the folder.
        guard !name.contains("/"), let folder = Bundle.main.resourceURL else { return nil }
        let entries = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        let places = [folder] + entries.filter { ["resources", "bundle"].contains($0.pathExtension) }
        return places.map { $0.appendingPathComponent(name).path }.first { FileManager.default.fileExists(atPath: $0) }
    }

    open override func isEqual(_ other: Any?) -> Bool { (other as? UNNotificationSound)?.name == name }
    open override var hash: Int { name.hashValue }
}
