import Foundation

/// What the portal calls notifications and actions of ours: their own names with the app's in front, written so that no two become one.
struct PortalName {
    /// Two agents of one sandbox have one name with the portal.
    let app: String

    /// Names that begin with "app." would be actions that the app exports on the bus.
    private static let action = "press."

    func name(of identifier: String) -> String { Self.escaped(app) + "/" + Self.escaped(identifier) }

    /// `nil`: it is none of ours.
    func identifier(of name: String) -> String? {
        let front = Self.escaped(app) + "/"
        return name.hasPrefix(front) ? name.dropFirst(front.count).removingPercentEncoding : nil
    }

    static func action(ofKey key: String) -> String { action + escaped(key) }

    /// `nil`: it is none of ours.
    static func key(ofAction name: String) -> String? {
        name.hasPrefix(action) ? name.dropFirst(action.count).removingPercentEncoding : nil
    }

    /// A C string ends at a NUL, and what is no character that is drawn is nobody's to keep.
    private static func escaped(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { escaped, scalar in
            if scalar.value < 0x20 || scalar == "%" || scalar == "/" || scalar.value == 0x7F {
                let digits = String(scalar.value, radix: 16, uppercase: true)
                escaped += "%" + String(repeating: "0", count: 2 - digits.count) + digits
            } else {
                escaped.unicodeScalars.append(scalar)
            }
        }
    }
}
