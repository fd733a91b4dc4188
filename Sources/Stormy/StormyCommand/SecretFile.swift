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
        /// That user can read the file, whatever its mode.
        case ofAnotherUser
        case tooLarge
        case empty
        /// In a header it would be another header; what is sent without it is refused by the server, and nobody knows why.
        case severalLines
    }

    let path: String

    /// No server takes a longer password, token or key.
    private static let maximumBytes = 64 * 1024

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
        // The same descriptor is checked and read, in case the file is replaced. It does not block, because a named pipe can have the name.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw errno == ENOENT ? .missing : .unreadable(reason: String(cString: strerror(errno)))
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
        guard information.st_uid == geteuid() else { throw .ofAnotherUser }
        guard information.st_mode & 0o077 == 0 else { throw .readableByOthers }
        guard let data = try? handle.read(upToCount: Self.maximumBytes + 1) ?? Data() else {
            throw .unreadable(reason: "the disk reports an error")
        }
        guard data.count <= Self.maximumBytes else { throw .tooLarge }
        guard let text = String(data: data, encoding: .utf8) else { throw .unreadable(reason: "it is not text") }
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
        case .ofAnotherUser: "\(path) belongs to another user, who can read it: use a file of your own"
        case .tooLarge: "\(path) is larger than 64 KiB: a password, token or key is one line"
        case .empty: "\(path) is empty"
        case .severalLines: "\(path) holds more than one line, or a control character"
        }
    }
}
