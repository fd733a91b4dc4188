/// The kind of content that the ending of a file's name suggests.
enum FileEnding {
    /// Endings of pages that servers generate. If a requested name has such an ending, a page is expected.
    private static let pages: Set<String> = [
        "action", "asp", "aspx", "cgi", "do", "htm", "html", "jsp", "jspx", "mht", "mhtml", "php", "phtml", "pl", "shtml", "xht",
        "xhtml",
    ]
    /// Endings of texts that programs generate. Programs often label such texts as pages by mistake.
    private static let texts: Set<String> = [
        "atom", "csv", "ics", "json", "log", "md", "rss", "svg", "tsv", "txt", "xml", "yaml", "yml",
    ]

    /// Returns whether the name has an ending that is not an ending of a page.
    static func isOfAFile(_ name: String) -> Bool { ending(of: name).map { !pages.contains($0) } ?? false }

    static func isOfAFileButText(_ name: String) -> Bool {
        ending(of: name).map { !pages.contains($0) && !texts.contains($0) } ?? false
    }

    /// Returns the ending in lower case. Returns `nil` if the name has no ending, or ends with a number such as a version.
    private static func ending(of name: String) -> String? {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return nil }
        let ending = name[name.index(after: dot)...].lowercased()
        let isWord = (1...6).contains(ending.utf8.count) && ending.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return isWord && ending.contains(where: \.isLetter) ? ending : nil
    }
}
