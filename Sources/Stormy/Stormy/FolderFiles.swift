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
    /// - Returns: `nil` if the folder does not exist or cannot be read.
    static func list(_ folder: String, isRecursive: Bool) -> [Entry]? {
        var (files, rest, isFirst) = ([Entry](), [folder], true)
        while let next = rest.popLast() {
            guard let entries = opendir(next) else {
                if isFirst { return nil }
                continue
            }
            isFirst = false
            defer { closedir(entries) }
            while let entry = readdir(entries) {
                let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
                // The name of a file must be UTF-8, because the store contains its path as text.
                guard name.first != UInt8(ascii: "."), let text = String(validating: name, as: UTF8.self) else { continue }
                let path = next == "/" ? "/" + text : next + "/" + text
                var information = stat()
                guard lstat(path, &information) == 0 else { continue }
                if information.st_mode & S_IFMT == S_IFLNK {
                    guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { continue }
                }
                switch information.st_mode & S_IFMT {
                case S_IFDIR: if isRecursive { rest.append(path) }
                case S_IFREG where !partialEndings.contains(where: text.lowercased().hasSuffix):
                    files.append(Entry(path: path, information))
                default: break
                }
            }
        }
        return files.sorted { PathName($0.path) < PathName($1.path) }
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
