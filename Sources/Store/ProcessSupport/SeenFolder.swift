import CLinux
import Foundation

/// The identity of a folder from the view of one process. For a process with other mounts, for example in a container or in a
/// service with `PrivateTmp=`, the same path can be another folder.
///
/// If two processes have the same mounts, only the path is compared. A download therefore does not wait if the user has replaced
/// its folder, restored the folder from a backup, or connected the folder's drive again. But if the drive is not connected, the
/// path is a folder below the empty mount point.
///
/// The identities of the folders are compared only if the mounts differ. In this case a replaced folder is not accepted. This
/// process cannot check whether the path leads to the new folder also for the other process.
package struct SeenFolder: Equatable, Sendable {
    /// The mount namespace and the root folder of the process, or `nil` if they are unknown.
    let view: String?
    /// The identity of the folder itself.
    let folder: String
    /// The mount point of the folder's file system, or `nil` if the mount point is the root folder or is unknown.
    let mount: String?

    init(view: String?, folder: String, mount: String? = nil) { (self.view, self.folder, self.mount) = (view, folder, mount) }

    /// - Parameter path: The path of the folder in this process.
    /// - Returns: `nil` if no folder can be read at the path.
    package init?(_ path: String) {
        guard let folder = Self.identity(path) else { return nil }
        self.init(view: Self.ownView, folder: folder, mount: Self.mountPoint(of: path))
    }

    /// - Parameter text: the value of ``text``.
    package init?(text: String) {
        let parts = text.split(separator: " ")
        guard parts.count == 2 || parts.count == 3 else { return nil }
        let mount = parts.count == 3 ? String(parts[2]).removingPercentEncoding : nil
        self.init(view: parts[0] == Self.unknown[...] ? nil : String(parts[0]), folder: String(parts[1]), mount: mount)
    }

    /// The text that is stored in a row of the ledger.
    package var text: String {
        let mount = mount?.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed)
        return ([view ?? Self.unknown, folder] + [mount].compactMap { $0 }).joined(separator: " ")
    }
    private static let unknown = "-"

    /// Returns whether the same path is the same folder for both processes.
    package func isSame(as other: SeenFolder) -> Bool { view != nil && view == other.view || folder == other.folder }

    /// Returns whether the path leads to this folder in this process.
    package func isAt(_ path: String) -> Bool {
        isSame(as: SeenFolder(view: Self.ownView, folder: Self.identity(path) ?? ""))
    }

    /// Returns `true` if the folder at the path is the recorded folder itself, and not another folder with the same path.
    package func isUnchanged(at path: String) -> Bool { Self.identity(path) == folder }

    /// The mount point of the drive that contained the folder, if no drive is mounted at this path now. The value is `nil` if a
    /// drive is mounted, or if a process with other mounts recorded the folder.
    package var absentMount: String? {
        guard let mount, view != nil, view == Self.ownView else { return nil }
        let point = clinux_mount(mount)
        return point != 0 && point == clinux_mount(mount + "/..") ? mount : nil
    }

    /// - Returns: the mount point, or `nil` for the root folder.
    private static func mountPoint(of path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        var place = String(cString: real)
        let mount = clinux_mount(place)
        while mount != 0, place != "/" {
            let parent = place.lastIndex(of: "/").map { $0 == place.startIndex ? "/" : String(place[..<$0]) } ?? "/"
            if clinux_mount(parent) != mount { return place }
            place = parent
        }
        return nil
    }

    private static let ownView: String? = {
        var namespace = stat()
        guard stat("/proc/self/ns/mnt", &namespace) == 0, let root = identity("/") else { return nil }
        return "\(namespace.st_ino):\(root)"
    }()

    /// Returns the identity of a folder. The device number can change at each start of the machine, so the creation time is used
    /// if the file system records it.
    private static func identity(_ path: String) -> String? {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        let born = clinux_birth_time(path)
        return born == 0 ? "\(found.st_dev)/\(found.st_ino)" : "\(found.st_ino):\(born)"
    }
}
