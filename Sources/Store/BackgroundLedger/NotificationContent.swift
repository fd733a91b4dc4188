import Foundation

/// A file that belongs to a notification: a copy in the spool.
package struct NoticeAttachment: Codable, Sendable, Equatable {
    /// The app's name for it.
    package var identifier: String
    /// Its kind, as Apple names them: "public.png".
    package var type: String
    /// Inside the spool.
    package var file: String
    /// Of the file; hex, lower case.
    package var sha256: String

    package init(identifier: String, type: String, file: String, sha256: String) {
        (self.identifier, self.type, self.file, self.sha256) = (identifier, type, file, sha256)
    }

    package var isPicture: Bool { Self.pictureTypes.contains(type) }

    package static let pictureTypes: Set<String> = ["public.png", "public.jpeg", "com.compuserve.gif", "org.webmproject.webp"]

    /// Of equal content each copy says the same.
    package static func == (one: NoticeAttachment, other: NoticeAttachment) -> Bool {
        (one.identifier, one.type, one.sha256) == (other.identifier, other.type, other.sha256)
    }
}

/// What an app gives a notification for itself: nothing of it is shown.
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

/// What a notification says, as the app gave it. Compared as a whole: adding equal content again changes nothing.
package struct NotificationContent: Codable, Sendable, Equatable {
    package var title: String
    package var subtitle: String
    package var body: String
    package var categoryIdentifier: String
    package var threadIdentifier: String
    /// Property list, as JSON text with sorted keys.
    package var userInfo: String
    /// Name of a theme sound, or of a file; `nil`: silent.
    package var sound: String?
    /// 0 passive, 1 active, 2 time sensitive, 3 critical.
    package var interruptionLevel: Int
    package var badge: Int?
    /// `nil`: none. Rows of earlier versions have none.
    package var attachments: [NoticeAttachment]?
    package var kept: KeptContent?
    /// The path of the file that `sound` names, as the app found it; `nil`: none.
    package var soundFile: String?
    /// What a person can do instead, where a desktop has no buttons.
    package var withoutButtons: String?
    /// The agent takes it off the screen then, in seconds since 1970; `nil`: it has no end.
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

    /// The name of a theme sound; that of a file that is not there is the default one's.
    package var themeSound: String? { sound.map { Self.isSoundFile($0) ? Self.defaultSound : $0 } }

    /// Of a new message. Source: Freedesktop Sound Naming Specification.
    package static let defaultSound = "message-new-instant"

    /// It names a file: names of a theme have no dots.
    package static func isSoundFile(_ name: String) -> Bool { name.hasPrefix("/") || name.contains(".") }
}
