import BackgroundNotices
import Foundation

/// Additional behavior of the notifications of a category.
public struct UNNotificationCategoryOptions: OptionSet, Sendable, Codable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The app receives a response when the user closes the notification.
    public static let customDismissAction = UNNotificationCategoryOptions(rawValue: 1)
    /// The notifications are also shown on the screen of a car. The value is stored and has no effect.
    public static let allowInCarPlay = UNNotificationCategoryOptions(rawValue: 2)
    /// The desktop shows the title even if previews are hidden. The value is stored and has no effect, because the desktop
    /// decides which previews are hidden.
    public static let hiddenPreviewsShowTitle = UNNotificationCategoryOptions(rawValue: 4)
    /// The desktop shows the subtitle even if previews are hidden. The value is stored and has no effect.
    public static let hiddenPreviewsShowSubtitle = UNNotificationCategoryOptions(rawValue: 8)
    /// The notifications are also read aloud. Apple deprecated this option. The value is stored and has no effect.
    public static let allowAnnouncement = UNNotificationCategoryOptions(rawValue: 16)
}

/// The buttons of a kind of notification.
open class UNNotificationCategory: NSObject, NSCopying, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The identifier of the category. The content of a notification contains this identifier.
    public let identifier: String
    /// The buttons, in their order.
    public let actions: [UNNotificationAction]
    /// The identifiers of the actions that Siri offers for the notifications (intents). The value is stored and has no effect.
    public let intentIdentifiers: [String]
    /// Additional behavior of the notifications.
    public let options: UNNotificationCategoryOptions
    /// The text that is shown instead of a hidden preview. The value is stored and has no effect.
    public let hiddenPreviewsBodyPlaceholder: String
    /// The format of the summary of a group of notifications. The value is stored and has no effect.
    public let categorySummaryFormat: String

    /// - Parameters:
    ///   - identifier: the identifier of the category. The content of a notification contains this identifier.
    ///   - actions: the buttons, in their order.
    ///   - intentIdentifiers: the identifiers of Siri's intents. The value is stored and has no effect.
    ///   - hiddenPreviewsBodyPlaceholder: the text instead of a hidden preview. The text is stored and has no effect.
    ///   - categorySummaryFormat: the format of the summary of a group of notifications. The format is stored and has no effect.
    ///   - options: additional behavior of the notifications.
    public init(
        identifier: String, actions: [UNNotificationAction], intentIdentifiers: [String],
        hiddenPreviewsBodyPlaceholder: String? = nil, categorySummaryFormat: String? = nil,
        options: UNNotificationCategoryOptions = []
    ) {
        self.identifier = identifier
        self.actions = actions
        self.intentIdentifiers = intentIdentifiers
        self.options = options
        self.hiddenPreviewsBodyPlaceholder = hiddenPreviewsBodyPlaceholder ?? ""
        self.categorySummaryFormat = categorySummaryFormat ?? ""
    }

    /// Returns the same object, because it is immutable.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    open override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationCategory else { return false }
        return stored == other.stored && actions == other.actions
    }
    open override var hash: Int { identifier.hashValue }

    // MARK: The stored form

    struct Stored: Codable, Equatable {
        struct Action: Codable, Equatable {
            var button: NoticeAction
            var options: UNNotificationActionOptions
            var icon: String?
        }

        var identifier: String
        var actions: [Action]
        var intents: [String]
        var options: UNNotificationCategoryOptions
        var placeholder: String
        var summary: String
    }

    var stored: Stored {
        Stored(
            identifier: identifier,
            actions: actions.map { Stored.Action(button: $0.button, options: $0.options, icon: $0.icon?.name) },
            intents: intentIdentifiers, options: options, placeholder: hiddenPreviewsBodyPlaceholder,
            summary: categorySummaryFormat)
    }

    convenience init(_ stored: Stored) {
        let actions = stored.actions.map { action -> UNNotificationAction in
            let icon = action.icon.map { UNNotificationActionIcon(systemImageName: $0) }
            guard let field = action.button.field else {
                return UNNotificationAction(
                    identifier: action.button.key, title: action.button.label, options: action.options, icon: icon)
            }
            return UNTextInputNotificationAction(
                identifier: action.button.key, title: action.button.label, options: action.options, icon: icon,
                textInputButtonTitle: field.send, textInputPlaceholder: field.placeholder)
        }
        self.init(
            identifier: stored.identifier, actions: actions, intentIdentifiers: stored.intents,
            hiddenPreviewsBodyPlaceholder: stored.placeholder, categorySummaryFormat: stored.summary, options: stored.options)
    }
}
