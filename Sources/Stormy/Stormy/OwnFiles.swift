import BackgroundRuntime
import Foundation
import ProcessSupport

/// The folders of this app's configuration, passwords, database and copies, which contain no photos of the user. The comparison
/// opens no file, because closing the file of a database would release this process's locks on the database.
package struct OwnFiles: Sendable {
    private let folders: [PathName]
    /// The folder of the configuration, or `nil` if the folder does not exist.
    private let configuration: PathName?
    /// The identities of the files in the folders. An identity stays the same if a file has several names, for example because of
    /// a hard link or a folder that is mounted twice.
    private let files: Set<Identity>
    /// The reason why the list of files may be incomplete.
    private let trouble: String?

    /// The error if it cannot be determined whether a file belongs to the app, because a file system did not respond.
    package struct Unknown: Error {
        package let reason: String
    }

    private struct Identity: Hashable {
        let device: dev_t
        let inode: ino_t

        init(_ information: stat) { (device, inode) = (information.st_dev, information.st_ino) }
    }

    /// Lists the files. The list requires one `stat` call for each file in three folders.
    ///
    /// - Parameter secrets: paths of passwords and keys in other folders.
    package init(
        _ directories: AppDirectories = AppRuntime.shared.directories, secrets: [String] = StormySettings.current.secretFiles
    ) {
        configuration = PathName.resolved(directories.configuration.path)
        folders = [directories.configuration, directories.state, directories.data].compactMap { PathName.resolved($0.path) }
        var (files, trouble): (Set<Identity>, String?) = ([], nil)
        var paths = secrets
        for folder in folders {
            do {
                paths += try FileManager.default.contentsOfDirectory(atPath: folder.text).map { folder.text + "/" + $0 }
            } catch {
                if !PathStatus.at(folder.text).isAbsent { trouble = "\(folder.text): \((error as NSError).localizedDescription)" }
            }
        }
        for path in paths {
            switch PathStatus.at(path) {
            case .found(let information) where information.st_mode & S_IFMT == S_IFREG: files.insert(Identity(information))
            case .found, .absent: break
            // Unreachable files and loops of links are skipped, because they cannot be uploaded.
            case .unreadable(let number) where FileFault(number) != .unavailable: break
            case .unreadable(let number): trouble = "\(path): \(String(cString: strerror(number)))"
            }
        }
        (self.files, self.trouble) = (files, trouble)
    }

    /// Returns whether a path leads to one of the app's files, directly or through links. The check requires one `stat` call for
    /// each folder of the path.
    ///
    /// - Throws: ``Unknown``.
    package func contain(_ path: String) throws(Unknown) -> Bool {
        switch PathStatus.at(path) {
        // A new file in the folder of the configuration would be read as the configuration.
        case .absent:
            let folder = PathName.resolved(URL(exactPath: path).deletingLastPathComponent().path)
            return configuration != nil && folder == configuration
        // If a path is not valid for any file, it is not the path of a file of the app.
        case .unreadable(let number) where FileFault(number) == .impossible: return false
        case .unreadable(let number): throw Unknown(reason: String(cString: strerror(number)))
        case .found(let information): return try has(information, at: PathName.resolved(path))
        }
    }

    /// Returns whether an open file is one of the app's files. The check uses the open file, because the path with which the file
    /// was opened may lead to another file by now.
    ///
    /// - Throws: ``Unknown``.
    func contain(descriptor: Int32) throws(Unknown) -> Bool {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw Unknown(reason: String(cString: strerror(errno))) }
        return try has(information, at: Self.path(of: descriptor))
    }

    private func has(_ information: stat, at path: PathName?) throws(Unknown) -> Bool {
        if files.contains(Identity(information)) { return true }
        guard let path else { throw Unknown(reason: "the path of the file cannot be determined") }
        if isBelow(path) { return true }
        if let trouble { throw Unknown(reason: trouble) }
        return false
    }

    /// Returns the path of an open file, without links. The method makes one system call.
    private static func path(of descriptor: Int32) -> PathName? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(descriptor)", &path, path.count - 1)
        return count > 0 ? PathName(bytes: path[..<count].map { UInt8(bitPattern: $0) }) : nil
    }

    private func isBelow(_ path: PathName) -> Bool { folders.contains { path.isInside($0) } }
}
