/// Plain text made fit for a notification server.
enum NoticeText {
    /// The body for a server: escaped when it reads markup, so that "<b>" is shown as written.
    static func body(_ text: String, isMarkup: Bool) -> String {
        let printable = withoutControls(text)
        guard isMarkup else { return printable }
        var escaped = ""
        escaped.reserveCapacity(printable.utf8.count)
        for character in printable.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }

    /// The title: servers never read markup there, so it is never escaped. libnotify refuses an empty one.
    static func title(_ text: String, fallback: String) -> String {
        let printable = withoutControls(text)
        if !printable.isEmpty { return printable }
        let name = withoutControls(fallback)
        return name.isEmpty ? " " : name
    }

    /// A NUL would cut a C string short, and other controls make the body invalid XML: the whole text would be
    /// refused or shown raw. Line feed and tab stay.
    static func withoutControls(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where scalar.value >= 0x20 || scalar == "\n" || scalar == "\t" {
            kept.append(scalar)
        }
        return String(kept)
    }
}
