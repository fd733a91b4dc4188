import BackgroundRuntime
import Foundation
import ProcessSupport
import Spool

/// The files of one installation, in one folder. A list records the written files. With this list, `uninstall` removes files of
/// earlier versions and keeps files that a user changed.
struct Installation {
    /// The folder: `~/.local/share`, or a folder that a packager fills.
    let folder: URL
    /// The file that lists the written files, or `nil` if a packager's tool has its own list.
    let list: URL?

    /// The action for one file.
    enum Step: Equatable {
        case write(String)
        /// The file exists and is correct.
        case keep(String)
        case remove(String)
        /// A user changed the file, or another program wrote it.
        case leave(String)
    }

    private struct Written: Codable {
        /// The SHA-256 digests, by path.
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

    /// `true` if the list of written files exists.
    var isThere: Bool { list.map { FileManager.default.fileExists(atPath: $0.path) } ?? false }

    private func digest(_ path: String) -> String? { (try? Data(contentsOf: url(path))).map { FileDigest.sha256(of: $0) } }

    private func url(_ path: String) -> URL { folder.appendingPathComponent(path) }

    /// Returns the steps after which exactly these files of the app are installed.
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

    /// Carries out the steps. Each file is written completely or not at all. The list is written first, so that the list contains
    /// every written file.
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
        // Removes folders that are empty now. A folder that another program uses is not empty.
        var folder = url(path).deletingLastPathComponent()
        while folder.path.hasPrefix(self.folder.path + "/"), rmdir(folder.path) == 0 { folder.deleteLastPathComponent() }
    }
}
