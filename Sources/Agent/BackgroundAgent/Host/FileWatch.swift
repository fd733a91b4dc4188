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
        do throws(StoreError) {
            try Self.arm(made, paths)
        } catch {
            close(made)
            throw error
        }
        // Last: who throws after it runs `deinit`, too.
        descriptor = made
    }

    /// Call again after each ring: a folder that was not there may be there now. Watching one twice is watching it once.
    ///
    /// - Throws: the system has no watches left.
    static func arm(_ descriptor: Int32, _ paths: [String]) throws(StoreError) {
        let mask = UInt32(IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_MOVE_SELF)
        let files = paths.map(URL.init(fileURLWithPath:))
        for file in Set(files + files.map { $0.resolvingSymlinksInPath() }) {
            let wanted = file.deletingLastPathComponent()
            var (folder, last) = (wanted, URL?.none)
            // The nearest one that is there hears of the next being made. One that was made just before that is found by going through
            // them again.
            repeat {
                last = folder == wanted ? nil : folder
                folder = wanted
                while inotify_add_watch(descriptor, folder.path, mask) < 0 {
                    let number = errno
                    if folder.path == "/" { break }
                    if [ENOSPC, ENOMEM].contains(number) {
                        throw .troubled(path: folder.path, reason: "inotify: " + String(cString: strerror(number)))
                    }
                    folder = folder.deletingLastPathComponent()
                }
            } while folder != wanted && folder != last
        }
    }

    deinit { close(descriptor) }
}
