import CLinux
import Foundation

/// The identity of a file at a path and of the content of the file. If the file is replaced or changed, the identity is
/// different.
package struct FileIdentity: Equatable, Sendable {
    /// The text that is stored in a row of the ledger.
    package let text: String

    /// Reads the identity of the file at a path, without following a link. Returns `nil` if the path does not exist.
    package init?(_ path: String) {
        var found = stat()
        guard lstat(path, &found) == 0 else { return nil }
        text = Self.text(of: found)
    }

    /// Returns the identity of the target of a link. A change of the permissions also changes this identity.
    package static func behind(_ path: String) -> FileIdentity? {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        return FileIdentity(text: text(of: found) + ":\(found.st_ctim.tv_sec).\(found.st_ctim.tv_nsec)")
    }

    /// Returns the identity of a folder. The identity does not change with the folder's content. A new folder with the same name
    /// has another identity. The device number is not included, because it may change at each start of the machine.
    ///
    /// - Returns: `nil` if no folder can be read at the path.
    package static func folder(_ path: String) -> FileIdentity? {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        return FileIdentity(text: "\(found.st_ino):\(clinux_birth_time(path))")
    }

    private init(text: String) { self.text = text }

    private static func text(of found: stat) -> String {
        "\(found.st_dev):\(found.st_ino):\(found.st_size):\(found.st_mtim.tv_sec).\(found.st_mtim.tv_nsec)"
    }
}
