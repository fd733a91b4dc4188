/// Prepares plain text for a notification server.
enum NoticeText {
    /// Returns the body for a server. If the server interprets markup, the text is escaped, so that the server shows "<b>" as
    /// written.
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

    /// Returns the text of a notification title. Servers never interpret markup in a title, so the title is not escaped. An empty
    /// title is replaced, because libnotify refuses an empty title.
    static func title(_ text: String, fallback: String) -> String {
        let title = printable(text, limit: titleLimit)
        if !title.isEmpty { return title }
        let name = printable(fallback, limit: titleLimit)
        return name.isEmpty ? " " : name
    }

    /// The maximum number of characters of a body. No server shows more characters. Some servers lay out the text before they cut
    /// it, so a longer text would be slow.
    static let bodyLimit = 4_000
    static let titleLimit = 400

    /// Returns the text without control characters. A long text is cut between two characters. Changes of the writing direction
    /// end at the end of the text.
    private static func printable(_ text: String, limit: Int) -> String {
        let short = prefix(of: text, limit)
        let isCut = short.utf8.count < text.utf8.count
        return closingDirections(withoutControls(short)) + (isCut ? "…" : "")
    }

    private static func prefix(of text: String, _ limit: Int) -> String {
        var (kept, length, count) = ("", 0, 0)
        for character in text {
            // A character can consist of any number of scalars, for example a letter with thousands of accents.
            length += character.unicodeScalars.count
            count += 1
            guard count <= limit, length <= 4 * limit else { break }
            kept.append(character)
        }
        return kept.isEmpty ? String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit))) : kept
    }

    /// Returns the text with an end mark for each embedding, override and isolate (characters that change the writing direction).
    /// Without an end mark, an override would also reverse the text that the server draws after this text.
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

    /// Returns the text without control characters, except line feed and tab. A NUL would end a C string, and other control
    /// characters would make the body invalid XML. The server would then refuse the text or show its markup.
    static func withoutControls(_ text: String) -> String {
        var kept = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where scalar.value >= 0x20 || scalar == "\n" || scalar == "\t" {
            kept.append(scalar)
        }
        return String(kept)
    }
}
