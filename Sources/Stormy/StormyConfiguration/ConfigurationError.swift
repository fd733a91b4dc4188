/// The reason why a configuration is not accepted.
package struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The problem of a configuration.
    package enum Problem: Equatable, Sendable {
        /// The file exists but cannot be read, or is not a text.
        case unreadable(reason: String)
        /// The system cannot read the file now, for example because of a limit of open files.
        ///
        /// - Parameter isDisk: `true` if the disk reports an error.
        case unavailable(reason: String, isDisk: Bool)
        /// The text is not valid TOML. The value is the parser's message.
        case syntax(String)
        /// An unknown key, with the most similar known key in the form that is valid in this table.
        case unknownKey(String, nearest: String, isLikely: Bool)
        /// A value of the wrong type.
        case wrongType(key: String, expected: String, found: String)
        /// A value of the right type that is not allowed, with advice.
        case invalidValue(key: String, value: String, advice: String)
        /// The configuration does not contain a required key.
        case missingKey(String, advice: String)
        /// The key is a credential, and other users can read the file.
        case exposedCredential(key: String)
        /// The key is a credential, and the file belongs to another user.
        case foreignCredential(key: String)
        /// Other users can change or replace the file. Such a file is not accepted, because passwords and photos are sent to the
        /// addresses in the file.
        ///
        /// - Parameter place: the file, or its folder.
        case othersCanWrite(place: String)
        /// The file or its folder belongs to another user.
        case foreign(place: String)
    }

    /// The problem.
    package var problem: Problem
    /// The path of the file, in the form that the caller passed.
    package var path: String
    /// The line, beginning with 1. `nil` if the line is unknown.
    package var line: Int?
    /// The column in Unicode scalars, beginning with 1. `nil` if the column is unknown.
    package var column: Int?

    /// Creates an error from its parts.
    package init(_ problem: Problem, path: String, line: Int? = nil, column: Int? = nil) {
        self.problem = problem
        self.path = path
        self.line = line
        self.column = column
    }

    /// A text of one line with the position in the file, the problem and the advice.
    package var description: String {
        let place = [path] + [line, column].compactMap { $0.map(String.init) }
        return place.joined(separator: ":") + ": " + message
    }

    private var message: String {
        switch problem {
        case .unreadable(let reason), .unavailable(let reason, _):
            "cannot be read: \(reason)"
        case .syntax(let words):
            "not valid TOML: \(words)"
        case .unknownKey(let key, let nearest, let isLikely):
            "unknown key \"\(key)\"; " + (isLikely ? "did you mean \"\(nearest)\"?" : "the nearest known key is \"\(nearest)\"")
        case .wrongType(let key, let expected, let found):
            "\"\(key)\" must be \(expected), not \(found)"
        case .invalidValue(let key, let value, let advice):
            "\"\(key)\" cannot be \(value); \(advice)"
        case .missingKey(let key, let advice):
            "\"\(key)\" is missing; \(advice)"
        case .exposedCredential(let key):
            "\"\(key)\" is a credential and other users can read this file; run: chmod 600 \(ConfigurationError.shellWord(path))"
        case .foreignCredential(let key):
            "\"\(key)\" is a credential and this file belongs to another user; replace the file with a file of your own"
        case .othersCanWrite(let place) where place == path:
            "other users can write to this file; run: chmod go-w \(ConfigurationError.shellWord(place))"
        case .othersCanWrite(let place):
            "other users can write to \(place); run: chmod go-w \(ConfigurationError.shellWord(place))"
        case .foreign(let place) where place == path:
            "this file belongs to another user; replace the file with a file of your own"
        case .foreign(let place):
            "\(place) belongs to another user; replace the file with a file of your own"
        }
    }

    /// Returns the path with the quotes that a shell needs, so that the user can paste the command in the advice into a terminal.
    private static func shellWord(_ path: String) -> String {
        let isPlain = path.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || ("0"..."9").contains($0) || "/._-+~".unicodeScalars.contains($0)
        }
        return isPlain && !path.isEmpty
            ? path : "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
