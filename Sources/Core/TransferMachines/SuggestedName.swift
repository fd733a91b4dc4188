import Foundation

/// The file name that a response suggests. The name comes from `Content-Disposition` (RFC 6266), or from the last part of the
/// address. The name contains no folder, because a server must not choose the folder of a file.
package enum SuggestedName {
    /// The maximum number of bytes of a file name on Linux file systems.
    private static let limit = 255

    package static func of(_ head: ResponseHead) -> String {
        let said = head["Content-Disposition"].flatMap(named)
        let last = URL(string: head.url)?.path(percentEncoded: false).split(separator: "/").last.map(String.init)
        return [said, last].lazy.compactMap { $0.flatMap(cleaned) }.first ?? "Unknown"
    }

    /// Returns the name in the header. `filename*` has priority over `filename`, as RFC 6266, 4.3 requires.
    private static func named(_ header: String) -> String? {
        let values = parameters(header)
        return values["filename*"].flatMap(decoded) ?? values["filename"]
    }

    /// Returns the parameters after the first semicolon, by their names in lower case. A quoted value may contain any character.
    private static func parameters(_ header: String) -> [String: String] {
        var found: [String: String] = [:]
        var rest = header.drop { $0 != ";" }
        while rest.first == ";" {
            rest = rest.dropFirst().drop { $0 == " " || $0 == "\t" }
            let name = rest.prefix { $0 != "=" && $0 != ";" }
            rest = rest.dropFirst(name.count)
            guard rest.first == "=" else { continue }
            rest = rest.dropFirst()
            var value = ""
            if rest.first == "\"" {
                rest = rest.dropFirst()
                while let character = rest.popFirst(), character != "\"" {
                    value.append(character == "\\" ? rest.popFirst() ?? "\\" : character)
                }
                rest = rest.drop { $0 != ";" }
            } else {
                value = String(rest.prefix { $0 != ";" })
                rest = rest.dropFirst(value.count)
            }
            let key = name.trimmingCharacters(in: .whitespaces).lowercased()
            if found[key] == nil { found[key] = value.trimmingCharacters(in: .whitespaces) }
        }
        return found
    }

    /// Decodes a value such as `UTF-8''na%C3%AFve.txt` (RFC 8187). Returns `nil` if the charset or the form is different.
    private static func decoded(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
        return String(parts[2]).removingPercentEncoding
    }

    /// Returns a safe name. Returns `nil` if the name contains no permitted characters.
    private static func cleaned(_ name: String) -> String? {
        // Only the last component of a path is used. The separator can be a slash or a backslash.
        let last = name.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last.map(String.init) ?? ""
        let visible = last.unicodeScalars.filter { scalar in
            scalar.value >= 0x20 && scalar.value != 0x7F && !(0x80...0x9F).contains(scalar.value)
                && scalar.properties.generalCategory != .format
        }
        var text = String(String.UnicodeScalarView(visible)).trimmingCharacters(in: .whitespaces)
        // A leading dot would hide the file, and two dots mean the parent folder.
        text = String(text.drop { $0 == "." })
        while text.utf8.count > limit { text.removeLast() }
        return text.isEmpty ? nil : text
    }
}
