/// Looks at the headers of tables before the TOML library does: at one whose name begins with none of a name's characters (`[/a]`, or
/// `[` alone) its parser ends the process (an assertion of toml++ 3; found by fuzzing).
struct TableHeaders {
    private enum Place {
        case outside
        /// Inside a string, until this ends it.
        case string(end: [Unicode.Scalar])
        case comment
    }

    private var place = Place.outside
    /// Brackets of values that are open: a line that begins with one then is no header.
    private var depth = 0

    /// Line and column, from 1, of the first header that cannot be one.
    static func firstImpossible(in text: String) -> (line: Int, column: Int)? {
        var headers = TableHeaders()
        // Scalars, as the library reads: a bracket and an accent upon it are one character of Swift's.
        var scalars = text.unicodeScalars[...]
        // A byte order mark, which it passes over.
        if scalars.first == "\u{FEFF}" { scalars.removeFirst() }
        for (index, line) in scalars.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if let column = headers.take(Array(line)) { return (index + 1, column) }
        }
        return nil
    }

    private mutating func take(_ line: [Unicode.Scalar]) -> Int? {
        if case .outside = place, depth == 0, let column = Self.impossible(line) { return column }
        // A header ends with its line, whatever it left open.
        var isHeader = false
        if case .outside = place, depth == 0 { isHeader = line.first { $0 != " " && $0 != "\t" } == "[" }
        defer { if isHeader { depth = 0 } }
        var index = 0
        while index < line.count {
            switch place {
            case .comment: index = line.count
            case .string(let end):
                if line[index] == "\\", end[0] == "\"" {
                    index += 2
                } else if line[index...].starts(with: end) {
                    place = .outside
                    index += end.count
                } else {
                    index += 1
                }
            case .outside: index = step(line, index)
            }
        }
        switch place {
        case .comment: place = .outside
        // One that is open at the end of its line is a mistake, which the library names.
        case .string(let end) where end.count == 1: place = .outside
        case .string, .outside: break
        }
        return nil
    }

    private mutating func step(_ line: [Unicode.Scalar], _ index: Int) -> Int {
        switch line[index] {
        case "#": place = .comment
        case "\"", "'":
            let mark = line[index]
            let isLong = line[index...].starts(with: [mark, mark, mark])
            place = .string(end: Array(repeating: mark, count: isLong ? 3 : 1))
            return index + (isLong ? 3 : 1)
        case "[": depth += 1
        case "]": depth = max(0, depth - 1)
        default: break
        }
        return index + 1
    }

    private static func impossible(_ line: [Unicode.Scalar]) -> Int? {
        func isBlank(_ character: Unicode.Scalar) -> Bool { character == " " || character == "\t" }
        var index = line.firstIndex { !isBlank($0) } ?? line.count
        guard index < line.count, line[index] == "[" else { return nil }
        index += index + 1 < line.count && line[index + 1] == "[" ? 2 : 1
        while index < line.count, isBlank(line[index]) { index += 1 }
        guard index < line.count else { return index + 1 }
        let first = line[index]
        let canBegin =
            first.isASCII && first.properties.isAlphabetic || ("0"..."9").contains(first)
            || "_-\"']".unicodeScalars.contains(first)
        return canBegin ? nil : index + 1
    }
}
