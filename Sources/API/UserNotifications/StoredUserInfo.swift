import Foundation

/// The `userInfo` of a notification as text for the ledger. The text is JSON, or a property list if JSON cannot contain a value (a
/// date or bytes).
enum StoredUserInfo {
    private static let mark = "plist:"

    /// Returns the text for a dictionary, or `nil` if a property list cannot contain one of the values.
    static func text(of values: [AnyHashable: Any]) -> String? {
        var plain: [String: Any] = [:]
        for (key, value) in values { plain["\(key)"] = value }
        if JSONSerialization.isValidJSONObject(plain),
            let data = try? JSONSerialization.data(withJSONObject: plain, options: [.sortedKeys])
        {
            return String(decoding: data, as: UTF8.self)
        }
        guard PropertyListSerialization.propertyList(plain, isValidFor: .binary),
            let data = try? PropertyListSerialization.data(fromPropertyList: plain, format: .binary, options: 0)
        else { return nil }
        return mark + data.base64EncodedString()
    }

    /// Returns an empty dictionary if the text cannot be read.
    static func values(of text: String) -> [AnyHashable: Any] {
        guard text.hasPrefix(mark) else {
            return (try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]) ?? [:]
        }
        let list = Data(base64Encoded: String(text.dropFirst(mark.count))).flatMap {
            try? PropertyListSerialization.propertyList(from: $0, options: [], format: nil)
        }
        return list as? [String: Any] ?? [:]
    }
}
