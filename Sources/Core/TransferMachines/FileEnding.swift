/// What the end of a file's name says of what is in it.
enum FileEnding {
    /// What a server makes, or shows: a page is no surprise.
    private static let pages: Set<String> = [
        "action", "asp", "aspx", "cgi", "do", "htm", "html", "jsp", "jspx", "mht", "mhtml", "php", "phtml", "pl", "shtml", "xht",
        "xhtml",
    ]
    /// What programs make, and often call a page by mistake.
    private static let texts: Set<String> = [
        "atom", "csv", "ics", "json", "log", "md", "rss", "svg", "tsv", "txt", "xml", "yaml", "yml",
    ]

    /// It has an ending, and it is no page's.
    static func isOfAFile(_ name: String) -> Bool { ending(of: name).map { !pages.contains($0) } ?? false }

    static func isOfAFileButText(_ name: String) -> Bool {
        ending(of: name).map { !pages.contains($0) && !texts.contains($0) } ?? false
    }

    /// In lower case; `nil`: none, or a number, as a version has.
    private static func ending(of name: String) -> String? {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return nil }
        let ending = name[name.index(after: dot)...].lowercased()
        let isWord = (1...6).contains(ending.utf8.count) && ending.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return isWord && ending.contains(where: \.isLetter) ? ending : nil
    }
}
