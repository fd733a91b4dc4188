/// Decides whether a location that was found in bytes of an unknown format is text. Sensor data and compressed data can contain
/// the letters of a coordinate by chance.
///
/// The found characters, the text around them, and the bytes before and after the text each count as evidence. The evidence is
/// measured in bits of information. With the required number of bits, less than one wrong result in 10 TiB of data is expected.
/// The noise of a sensor may consist of digits and signs. A result with few letters therefore requires more evidence: words
/// around the text, zeros next to the text, or a tag name before the text.
struct TextEvidence {
    /// The letters, one for each code unit. Code units beyond Latin-1 are 1, which is not text.
    let letters: [UInt8]
    /// `isStart` is `true` if the block begins with the first letter. `isEnd` is `true` if the block ends with the last letter.
    let (isStart, isEnd): (Bool, Bool)

    /// The ratings in tenths of bits. The values are for a digit, another found letter, a letter of the surrounding text, and a
    /// zero or the end of the block next to the text.
    private static let (digit, mark, other, bound) = (47, 60, 14, 60)
    /// The required rating with words, the required rating without words, and the maximum rating of the surrounding text.
    private static let (needed, certain, otherLimit) = (560, 720, 160)
    /// The number of letters before and after a found location that are rated.
    private static let reach = 24

    /// Returns whether there is enough evidence that a found location is text.
    ///
    /// - Parameter find: The letters from the first mark or name to the last digit.
    func supports(_ find: Range<Int>) -> Bool {
        guard find.upperBound <= letters.count else { return false }
        // A plus code without a label consists of capital letters and digits, so it may occur by chance.
        let isCode = letters[find].contains(43) && !letters[find].contains(46)
        guard letters[find].allSatisfy({ Self.isText($0) || $0 >= 0x80 }),
            isCode || letters[find].count(where: CoordinateText.isDigit) > 3
        else { return false }
        let before = run(from: find.lowerBound, by: -1), after = run(from: find.upperBound, by: 1)
        var bits = letters[find].prefix(60).reduce(0) { $0 + (CoordinateText.isDigit($1) ? Self.digit : Self.mark) }
        bits += min(Self.otherLimit, Self.other * (before.count + after.count))
        bits += Self.bound * [before.isBound, after.isBound].count(where: \.self)
        guard bits >= Self.needed else { return false }
        let isAlone = before.isBound && after.isBound && before.count + after.count == 0
        if isAlone || !isCode && (before.isBound && after.isEnd || before.isEnd && after.isBound) { return true }
        // Digits, signs and the first capital letters are close together in ASCII, so noise contains them more often.
        let isNumbers = isCode || letters[find].count { $0 > 0x4A && $0 < 0x7F || $0 == 0x45 || $0 >= 0x80 } < 2
        if !isNumbers, bits >= Self.certain { return true }
        let around = [
            letters[find.lowerBound - before.count..<find.lowerBound], letters[find.upperBound..<find.upperBound + after.count],
        ]
        let words = around.reduce(0) { $0 + Self.lettersOfWords($1, length: isNumbers ? 3 : 4, isSmall: isCode) }
        if words > 0 && words * (isNumbers ? 8 : 4) >= before.count + after.count { return true }
        switch tag(before: find.lowerBound) {
        case .location: return true
        case .other: return !isCode && bits >= Self.certain
        case nil: return false
        }
    }

    private enum Tag { case location, other }

    /// The maximum number of bytes between the name of a tag and its text, and the maximum number of considered letters of a
    /// name.
    private static let (longestGap, longestName) = (8, 32)

    /// Returns the name of a tag before its text. Numbers of the format may be between the name and the text, for example the
    /// size of the text in Matroska.
    private func tag(before start: Int) -> Tag? {
        var result: Tag?
        for end in stride(from: start - 1, to: max(0, start - Self.longestGap - 1), by: -1)
        where letters[end..<start].contains(where: { !Self.isText($0) }) {
            let name = Array(letters[..<end].suffix(Self.longestName).reversed().prefix(while: Self.isName).reversed())
            if LocationNames.isLocation(name) { return .location }
            if Self.lettersOfWords(name[...], length: 4, isSmall: false) > 3 { result = .other }
        }
        return result
    }

    private static func isName(_ letter: UInt8) -> Bool {
        CoordinateText.isLetter(letter) || CoordinateText.isDigit(letter) || letter == UInt8(ascii: "-")
    }

    /// Returns the length of the text before or after a found location.
    ///
    /// - Returns: The number of letters. `isEnd` is `true` if the text ends after these letters, and `isBound` is `true` if a
    ///   zero or the end of the block follows.
    private func run(from start: Int, by step: Int) -> (count: Int, isEnd: Bool, isBound: Bool) {
        var (index, count) = (step > 0 ? start : start - 1, 0)
        while count < Self.reach {
            guard letters.indices.contains(index) else {
                let isEdge = step > 0 ? isEnd : isStart
                return (count, isEdge, isEdge)
            }
            guard let length = lengthOfText(at: index, by: step) else { return (count, true, letters[index] == 0) }
            (index, count) = (index + length * step, count + length)
        }
        return (count, false, false)
    }

    /// Returns the number of bytes of a letter. The letter is in ASCII, in UTF-8, or in Latin-1 next to ASCII. `nil` if the bytes
    /// are not a letter.
    private func lengthOfText(at index: Int, by step: Int) -> Int? {
        if Self.isText(letters[index]) { return 1 }
        guard letters[index] >= 0x80 else { return nil }
        var (first, last) = (index, index)
        if step > 0 {
            let size = letters[index] >= 0xF0 ? 4 : letters[index] >= 0xE0 ? 3 : 2
            while last + 1 < letters.count, last - first < size - 1, letters[last + 1] & 0xC0 == 0x80 { last += 1 }
        } else {
            while first > 0, last - first < 3, letters[first] & 0xC0 == 0x80 { first -= 1 }
        }
        let size = letters[first] >= 0xF0 ? 4 : letters[first] >= 0xE0 ? 3 : letters[first] >= 0xC2 ? 2 : 0
        if size == last - first + 1 { return size }
        let next = index + step
        return letters[index] >= 0xA0 && letters.indices.contains(next) && Self.isText(letters[next]) ? 1 : nil
    }

    private static func isText(_ letter: UInt8) -> Bool { (0x20...0x7E).contains(letter) || [9, 10, 13].contains(letter) }

    /// Returns the number of letters in real words. All letters of a real word have the same case, or only the first letter is a
    /// capital letter.
    private static func lettersOfWords(_ text: ArraySlice<UInt8>, length: Int, isSmall: Bool) -> Int {
        text.split { !((65...90).contains($0) || (97...122).contains($0)) }.reduce(0) { sum, word in
            let capitals = word.count { $0 < 97 }
            let isWord = capitals == 0 || !isSmall && capitals == word.count || capitals == 1 && word.first! < 97
            return isWord && word.count >= length ? sum + word.count : sum
        }
    }
}
