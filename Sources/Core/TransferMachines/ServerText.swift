/// Text from a server, made safe to show.
enum ServerText {
    /// Returns one line without control characters, of at most `maximum` characters.
    static func line(_ text: String?, maximum: Int = 200) -> String {
        let plain = (text ?? "").unicodeScalars.prefix(maximum * 5).filter { !$0.properties.isControl }
        return String(String(String.UnicodeScalarView(plain)).prefix(maximum))
    }
}

extension Unicode.Scalar.Properties {
    /// Control and format characters: also those that turn the direction of writing.
    fileprivate var isControl: Bool { generalCategory == .control || generalCategory == .format }
}
