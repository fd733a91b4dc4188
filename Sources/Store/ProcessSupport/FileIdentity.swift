import CLinux
import Foundation

/// Which file stands at a path, and as which content: another file in its place, or a change of it, is another identity.
package struct FileIdentity: Equatable, Sendable {
    /// As it is kept in a row.
    package let text: String

    /// `nil`: nothing stands there.
    package init?(_ path: String) {
        var found = stat()
        guard lstat(path, &found) == 0 else { return nil }
        text = Self.text(of: found)
    }

    /// Of what a link leads to; who may read it counts, too.
    package static func behind(_ path: String) -> FileIdentity? {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        return FileIdentity(text: text(of: found) + ":\(found.st_ctim.tv_sec).\(found.st_ctim.tv_nsec)")
    }

    /// Returns the identity of a folder, which does not change with the content. A new folder under the same name has another identity. The number
    /// of the device may change with each start of the machine, and is left out.
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
