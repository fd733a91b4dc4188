import CLinux
import Foundation

/// A temporary folder for files that only this process uses. The folder is deleted when this object is deallocated. If the
/// process is killed, another process removes the folder with ``removeAbandoned(prefix:in:)``.
package final class HeldFolder: Sendable {
    package let url: URL
    /// The descriptor of the folder. The folder is locked while the descriptor is open.
    private let descriptor: Int32

    private static let draft = "."
    /// The age in seconds after which a folder that still has a temporary name counts as abandoned.
    private static let draftAge = 60.0

    /// The name prefix of folders in which location data is removed from photos. The folders are in the spool. Earlier versions
    /// created these folders next to the spool.
    package static let cleaning = "cleaning-"

    /// Creates the folder. Returns `nil` if the folder cannot be created.
    package init?(prefix: String, in place: URL) {
        let name = prefix + UUID.random().uuidString
        url = place.appendingPathComponent(name)
        // The folder is locked before it gets its final name, because other processes treat an unlocked folder as abandoned.
        let draft = place.appendingPathComponent(Self.draft + name)
        guard mkdir(draft.path, 0o700) == 0 else { return nil }
        let descriptor = clinux_open(draft.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0, rename(draft.path, url.path) == 0 else {
            rmdir(draft.path)
            if descriptor >= 0 { close(descriptor) }
            return nil
        }
        self.descriptor = descriptor
    }

    deinit {
        Self.remove(url.path)
        close(descriptor)
    }

    package static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

    /// Removes the folders that processes left behind when they were killed.
    package static func removeAbandoned(prefix: String, in place: URL) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? [] {
            if name.hasPrefix(draft + prefix) { removeOldDraft(place.appendingPathComponent(name).path) }
            guard name.hasPrefix(prefix) else { continue }
            let path = place.appendingPathComponent(name).path
            let descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { remove(path) }
        }
    }

    /// Removes a folder whose process was killed before the folder got its final name. Such a folder is empty.
    private static func removeOldDraft(_ path: String) {
        var found = stat()
        guard lstat(path, &found) == 0, abs(Date().timeIntervalSince1970 - Double(found.st_mtim.tv_sec)) > draftAge else {
            return
        }
        rmdir(path)
    }
}
