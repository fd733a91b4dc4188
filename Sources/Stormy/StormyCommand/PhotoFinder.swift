import BackgroundCommands
import Foundation
import Glibc
import Stormy

/// The files a person means: named one by one, by pattern, by folder, or in a list on standard input.
struct PhotoFinder {
    /// Folders are walked.
    let isRecursive: Bool
    /// Files of folders that are no photos.
    private(set) var skipped = 0
    private(set) var failures: [CommandFailure] = []

    init(isRecursive: Bool) { self.isRecursive = isRecursive }

    /// In the order given; those of a folder by name.
    mutating func find(_ words: [String]) -> [String] { words.flatMap { find($0) } }

    private mutating func find(_ word: String) -> [String] {
        if word == "-" { return Self.list().flatMap { find($0) } }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: word, isDirectory: &isFolder) else {
            // A pattern that reached us as it was written, as lists and quotes bring it. A file of that very name comes first.
            let matches = word.contains(where: { "*?[".contains($0) }) ? Self.matches(of: word) : []
            return matches.isEmpty ? [word] : matches.flatMap { find($0) }
        }
        guard isFolder.boolValue, isRecursive else { return [word] }
        return walk(word)
    }

    /// One path per line; where there is a NUL, between NULs.
    private static func list() -> [String] {
        let data = FileHandle.standardInput.readDataToEndOfFile()
        return data.split(separator: data.contains(0) ? 0 : 0x0A).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func matches(of pattern: String) -> [String] {
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(pattern, GLOB_TILDE, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }

    /// Links are not followed and hidden ones left out: a folder of photos may be full of thumbnails.
    private mutating func walk(_ folder: String) -> [String] {
        var photos: [String] = []
        var folders = [folder]
        while let next = folders.popLast() {
            guard let entries = opendir(next) else {
                failures.append(CommandFailure(.notFound, "\(next): cannot be read: \(String(cString: strerror(errno)))"))
                continue
            }
            defer { closedir(entries) }
            // Not by Foundation, which leaves out in silence what it cannot read as text.
            while let entry = readdir(entries) {
                let bytes = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
                guard bytes.first != UInt8(ascii: ".") else { continue }
                guard let name = String(validating: bytes, as: UTF8.self) else {
                    let shown = String(decoding: bytes, as: UTF8.self)
                    failures.append(CommandFailure(.badData, "\(next)/\(shown): its name is not UTF-8; rename it first"))
                    continue
                }
                let path = next.hasSuffix("/") ? next + name : next + "/" + name
                var information = stat()
                guard lstat(path, &information) == 0 else {
                    // Gone since, or out of reach: a path of more than 4,096 bytes, say, which no system call takes.
                    if errno != ENOENT {
                        failures.append(CommandFailure(.notFound, "\(path): cannot be read: \(String(cString: strerror(errno)))"))
                    }
                    continue
                }
                switch information.st_mode & S_IFMT {
                case S_IFDIR: folders.append(path)
                case S_IFREG where PhotoFormat(of: URL(fileURLWithPath: path)) != nil: photos.append(path)
                case S_IFREG: skipped += 1
                default: break
                }
            }
        }
        return photos.sorted()
    }
}
