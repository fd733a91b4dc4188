/// What a server says, as a person may see it.
enum ServerText {
    /// One line, without what a terminal would obey, and no longer than a line.
    static func line(_ text: String?) -> String {
        let plain = (text ?? "").unicodeScalars.prefix(1000).filter { !$0.properties.isControl }
        return String(String(String.UnicodeScalarView(plain)).prefix(200))
    }
}

extension Unicode.Scalar.Properties {
    /// Control and format characters: also those that turn the direction of writing.
    fileprivate var isControl: Bool { generalCategory == .control || generalCategory == .format }
}
