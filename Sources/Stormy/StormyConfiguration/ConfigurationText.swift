import Foundation

/// The text of a configuration file, for changes that keep all other lines.
///
/// After each change the new text is parsed. A change is accepted only if exactly the requested setting differs, because a user
/// can write one setting in several forms of TOML.
package struct ConfigurationText: Equatable, Sendable {
    /// The reason why a change is not possible.
    package enum Failure: Error, Equatable, CustomStringConvertible {
        /// The destination is not a table that begins with a line of its own.
        case otherForm(name: String, path: String)
        /// The text cannot be changed without an effect on other settings.
        case otherEffect(path: String)
        /// The new text would be larger than a configuration may be.
        case tooLarge(path: String)

        package var description: String {
            switch self {
            case .otherForm(let name, let path):
                "\(path): the destination \(name) does not begin with a line [upload.destinations.\(name)]. "
                    + "Edit the file yourself"
            case .otherEffect(let path):
                "\(path) cannot be changed without an effect on other settings. Edit the file yourself"
            case .tooLarge(let path): "\(path) would become larger than 1 MiB. Remove comments from the file"
            }
        }
    }

    package private(set) var text: String
    private let path: String

    /// `true` if the text contains a password, a token or a signature. Other users must not be able to read such a file.
    var hasCredential: Bool { (try? ConfigurationParser(text: text, path: path))?.credential != nil }

    /// - Parameter path: The path of the file, for error messages.
    package init(_ text: String, path: String) { (self.text, self.path) = (text, path) }

    /// Returns the lines without their line breaks. A line break is one newline character, as in TOML.
    static func lines(of text: String) -> [String] {
        text.utf8.split(separator: 10, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the text with a new destination at its end.
    ///
    /// - Throws: ``Failure``, or ``ConfigurationError`` if the text or the destination is not valid.
    package func adding(_ name: String, _ destination: Configuration.Destination) throws -> ConfigurationText {
        var expected = try Configuration.parse(text: text, path: path)
        let section = "[upload.destinations.\(name)]"
        expected.upload.destinations[name] = destination
        var added = self
        if !text.isEmpty, !text.hasSuffix("\n") { added.text += "\n" }
        if !text.isEmpty { added.text += "\n" }
        added.text += ([section] + Self.lines(of: destination)).joined(separator: "\n") + "\n"
        // The lines of the new destination are only known after the text was parsed.
        guard let found = try? Configuration.parse(text: added.text, path: path).upload.destinations[name] else {
            throw try refusal(of: name, destination)
        }
        expected.upload.destinations[name]?.lines = found.lines
        return try added.proved(expected)
    }

    /// Returns the text without a destination. If the destination is the default, the line `default` is also removed.
    ///
    /// - Throws: ``Failure``, or ``ConfigurationError`` if the text is not valid.
    package func removing(_ name: String) throws -> ConfigurationText {
        var expected = try Configuration.parse(text: text, path: path)
        guard let section = expected.upload.destinations.removeValue(forKey: name)?.section else {
            throw Failure.otherForm(name: name, path: path)
        }
        var lines = Self.lines(of: text)
        guard let start = lines.firstIndex(where: { Self.trimmed($0) == section }) else {
            throw Failure.otherForm(name: name, path: path)
        }
        let next = lines[(start + 1)...].firstIndex { Self.trimmed($0).hasPrefix("[") } ?? lines.endIndex
        // Comments and empty lines before the next table belong to the next table.
        let end = lines[start..<next].lastIndex { !Self.trimmed($0).isEmpty && !Self.trimmed($0).hasPrefix("#") } ?? start
        lines.removeSubrange(start...end)
        if lines.indices.contains(start), start > 0, Self.trimmed(lines[start]).isEmpty, Self.trimmed(lines[start - 1]).isEmpty {
            lines.remove(at: start)
        }
        if expected.upload.defaultDestination == name {
            expected.upload.defaultDestination = nil
            lines.removeAll { Self.isDefault($0, name) }
        }
        var removed = self
        removed.text = lines.joined(separator: "\n")
        return try removed.proved(expected)
    }

    /// Returns the reason why a destination cannot be added: its settings are not valid, or the text has an inline table.
    private func refusal(of name: String, _ destination: Configuration.Destination) throws -> Failure {
        let alone = ["[upload.destinations.\(name)]"] + Self.lines(of: destination)
        _ = try Configuration.parse(text: alone.joined(separator: "\n"), path: path)
        return .otherEffect(path: path)
    }

    private func proved(_ expected: Configuration) throws -> ConfigurationText {
        guard text.utf8.count <= Configuration.maximumBytes else { throw Failure.tooLarge(path: path) }
        // An error about the new text would name lines that the user's file does not have.
        guard let found = try? Configuration.parse(text: text, path: path), found == expected else {
            throw Failure.otherEffect(path: path)
        }
        return self
    }

    private static func isDefault(_ line: String, _ name: String) -> Bool {
        let parts = line.prefix { $0 != "#" }.split(separator: "=", maxSplits: 1).map { trimmed(String($0)) }
        return parts.count == 2 && parts[0] == "default" && [quoted(name), "'\(name)'"].contains(parts[1])
    }

    private static func trimmed(_ line: String) -> String {
        line.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private static func lines(of destination: Configuration.Destination) -> [String] {
        let texts: [(String, String?)] = [
            ("kind", destination.kind.rawValue), ("url", destination.url), ("user", destination.user),
            ("password_file", destination.passwordFile), ("token_file", destination.tokenFile),
            ("bucket", destination.bucket), ("region", destination.region), ("access_key", destination.accessKey),
            ("secret_key_file", destination.secretKeyFile), ("field", destination.field),
            ("location", destination.location?.rawValue), ("path", destination.path), ("ca_file", destination.caFile),
        ]
        return texts.compactMap { key, value in value.map { "\(key) = \(quoted($0))" } }
    }

    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
