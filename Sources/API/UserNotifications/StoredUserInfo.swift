import Foundation

/// Converts the `userInfo` of a notification to text for the ledger. The text is JSON. If a value is a date or bytes, which JSON
/// cannot contain, the text is a property list.
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

    /// Returns the `userInfo` dictionary for a text from the ledger. The dictionary is empty if the text cannot be decoded.
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
