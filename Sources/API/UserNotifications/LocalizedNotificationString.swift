import Foundation

extension NSString {
    /// A text of the app's main bundle for a notification, with its arguments. Differs from Apple: looked up at once, and not again when the notification
    /// is shown, as the agent has the app's texts in no language.
    ///
    /// - Parameters:
    ///   - key: of the text; without one in the bundle it is the text itself.
    ///   - arguments: in the order of the specifiers `%@`, `%d`, `%1$@` and their like. One that is missing stays as it is written.
    public static func localizedUserNotificationString(forKey key: String, arguments: [Any]?) -> String {
        let format = Bundle.main.localizedString(forKey: key, value: key, table: nil)
        // Not by `String(format:)`: a text that asks for more than is there, or for something else, would end the process.
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
