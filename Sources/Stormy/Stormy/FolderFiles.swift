import Foundation
import Glibc
import ProcessSupport

/// Lists the files of a watched folder.
enum FolderFiles {
    struct Entry: Sendable {
        let path: String
        let version: PhotoOriginal.Version
        /// The later time of the last change of the content and of the attributes.
        let changedAt: Date
    }

    /// The endings of the names of files that another program is still writing.
    private static let partialEndings = [".part", ".partial", ".tmp", ".crdownload", ".download", "~"]

    /// Returns the regular files of a folder. Hidden files, and files whose names show that they are not complete, are left out.
    /// A link to a file counts as a file. A link to a folder is not followed, because links may form a circle.
    ///
    /// - Returns: The files, and sentences about files and folders that cannot be examined. `code` is the error number of the
    ///   folder itself, or 0.
    static func list(_ folder: String, isRecursive: Bool) -> (files: [Entry], troubles: [String], code: Int32) {
        var (files, troubles, rest) = ([Entry](), [String](), [folder])
        var ownCode: Int32?
        while let next = rest.popLast() {
            let code = FolderEntries.read(next) { name in
                guard name.first != UInt8(ascii: ".") else { return }
                guard let text = String(validating: name, as: UTF8.self) else {
                    let shown = String(decoding: name, as: UTF8.self)
                    return troubles.append("\(next)/\(shown): the name is not UTF-8. Rename the file first")
                }
                let path = next == "/" ? "/" + text : next + "/" + text
                var information = stat()
                guard lstat(path, &information) == 0 else { return }
                if information.st_mode & S_IFMT == S_IFLNK {
                    guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return }
                }
                switch information.st_mode & S_IFMT {
                case S_IFDIR: if isRecursive { rest.append(path) }
                case S_IFREG where !partialEndings.contains(where: text.lowercased().hasSuffix):
                    files.append(Entry(path: path, information))
                default: break
                }
            }
            if ownCode == nil { ownCode = code }
            if code != 0, !FileFault(code).isAbsence {
                troubles.append("\(next): the folder cannot be read: \(String(cString: strerror(code)))")
            }
        }
        return (files.sorted { PathName($0.path) < PathName($1.path) }, troubles, ownCode ?? 0)
    }

    /// Returns the current state of a file. `nil` if the file does not exist any more.
    static func entry(_ path: String) -> Entry? {
        var information = stat()
        return stat(path, &information) == 0 ? Entry(path: path, information) : nil
    }
}

extension FolderFiles.Entry {
    init(path: String, _ information: stat) {
        self.path = path
        version = PhotoOriginal.Version(information)
        let latest = max(information.st_mtim.tv_sec, information.st_ctim.tv_sec)
        changedAt = Date(timeIntervalSince1970: Double(latest))
    }
}
