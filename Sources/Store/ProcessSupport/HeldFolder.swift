import CLinux
import Foundation

/// A folder of this process, for files that nobody else sees. Removed with it; where the process dies, by ``removeAbandoned(prefix:in:)``.
package final class HeldFolder: Sendable {
    package let url: URL
    /// Locked for as long as it lives.
    private let descriptor: Int32

    /// For photos that are cleaned, beside the spool.
    package static let cleaning = "cleaning-"

    /// `nil`: it cannot be made.
    package init?(prefix: String, in place: URL) {
        url = place.appendingPathComponent(prefix + UUID().uuidString)
        guard mkdir(url.path, 0o700) == 0 else { return nil }
        descriptor = clinux_open(url.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            rmdir(url.path)
            return nil
        }
    }

    deinit {
        Self.remove(url.path)
        close(descriptor)
    }

    package static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

    /// Removes folders whose processes are gone.
    package static func removeAbandoned(prefix: String, in place: URL) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? [] where name.hasPrefix(prefix) {
            let path = place.appendingPathComponent(name).path
            let descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { remove(path) }
        }
    }
}
