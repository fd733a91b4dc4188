import Foundation

/// Which file stands at a path, and as which content: another file in its place, or a change of it, is another identity.
package struct FileIdentity: Equatable, Sendable {
    /// As it is kept in a row.
    package let text: String

    /// `nil`: nothing stands there.
    package init?(_ path: String) {
        var found = stat()
        guard lstat(path, &found) == 0 else { return nil }
        text = "\(found.st_dev):\(found.st_ino):\(found.st_size):\(found.st_mtim.tv_sec).\(found.st_mtim.tv_nsec)"
    }
}
