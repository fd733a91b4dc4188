import CLinux
import Foundation

/// A folder of this process, for files that nobody else sees. Removed with it; where the process dies, by ``removeAbandoned(prefix:in:)``.
package final class HeldFolder: Sendable {
    package let url: URL
    /// Locked for as long as it lives.
    private let descriptor: Int32

    private static let draft = "."
    /// Seconds after which one that has no name yet is nobody's.
    private static let draftAge = 60.0

    /// For photos that are cleaned, in the spool. Earlier versions had these folders beside the spool.
    package static let cleaning = "cleaning-"

    /// `nil`: it cannot be made.
    package init?(prefix: String, in place: URL) {
        let name = prefix + UUID().uuidString
        url = place.appendingPathComponent(name)
        // Locked before it has its name: others take one that is not locked for abandoned.
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

    /// Removes folders whose processes are gone.
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

    /// Whose process died before it had a name: there is nothing in it.
    private static func removeOldDraft(_ path: String) {
        var found = stat()
        guard lstat(path, &found) == 0, abs(Date().timeIntervalSince1970 - Double(found.st_mtim.tv_sec)) > draftAge else {
            return
        }
        rmdir(path)
    }
}
