import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The urgency of a notification.
public enum UNNotificationInterruptionLevel: UInt, Sendable {
    case passive = 0
    case active = 1
    case timeSensitive = 2
    case critical = 3
}

/// The content of a notification. All properties are read-only. To set properties, use ``UNMutableNotificationContent``.
open class UNNotificationContent: NSObject, NSCopying, NSMutableCopying, @unchecked Sendable {  // because apps use it as a value
    struct Fields {
        var title = ""
        var subtitle = ""
        var body = ""
        var category = ""
        var thread = ""
        var userInfo: [AnyHashable: Any] = [:]
        var sound: UNNotificationSound?
        var level = UNNotificationInterruptionLevel.active
        var badge: NSNumber?
        var attachments: [UNNotificationAttachment] = []
        var target: String?
        var launchImage = ""
        var relevance = 0.0
        var filter: String?
        var summaryArgument = ""
        var summaryCount = 0
        var expiration: Date?
        var withoutButtons: String?
    }

    /// The fields of the content. A subclass that an app declares cannot write these fields.
    fileprivate(set) var fields = Fields()

    public override init() { super.init() }

    init(_ fields: Fields) {
        self.fields = fields
        super.init()
    }

    /// The title of the notification.
    open var title: String { fields.title }
    /// The second headline. The desktop shows the subtitle above the body.
    open var subtitle: String { fields.subtitle }
    /// The text of the notification. Markup in the text is escaped, so the text is shown unchanged.
    open var body: String { fields.body }
    /// The identifier of the category that provides the buttons.
    open var categoryIdentifier: String { fields.category }
    /// The identifier of the notification's group. Notifications with the same identifier belong to one group.
    open var threadIdentifier: String { fields.thread }
    /// Values that the app stores with the notification. Only property-list types are allowed.
    open var userInfo: [AnyHashable: Any] { fields.userInfo }
    /// The sound of the notification, or `nil` for no sound.
    open var sound: UNNotificationSound? { fields.sound }
    /// The urgency of the notification.
    open var interruptionLevel: UNNotificationInterruptionLevel { fields.level }
    /// The number on the app's icon. Differs from Apple: only docks that support Unity's launcher API show the number.
    open var badge: NSNumber? { fields.badge }
    /// The files of the notification. A desktop shows the first picture.
    open var attachments: [UNNotificationAttachment] { fields.attachments }
    /// The identifier of the app's content to which the notification refers. Differs from Apple: the value is stored and has no
    /// effect.
    open var targetContentIdentifier: String? { fields.target }
    /// The name of the launch image. Differs from Apple: the value is stored and has no effect.
    open var launchImageName: String { fields.launchImage }
    /// The importance of the notification among the notifications of the app, from 0 to 1. Differs from Apple: the value is
    /// stored and has no effect.
    open var relevanceScore: Double { fields.relevance }
    /// The value by which a Focus of iOS selects notifications. Differs from Apple: the value is stored and has no effect.
    open var filterCriteria: String? { fields.filter }
    /// The text that the app adds to the summary of a group of notifications. Apple deprecated this property. The value is stored
    /// and has no effect.
    open var summaryArgument: String { fields.summaryArgument }
    /// The number of items for which the notification counts in the summary of a group. Apple deprecated this property. The value
    /// is stored and has no effect.
    open var summaryArgumentCount: Int { fields.summaryCount }

    /// The expiration date. At this date the agent removes the notification from the screen. If the agent has not shown the
    /// notification before this date, the notification is never shown. Apple's API has no equivalent.
    open var expirationDate: Date? { fields.expiration }

    /// A text below the body, for example a command to type. The text is shown only on desktops without buttons in notifications.
    /// Apple's API has no equivalent.
    open var textWithoutButtons: String? { fields.withoutButtons }

    /// Returns the same content as an immutable object.
    open func copy(with zone: NSZone? = nil) -> Any {
        self is UNMutableNotificationContent ? UNNotificationContent(fields) : self
    }

    /// Returns the same content as a mutable object.
    open func mutableCopy(with zone: NSZone? = nil) -> Any { UNMutableNotificationContent(fields) }

    open override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationContent, let one = try? summary, let two = try? other.summary else {
            return false
        }
        return one == two && attachments == other.attachments
    }
    open override var hash: Int { title.hashValue ^ body.hashValue }

    /// The content without the attachments.
    private var summary: NotificationContent {
        get throws {
            var content = try record(isShown: false)
            content.until = expirationDate?.timeIntervalSince1970
            return content
        }
    }

    /// - Parameters:
    ///   - attachments: copies of ``attachments``.
    ///   - isShown: `true` if the content must have a text or other content to show.
    /// - Throws: ``UNError`` if `userInfo` contains a value that a property list cannot hold.
    func record(_ attachments: [NoticeAttachment] = [], isShown: Bool = true) throws -> NotificationContent {
        guard let userInfo = StoredUserInfo.text(of: userInfo) else {
            throw UNError(.notificationInvalidNoContent, "userInfo contains a value that a property list cannot contain")
        }
        guard !isShown || !(title + subtitle + body).isEmpty else {
            throw UNError(.notificationInvalidNoContent, "a notification needs a title or a body")
        }
        var content = NotificationContent(
            title: title, subtitle: subtitle, body: body, categoryIdentifier: categoryIdentifier,
            threadIdentifier: threadIdentifier, userInfo: userInfo, sound: sound?.name,
            interruptionLevel: Int(interruptionLevel.rawValue), badge: badge?.intValue, attachments: attachments)
        let kept = KeptContent(
            target: targetContentIdentifier, launchImage: launchImageName, relevance: relevanceScore, filter: filterCriteria,
            summaryArgument: summaryArgument, summaryCount: summaryArgumentCount)
        content.kept = kept == KeptContent() ? nil : kept
        content.soundFile = sound?.file
        content.until = expirationDate.map { AppRuntime.shared.date(fromApp: $0).timeIntervalSince1970 }
        content.withoutButtons = textWithoutButtons
        return content
    }

    static func make(from record: NotificationContent) -> UNNotificationContent {
        var fields = Fields()
        (fields.title, fields.subtitle, fields.body) = (record.title, record.subtitle, record.body)
        (fields.category, fields.thread) = (record.categoryIdentifier, record.threadIdentifier)
        fields.userInfo = StoredUserInfo.values(of: record.userInfo)
        fields.sound = record.sound.map { UNNotificationSound(named: UNNotificationSoundName($0)) }
        fields.level = UNNotificationInterruptionLevel(rawValue: UInt(max(0, record.interruptionLevel))) ?? .active
        fields.badge = record.badge.map { NSNumber(value: $0) }
        fields.attachments = (record.attachments ?? []).map(UNNotificationAttachment.init(stored:))
        fields.withoutButtons = record.withoutButtons
        fields.expiration = record.until.map { AppRuntime.shared.date(forApp: Date(timeIntervalSince1970: $0)) }
        if let kept = record.kept {
            (fields.target, fields.launchImage, fields.relevance) = (kept.target, kept.launchImage, kept.relevance)
            (fields.filter, fields.summaryArgument, fields.summaryCount) = (kept.filter, kept.summaryArgument, kept.summaryCount)
        }
        return UNNotificationContent(fields)
    }
}

/// The content of a notification that an app can change.
open class UNMutableNotificationContent: UNNotificationContent, @unchecked Sendable {  // Unchecked, because the base class is
    open override var title: String {
        get { fields.title }
        set { fields.title = newValue }
    }
    open override var subtitle: String {
        get { fields.subtitle }
        set { fields.subtitle = newValue }
    }
    open override var body: String {
        get { fields.body }
        set { fields.body = newValue }
    }
    open override var categoryIdentifier: String {
        get { fields.category }
        set { fields.category = newValue }
    }
    open override var threadIdentifier: String {
        get { fields.thread }
        set { fields.thread = newValue }
    }
    open override var userInfo: [AnyHashable: Any] {
        get { fields.userInfo }
        set { fields.userInfo = newValue }
    }
    open override var sound: UNNotificationSound? {
        get { fields.sound }
        set { fields.sound = newValue }
    }
    open override var interruptionLevel: UNNotificationInterruptionLevel {
        get { fields.level }
        set { fields.level = newValue }
    }
    open override var badge: NSNumber? {
        get { fields.badge }
        set { fields.badge = newValue }
    }
    open override var attachments: [UNNotificationAttachment] {
        get { fields.attachments }
        set { fields.attachments = newValue }
    }
    open override var targetContentIdentifier: String? {
        get { fields.target }
        set { fields.target = newValue }
    }
    open override var launchImageName: String {
        get { fields.launchImage }
        set { fields.launchImage = newValue }
    }
    open override var relevanceScore: Double {
        get { fields.relevance }
        set { fields.relevance = newValue }
    }
    open override var filterCriteria: String? {
        get { fields.filter }
        set { fields.filter = newValue }
    }
    open override var summaryArgument: String {
        get { fields.summaryArgument }
        set { fields.summaryArgument = newValue }
    }
    open override var summaryArgumentCount: Int {
        get { fields.summaryCount }
        set { fields.summaryCount = newValue }
    }
    open override var textWithoutButtons: String? {
        get { fields.withoutButtons }
        set { fields.withoutButtons = newValue }
    }
    open override var expirationDate: Date? {
        get { fields.expiration }
        set { fields.expiration = newValue }
    }
}
