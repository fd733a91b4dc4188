import Foundation
import Glibc
import ProcessSupport

/// A file with a token, a password or a key, whose path is in the configuration.
struct SecretFile {
    enum Trouble: Error, Equatable {
        case missing
        case notAFile
        case unreadable(reason: String)
        /// Other users can read the file. Stormy also refuses a configuration file that other users can read.
        case readableByOthers
        /// The file belongs to another user, who can always make the file readable.
        case ofAnotherUser
        case tooLarge
        case empty
        /// The secret has several lines. In a header, the second line would be another header, and the server would refuse the
        /// secret without a clear reason.
        case severalLines
    }

    let path: String

    /// The maximum size in bytes. No server accepts a longer password, token or key.
    private static let maximumBytes = 64 * 1024

    /// - Parameter name: a path, in which `~/` is the home folder.
    init(_ name: String) {
        if name.hasPrefix("~/"), let home = ThisProcess.environment["HOME"], home.hasPrefix("/") {
            path = home + name.dropFirst()
        } else {
            path = NSString(string: name).expandingTildeInPath
        }
    }

    /// Returns the secret without the line break at the end.
    func read() throws(Trouble) -> String {
        // The checks and the read use the same descriptor, because another process may replace the file between the checks and
        // the read. With `O_NONBLOCK`, the call does not wait if the path is a named pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw errno == ENOENT ? .missing : .unreadable(reason: String(cString: strerror(errno)))
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw .unreadable(reason: String(cString: strerror(errno))) }
        guard information.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
        guard information.st_uid == geteuid() else { throw .ofAnotherUser }
        guard information.st_mode & 0o077 == 0 else { throw .readableByOthers }
        guard let data = try? handle.read(upToCount: Self.maximumBytes + 1) ?? Data() else {
            throw .unreadable(reason: "the disk reports an error")
        }
        guard data.count <= Self.maximumBytes else { throw .tooLarge }
        guard let text = String(data: data, encoding: .utf8) else { throw .unreadable(reason: "the file is not text") }
        let secret = text.trimmingCharacters(in: .newlines)
        guard !secret.isEmpty else { throw .empty }
        guard !secret.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else { throw .severalLines }
        return secret
    }

    /// Returns a text for the user.
    func describe(_ trouble: Trouble) -> String {
        switch trouble {
        case .missing: "the file \(path) does not exist"
        case .notAFile: "\(path) is not a file"
        case .unreadable(let reason): "the file \(path) cannot be read: \(reason)"
        case .readableByOthers: "other users can read \(path)"
        case .ofAnotherUser: "\(path) belongs to another user, who can read the file. Use a file of your own"
        case .tooLarge: "\(path) is larger than 64 KiB: a password, token or key is one line"
        case .empty: "\(path) is empty"
        case .severalLines: "\(path) contains more than one line or a control character"
        }
    }
}
