import Foundation

/// The characters that a server does not accept in file names, and the rules for a name without these characters.
///
/// Nextcloud can be configured to accept only names that are valid on Windows. Nextcloud then refuses a name with the exception
/// `InvalidPath` and quotes one character. So all characters that Windows forbids are replaced together. Otherwise the server
/// would refuse the next name because of another forbidden character.
///
/// Nextcloud has other rules, for example for reserved names. The violated rule is derived from the refused name, because the
/// server writes its reasons in its own language.
struct ForbiddenCharacters: Sendable {
    /// Characters that Windows forbids in names. `RemoteName.safe` already replaces `/` and `\` in every name.
    private static let common = Set(":*?\"<>|".unicodeScalars)
    /// Quotation marks in the languages that Nextcloud supports.
    private static let quotes = Set(
        "\"'\u{2018}\u{2019}\u{201A}\u{201C}\u{201D}\u{201E}\u{00AB}\u{00BB}\u{300C}\u{300D}".unicodeScalars)

    /// The forbidden characters of the name, in the order in which they appear in the name.
    private(set) var found: String

    /// The violated rules that do not concern characters.
    private(set) var rules: ForbiddenNameRules

    init(resuming memory: UploadMemory?) {
        (found, rules) = (memory?.replaced ?? "", ForbiddenNameRules(rawValue: memory?.nameRules ?? 0))
    }

    /// Returns the name changed by all known rules. The server accepts the changed name, unless the server has further rules.
    /// Forbidden characters are replaced by `_`.
    func replaced(in name: String) -> String {
        let forbidden = Set(found.unicodeScalars)
        let replaced = String(String.UnicodeScalarView(name.unicodeScalars.map { forbidden.contains($0) ? "_" : $0 }))
        return rules.applied(to: found.isEmpty ? name : replaced)
    }

    /// Returns whether the name contains a character that Windows forbids, or is a name that Windows forbids.
    static func areLikely(in name: String) -> Bool {
        name.unicodeScalars.contains(where: common.contains) || !ForbiddenNameRules(of: name, reason: "").isEmpty
    }

    /// Returns whether the server refused the request because of the file's name.
    static func isRefusal(_ head: ResponseHead, _ body: Data) -> Bool { reason(head, body) != nil }

    private static func reason(_ head: ResponseHead, _ body: Data) -> ServerReason? {
        guard [400, 403, 409, 422].contains(head.status), let reason = ServerReason(body),
            let exception = reason.exception.split(separator: "\\").last, exception.hasPrefix("Invalid"),
            exception.contains("Path")
        else { return nil }
        return reason
    }

    /// Reads the server's refusal of a name.
    ///
    /// - Parameter name: The name that was sent.
    /// - Returns: `true` if the server refused this name and another name can be sent.
    mutating func read(_ head: ResponseHead, _ body: Data, for name: String) -> Bool {
        guard let reason = Self.reason(head, body) else { return false }
        let forbidden = Self.common.union(Self.quoted(in: reason.text))
        var new = ""
        for character in name.unicodeScalars where forbidden.contains(character) && !new.unicodeScalars.contains(character) {
            new.unicodeScalars.append(character)
        }
        found += new
        // If the name violates another rule, the next response shows this rule. Each name is sent only once.
        guard new.isEmpty else { return true }
        let more = ForbiddenNameRules(of: name, reason: reason.text).subtracting(rules)
        rules.formUnion(more)
        return !more.isEmpty
    }

    /// Returns each character that is the only character between quotation marks. Letters, digits, `.`, `-` and `_` are not
    /// returned.
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

    /// The remark about the changed name. `nil` if the name is unchanged.
    var remark: String? {
        var remarks = [rules.remark].compactMap { $0 }
        if !found.isEmpty {
            let characters = ServerText.line(found.unicodeScalars.map { String($0) }.joined(separator: " "))
            remarks.insert("the server does not allow \(characters) in file names, so \"_\" replaces these characters", at: 0)
        }
        return remarks.isEmpty ? nil : remarks.joined(separator: "; ")
    }
}
