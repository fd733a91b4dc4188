import Foundation
import Glibc
import ProcessSupport

/// A file with a token, a password or a key, as the configuration names it.
struct SecretFile {
    enum Trouble: Error, Equatable {
        case missing
        case notAFile
        case unreadable(reason: String)
        /// The same rule as for the configuration itself.
        case readableByOthers
        case empty
        /// In a header it would be another header; what is sent without it is refused by the server, and nobody knows why.
        case severalLines
    }

    let path: String

    /// - Parameter name: `~/` stands for the home folder.
    init(_ name: String) {
        if name.hasPrefix("~/"), let home = ThisProcess.environment["HOME"], home.hasPrefix("/") {
            path = home + name.dropFirst()
        } else {
            path = NSString(string: name).expandingTildeInPath
        }
    }

    /// The secret, without the line's end.
    func read() throws(Trouble) -> String {
        var information = stat()
        guard stat(path, &information) == 0 else {
            throw errno == ENOENT ? .missing : .unreadable(reason: String(cString: strerror(errno)))
        }
        guard information.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
        guard access(path, R_OK) == 0 else { throw .unreadable(reason: String(cString: strerror(errno))) }
        guard information.st_mode & 0o077 == 0 else { throw .readableByOthers }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw .unreadable(reason: "it is not text")
        }
        let secret = text.trimmingCharacters(in: .newlines)
        guard !secret.isEmpty else { throw .empty }
        guard !secret.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else { throw .severalLines }
        return secret
    }

    /// In words for a person.
    func describe(_ trouble: Trouble) -> String {
        switch trouble {
        case .missing: "the file \(path) is not there"
        case .notAFile: "\(path) is not a file"
        case .unreadable(let reason): "the file \(path) cannot be read: \(reason)"
        case .readableByOthers: "others can read \(path)"
        case .empty: "\(path) is empty"
        case .severalLines: "\(path) holds more than one line, or a control character"
        }
    }
}
