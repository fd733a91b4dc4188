import Foundation

/// A file that belongs to a notification. The file is a copy in the spool.
package struct NoticeAttachment: Codable, Sendable, Equatable {
    /// The app's name for the attachment.
    package var identifier: String
    /// Apple's type identifier of the file, for example "public.png".
    package var type: String
    /// The name of the file in the spool.
    package var file: String
    /// The digest of the file in lower-case hexadecimal digits.
    package var sha256: String

    package init(identifier: String, type: String, file: String, sha256: String) {
        (self.identifier, self.type, self.file, self.sha256) = (identifier, type, file, sha256)
    }

    package var isPicture: Bool { Self.pictureTypes.contains(type) }

    package static let pictureTypes: Set<String> = ["public.png", "public.jpeg", "com.compuserve.gif", "org.webmproject.webp"]

    /// Returns whether two attachments are equal. The names of the files in the spool are not compared.
    package static func == (one: NoticeAttachment, other: NoticeAttachment) -> Bool {
        (one.identifier, one.type, one.sha256) == (other.identifier, other.type, other.sha256)
    }
}

/// The values of a notification that are not shown. The values are stored only because the app may read them.
package struct KeptContent: Codable, Sendable, Equatable {
    package var target: String?
    package var launchImage = ""
    package var relevance = 0.0
    package var filter: String?
    package var summaryArgument = ""
    package var summaryCount = 0

    package init(
        target: String? = nil, launchImage: String = "", relevance: Double = 0, filter: String? = nil,
        summaryArgument: String = "",
        summaryCount: Int = 0
    ) {
        (self.target, self.launchImage, self.relevance) = (target, launchImage, relevance)
        (self.filter, self.summaryArgument, self.summaryCount) = (filter, summaryArgument, summaryCount)
    }
}

/// The content that an app set for a notification. Values of this type can be compared, so that nothing changes if the app adds
/// an equal content again.
package struct NotificationContent: Codable, Sendable, Equatable {
    package var title: String
    package var subtitle: String
    package var body: String
    package var categoryIdentifier: String
    package var threadIdentifier: String
    /// The app's `userInfo`, as JSON text with sorted keys or as a property list.
    package var userInfo: String
    /// The name of a sound in the sound theme, or the name of a sound file. `nil` if the notification has no sound.
    package var sound: String?
    /// The interruption level: 0 passive, 1 active, 2 time sensitive, 3 critical.
    package var interruptionLevel: Int
    package var badge: Int?
    /// The attachments, or `nil` if the notification has no attachments. In rows of earlier versions, the value is always `nil`.
    package var attachments: [NoticeAttachment]?
    package var kept: KeptContent?
    /// The path of the sound file that the app found for `sound`, or `nil` if `sound` is not the name of a file.
    package var soundFile: String?
    /// The text that is shown only if the desktop has no buttons.
    package var withoutButtons: String?
    /// The expiration date in seconds since 1970, or `nil` if the notification does not expire. When the notification expires,
    /// the agent removes it from the screen.
    package var until: Double?

    package init(
        title: String, subtitle: String, body: String, categoryIdentifier: String, threadIdentifier: String, userInfo: String,
        sound: String?, interruptionLevel: Int, badge: Int?, attachments: [NoticeAttachment] = []
    ) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
        self.categoryIdentifier = categoryIdentifier
        self.threadIdentifier = threadIdentifier
        self.userInfo = userInfo
        self.sound = sound
        self.interruptionLevel = interruptionLevel
        self.badge = badge
        self.attachments = attachments.isEmpty ? nil : attachments
    }

    /// The name of the sound in the sound theme. If the app set a sound file, the value is the name of the default sound.
    package var themeSound: String? { sound.map { Self.isSoundFile($0) ? Self.defaultSound : $0 } }

    /// The sound of a new message, as the Freedesktop Sound Naming Specification defines it.
    package static let defaultSound = "message-new-instant"

    /// Returns whether the name is a file name. Sounds of a theme have no dots in their names.
    package static func isSoundFile(_ name: String) -> Bool { name.hasPrefix("/") || name.contains(".") }
}
