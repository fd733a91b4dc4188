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
    /// The number of links to folders that were found in folders.
    private var linkedFolders = 0
    /// Hidden photos of folders, and hidden folders that have photos in them.
    private var hidden: [String] = []
    private let ownFiles = OwnFiles()

    init(isRecursive: Bool) { self.isRecursive = isRecursive }

    /// A file to send, or the reason why something that was named cannot be sent.
    enum Found {
        case file(PhotoFile)
        case problem(CommandFailure)
    }

    /// Returns what was found, in the order given. The files of a folder are sorted by name.
    mutating func find(_ words: [String]) -> [Found] { words.flatMap { $0 == "-" ? list() : named($0) } }

    /// What was skipped, for the person.
    var sentences: [String] {
        var sentences: [String] = []
        func first(_ paths: [String]) -> String {
            paths.prefix(3).joined(separator: ", ") + (paths.count > 3 ? " and \(paths.count - 3) more" : "")
        }
        if !skipped.isEmpty {
            let count = skipped.count == 1 ? "1 other file" : "\(skipped.count) other files"
            sentences.append("\(count) skipped, no photo of a kind that is known: \(first(skipped))")
        }
        func count(_ number: Int, _ what: String) -> String { number == 1 ? "1 \(what)" : "\(number) \(what)s" }
        if skippedFolders > 0 {
            sentences.append("\(count(skippedFolders, "folder")) of the list skipped: --recursive sends the photos in them")
        }
        if linkedFolders > 0 {
            sentences.append("\(count(linkedFolders, "linked folder")) skipped: name one to send the photos in it")
        }
        if !hidden.isEmpty {
            let what =
                hidden.count == 1
                ? "1 hidden photo or folder with photos" : "\(hidden.count) hidden photos or folders with photos"
            sentences.append("\(what) skipped (name one to send it): \(first(hidden.sorted()))")
        }
        return sentences
    }

    // MARK: Named

    private mutating func named(_ word: String) -> [Found] {
        if word.isEmpty { return [.problem(CommandFailure(.badData, "an empty argument is not the name of a file"))] }
        // Not somebody's home: the shell has said already whose it is.
        let path = word.hasPrefix("~") && FileManager.default.fileExists(atPath: "./" + word) ? "./" + word : word
        guard FileManager.default.fileExists(atPath: path) else {
            // A pattern that reached us as it was written, as quotes bring it. A file of that very name comes first.
            return path.contains { "*?[".contains($0) } ? matching(path) : meant(path)
        }
        return meant(path)
    }

    private mutating func meant(_ path: String) -> [Found] {
        var isFolder: ObjCBool = false
        let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
        if isThere, isFolder.boolValue, isRecursive { return walk(path) }
        return [.file(PhotoFile(path: path, isKnownPhotoOnly: false))]
    }

    private mutating func matching(_ pattern: String) -> [Found] {
        let matches = PathPattern(pattern)
        if matches.paths.isEmpty, matches.unreadable.isEmpty { return meant(pattern) }
        let found = matches.paths.map { ($0, meant($0)) }
        let problems = matches.unreadable.map { path, code in (path, [Found.problem(Self.unreadable(path, code))]) }
        return (found + problems).sorted { $0.0 < $1.0 }.flatMap(\.1)
    }

    private static func unreadable(_ path: String, _ code: Int32) -> CommandFailure {
        CommandFailure(
            code == ENOENT ? .notFound : .inputOutput, "\(path): cannot be read: \(String(cString: strerror(code)))")
    }

    // MARK: Listed

    /// One path per line; where there is a NUL, between NULs. They are names, and no patterns: what is not there any more is said.
    private mutating func list() -> [Found] {
        var (data, problem) = Self.readStandardInput()
        // Of a list that was made on Windows, as a line's CR is.
        if data.starts(with: [0xEF, 0xBB, 0xBF]) { data = data.dropFirst(3) }
        let isOfLines = !data.contains(0)
        let found = data.split(separator: isOfLines ? 0x0A : 0).flatMap { bytes -> [Found] in
            var path = String(decoding: bytes, as: UTF8.self)
            if isOfLines, path.last == "\r", !FileManager.default.fileExists(atPath: path) { path.removeLast() }
            return listed(path)
        }
        if let problem { return found + [.problem(problem)] }
        // A list of photos with a folder among them is one that a program made. This list is of folders that a user wants sent.
        if found.isEmpty, skipped.isEmpty, skippedFolders > 0 {
            return [.problem(CommandFailure(.badData, "the list has only folders: --recursive sends the photos in them"))]
        }
        return found
    }

    /// Returns what could be read, and the error that ended it. Waits for data if the descriptor is non-blocking.
    private static func readStandardInput() -> (Data, CommandFailure?) {
        var (data, buffer) = (Data(), [UInt8](repeating: 0, count: 1 << 16))
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 {
                data.append(contentsOf: buffer.prefix(count))
            } else if count == 0 {
                return (data, nil)
            } else if errno == EAGAIN {
                var input = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                poll(&input, 1, -1)
            } else if errno != EINTR {
                return (data, CommandFailure(.inputOutput, "the list cannot be read: \(String(cString: strerror(errno)))"))
            }
        }
    }

    private mutating func listed(_ name: String) -> [Found] {
        let path = name.hasPrefix("~") ? "./" + name : name
        let file = PhotoFile(path: path, isKnownPhotoOnly: true)
        var information = stat()
        guard stat(path, &information) == 0 else { return [.file(file)] }
        if information.st_mode & S_IFMT == S_IFDIR {
            if isRecursive { return walk(path) }
            skippedFolders += 1
            return []
        }
        return mayBePhoto(path) ? [.file(file)] : []
    }

    /// A file that cannot be read may be a photo. The attempt to copy it reports the reason.
    private mutating func mayBePhoto(_ path: String) -> Bool {
        if !ownFiles.contain(path) {
            switch PhotoFormat.look(at: URL(fileURLWithPath: path)) {
            case .photo, .unreadable: return true
            case .other: break
            }
        }
        skipped.append(path)
        return false
    }

    private mutating func mayLeadToPhoto(_ link: String) -> Bool {
        var information = stat()
        // The attempt to copy it reports the reason.
        guard stat(link, &information) == 0 else { return true }
        switch information.st_mode & S_IFMT {
        case S_IFREG: return mayBePhoto(link)
        case S_IFDIR: linkedFolders += 1
        default: skipped.append(link)
        }
        return false
    }

    // MARK: Walked

    private mutating func noteHidden(_ name: [UInt8], in folder: String) {
        let path = folder + (folder.hasSuffix("/") ? "" : "/") + String(decoding: name, as: UTF8.self)
        if Self.hasPhoto(path) { hidden.append(path) }
    }

    /// Returns whether a hidden file is a photo, or a hidden folder has one. An unreadable file or folder counts.
    private static func hasPhoto(_ path: String) -> Bool {
        var paths = [path]
        while let next = paths.popLast() {
            var information = stat()
            if lstat(next, &information) == 0, information.st_mode & S_IFMT == S_IFDIR {
                let (names, code) = entries(of: next)
                let readable = names.compactMap { String(validating: $0, as: UTF8.self) }
                if code != 0 || readable.count < names.count { return true }
                paths += readable.filter { $0 != "." && $0 != ".." }.map { next + "/" + $0 }
            } else {
                switch PhotoFormat.look(at: URL(fileURLWithPath: next)) {
                case .other, .unreadable(ENOENT): break
                case .photo, .unreadable: return true
                }
            }
        }
        return false
    }

    /// The names in a folder, and the error number that ended the list; 0 if it is complete.
    ///
    /// Not by Foundation, which leaves out names that are not UTF-8, without an error.
    private static func entries(of folder: String) -> (names: [[UInt8]], code: Int32) {
        guard let entries = opendir(folder) else { return ([], errno) }
        defer { closedir(entries) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(entries) else { return (names, errno) }
            names.append(withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) })
        }
    }

    /// Hidden files are left out, because a folder of photos may be full of thumbnails. A link to a photo is a photo; a link to a folder may
    /// lead in circles.
    private mutating func walk(_ folder: String) -> [Found] {
        var found: [(path: String, what: Found)] = []
        func note(_ status: ExitStatus, _ path: String, _ why: String) {
            found.append((path, .problem(CommandFailure(status, "\(path): \(why)"))))
        }
        func noteUnreadable(_ path: String, _ code: Int32) { found.append((path, .problem(Self.unreadable(path, code)))) }
        var folders = [folder]
        while let next = folders.popLast() {
            let (names, code) = Self.entries(of: next)
            if code != 0 { noteUnreadable(next, code) }
            for bytes in names {
                guard bytes.first != UInt8(ascii: ".") else {
                    if bytes != Array(".".utf8), bytes != Array("..".utf8) { noteHidden(bytes, in: next) }
                    continue
                }
                guard let name = String(validating: bytes, as: UTF8.self) else {
                    note(.badData, "\(next)/\(String(decoding: bytes, as: UTF8.self))", "its name is not UTF-8; rename it first")
                    continue
                }
                let path = next.hasSuffix("/") ? next + name : next + "/" + name
                var information = stat()
                guard lstat(path, &information) == 0 else {
                    // Removed since, or out of reach, for example because the path has more than 4,096 bytes.
                    if errno != ENOENT { noteUnreadable(path, errno) }
                    continue
                }
                let isPhoto: Bool
                switch information.st_mode & S_IFMT {
                case S_IFDIR:
                    folders.append(path)
                    continue
                case S_IFREG: isPhoto = mayBePhoto(path)
                case S_IFLNK:
                    if stat(path, &information) != 0, errno == ENOENT {
                        note(.notFound, path, "the link leads to nothing")
                        continue
                    }
                    isPhoto = mayLeadToPhoto(path)
                default:
                    skipped.append(path)
                    continue
                }
                if isPhoto { found.append((path, .file(PhotoFile(path: path, isKnownPhotoOnly: true)))) }
            }
        }
        return found.sorted { $0.path < $1.path }.map(\.what)
    }
}
