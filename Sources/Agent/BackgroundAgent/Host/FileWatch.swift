import CLinux
import Foundation

/// Hears that files which an app named have changed: written, replaced by another, made or removed. Their folders are watched, as
/// editors put a new file in the place of the old one.
struct FileWatch: ~Copyable {
    /// Readable when something in one of the folders changed. Non-blocking, close-on-exec.
    let descriptor: Int32

    /// `nil`: nothing is named, or none of the folders is there.
    init?(_ paths: [String]) {
        let folders = Set(paths.map { URL(fileURLWithPath: $0).deletingLastPathComponent().path })
        guard !folders.isEmpty else { return nil }
        let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        let mask = UInt32(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE)
        guard folders.filter({ inotify_add_watch(descriptor, $0, mask) >= 0 }).isEmpty == false else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
