import BackgroundNotices
import Foundation

/// How a button behaves. Differs from Apple: kept, and without effect on a desktop.
public struct UNNotificationActionOptions: OptionSet, Sendable, Codable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// The person has to unlock the device first.
    public static let authenticationRequired = UNNotificationActionOptions(rawValue: 1)
    /// What it does cannot be undone.
    public static let destructive = UNNotificationActionOptions(rawValue: 2)
    /// It opens the app.
    public static let foreground = UNNotificationActionOptions(rawValue: 4)
}

/// A picture of a button. Differs from Apple: kept, and drawn by no desktop.
public final class UNNotificationActionIcon: NSObject, @unchecked Sendable {  // because it is immutable
    let name: String

    /// By the name of an icon of the system.
    public init(systemImageName: String) { name = systemImageName }
    /// By the name of an icon of the app.
    public init(templateImageName: String) { name = templateImageName }

    public override func isEqual(_ other: Any?) -> Bool { (other as? UNNotificationActionIcon)?.name == name }
    public override var hash: Int { name.hashValue }
}

/// A button.
open class UNNotificationAction: NSObject, NSCopying, @unchecked Sendable {  // because it is immutable
    /// What the response says when it is pressed.
    public let identifier: String
    /// What stands on it.
    public let title: String
    /// How it behaves.
    public let options: UNNotificationActionOptions
    /// Its picture; `nil`: none.
    public let icon: UNNotificationActionIcon?

    /// - Parameters:
    ///   - identifier: what the response says when it is pressed.
    ///   - title: what stands on it.
    ///   - options: how it behaves.
    ///   - icon: its picture.
    public init(
        identifier: String, title: String, options: UNNotificationActionOptions = [], icon: UNNotificationActionIcon? = nil
    ) {
        self.identifier = identifier
        self.title = title
        self.options = options
        self.icon = icon
    }

    /// It never changes.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// As the agent shows it.
    var button: NoticeAction { NoticeAction(key: identifier, label: title) }

    open override func isEqual(_ other: Any?) -> Bool {
        guard let other = other as? UNNotificationAction else { return false }
        return identifier == other.identifier && title == other.title && options == other.options && icon == other.icon
            && button == other.button
    }
    open override var hash: Int { identifier.hashValue }
}

/// A button with a field to type into. Differs from Apple: where a desktop's notifications have no such field, the button is not there.
open class UNTextInputNotificationAction: UNNotificationAction, @unchecked Sendable {  // because it is immutable
    /// What stands on the button that sends the text.
    public let textInputButtonTitle: String
    /// What stands in the empty field.
    public let textInputPlaceholder: String

    /// - Parameters:
    ///   - identifier: what the response says when a text is sent.
    ///   - title: what stands on the button that opens the field.
    ///   - options: how it behaves.
    ///   - icon: its picture.
    ///   - textInputButtonTitle: what stands on the button that sends the text.
    ///   - textInputPlaceholder: what stands in the empty field.
    public init(
        identifier: String, title: String, options: UNNotificationActionOptions = [], icon: UNNotificationActionIcon? = nil,
        textInputButtonTitle: String, textInputPlaceholder: String
    ) {
        self.textInputButtonTitle = textInputButtonTitle
        self.textInputPlaceholder = textInputPlaceholder
        super.init(identifier: identifier, title: title, options: options, icon: icon)
    }

    /// Without words of its own: the button says "Send", and the field is empty.
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
