import Foundation

/// An app's own values of a notification, as text for the ledger: JSON, and a property list where JSON has no such value (a date, bytes).
enum StoredUserInfo {
    private static let mark = "plist:"

    /// `nil`: a value that a property list cannot hold.
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

    /// What cannot be read is nothing.
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
