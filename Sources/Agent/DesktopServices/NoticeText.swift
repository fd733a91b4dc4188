/// Plain text made fit for a notification server.
enum NoticeText {
    /// The body for a server: escaped when it reads markup, so that "<b>" is shown as written.
    static func body(_ text: String, isMarkup: Bool) -> String {
        let printable = printable(text, limit: bodyLimit)
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
        let title = printable(text, limit: titleLimit)
        if !title.isEmpty { return title }
        let name = printable(fallback, limit: titleLimit)
        return name.isEmpty ? " " : name
    }

    /// Characters: more than any server shows, and little enough for those that lay out all of it before they cut it.
    static let bodyLimit = 4_000
    static let titleLimit = 400

    /// Cut between characters, and without what would change how others are read.
    private static func printable(_ text: String, limit: Int) -> String {
        let short = prefix(of: text, limit)
        let isCut = short.utf8.count < text.utf8.count
        return closingDirections(withoutControls(short)) + (isCut ? "…" : "")
    }

    private static func prefix(of text: String, _ limit: Int) -> String {
        var (kept, length, count) = ("", 0, 0)
        for character in text {
            // A character may be of any length: a letter with thousands of accents.
            length += character.unicodeScalars.count
            count += 1
            guard count <= limit, length <= 4 * limit else { break }
            kept.append(character)
        }
        return kept.isEmpty ? String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit))) : kept
    }

    /// An embedding, override or isolate that is not ended would turn around what the server draws behind it.
    private static func closingDirections(_ text: String) -> String {
        var open: [Unicode.Scalar] = []
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x202A, 0x202B, 0x202D, 0x202E: open.append("\u{202C}")
            case 0x2066...0x2068: open.append("\u{2069}")
            case 0x202C, 0x2069: if open.last == scalar { open.removeLast() }
            default: break
            }
        }
        return text + String(String.UnicodeScalarView(open.reversed()))
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
