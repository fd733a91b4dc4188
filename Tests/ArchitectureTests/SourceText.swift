import Foundation

/// One file of the package, and what the rules look for in it.
struct SourceText {
    /// From the package's folder on: "Sources/Stormy/Stormy/Places.swift".
    let path: String
    let lines: [String]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The floor of a source: the folder under Sources, or the laboratory in Tests.
    var floor: String? {
        path.hasPrefix("Sources/") || path.hasPrefix("Tests/Laboratory/") ? folders.dropFirst().first : nil
    }

    /// The target that the file belongs to: the folder under its floor, or under Tests.
    var target: String { folders.dropFirst(floor == nil ? 1 : 2).first ?? "" }

    /// The target of a file below `Tests/StandIns`.
    var standIn: String { folders.dropFirst(2).first ?? "" }

    private var folders: [String] { path.split(separator: "/").map(String.init) }

    /// A file that ends in a line break has no further line after it.
    var lineCount: Int { lines.last == "" ? lines.count - 1 : lines.count }

    struct Import: Hashable {
        var line: Int
        var module: String
    }

    var imports: [Import] {
        let keyword =
            /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+(?:(?:struct|enum|class|protocol|typealias|func|let|var|actor)\s+)?(\w+)/
        return lines.enumerated().compactMap { number, line in
            line.firstMatch(of: keyword).map { Import(line: number + 1, module: String($0.1)) }
        }
    }

    /// Lines of code that hold `word`, comments and string literals left out.
    func lines(with word: String) -> [Int] {
        // Most lines do not hold it anywhere: without a look at each for its strings this is a minute faster.
        lines.indices.filter { lines[$0].contains(word) && Self.code(of: lines[$0]).contains(word) }.map { $0 + 1 }
    }

    /// Lines that hold `word` anywhere but give no reason on the line itself or the one before.
    func linesWithoutReason(_ word: String) -> [Int] {
        lines.indices.filter { index in
            guard lines[index].contains(word) else { return false }
            let before = index > 0 ? lines[index - 1] : ""
            return !lines[index].contains("because") && !(Self.isComment(before) && before.contains("because"))
        }.map { $0 + 1 }
    }

    private static func isComment(_ line: String) -> Bool { line.drop { $0 == " " }.hasPrefix("//") }

    /// A line without its comment and without what stands in its string literals.
    static func code(of line: String) -> String {
        let withoutStrings = line.replacing(/"(?:\\.|[^"\\])*"/, with: "\"\"")
        guard let comment = withoutStrings.range(of: "//") else { return withoutStrings }
        return String(withoutStrings[..<comment.lowerBound])
    }

    /// Comments at the end of lines or on lines of their own are taken away; string literals stay.
    static func withoutComments(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.replacing(/(^|\s)\/\/.*$/, with: "") }
            .joined(separator: "\n")
    }
}
