import CLinux
import Foundation

/// A folder as one process sees it. A process with other mounts, for example in a container or a service with `PrivateTmp=`, can see another
/// folder under the same path.
///
/// For processes with the same mounts only the path counts. The user may replace the folder, restore it from a backup, or connect its drive
/// again, and a file for this folder must not wait. Only if the mounts differ, the folders are compared. A folder that was replaced is then not
/// found: no process can see whether the new folder is the one that the other process means.
package struct SeenFolder: Equatable, Sendable {
    /// The mount namespace and the root folder of the process; `nil` if unknown.
    let view: String?
    /// The folder itself.
    let folder: String

    init(view: String?, folder: String) { (self.view, self.folder) = (view, folder) }

    /// - Parameter path: The folder, seen by this process.
    /// - Returns: `nil` if nothing can be seen there.
    package init?(_ path: String) {
        guard let folder = Self.identity(path) else { return nil }
        self.init(view: Self.ownView, folder: folder)
    }

    /// - Parameter text: As ``text`` returned it.
    package init?(text: String) {
        let parts = text.split(separator: " ")
        guard parts.count == 2 else { return nil }
        self.init(view: parts[0] == Self.unknown[...] ? nil : String(parts[0]), folder: String(parts[1]))
    }

    /// As it is stored in a row.
    package var text: String { "\(view ?? Self.unknown) \(folder)" }
    private static let unknown = "-"

    /// Returns whether both processes mean the same folder, if they use the same path.
    package func isSame(as other: SeenFolder) -> Bool { view != nil && view == other.view || folder == other.folder }

    /// Returns whether the path leads to this folder in this process.
    package func isAt(_ path: String) -> Bool {
        isSame(as: SeenFolder(view: Self.ownView, folder: Self.identity(path) ?? ""))
    }

    private static let ownView: String? = {
        var namespace = stat()
        guard stat("/proc/self/ns/mnt", &namespace) == 0, let root = identity("/") else { return nil }
        return "\(namespace.st_ino):\(root)"
    }()

    /// The number of a device can change with each start of the machine, so the time of birth is used if the file system records it.
    private static func identity(_ path: String) -> String? {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        let born = clinux_birth_time(path)
        return born == 0 ? "\(found.st_dev)/\(found.st_ino)" : "\(found.st_ino):\(born)"
    }
}
