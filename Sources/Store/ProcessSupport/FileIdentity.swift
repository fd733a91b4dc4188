import CLinux
import Foundation

/// The identity of a file and of the file's content. If the file is replaced or changed, its identity is different.
package struct FileIdentity: Equatable, Sendable {
    /// The text that is stored in a row of the ledger.
    package let text: String

    /// Reads the identity of the file at a path. If the path is a link, the identity is the identity of the link. Returns `nil`
    /// if the path does not exist.
    package init?(_ path: String) {
        var found = stat()
        guard lstat(path, &found) == 0 else { return nil }
        text = Self.text(of: found)
    }

    /// Returns the identity of the file at a path. If the path is a link, the identity is the identity of the link's target. A
    /// change of the permissions also changes this identity.
    package static func behind(_ path: String) -> FileIdentity? {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        return FileIdentity(text: text(of: found) + ":\(found.st_ctim.tv_sec).\(found.st_ctim.tv_nsec)")
    }

    /// Returns the identity of a folder. The identity does not depend on the content of the folder. If a folder is replaced by a
    /// new folder, the identity changes. The identity does not contain the device number, because this number may change at each
    /// start of the machine.
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
