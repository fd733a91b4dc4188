import Foundation

/// One file of the package, with the properties that the rules examine.
struct SourceText {
    /// The path in the package, for example "Sources/Stormy/Stormy/Places.swift".
    let path: String
    let lines: [String]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The layer of a file: the folder in `Sources`, or the laboratory in `Tests`.
    var floor: String? {
        path.hasPrefix("Sources/") || path.hasPrefix("Tests/Laboratory/") ? folders.dropFirst().first : nil
    }

    /// The target that contains the file: the folder in its layer, or in `Tests`.
    var target: String { folders.dropFirst(floor == nil ? 1 : 2).first ?? "" }

    /// The target of a file below `Tests/StandIns`.
    var stubTarget: String { folders.dropFirst(2).first ?? "" }

    private var folders: [String] { path.split(separator: "/").map(String.init) }

    /// The number of lines. A line break at the end of the file does not begin another line.
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

    /// Returns the numbers of lines whose code contains `word`. Comments and string literals are ignored.
    func lines(with word: String) -> [Int] {
        // Most lines do not contain the searched word. The string literals of these lines are not examined, which makes the test
        // a minute faster.
        lines.indices.filter { lines[$0].contains(word) && Self.code(of: lines[$0]).contains(word) }.map { $0 + 1 }
    }

    /// Returns the numbers of lines that contain `word` without a reason. A reason is a comment on the line, or on the line
    /// before.
    func linesWithoutReason(_ word: String) -> [Int] {
        lines.indices.filter { index in
            guard lines[index].contains(word) else { return false }
            let before = index > 0 ? lines[index - 1] : ""
            return !lines[index].contains("because") && !(Self.isComment(before) && before.contains("because"))
        }.map { $0 + 1 }
    }

    private static func isComment(_ line: String) -> Bool { line.drop { $0 == " " }.hasPrefix("//") }

    /// Returns a line without its comment and without the content of its string literals.
    static func code(of line: String) -> String {
        let withoutStrings = line.replacing(/"(?:\\.|[^"\\])*"/, with: "\"\"")
        guard let comment = withoutStrings.range(of: "//") else { return withoutStrings }
        return String(withoutStrings[..<comment.lowerBound])
    }

    /// Returns the text without comments. String literals stay.
    static func withoutComments(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.replacing(/(^|\s)\/\/.*$/, with: "") }
            .joined(separator: "\n")
    }
}
