import CLinux
import Foundation

/// The identity of a file at a path and of its content. Another file at the path has another identity, and so does a changed file.
package struct FileIdentity: Equatable, Sendable {
    /// The text that is stored in a row.
    package let text: String

    /// Reads the identity of the file at a path, without following a link. `nil` if the path does not exist.
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

    /// Returns the identity of a folder, which does not change with the content. A new folder with the same name has another identity. The
    /// device number is not included, because it may change with each start of the machine.
    ///
    /// - Returns: `nil` if nothing can be seen there.
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
