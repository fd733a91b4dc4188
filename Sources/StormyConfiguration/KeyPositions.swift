/// Where each key of a TOML text stands.
///
/// The parser forgets positions once it has parsed, and an error without a line is half an error. This is a scan of
/// a text the parser has accepted already: it finds keys and skips values, and decides nothing about validity. On
/// a text that is not TOML it ends, too, with positions worth nothing.
struct KeyPositions {
    /// 1-based; columns count Unicode scalars, like the parser's own.
    struct Position: Equatable {
        var line: Int
        var column: Int
    }

    private var found: [[String]: Position] = [:]

    init(_ text: String) {
        var scan = Scan(text)
        scan.document()
        found = scan.found
    }

    /// The first place where the key, or something below it, is written.
    subscript(path: [String]) -> Position? { found[path] }
}

private struct Scan {
    private let scalars: [Unicode.Scalar]
    private var index = 0
    private var line = 1
    private var lineStart = 0
    private(set) var found: [[String]: KeyPositions.Position] = [:]

    init(_ text: String) {
        scalars = Array(text.unicodeScalars.drop { $0 == "\u{FEFF}" })
    }

    mutating func document() {
        var section: [String] = []
        while let next = peek {
            if next == "[" {
                while peek == "[" { advance() }
                section = key(below: [])
                skipLine()
            } else if next == "#" {
                skipLine()
            } else if isBlank(next) || next == "\n" {
                advance()
            } else {
                pair(below: section)
            }
        }
    }

    private var peek: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

    private mutating func advance() {
        guard index < scalars.count else { return }
        index += 1
        if scalars[index - 1] == "\n" {
            line += 1
            lineStart = index
        }
    }

    private func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" || scalar == "\r" }

    private mutating func skipBlanks() {
        while let next = peek, isBlank(next) { advance() }
    }

    private mutating func skipLine() {
        while let next = peek, next != "\n" { advance() }
    }

    /// `a.b."c d"`: records every prefix at its own part, the first mention winning.
    private mutating func key(below section: [String]) -> [String] {
        var path = section
        repeat {
            skipBlanks()
            let position = KeyPositions.Position(line: line, column: index - lineStart + 1)
            path.append(keyPart())
            if found[path] == nil { found[path] = position }
            skipBlanks()
            guard peek == "." else { break }
            advance()
        } while true
        return path
    }

    private mutating func keyPart() -> String {
        if peek == "\"" || peek == "'" { return string() }
        var part = String.UnicodeScalarView()
        while let next = peek, !".=]\n#\"'".unicodeScalars.contains(next), !isBlank(next) {
            part.append(next)
            advance()
        }
        return String(part)
    }

    private mutating func pair(below section: [String]) {
        let start = index
        let path = key(below: section)
        skipBlanks()
        if peek == "=" {
            advance()
            value(of: path)
        }
        // Whatever stands here is not a pair: pass it, or the scan would not end.
        if index == start { advance() }
    }

    private mutating func value(of path: [String]) {
        skipBlanks()
        switch peek {
        case "\"", "'":
            _ = string()
        case "{":
            advance()
            inlineTable(of: path)
        case "[":
            advance()
            array(of: path)
        default:
            while let next = peek, !",]}\n#".unicodeScalars.contains(next) { advance() }
        }
    }

    private mutating func inlineTable(of path: [String]) {
        while let next = peek {
            switch next {
            case "}":
                advance()
                return
            case ",", " ", "\t", "\r", "\n": advance()
            default: pair(below: path)
            }
        }
    }

    /// Keys of tables inside a list are recorded as if there were no list; no known key is below one.
    private mutating func array(of path: [String]) {
        while let next = peek {
            switch next {
            case "]":
                advance()
                return
            case "#": skipLine()
            case ",", " ", "\t", "\r", "\n": advance()
            default:
                let start = index
                value(of: path)
                if index == start { advance() }
            }
        }
    }

    /// A string of any of the four kinds. Escapes are understood as far as keys need them: `\"` and `\\`.
    private mutating func string() -> String {
        guard let quote = peek else { return "" }
        let multiline = isNext(quote, times: 3)
        for _ in 0..<(multiline ? 3 : 1) { advance() }
        var text = String.UnicodeScalarView()
        while let next = peek {
            if next == quote, !multiline || isNext(quote, times: 3) {
                for _ in 0..<(multiline ? 3 : 1) { advance() }
                // A multi-line string may end in up to five quotes, the first two being text.
                while multiline, peek == quote { advance() }
                break
            }
            if next == "\n", !multiline { break }
            advance()
            if next == "\\", quote == "\"", let escaped = peek {
                text.append(escaped)
                advance()
            } else {
                text.append(next)
            }
        }
        return String(text)
    }

    private func isNext(_ scalar: Unicode.Scalar, times: Int) -> Bool {
        index + times <= scalars.count && scalars[index..<index + times].allSatisfy { $0 == scalar }
    }
}
