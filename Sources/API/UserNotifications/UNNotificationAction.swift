import BackgroundNotices
import Foundation

/// The behavior of a button. Differs from Apple: the options are stored and have no effect.
public struct UNNotificationActionOptions: OptionSet, Sendable, Codable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The user has to unlock the device first.
    public static let authenticationRequired = UNNotificationActionOptions(rawValue: 1)
    /// The action cannot be undone.
    public static let destructive = UNNotificationActionOptions(rawValue: 2)
    /// The action opens the app.
    public static let foreground = UNNotificationActionOptions(rawValue: 4)
}

/// The picture of a button. Differs from Apple: the value is stored and has no effect, because desktops do not show pictures of
/// buttons.
public final class UNNotificationActionIcon: NSObject, @unchecked Sendable {  // Unchecked, because the object is immutable
    let name: String

    /// Creates a picture from the name of a system icon.
    public init(systemImageName: String) { name = systemImageName }
    /// Creates a picture from the name of an icon of the app.
    public init(templateImageName: String) { name = templateImageName }

    public override func isEqual(_ other: Any?) -> Bool { (other as? UNNotificationActionIcon)?.name == name }
    public override var hash: Int { name.hashValue }
}

/// A button of a notification.
open class UNNotificationAction: NSObject, NSCopying, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The identifier of the button. A response contains this identifier if the button is pressed.
    public let identifier: String
    /// The label of the button.
    public let title: String
    /// The behavior of the button.
    public let options: UNNotificationActionOptions
    /// The picture of the button, or `nil`.
    public let icon: UNNotificationActionIcon?

    /// - Parameters:
    ///   - identifier: the identifier of the button. A response contains this identifier if the button is pressed.
    ///   - title: the label of the button.
    ///   - options: the behavior of the button.
    ///   - icon: the picture of the button.
    public init(
        identifier: String, title: String, options: UNNotificationActionOptions = [], icon: UNNotificationActionIcon? = nil
    ) {
        self.identifier = identifier
        self.title = title
        self.options = options
        self.icon = icon
    }

    /// Returns the same object, because it is immutable.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// The button in the form in which the ledger stores it: identifier and label.
    var button: NoticeAction { NoticeAction(key: identifier, label: title) }

    open override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationAction else { return false }
        return identifier == other.identifier && title == other.title && options == other.options && icon == other.icon
            && button == other.button
    }
    open override var hash: Int { identifier.hashValue }
}

/// A button with a text field. Differs from Apple: if the desktop's notifications cannot contain a text field, the button is not
/// shown.
open class UNTextInputNotificationAction: UNNotificationAction, @unchecked Sendable {  // because the object is immutable
    /// The label of the button that sends the text.
    public let textInputButtonTitle: String
    /// The placeholder in the empty text field.
    public let textInputPlaceholder: String

    /// - Parameters:
    ///   - identifier: the identifier of the button. A response contains this identifier if the user sends a text.
    ///   - title: the label of the button that opens the text field.
    ///   - options: the behavior of the button.
    ///   - icon: the picture of the button.
    ///   - textInputButtonTitle: the label of the button that sends the text.
    ///   - textInputPlaceholder: the placeholder in the empty text field.
    public init(
        identifier: String, title: String, options: UNNotificationActionOptions = [], icon: UNNotificationActionIcon? = nil,
        textInputButtonTitle: String, textInputPlaceholder: String
    ) {
        self.textInputButtonTitle = textInputButtonTitle
        self.textInputPlaceholder = textInputPlaceholder
        super.init(identifier: identifier, title: title, options: options, icon: icon)
    }

    /// Creates a button with a text field without a placeholder. The button that sends the text has the label "Send".
    public override init(
        identifier: String, title: String, options: UNNotificationActionOptions = [], icon: UNNotificationActionIcon? = nil
    ) {
        (textInputButtonTitle, textInputPlaceholder) = ("Send", "")
        super.init(identifier: identifier, title: title, options: options, icon: icon)
    }

    override var button: NoticeAction {
        var button = super.button
        button.field = NoticeAction.Field(send: textInputButtonTitle, placeholder: textInputPlaceholder)
        return button
    }
}
