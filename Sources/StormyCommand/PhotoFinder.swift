import BackgroundCommands
import Foundation
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
        let url = URL(fileURLWithPath: folder)
        var unreadable: [(String, String)] = []
        let keys: [URLResourceKey] = [.isRegularFileKey]
        let walker = FileManager.default.enumerator(
            at: url, includingPropertiesForKeys: keys, options: [.skipsHiddenFiles],
            errorHandler: { url, error in
                unreadable.append((url.path, error.localizedDescription))
                return true
            })
        var photos: [String] = []
        while let file = walker?.nextObject() as? URL {
            guard (try? file.resourceValues(forKeys: Set(keys)))?.isRegularFile == true else { continue }
            if PhotoFormat(of: file) != nil { photos.append(file.path) } else { skipped += 1 }
        }
        failures += unreadable.map { CommandFailure(.notFound, "\($0.0): cannot be read: \($0.1)") }
        return photos.sorted()
    }
}
