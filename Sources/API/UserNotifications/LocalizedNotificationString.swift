import Foundation

extension NSString {
    /// Returns a text of the app's main bundle for a notification, with its arguments inserted. Differs from Apple: this method
    /// reads the text from the bundle immediately, because the agent that shows the notification later does not have the app's
    /// texts.
    ///
    /// - Parameters:
    ///   - key: the key of the text. If the bundle does not contain the key, the key itself is used as the text.
    ///   - arguments: the values for the specifiers `%@`, `%d`, `%1$@` and similar, in their order. A specifier without a value
    ///     is not changed.
    public static func localizedUserNotificationString(forKey key: String, arguments: [Any]?) -> String {
        let format = Bundle.main.localizedString(forKey: key, value: key, table: nil)
        // `String(format:)` is not used, because a text with too many specifiers, or with wrong types, would end the process.
        var rest = (arguments ?? []).makeIterator()
        return format.replacing(/%(?:(\d+)\$)?(?:\.\d+)?(?:l{0,2}[diu]|[@fgsx]|%)/) { found in
            if found.output.0 == "%%" { return "%" }
            guard let position = found.output.1 else { return rest.next().map { "\($0)" } ?? String(found.output.0) }
            guard let arguments, let index = Int(position), arguments.indices.contains(index - 1) else {
                return String(found.output.0)
            }
            return "\(arguments[index - 1])"
        }
    }
}
