import Foundation

/// The characters that a server forbids in the name of a file, and the name without them.
///
/// Nextcloud can be set to take only the names that Windows takes. Nextcloud refuses a name with the exception `InvalidPath` and quotes one character.
/// All characters that Windows forbids are replaced together, because the other ones would be refused next.
struct ForbiddenCharacters: Sendable {
    /// Characters that Windows forbids. `RemoteName.safe` replaces `/` and `\` in every name.
    private static let common = Set(":*?\"<>|".unicodeScalars)
    /// Quotation marks in the languages of Nextcloud.
    private static let quotes = Set(
        "\"'\u{2018}\u{2019}\u{201A}\u{201C}\u{201D}\u{201E}\u{00AB}\u{00BB}\u{300C}\u{300D}".unicodeScalars)

    /// The characters that were found in the name, in the order of the name.
    private(set) var found: String

    init(resuming memory: UploadMemory?) { found = memory?.replaced ?? "" }

    /// Returns the name with `_` in the place of each forbidden character.
    func replaced(in name: String) -> String {
        guard !found.isEmpty else { return name }
        let forbidden = Set(found.unicodeScalars)
        return String(String.UnicodeScalarView(name.unicodeScalars.map { forbidden.contains($0) ? "_" : $0 }))
    }

    /// Returns whether the name has a character that Windows forbids.
    static func areLikely(in name: String) -> Bool { name.unicodeScalars.contains(where: common.contains) }

    /// Reads a refusal.
    ///
    /// - Parameter name: the name that was sent.
    /// - Returns: `true` if the server refused this name and another name can be sent.
    mutating func read(_ head: ResponseHead, _ body: Data, for name: String) -> Bool {
        guard [400, 403, 409, 422].contains(head.status), let reason = ServerReason(body),
            let exception = reason.exception.split(separator: "\\").last, exception.hasPrefix("Invalid"),
            exception.contains("Path")
        else { return false }
        let forbidden = Self.common.union(Self.quoted(in: reason.text))
        var new = ""
        for character in name.unicodeScalars where forbidden.contains(character) && !new.unicodeScalars.contains(character) {
            new.unicodeScalars.append(character)
        }
        found += new
        return !new.isEmpty
    }

    /// The characters that stand alone between quotation marks. Letters, digits and `_` are not replaced.
    private static func quoted(in text: String) -> Set<Unicode.Scalar> {
        let visible = text.unicodeScalars.filter { !$0.properties.isWhitespace }
        let triples = zip(zip(visible, visible.dropFirst()), visible.dropFirst(2))
        return Set(
            triples.compactMap { pair, last in
                let (first, middle) = pair
                let isReplaced =
                    !middle.properties.isAlphabetic && middle.properties.numericType == nil
                    && !".-_".unicodeScalars.contains(middle)
                return quotes.contains(first) && quotes.contains(last) && isReplaced ? middle : nil
            })
    }

    /// The remark about the name. `nil` if the name has all its characters.
    var remark: String? {
        guard !found.isEmpty else { return nil }
        let characters = ServerText.line(found.unicodeScalars.map { String($0) }.joined(separator: " "))
        return "the server does not allow \(characters) in file names, so \"_\" is in their place"
    }
}
