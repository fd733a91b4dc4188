import BackgroundLedger
import Foundation

/// How much a notification may disturb.
public enum UNNotificationInterruptionLevel: UInt, Sendable {
    case passive = 0
    case active = 1
    case timeSensitive = 2
    case critical = 3
}

/// The name of a sound of the desktop's sound theme.
public struct UNNotificationSoundName: RawRepresentable, Hashable, Sendable {
    /// The name in the desktop's sound theme.
    public let rawValue: String
    /// A sound of the desktop's theme, by its name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// A sound of the desktop's theme, by its name.
    public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// A sound. Differs from Apple: names are those of the freedesktop sound theme.
public final class UNNotificationSound: Hashable, Sendable {
    let name: String

    /// A sound of the desktop's theme; one that it does not have is silence.
    public init(named name: UNNotificationSoundName) { self.name = name.rawValue }

    /// The sound of a new message.
    public static let `default` = UNNotificationSound(named: UNNotificationSoundName("message-new-instant"))
    /// The sound of an alert.
    public static let defaultCritical = UNNotificationSound(named: UNNotificationSoundName("dialog-warning"))

    public static func == (one: UNNotificationSound, other: UNNotificationSound) -> Bool { one.name == other.name }
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// What a notification says. Read only: ``UNMutableNotificationContent`` is for writing.
open class UNNotificationContent: @unchecked Sendable {  // because it is a value by use: the centre copies it in and out
    var storedTitle = ""
    var storedSubtitle = ""
    var storedBody = ""
    var storedCategory = ""
    var storedThread = ""
    var storedUserInfo: [AnyHashable: Any] = [:]
    var storedSound: UNNotificationSound?
    var storedLevel = UNNotificationInterruptionLevel.active
    var storedBadge: NSNumber?
    var storedAttachments: [UNNotificationAttachment] = []

    init() {}

    /// The headline.
    open var title: String { storedTitle }
    /// A second headline, shown above the body.
    open var subtitle: String { storedSubtitle }
    /// The text. Shown as it is written: markup is escaped.
    open var body: String { storedBody }
    /// Names the category whose buttons it gets.
    open var categoryIdentifier: String { storedCategory }
    /// Names the group that it belongs to.
    open var threadIdentifier: String { storedThread }
    /// Property-list values only.
    open var userInfo: [AnyHashable: Any] { storedUserInfo }
    /// What is heard when it is shown; `nil`: nothing.
    open var sound: UNNotificationSound? { storedSound }
    /// How urgent it is.
    open var interruptionLevel: UNNotificationInterruptionLevel { storedLevel }
    /// A number on the app's icon. Differs from Apple: kept, and shown by no desktop that is known.
    open var badge: NSNumber? { storedBadge }
    /// Files that it shows: a desktop shows the first picture.
    open var attachments: [UNNotificationAttachment] { storedAttachments }

    /// - Parameter attachments: copies of ``attachments``.
    /// - Throws: ``UNError`` when `userInfo` holds something that JSON cannot.
    func record(_ attachments: [NoticeAttachment] = []) throws -> NotificationContent {
        var plain: [String: Any] = [:]
        for (key, value) in storedUserInfo { plain["\(key)"] = value }
        guard JSONSerialization.isValidJSONObject(plain),
            let data = try? JSONSerialization.data(withJSONObject: plain, options: [.sortedKeys])
        else { throw UNError(.notificationInvalidNoContent, "userInfo holds a value that cannot be stored") }
        guard !(storedTitle + storedSubtitle + storedBody).isEmpty else {
            throw UNError(.notificationInvalidNoContent, "a notification needs a title or a body")
        }
        return NotificationContent(
            title: storedTitle, subtitle: storedSubtitle, body: storedBody, categoryIdentifier: storedCategory,
            threadIdentifier: storedThread, userInfo: String(decoding: data, as: UTF8.self), sound: storedSound?.name,
            interruptionLevel: Int(storedLevel.rawValue), badge: storedBadge?.intValue, attachments: attachments)
    }

    static func make(from record: NotificationContent) -> UNNotificationContent {
        let content = UNNotificationContent()
        content.storedTitle = record.title
        content.storedSubtitle = record.subtitle
        content.storedBody = record.body
        content.storedCategory = record.categoryIdentifier
        content.storedThread = record.threadIdentifier
        content.storedUserInfo =
            (try? JSONSerialization.jsonObject(with: Data(record.userInfo.utf8)) as? [String: Any]) ?? [:]
        content.storedSound = record.sound.map { UNNotificationSound(named: UNNotificationSoundName($0)) }
        content.storedLevel = UNNotificationInterruptionLevel(rawValue: UInt(record.interruptionLevel)) ?? .active
        content.storedBadge = record.badge.map { NSNumber(value: $0) }
        content.storedAttachments = (record.attachments ?? []).map(UNNotificationAttachment.init(stored:))
        return content
    }
}

/// What a notification is to say.
public final class UNMutableNotificationContent: UNNotificationContent, @unchecked Sendable {  // because its base is
    public override init() { super.init() }

    public override var title: String {
        get { storedTitle }
        set { storedTitle = newValue }
    }
    public override var subtitle: String {
        get { storedSubtitle }
        set { storedSubtitle = newValue }
    }
    public override var body: String {
        get { storedBody }
        set { storedBody = newValue }
    }
    public override var categoryIdentifier: String {
        get { storedCategory }
        set { storedCategory = newValue }
    }
    public override var threadIdentifier: String {
        get { storedThread }
        set { storedThread = newValue }
    }
    public override var userInfo: [AnyHashable: Any] {
        get { storedUserInfo }
        set { storedUserInfo = newValue }
    }
    public override var sound: UNNotificationSound? {
        get { storedSound }
        set { storedSound = newValue }
    }
    public override var interruptionLevel: UNNotificationInterruptionLevel {
        get { storedLevel }
        set { storedLevel = newValue }
    }
    public override var badge: NSNumber? {
        get { storedBadge }
        set { storedBadge = newValue }
    }
    public override var attachments: [UNNotificationAttachment] {
        get { storedAttachments }
        set { storedAttachments = newValue }
    }
}
