import Foundation
import Glibc
import ProcessSupport

/// The terminal to which a command prints. In a test, the terminal is simulated (``CapturedOutput``).
package enum Terminal {
    /// Returns the number of columns, or `nil` if the descriptor is not a terminal or the terminal does not report the number.
    package static func columns(of descriptor: Int32) -> Int? {
        if let captured = CapturedOutput.current { return captured.columns }
        var size = winsize()
        guard isatty(descriptor) == 1, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return max(20, Int(size.ws_col))
    }

    package static func isTerminal(_ descriptor: Int32) -> Bool {
        CapturedOutput.current.map { $0.columns != nil } ?? (isatty(descriptor) == 1)
    }

    /// `false` for a terminal that shows control sequences as text (`TERM=dumb`), for example a buffer of an editor.
    package static var understandsSequences: Bool { !["", "dumb"].contains(ThisProcess.environment["TERM"] ?? "") }

    /// `true` if the user has disabled colors with the variable `NO_COLOR`. Any value that is not empty disables colors (see
    /// https://no-color.org).
    package static var refusesColor: Bool { ThisProcess.environment["NO_COLOR"]?.isEmpty == false }
}

/// Breaks long lines at spaces, because a terminal would break a long line inside a word.
package enum WordWrap {
    /// Returns the text with line breaks, so that no line is longer than the given number of columns. A longer word, for example
    /// an address, is not broken. The continuation lines of a paragraph begin below the first word. If the line is a row of a
    /// table, the continuation lines begin below the second column.
    ///
    /// - Parameter isInvisible: A closure that returns whether a character has no width.
    package static func wrap(_ text: String, columns: Int, isInvisible: (Character) -> Bool = { _ in false }) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { wrapLine($0, columns, isInvisible) }.joined(separator: "\n")
    }

    private static func wrapLine(_ line: Substring, _ columns: Int, _ isInvisible: (Character) -> Bool) -> String {
        func width(_ text: Substring) -> Int { text.reduce(0) { $0 + (isInvisible($1) ? 0 : 1) } }
        guard width(line) > columns else { return String(line) }
        let indentation = line.prefix { $0 == " " }
        let margin = margin(of: line, indentation.count, atMost: columns / 2, width)
        var (wrapped, used) = (String(indentation), indentation.count)
        var rest = line[indentation.endIndex...]
        var isFirstWord = true
        while !rest.isEmpty {
            // The loop reads the next word together with the spaces before it. Spaces inside a line are kept, because they align
            // columns.
            let spaces = rest.prefix { $0 == " " }
            let word = rest[spaces.endIndex...].prefix { $0 != " " }
            if !isFirstWord, !word.isEmpty, used + spaces.count + width(word) > columns {
                wrapped += "\n" + margin + word
                used = margin.count + width(word)
            } else {
                wrapped += spaces + word
                used += spaces.count + width(word)
            }
            isFirstWord = false
            rest = rest[word.endIndex...]
        }
        return wrapped
    }

    /// Returns the spaces with which continuation lines begin. If the margin of the paragraph or column would leave too little
    /// space for words, the margin is smaller.
    private static func margin(
        of line: Substring, _ indentation: Int, atMost limit: Int, _ width: (Substring) -> Int
    ) -> String {
        var margins = [0, indentation]
        let text = line.dropFirst(indentation)
        if let gap = text.firstRange(of: "  ") {
            let column = text[gap.lowerBound...].firstIndex { $0 != " " } ?? text.endIndex
            margins.append(indentation + width(text[..<column]))
        }
        return String(repeating: " ", count: margins.last { $0 <= limit } ?? 0)
    }
}
