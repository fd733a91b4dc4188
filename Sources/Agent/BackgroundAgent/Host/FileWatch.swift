import CLinux
import Foundation
import ProcessSupport

/// Hears that files which an app named have changed: written, replaced by another, made, removed, or opened to others. Their folders are watched, as
/// editors put a new file in the place of the old one. Of a link both are watched, where it lies and where it leads.
struct FileWatch: ~Copyable {
    /// Readable when something in one of the folders changed. Non-blocking, close-on-exec.
    let descriptor: Int32

    init(_ paths: [String]) throws(StoreError) {
        let made = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard made >= 0 else {
            throw .troubled(path: paths.first ?? "", reason: "inotify: " + String(cString: strerror(errno)))
        }
        descriptor = made
        Self.arm(made, paths)
    }

    /// Call again after each ring: a folder that was not there may be there now. Watching one twice is watching it once.
    static func arm(_ descriptor: Int32, _ paths: [String]) {
        let mask = UInt32(IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE)
        let files = paths.map(URL.init(fileURLWithPath:))
        for file in Set(files + files.map { $0.resolvingSymlinksInPath() }) {
            var folder = file.deletingLastPathComponent()
            // The nearest one that is there hears of the next being made.
            while inotify_add_watch(descriptor, folder.path, mask) < 0, folder.path != "/" {
                folder = folder.deletingLastPathComponent()
            }
        }
    }

    deinit { close(descriptor) }
}
