/// Rules by which Nextcloud refuses file names that are not valid on Windows although their characters are allowed. The type also
/// makes a name that follows these rules.
struct ForbiddenNameRules: OptionSet, Sendable {
    let rawValue: Int

    /// The name is the name of a device, or of a file with server settings. Examples: `CON.jpg`, `.htaccess`.
    static let reserved = ForbiddenNameRules(rawValue: 1)
    /// The name ends with a dot or a space.
    static let ending = ForbiddenNameRules(rawValue: 2)
    /// The name has the ending of a forbidden file type.
    static let type = ForbiddenNameRules(rawValue: 4)
    /// The name has more bytes than the server allows.
    static let length = ForbiddenNameRules(rawValue: 8)

    private static let devices = Set(
        ["con", "prn", "aux", "nul"] + (0...9).flatMap { ["com\($0)", "lpt\($0)"] }
            + ["¹", "²", "³"].flatMap { ["com\($0)", "lpt\($0)"] })
    /// Endings of incomplete files. Nextcloud always refuses names with these endings.
    private static let types = [".part", ".filepart"]
    /// Nextcloud's limit in bytes. The limit leaves space for the number that is added to a taken name.
    private static let maximumBytes = 240

    init(rawValue: Int) { self.rawValue = rawValue }

    /// Creates the set of rules that a refused name violates.
    ///
    /// - Parameter reason: The text of the refusal, in any language. In this text Nextcloud quotes the name or the ending.
    init(of name: String, reason: String) {
        self = []
        let (small, reason) = (name.lowercased(), reason.lowercased())
        if Self.devices.contains(Self.base(small)) || small.hasPrefix(".") && Self.quotes(reason, small) { insert(.reserved) }
        if let last = name.last, last == "." || last == " " { insert(.ending) }
        let ending = small.lastIndex(of: ".").map { String(small[$0...]) }
        if let ending, ending != small, Self.types.contains(ending) || ending.count > 1 && Self.quotes(reason, ending) {
            insert(.type)
        }
        if name.utf8.count > Self.maximumBytes { insert(.length) }
    }

    private static func quotes(_ reason: String, _ text: String) -> Bool {
        reason.ranges(of: text).contains { range in
            let before = reason[..<range.lowerBound].last { !$0.isWhitespace }
            let after = reason[range.upperBound...].first { !$0.isWhitespace }
            return [before, after].allSatisfy { $0.map { !$0.isLetter && !$0.isNumber && $0 != "." } ?? false }
        }
    }

    /// Returns the part of the name before its first dot. If the name begins with a dot, this dot belongs to the part.
    private static func base(_ name: String) -> String {
        String(name.prefix(1) + name.dropFirst().prefix { $0 != "." })
    }

    /// Returns a name that follows the rules.
    func applied(to name: String) -> String {
        var name = name
        if contains(.length), name.utf8.count > Self.maximumBytes {
            let ending = name.lastIndex(of: ".").map { name[$0...] } ?? ""
            let kept = ending.utf8.count <= 32 ? String(ending) : ""
            var stem = name.dropLast(kept.count)
            while stem.utf8.count + kept.utf8.count > Self.maximumBytes, stem.count > 1 { stem.removeLast() }
            name = stem + kept
        }
        if contains(.reserved) {
            let base = name.hasPrefix(".") ? name : Self.base(name)
            name = base + "_" + name.dropFirst(base.count)
        }
        if contains(.ending) {
            let end = name.reversed().prefix { $0 == "." || $0 == " " }.count
            name = name.dropLast(end) + String(repeating: "_", count: end)
        }
        if contains(.type) { name += "_" }
        return name
    }

    /// The remark about the changed name. `nil` if the set of rules is empty.
    var remark: String? {
        var remarks: [String] = []
        if !isDisjoint(with: [.reserved, .ending, .type]) {
            remarks.append("the server does not allow this file name, so \"_\" was added to the name")
        }
        if contains(.length) { remarks.append("the server does not allow file names of this length, so the name was shortened") }
        return remarks.isEmpty ? nil : remarks.joined(separator: "; ")
    }
}
