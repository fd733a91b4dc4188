import BackgroundCommands
import BackgroundRuntime
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
    /// Of folders: links to other folders, and links to nothing.
    private var (linkedFolders, deadLinks) = (0, 0)
    private(set) var failures: [CommandFailure] = []
    private let ownFiles = OwnFiles()

    init(isRecursive: Bool) { self.isRecursive = isRecursive }

    /// In the order given; those of a folder by name.
    mutating func find(_ words: [String]) -> [PhotoFile] { words.flatMap { $0 == "-" ? list() : named($0) } }

    /// What was skipped, for the person.
    var sentences: [String] {
        var sentences: [String] = []
        if !skipped.isEmpty {
            let names = skipped.prefix(3).joined(separator: ", ") + (skipped.count > 3 ? " and \(skipped.count - 3) more" : "")
            let count = skipped.count == 1 ? "1 other file" : "\(skipped.count) other files"
            sentences.append("\(count) skipped, no photo of a kind that is known: \(names)")
        }
        func count(_ number: Int, _ what: String) -> String { number == 1 ? "1 \(what)" : "\(number) \(what)s" }
        if skippedFolders > 0 {
            sentences.append("\(count(skippedFolders, "folder")) of the list skipped: --recursive sends the photos in them")
        }
        if linkedFolders > 0 {
            sentences.append("\(count(linkedFolders, "linked folder")) skipped: name one to send the photos in it")
        }
        if deadLinks > 0 { sentences.append("\(count(deadLinks, "link")) skipped: nothing is there") }
        return sentences
    }

    // MARK: Named

    private mutating func named(_ word: String) -> [PhotoFile] {
        // Not somebody's home: the shell has said already whose it is.
        let path = word.hasPrefix("~") && FileManager.default.fileExists(atPath: "./" + word) ? "./" + word : word
        guard FileManager.default.fileExists(atPath: path) else {
            // A pattern that reached us as it was written, as quotes bring it. A file of that very name comes first.
            let matches = path.contains(where: { "*?[".contains($0) }) ? Self.matches(of: path) : []
            return (matches.isEmpty ? [path] : matches).flatMap { meant($0) }
        }
        return meant(path)
    }

    private mutating func meant(_ path: String) -> [PhotoFile] {
        var isFolder: ObjCBool = false
        let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
        if isThere, isFolder.boolValue, isRecursive { return walk(path) }
        return [PhotoFile(path: path, isKnownPhotoOnly: false)]
    }

    /// Without `GLOB_TILDE`, with which glibc crashes over `~[`.
    private static func matches(of pattern: String) -> [String] {
        var pattern = pattern
        if pattern.hasPrefix("~/") {
            let home = NSHomeDirectory().map { "*?[\\".contains($0) ? "\\\($0)" : "\($0)" }.joined()
            pattern = home + pattern.dropFirst()
        }
        var found = glob_t()
        defer { globfree(&found) }
        guard glob(pattern, 0, nil, &found) == 0 else { return [] }
        return (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }

    // MARK: Listed

    /// One path per line; where there is a NUL, between NULs. They are names, and no patterns: what is not there any more is said.
    private mutating func list() -> [PhotoFile] {
        var data = readStandardInput()
        // Of a list that was made on Windows, as a line's CR is.
        if data.starts(with: [0xEF, 0xBB, 0xBF]) { data = data.dropFirst(3) }
        let isOfLines = !data.contains(0)
        return data.split(separator: isOfLines ? 0x0A : 0).flatMap { bytes -> [PhotoFile] in
            var path = String(decoding: bytes, as: UTF8.self)
            if isOfLines, path.last == "\r", !FileManager.default.fileExists(atPath: path) { path.removeLast() }
            return listed(path)
        }
    }

    /// What came before an error counts. Whoever made it non-blocking has the reader wait.
    private mutating func readStandardInput() -> Data {
        var (data, buffer) = (Data(), [UInt8](repeating: 0, count: 1 << 16))
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 {
                data.append(contentsOf: buffer.prefix(count))
            } else if count == 0 {
                return data
            } else if errno == EAGAIN {
                var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                poll(&input, 1, -1)
            } else if errno != EINTR {
                failures.append(CommandFailure(.inputOutput, "the list cannot be read: \(String(cString: strerror(errno)))"))
                return data
            }
        }
    }

    /// What cannot be looked at is a photo until somebody says why not.
    private mutating func listed(_ name: String) -> [PhotoFile] {
        let path = name.hasPrefix("~") ? "./" + name : name
        let file = PhotoFile(path: path, isKnownPhotoOnly: true)
        var information = stat()
        guard stat(path, &information) == 0 else { return [file] }
        if information.st_mode & S_IFMT == S_IFDIR {
            if isRecursive { return walk(path) }
            skippedFolders += 1
            return []
        }
        let isUnreadable = information.st_mode & S_IFMT == S_IFREG && access(path, R_OK) != 0
        return isUnreadable || isPhoto(path) ? [file] : []
    }

    private mutating func isPhoto(_ path: String) -> Bool {
        if !ownFiles.contain(path), PhotoFormat(of: URL(fileURLWithPath: path)) != nil { return true }
        skipped.append(path)
        return false
    }

    private mutating func leadsToPhoto(_ link: String) -> Bool {
        var information = stat()
        guard stat(link, &information) == 0 else {
            deadLinks += 1
            return false
        }
        switch information.st_mode & S_IFMT {
        case S_IFREG: return isPhoto(link)
        case S_IFDIR: linkedFolders += 1
        default: skipped.append(link)
        }
        return false
    }

    // MARK: Walked

    /// Hidden ones are left out: a folder of photos may be full of thumbnails. A link to a photo is one; to a folder it may lead in circles.
    private mutating func walk(_ folder: String) -> [PhotoFile] {
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
                case S_IFREG where isPhoto(path): photos.append(path)
                case S_IFLNK: if leadsToPhoto(path) { photos.append(path) }
                // Said already.
                case S_IFREG: break
                default: skipped.append(path)
                }
            }
        }
        return photos.sorted().map { PhotoFile(path: $0, isKnownPhotoOnly: true) }
    }
}
