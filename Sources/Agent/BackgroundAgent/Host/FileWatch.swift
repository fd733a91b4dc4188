import CLinux
import Foundation
import ProcessSupport

/// Detects changes of files that an app specified. A change means that the file was written, replaced, created or removed, or
/// that its permissions changed. The folders are watched, because editors replace the old file with a new file. For a symbolic
/// link, its folder and the folder of its target are watched.
struct FileWatch: ~Copyable {
    /// A descriptor that is readable after a change in one of the folders. The descriptor is non-blocking and close-on-exec.
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
        // The property is set last, because an error after this line would also run `deinit`, which closes the descriptor a
        // second time.
        descriptor = made
    }

    /// Adds the watches. Call this method again after each event, because a missing folder may exist by now. Adding a watch a
    /// second time has no effect.
    ///
    /// - Throws: An error if the system has no free watches.
    static func arm(_ descriptor: Int32, _ paths: [String]) throws(StoreError) {
        let mask = UInt32(IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_MOVE_SELF)
        let files = paths.map(URL.init(fileURLWithPath:))
        for file in Set(files + files.map { $0.resolvingSymlinksInPath() }) {
            let wanted = file.deletingLastPathComponent()
            var (folder, last) = (wanted, URL?.none)
            // The nearest existing folder reports the creation of the folder below it. Another iteration finds folders that were
            // created while the watch was added.
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
