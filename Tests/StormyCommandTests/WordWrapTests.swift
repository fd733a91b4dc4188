import BackgroundCommands
import Testing

@Suite struct WordWrapTests {
    @Test(arguments: [
        ("one two three", 20, "one two three"),
        ("one two three", 8, "one two\nthree"),
        // The following lines begin below the first word.
        ("  one two three", 9, "  one two\n  three"),
        // If a word is longer than a line, it is not split, so that the user can copy a URL.
        ("see https://h/a/long/path now", 10, "see\nhttps://h/a/long/path\nnow"),
        ("https://h/a/long/path", 10, "https://h/a/long/path"),
        // Spaces between columns are kept.
        ("a    b", 20, "a    b"), ("ID     NAME STATE", 12, "ID     NAME\nSTATE"),
        ("one two\nthree four", 8, "one two\nthree\nfour"), ("", 5, ""), ("      ", 3, "      "),
        // The following lines begin below the second column.
        ("Sydney  stormy, checked now", 18, "Sydney  stormy,\n        checked\n        now"),
        // A deep indentation is not used for the following lines.
        ("        one two", 12, "        one\ntwo"),
    ])
    func `long lines break at spaces`(_ text: String, _ columns: Int, _ wanted: String) {
        #expect(WordWrap.wrap(text, columns: columns) == wanted)
    }

    @Test func `marks of colors have no width`() {
        #expect(WordWrap.wrap("*one* *two*", columns: 7) { $0 == "*" } == "*one* *two*")
        #expect(WordWrap.wrap("*one* *two*", columns: 6) { $0 == "*" } == "*one*\n*two*")
    }

    @Test func `no line is longer than the terminal, and no word is lost`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let words = (0..<30).map { _ in String(repeating: "w", count: Int.random(in: 1...9, using: &random)) }
            let wrapped = WordWrap.wrap(words.joined(separator: " "), columns: 10)
            #expect(wrapped.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init) == words)
            #expect(wrapped.split(separator: "\n").allSatisfy { $0.count <= 10 })
        }
    }
}
