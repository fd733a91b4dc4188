import BackgroundCommands
import Foundation
import Glibc
import Stormy

/// The files a person means: named one by one, by pattern, by folder, or in a list on standard input. Of folders and lists photos are
/// taken alone: a list is made by a program, which names whatever it finds.
struct PhotoFinder {
    /// Folders are walked.
    let isRecursive: Bool
    /// Files of folders and lists that are no photos.
    private var skipped: [String] = []
    /// Of lists.
    private var skippedFolders = 0
    private(set) var failures: [CommandFailure] = []
    private let ownFolders = OwnFolders()

    init(isRecursive: Bool) { self.isRecursive = isRecursive }

    /// In the order given; those of a folder by name.
    mutating func find(_ words: [String]) -> [String] { words.flatMap { find($0) } }

    /// What was skipped, for the person.
    var sentences: [String] {
        var sentences: [String] = []
        if !skipped.isEmpty {
            let names = skipped.prefix(3).joined(separator: ", ") + (skipped.count > 3 ? " and \(skipped.count - 3) more" : "")
            let count = skipped.count == 1 ? "1 other file" : "\(skipped.count) other files"
            sentences.append("\(count) skipped, no photo of a kind that is known: \(names)")
        }
        if skippedFolders > 0 {
            let count = skippedFolders == 1 ? "1 folder" : "\(skippedFolders) folders"
            sentences.append("\(count) of the list skipped: --recursive sends the photos in them")
        }
        return sentences
    }

    private mutating func find(_ word: String) -> [String] {
        if word == "-" { return Self.list().flatMap { find($0) }.filter { isPhoto($0) } }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: word, isDirectory: &isFolder) else {
            // A pattern that reached us as it was written, as lists and quotes bring it. A file of that very name comes first.
            let matches = word.contains(where: { "*?[".contains($0) }) ? Self.matches(of: word) : []
            return matches.isEmpty ? [word] : matches.flatMap { find($0) }
        }
        guard isFolder.boolValue, isRecursive else { return [word] }
        return walk(word)
    }

    /// Of a list. What cannot be looked at is a photo until somebody says why not.
    private mutating func isPhoto(_ path: String) -> Bool {
        var information = stat()
        guard stat(path, &information) == 0 else { return true }
        if information.st_mode & S_IFMT == S_IFDIR {
            skippedFolders += 1
            return false
        }
        return access(path, R_OK) != 0 && information.st_mode & S_IFMT == S_IFREG || isKnown(path)
    }

    private mutating func isKnown(_ path: String) -> Bool {
        if !ownFolders.contain(path), PhotoFormat(of: URL(fileURLWithPath: path)) != nil { return true }
        skipped.append(path)
        return false
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
                case S_IFREG where isKnown(path): photos.append(path)
                default: break
                }
            }
        }
        return photos.sorted()
    }
}
