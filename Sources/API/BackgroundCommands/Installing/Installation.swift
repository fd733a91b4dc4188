import BackgroundRuntime
import Foundation
import ProcessSupport
import Spool

/// The files that `install` writes into one folder. Another file lists the written files and their digests. With this list,
/// `uninstall` removes files of earlier versions, but keeps files that a user changed.
struct Installation {
    /// The folder of the installation: `~/.local/share`, or a folder for a package.
    let folder: URL
    /// The file that lists the written files, or `nil` for a package, because package tools have their own lists.
    let list: URL?

    /// The change that an installation makes to one file.
    enum Step: Equatable {
        case write(String)
        /// The file exists and is correct.
        case keep(String)
        case remove(String)
        /// The file is not changed, because a user changed it or another program wrote it.
        case leave(String)
    }

    private struct Written: Codable {
        /// The SHA-256 digests of the written files, by path.
        var files: [String: String] = [:]
    }

    private func written() throws -> Written {
        guard let list, FileManager.default.fileExists(atPath: list.path) else { return Written() }
        do {
            return try JSONDecoder().decode(Written.self, from: Data(contentsOf: list))
        } catch {
            throw CommandFailure(.inputOutput, "\(list.path) cannot be read: \((error as NSError).localizedDescription)")
        }
    }

    /// `true` if the file ``list`` exists.
    var isThere: Bool { list.map { FileManager.default.fileExists(atPath: $0.path) } ?? false }

    private func digest(_ path: String) -> String? { (try? Data(contentsOf: url(path))).map { FileDigest.sha256(of: $0) } }

    private func url(_ path: String) -> URL { folder.appendingPathComponent(path) }

    /// Returns the steps that install exactly these files and remove older files of the app.
    func plan(_ files: [InstalledFile]) throws -> [Step] {
        let before = try written().files
        var steps = files.map { file -> Step in
            guard let found = digest(file.path) else { return .write(file.path) }
            if found == FileDigest.sha256(of: file.content) { return .keep(file.path) }
            return list == nil || found == before[file.path] ? .write(file.path) : .leave(file.path)
        }
        let wanted = Set(files.map(\.path))
        for path in before.keys.sorted() where !wanted.contains(path) {
            guard let found = digest(path) else { continue }
            steps.append(found == before[path] ? .remove(path) : .leave(path))
        }
        return steps
    }

    /// Carries out the steps. Each file is replaced atomically. The list is written before the files, so that it contains every
    /// file even if the process is killed.
    func carryOut(_ steps: [Step], _ files: [InstalledFile]) throws {
        let contents = Dictionary(files.map { ($0.path, $0.content) }) { $1 }
        var after = try written()
        for case .write(let path) in steps { after.files[path] = contents[path].map { FileDigest.sha256(of: $0) } }
        if !after.files.isEmpty { try save(after) }
        for step in steps {
            switch step {
            case .write(let path): try write(contents[path] ?? Data(), to: url(path))
            case .remove(let path):
                try remove(path)
                after.files[path] = nil
            case .keep, .leave: continue
            }
        }
        try save(after)
    }

    private func save(_ written: Written) throws {
        guard let list else { return }
        guard !written.files.isEmpty else {
            unlink(list.path)
            return
        }
        try write(try JSONEncoder().encode(written), to: list)
    }

    private func write(_ data: Data, to file: URL) throws {
        do {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
            try data.write(to: file, options: .atomic)
            chmod(file.path, 0o644)
        } catch {
            throw CommandFailure(cannotWriteIn: file, error)
        }
    }

    private func remove(_ path: String) throws {
        let file = url(path).path
        guard unlink(file) == 0 || errno == ENOENT else {
            throw CommandFailure(.cannotCreate, "\(file): \(String(cString: strerror(errno)))")
        }
        // Folders that are empty now are removed. A folder that another program uses is not empty, so it is kept.
        var folder = url(path).deletingLastPathComponent()
        while folder.path.hasPrefix(self.folder.path + "/"), rmdir(folder.path) == 0 { folder.deleteLastPathComponent() }
    }
}
