import Foundation
import Glibc
import ProcessSupport

/// The terminal to which a command prints. In a test, this is the simulated terminal of the captured output.
package enum Terminal {
    /// Returns the number of columns, or `nil` if the descriptor is not a terminal or the terminal does not report it.
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

    /// `true` if the user does not want colors (`NO_COLOR`, see https://no-color.org: any value that is not empty).
    package static var refusesColor: Bool { ThisProcess.environment["NO_COLOR"]?.isEmpty == false }
}

/// Breaks long lines at spaces, because a terminal breaks them within words.
package enum WordWrap {
    /// Returns the text with line breaks, so that no line has more columns. A longer word, for example an address, is not broken.
    /// The next lines of a paragraph are indented like the first word of the paragraph. If the line has columns, the next lines
    /// are indented like the second column.
    ///
    /// - Parameter isInvisible: Returns whether a character has no width.
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
            // The next word, with the spaces before the word. Spaces inside a line are kept, because they align columns.
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

    /// Returns the spaces before the next lines: the widest margin that leaves space for words.
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
