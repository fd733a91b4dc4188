import BackgroundRuntime
import Foundation
import ProcessSupport

/// Where this app keeps its configuration, passwords, records and copies. Nothing of it is a photo of the person's, and none of it is
/// opened to find out: closing a database's file takes away the locks that this process has on it.
package struct OwnFiles: Sendable {
    private let folders: [PathName]
    /// Of the files that lie in the folders, for other names of the same: hard links, and folders that are mounted twice.
    private let files: Set<Identity>

    private struct Identity: Hashable {
        let device: dev_t
        let inode: ino_t

        init(_ information: stat) { (device, inode) = (information.st_dev, information.st_ino) }
    }

    /// Cost: a look at each file in three folders.
    ///
    /// - Parameter secrets: paths of passwords and keys that lie elsewhere.
    package init(
        _ directories: AppDirectories = AppRuntime.shared.directories, secrets: [String] = StormySettings.current.secretFiles
    ) {
        folders = [directories.configuration, directories.state, directories.data].compactMap { PathName.resolved($0.path) }
        let paths = folders.flatMap { folder in
            ((try? FileManager.default.contentsOfDirectory(atPath: folder.text)) ?? []).map { folder.text + "/" + $0 }
        }
        var files: Set<Identity> = []
        for path in paths + secrets {
            var information = stat()
            guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { continue }
            files.insert(Identity(information))
        }
        self.files = files
    }

    /// Whatever links lead there. Cost: one look at each folder of the path.
    package func contain(_ path: String) -> Bool {
        var information = stat()
        guard stat(path, &information) == 0 else { return false }
        return files.contains(Identity(information)) || PathName.resolved(path).map(isBelow) ?? false
    }

    /// Of a file that is open: what its name led to a moment ago does not count.
    func contain(descriptor: Int32) -> Bool {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { return false }
        return files.contains(Identity(information)) || Self.path(of: descriptor).map(isBelow) ?? false
    }

    /// The path of an open file, without links. Cost: one system call.
    private static func path(of descriptor: Int32) -> PathName? {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/fd/\(descriptor)", &path, path.count - 1)
        return count > 0 ? PathName(bytes: path[..<count].map { UInt8(bitPattern: $0) }) : nil
    }

    private func isBelow(_ path: PathName) -> Bool { folders.contains { path.isInside($0) } }
}
