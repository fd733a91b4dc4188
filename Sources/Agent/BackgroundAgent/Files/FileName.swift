import CLinux
import Foundation

/// Why a file here is of no use.
package struct FileTrouble: Sendable, Equatable {
    var why: String
    /// Waiting may help.
    var isPassing: Bool

    init(why: String, isPassing: Bool) { (self.why, self.isPassing) = (why, isPassing) }

    /// What `errno` says, or said, of a file.
    init(_ number: Int32 = errno, with path: String) {
        self.init(why: "\(path): " + String(cString: strerror(number)), isPassing: [ENOSPC, EDQUOT].contains(number))
    }
}

/// Files by their names: whether a part is there, and how a whole file gets its own.
enum FileName {
    /// Bytes of an open file; -1: it is something else.
    static func size(of descriptor: Int32) -> Int64 {
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return -1 }
        return Int64(information.st_size)
    }

    /// Whether a part file still holds what the ledger says of it.
    static func holds(_ byteCount: Int64, at url: URL) -> Bool {
        let descriptor = clinux_open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return size(of: descriptor) >= byteCount
    }

    /// Gives a whole, synced file its name; durable once its folder is synced. Otherwise: why not.
    static func give(_ part: URL, _ whole: URL) -> FileTrouble? {
        // What it replaces may be for nobody else's eyes.
        var replaced = stat()
        if lstat(whole.path, &replaced) == 0, replaced.st_mode & S_IFMT == S_IFREG {
            chmod(part.path, replaced.st_mode & 0o777)
        }
        return rename(part.path, whole.path) == 0 ? nil : FileTrouble(with: whole.path)
    }

    /// A second name in the same folder. `false`: this file system has none, or something is in the way.
    static func add(_ path: String, _ name: String) -> Bool {
        unlink(name)
        return link(path, name) == 0
    }

    /// Makes the names in a folder durable. `nil`: they are. Otherwise: why not.
    static func sync(folder path: String) -> String? {
        let folder = clinux_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard folder >= 0 else { return "\(path): " + String(cString: strerror(errno)) }
        defer { close(folder) }
        // Some file systems cannot sync a folder (EINVAL): a name is then as durable as they make it.
        guard fsync(folder) == 0 || errno == EINVAL else { return "\(path): " + String(cString: strerror(errno)) }
        return nil
    }
}
