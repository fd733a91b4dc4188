import BackgroundCommands
import BackgroundRuntime
import Foundation
import Glibc
import ProcessSupport
import Stormy

/// Finds the files that the user wants to send: single files, patterns, folders, or a list on standard input. From folders and
/// lists, only photos are sent, because the program that created a list may have included other files.
struct PhotoFinder {
    /// `true` if folders are searched.
    let isRecursive: Bool
    /// `true` if the folders inside a searched folder are also searched.
    private let includesInnerFolders: Bool
    /// `true` if the arguments can be patterns. Paths from a file chooser are always names of files.
    let acceptsPatterns: Bool
    /// The files in folders and lists that were skipped because they are not photos.
    private var skipped: [PathName] = []
    /// The number of folders in lists that were skipped.
    private var skippedFolders = 0
    /// The number of links to folders that were found in folders.
    private var linkedFolders = 0
    /// Hidden photos that were found in folders, and hidden folders that contain photos.
    private var hidden: [PathName] = []
    private let ownFiles = OwnFiles()
    private let listFolder: (String) -> (names: [[UInt8]], code: Int32)

    init(
        isRecursive: Bool, includesInnerFolders: Bool = true, acceptsPatterns: Bool = true,
        listFolder: @escaping (String) -> (names: [[UInt8]], code: Int32) = Self.entries
    ) {
        (self.isRecursive, self.acceptsPatterns, self.listFolder) = (isRecursive, acceptsPatterns, listFolder)
        self.includesInnerFolders = includesInnerFolders
    }

    /// A file to send, or the reason why an argument or an entry of a list cannot be sent.
    enum Found {
        case file(PhotoFile)
        case problem(CommandFailure)
    }

    /// Returns the files and problems in the order of the arguments. The files of a folder are sorted by name.
    mutating func find(_ words: [String]) -> [Found] { words.flatMap { $0 == "-" ? list() : named($0) } }

    /// Adds the files that belong to the found photos. These files do not count as skipped.
    ///
    /// - Returns: the found files, and the problems. The files of a group are consecutive.
    mutating func addCompanions(_ companions: PhotoCompanions, to found: [Found]) -> [Found] {
        var companions = companions
        var (positions, added): ([PathName: Int], Set<PathName>) = ([:], [])
        var (files, all): ([PhotoFile], [(position: Int, found: [Found])]) = ([], [])
        for (position, found) in found.enumerated() {
            switch found {
            case .file(let file):
                files.append(file)
                positions[PathName(PathName.absolute(file.path))] = position
            case .problem: all.append((position, [found]))
            }
        }
        for group in companions.groups(of: files) {
            let names = group.map { PathName(PathName.absolute($0.path)) }
            all.append((names.compactMap { positions[$0] }.min() ?? 0, group.map(Found.file)))
            added.formUnion(names.dropFirst() + (group.first?.sidecars ?? []).map { PathName(PathName.absolute($0)) })
        }
        skipped.removeAll { added.contains(PathName(PathName.absolute($0.text))) }
        return all.sorted { $0.position < $1.position }.flatMap(\.found)
    }

    /// Sentences for the user about skipped files.
    var sentences: [String] {
        var sentences: [String] = []
        func first(_ paths: [PathName]) -> String {
            paths.prefix(3).map(\.text).joined(separator: ", ") + (paths.count > 3 ? " and \(paths.count - 3) more" : "")
        }
        if !skipped.isEmpty {
            let count = skipped.count == 1 ? "1 other file was" : "\(skipped.count) other files were"
            sentences.append("\(count) skipped, because only known kinds of photos are uploaded: \(first(skipped))")
        }
        func count(_ number: Int, _ what: String) -> String { number == 1 ? "1 \(what) was" : "\(number) \(what)s were" }
        if skippedFolders > 0 {
            let folders = count(skippedFolders, "folder")
            sentences.append("\(folders) skipped. To upload the photos in folders of the list, use --recursive")
        }
        if linkedFolders > 0 {
            let folders = count(linkedFolders, "linked folder")
            sentences.append("\(folders) skipped. To upload the photos in a linked folder, name the folder")
        }
        if !hidden.isEmpty {
            let what =
                hidden.count == 1
                ? "1 hidden photo or folder with photos was" : "\(hidden.count) hidden photos or folders with photos were"
            sentences.append("\(what) skipped. To upload a hidden file, name the file. Skipped: \(first(hidden.sorted()))")
        }
        return sentences
    }

    // MARK: Named

    private mutating func named(_ word: String) -> [Found] {
        if word.isEmpty { return [.problem(CommandFailure(.badData, "an empty argument is not the name of a file"))] }
        // If an argument is not UTF-8, its invalid bytes arrive as U+FFFD. The argument could then be the name of another file.
        let isReplaced = word.unicodeScalars.contains("\u{FFFD}")
        if isReplaced, ThisProcess.unreadableArguments.contains(word) || !FileManager.default.fileExists(atPath: word) {
            return [.problem(Self.notUTF8(word))]
        }
        // If a file has exactly this name, the argument is not a pattern. The shell does not replace a pattern in quotes, so this
        // program receives the pattern as an argument.
        if acceptsPatterns, PathPattern.isPattern(word), !FileManager.default.fileExists(atPath: word) { return matching(word) }
        return meant(word)
    }

    private mutating func meant(_ path: String) -> [Found] {
        var isFolder: ObjCBool = false
        let isThere = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
        if isThere, isFolder.boolValue {
            if isRecursive { return walk(path) }
            let advice = "use --recursive to upload the photos in the folder"
            return [.problem(CommandFailure(.badData, "\(PathName.absolute(path)) is a folder: \(advice)"))]
        }
        var information = stat()
        if !isThere, Self.looksLikeRange(path), lstat(path, &information) != 0, errno == ENOENT {
            let advice = "only * and ? have a special meaning in a pattern; [ and ] have no special meaning"
            return [.problem(CommandFailure(.notFound, "\(PathName.absolute(path)): no such file (\(advice))"))]
        }
        return [.file(PhotoFile(path: path, isKnownPhotoOnly: false))]
    }

    /// Returns whether a path contains `[`. Such a path may be a shell pattern, for example `photo[1-3].jpg`.
    private static func looksLikeRange(_ path: String) -> Bool { path.utf8.contains(UInt8(ascii: "[")) }

    private mutating func matching(_ pattern: String) -> [Found] {
        let matches = PathPattern(pattern)
        if matches.paths.isEmpty, matches.unreadable.isEmpty { return meant(pattern) }
        let found = matches.paths.map { (PathName($0), meant($0)) }
        let problems = matches.unreadable.map { name, code in (name, [Found.problem(Self.unreadable(name.text, code))]) }
        return (found + problems).sorted { $0.0 < $1.0 }.flatMap(\.1)
    }

    private static func unreadable(_ path: String, _ code: Int32) -> CommandFailure {
        CommandFailure(
            code == ENOENT ? .notFound : .inputOutput, "\(path): cannot be read: \(String(cString: strerror(code)))")
    }

    private static func notUTF8(_ path: String) -> CommandFailure {
        CommandFailure(.badData, "\(PathName.absolute(path)): the name of the file is not UTF-8. Rename the file first")
    }

    // MARK: Listed

    /// Reads the list on standard input. The entries are names, not patterns. If a file does not exist, the result contains a
    /// problem.
    private mutating func list() -> [Found] {
        let (data, problem) = Self.readStandardInput()
        let found = Self.paths(in: data).flatMap { path -> [Found] in
            guard let text = String(validating: path, as: UTF8.self) else {
                return [.problem(Self.notUTF8(String(decoding: path, as: UTF8.self)))]
            }
            return listed(text)
        }
        if let problem { return found + [.problem(problem)] }
        // If a list contains photos, its folders are skipped, because a program probably created the list. If a list contains
        // only folders, the user wants to send the photos in these folders.
        if found.isEmpty, skipped.isEmpty, skippedFolders > 0 {
            return [
                .problem(
                    CommandFailure(.badData, "the list has only folders. To upload the photos in the folders, use --recursive"))
            ]
        }
        return found
    }

    /// Returns the paths of a list. If the list contains NUL characters, these characters separate the paths. If the list
    /// contains no NUL characters, each line contains one path. Empty lines are left out.
    static func paths(in list: Data) -> [[UInt8]] {
        // A list from Windows begins with a byte order mark, and its lines end with CR.
        let data = list.starts(with: [0xEF, 0xBB, 0xBF]) ? list.dropFirst(3) : list
        let isOfLines = !data.contains(0)
        return data.split(separator: isOfLines ? 0x0A : 0).map { bytes in
            let path = String(decoding: bytes, as: UTF8.self)
            guard isOfLines, bytes.last == 0x0D, !FileManager.default.fileExists(atPath: path) else { return Array(bytes) }
            return Array(bytes.dropLast())
        }.filter { !$0.isEmpty }
    }

    /// Returns the bytes that could be read, and the error that ended reading. Waits for data if the descriptor is non-blocking.
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

    private mutating func listed(_ path: String) -> [Found] {
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

    /// Returns whether a file may be a photo. The result is `true` for an unreadable file, because the later attempt to copy the
    /// file reports the reason.
    private mutating func mayBePhoto(_ path: String) -> Bool {
        // If it is unknown whether the file belongs to Stormy, the later attempt to copy the file reports the reason.
        if (try? ownFiles.contain(path)) ?? false == false {
            switch PhotoFormat.detect(at: URL(exactPath: path)) {
            case .photo, .unreadable: return true
            case .other: break
            }
        }
        skipped.append(PathName(path))
        return false
    }

    private mutating func mayLeadToPhoto(_ link: String) -> Bool {
        var information = stat()
        // If the link cannot be followed, the later attempt to copy the file reports the reason.
        guard stat(link, &information) == 0 else { return true }
        switch information.st_mode & S_IFMT {
        case S_IFREG: return mayBePhoto(link)
        case S_IFDIR: linkedFolders += 1
        default: skipped.append(PathName(link))
        }
        return false
    }

    // MARK: Walked

    /// Returns whether a hidden file is a photo, or a hidden folder contains a photo. An unreadable file or folder counts as a
    /// photo.
    private static func hasPhoto(_ path: String) -> Bool {
        var paths = [path]
        while let next = paths.popLast() {
            var information = stat()
            if lstat(next, &information) == 0, information.st_mode & S_IFMT == S_IFDIR {
                let (names, code) = entries(of: next)
                let readable = names.compactMap { String(validating: $0, as: UTF8.self) }
                if code != 0 || readable.count < names.count { return true }
                paths += readable.map { next + "/" + $0 }
            } else {
                switch PhotoFormat.detect(at: URL(exactPath: next)) {
                case .other, .unreadable(ENOENT): break
                case .photo, .unreadable: return true
                }
            }
        }
        return false
    }

    /// Returns the names in a folder, and the error number that ended the list. The number is 0 if the list is complete.
    static func entries(of folder: String) -> (names: [[UInt8]], code: Int32) {
        var names: [[UInt8]] = []
        let code = FolderEntries.read(folder) { names.append($0) }
        return (names, code)
    }

    private static let mostRounds = 5

    /// Finds the photos in a folder and its subfolders. Hidden files are left out, because a folder of photos may contain many
    /// thumbnails. A link to a photo counts as a photo. A link to a folder is not followed, because links may form a circle.
    ///
    /// The folders are listed again until two consecutive lists are equal. If an entry is renamed while its folder is read, the
    /// list may not contain the entry.
    private mutating func walk(_ root: String) -> [Found] {
        var found: [PathName: Found] = [:]
        var listed: [PathName: Set<[UInt8]>] = [:]
        var folders: Set<PathName> = []
        var vanished: Set<PathName> = []
        var isSame = false
        for _ in 0..<Self.mostRounds where !isSame {
            isSame = !listed.isEmpty
            var (now, rest): ([PathName: Set<[UInt8]>], [PathName]) = ([:], [PathName(root)])
            while let folder = rest.popLast() {
                let (names, code) = listFolder(folder.text)
                found[folder] = code == 0 ? nil : .problem(Self.unreadable(folder.text, code))
                let before = listed[folder] ?? []
                var there: Set<[UInt8]> = []
                for name in names {
                    let path = folder.entry(name)
                    if !before.contains(name) {
                        isSame = false
                        switch classify(at: name, path.text) {
                        case .found(let what): found[path] = what
                        case .folder: if includesInnerFolders { folders.insert(path) }
                        case .nothing: break
                        case .vanished:
                            vanished.insert(path)
                            continue
                        }
                    }
                    there.insert(name)
                    if folders.contains(path) { rest.append(path) }
                }
                now[folder] = there
            }
            for (folder, names) in listed {
                for name in names.subtracting(now[folder] ?? []) {
                    isSame = false
                    let path = folder.entry(name)
                    found[path] = nil
                    folders.remove(path)
                    vanished.insert(path)
                    (skipped, hidden) = (skipped.filter { $0 != path }, hidden.filter { $0 != path })
                }
            }
            listed = now
        }
        // If two lists are equal, the list is complete. A file that was in an earlier list but is not in the last list was
        // therefore removed, and not renamed.
        for path in isSame ? [] : vanished where found[path] == nil {
            found[path] = .problem(CommandFailure(.notFound, "\(path.text) was renamed or removed while the folder was read"))
        }
        return found.sorted { $0.key < $1.key }.map(\.value)
    }

    private enum FolderEntry {
        case found(Found)
        case folder
        /// The file was skipped.
        case nothing
        case vanished
    }

    private mutating func classify(at bytes: [UInt8], _ path: String) -> FolderEntry {
        if bytes.first == UInt8(ascii: ".") {
            if Self.hasPhoto(path) { hidden.append(PathName(path)) }
            return .nothing
        }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return .found(.problem(Self.notUTF8(path)))
        }
        var information = stat()
        guard lstat(path, &information) == 0 else {
            // Other errors are reported, for example the error that a path has more than 4,096 bytes.
            return errno == ENOENT ? .vanished : .found(.problem(Self.unreadable(path, errno)))
        }
        let isPhoto: Bool
        switch information.st_mode & S_IFMT {
        case S_IFDIR: return .folder
        case S_IFREG: isPhoto = mayBePhoto(path)
        case S_IFLNK:
            if stat(path, &information) != 0, errno == ENOENT {
                return .found(.problem(CommandFailure(.notFound, "\(path): the target of the link does not exist")))
            }
            isPhoto = mayLeadToPhoto(path)
        default:
            skipped.append(PathName(path))
            return .nothing
        }
        return isPhoto ? .found(.file(PhotoFile(path: path, isKnownPhotoOnly: true))) : .nothing
    }
}
