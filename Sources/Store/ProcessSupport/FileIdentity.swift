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

    private init(text: String) { self.text = text }

    private static func text(of found: stat) -> String {
        "\(found.st_dev):\(found.st_ino):\(found.st_size):\(found.st_mtim.tv_sec).\(found.st_mtim.tv_nsec)"
    }
}
