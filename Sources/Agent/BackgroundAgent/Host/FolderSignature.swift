import BackgroundLedger
import CLinux
import Foundation
import ProcessSupport

/// Computes a text that depends on the content of a folder. The text changes if a file is added, removed, renamed or changed.
///
/// Hidden files and folders are ignored, and links are not followed, so a circle of links does no harm. Cost: a system call for
/// each file, about 3 s for a million files.
package enum FolderSignature {
    /// The text for a folder that does not exist.
    package static let missing = "missing"

    /// The maximum number of folders that a unit of the user manager watches for one watched folder.
    private static let mostFolders = 100

    /// The result for one folder.
    package struct Finding: Equatable, Sendable {
        package let signature: String
        /// `true` if the kernel reports changes of the folder. The kernel does not report changes that other computers make in a
        /// network folder.
        package let isReported: Bool
        /// The folders whose changes show every change: the folder, and the folders inside it. `nil` if the folder does not exist,
        /// or if the list would be too long.
        package let folders: [String]?

        package init(signature: String, isReported: Bool, folders: [String]?) {
            (self.signature, self.isReported, self.folders) = (signature, isReported, folders)
        }
    }

    /// - Parameter watch: Adds a watch for a folder before the folder is read. Returns `false` if the watch cannot be added.
    package static func compute(_ folder: WatchedFolder, watch: (String) -> Bool = { _ in true }) -> Finding {
        // The kernel does not report that a link in the path leads to another folder.
        var isReported = !FileSystemKind.isRemote(folder.path) && !hasLink(folder.path)
        var (count, sum, mixed): (Int, UInt64, UInt64) = (0, 0, 0)
        func add(_ hash: UInt64) { (count, sum, mixed) = (count + 1, sum &+ hash, mixed ^ (hash &* 0x9E37_79B9_7F4A_7C15)) }
        var (rest, folders) = ([folder.path], [String]())
        while let path = rest.popLast() {
            isReported = watch(path) && isReported
            if folders.count <= mostFolders { folders.append(path) }
            let code = FolderEntries.read(path) { name in
                guard name.first != UInt8(ascii: ".") else { return }
                var information = stat()
                let entry = path + "/" + String(decoding: name, as: UTF8.self)
                guard lstat(entry, &information) == 0 else { return add(hash(entry, [UInt64(errno)])) }
                if information.st_mode & S_IFMT == S_IFDIR {
                    // The times of a folder change with its files. Files are examined themselves.
                    add(hash(entry, [1]))
                    if folder.isRecursive { rest.append(entry) }
                } else {
                    let time = information.st_mtim
                    add(
                        hash(
                            entry,
                            [
                                UInt64(information.st_ino), UInt64(bitPattern: Int64(information.st_size)),
                                UInt64(bitPattern: Int64(time.tv_sec)), UInt64(time.tv_nsec),
                                // A change of the permissions can make a file readable.
                                UInt64(bitPattern: Int64(information.st_ctim.tv_sec)), UInt64(information.st_ctim.tv_nsec),
                            ]))
                }
            }
            if code != 0 {
                if path == folder.path, [ENOENT, ENOTDIR].contains(code) {
                    return Finding(signature: missing, isReported: watchAncestor(of: path, watch), folders: nil)
                }
                add(hash(path, [UInt64(code)]))
            }
        }
        return Finding(
            signature: "\(count):\(String(sum, radix: 16)):\(String(mixed, radix: 16))", isReported: isReported,
            folders: folders.count <= mostFolders ? folders : nil)
    }

    /// Adds a watch for the nearest existing folder above a missing folder.
    private static func watchAncestor(of path: String, _ watch: (String) -> Bool) -> Bool {
        var folder = path
        while let slash = folder.lastIndex(of: "/"), folder != "/" {
            folder = slash == folder.startIndex ? "/" : String(folder[..<slash])
            if access(folder, F_OK) == 0 { return watch(folder) }
        }
        return false
    }

    /// FNV-1a with 64 bits. A collision is possible, but not probable enough to matter, because the folder is also checked by a
    /// rule once a day.
    private static func hash(_ path: String, _ numbers: [UInt64]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in path.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for number in numbers {
            for shift in stride(from: UInt64(0), to: 64, by: 8) { hash = (hash ^ (number >> shift & 0xFF)) &* 0x100_0000_01B3 }
        }
        return hash
    }

    private static func hasLink(_ path: String) -> Bool {
        guard let resolved = realpath(path, nil) else { return false }
        defer { free(resolved) }
        return String(cString: resolved) != path
    }
}
