import Foundation
import ProcessSupport

/// The reason why a file on this computer cannot be used.
package struct FileTrouble: Error, Equatable {
    var why: String
    /// `true` if waiting may help.
    var isPassing: Bool
    /// `true` if the part has to be discarded.
    var isOfNoUse: Bool
    /// `true` if the disk had no room for a body without an announced length. The number of attempts at such a download is limited.
    var mayBeEndless: Bool

    init(why: String, isPassing: Bool, isOfNoUse: Bool = false, mayBeEndless: Bool = false) {
        (self.why, self.isPassing, self.isOfNoUse, self.mayBeEndless) = (why, isPassing, isOfNoUse, mayBeEndless)
    }

    /// - Parameter number: The value of `errno`; 0 if the file has become shorter.
    init(_ number: Int32 = errno, with path: String) {
        let reason = number == 0 ? "the file is shorter than before" : String(cString: strerror(number))
        self.init(why: "\(path): \(reason)", isPassing: FileFault(number).isPassing)
    }

    /// - Parameter number: The value of `errno` after a call that should create the file or give it its name.
    init(_ number: Int32 = errno, ofNewFile path: String) {
        self.init(number, with: path)
        isPassing = FileFault(number).isPassingForNewFile
    }

    /// - Parameter number: The value of `errno` after a call on the open file; 0 if the file has become shorter.
    init(_ number: Int32 = errno, ofOpenFile path: String) {
        self.init(number, with: path)
        isPassing = FileFault(number).isPassingOnOpenFile
    }

    /// Returns why a download must not use the folder of its destination; `nil` if the download may use the folder.
    ///
    /// - Parameters:
    ///   - file: A file in the folder.
    ///   - folder: The folder that the process which queued the download saw.
    static func otherFolder(of file: URL, _ folder: SeenFolder?) -> FileTrouble? {
        let path = file.deletingLastPathComponent().path
        if let mount = folder?.absentMount {
            return FileTrouble(why: "\(path): the drive of \(mount) is not connected", isPassing: true)
        }
        if folder?.isAt(path) ?? true { return nil }
        let reason = "the agent does not see the folder that was chosen, for example because the command ran in a container"
        let remedy =
            "Start the agent in the container, or cancel the download and choose a folder that the command and the agent share"
        return FileTrouble(why: "\(path): \(reason). \(remedy).", isPassing: true)
    }
}

/// Checks a partial file, and renames a complete file to its final name.
package enum FileName {
    /// Returns the number of bytes of an open file; `nil` if it is not a regular file.
    static func size(of descriptor: Int32, at path: String, _ calls: FileCalls) throws(FileTrouble) -> Int64? {
        var information = stat()
        guard calls.status(descriptor, &information) == 0 else { throw FileTrouble(ofOpenFile: path) }
        return information.st_mode & S_IFMT == S_IFREG ? Int64(information.st_size) : nil
    }

    /// Returns `true` if a part file still has the bytes that the ledger records.
    static func holds(_ byteCount: Int64, at url: URL, _ calls: FileCalls) -> Bool {
        let descriptor = calls.open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        // A part that cannot be read now may have its bytes, and is kept.
        guard descriptor >= 0 else { return FileFault(errno).isPassing }
        defer { close(descriptor) }
        do throws(FileTrouble) {
            return try size(of: descriptor, at: url.path, calls) ?? -1 >= byteCount
        } catch {
            return error.isPassing
        }
    }

    /// The result of renaming a file to its final name.
    package enum NamingResult: Sendable, Equatable {
        /// The file has its final name. The name is durable after the folder was synced.
        case given
        /// Another file has the name and is not replaced. The name `free` is unused.
        case taken(free: URL)
        /// The file to rename is not the verified file, or does not exist.
        case changed
        case failed(FileTrouble)
    }

    /// Returns why a part must not get its final name; `nil` if the part is the file that was proven.
    ///
    /// - Parameter sight: The part, when its content was proven.
    static func objection(to part: URL, _ whole: URL, _ sight: FileVersion, _ calls: FileCalls) -> NamingResult? {
        if let found = FileVersion.named(part.path, calls) { return found.isStill(sight) ? nil : .changed }
        let number = errno
        guard FileFault(number).isAbsence else {
            return .failed(FileTrouble(number, ofNewFile: whole.path))
        }
        // The folder may be missing for a while, for example with an unplugged drive.
        let folderExists = FileVersion.named(part.deletingLastPathComponent().path, calls) != nil
        return folderExists ? .changed : .failed(FileTrouble(number, ofNewFile: whole.path))
    }

    /// Gives a complete, synced file its final name.
    ///
    /// - Parameter replacing: `true` to replace an existing file with the final name.
    static func rename(_ part: URL, _ whole: URL, replacing: Bool, _ calls: FileCalls) -> NamingResult {
        guard !replacing else { return replace(part, whole, calls) }
        if calls.renameWithoutReplacing(part.path, whole.path) == 0 { return .given }
        var number = errno
        switch FileFault(number) {
        case .exists: return nextFree(part, whole)
        // The file system cannot rename without replacing. Adding a second name never replaces a file.
        case .unsupported: break
        case .missing, .noFolder, .notAFile, .impossible, .noRoom, .notAllowed, .unavailable:
            return .failed(FileTrouble(number, ofNewFile: whole.path))
        }
        let isLinked = calls.addName(part.path, whole.path) == 0
        number = errno
        if isLinked || areSame(part, whole) {
            unlink(part.path)
            return .given
        }
        switch FileFault(number) {
        case .exists: return nextFree(part, whole)
        // These file systems have no second names. FAT returns EPERM, and a mount of rclone returns EIO.
        case .unsupported, .notAllowed, .unavailable: break
        case .missing, .noFolder, .notAFile, .impossible, .noRoom:
            return .failed(FileTrouble(number, ofNewFile: whole.path))
        }
        // Without second names, the name can only be checked just before the renaming.
        return isTaken(whole) ? nextFree(part, whole) : replace(part, whole, calls)
    }

    private static func replace(_ part: URL, _ whole: URL, _ calls: FileCalls) -> NamingResult {
        // The new file gets the permissions of the replaced file, because the replaced file may be private.
        var replaced = stat()
        if lstat(whole.path, &replaced) == 0, replaced.st_mode & S_IFMT == S_IFREG {
            chmod(part.path, replaced.st_mode & 0o777)
        }
        return calls.replaceName(part.path, whole.path) == 0 ? .given : .failed(FileTrouble(ofNewFile: whole.path))
    }

    /// Returns the name with the first free number: "notes (1).txt"; after "notes (1).txt" it is "notes (2).txt".
    private static func nextFree(_ part: URL, _ whole: URL) -> NamingResult {
        let (folder, full) = (whole.deletingLastPathComponent(), whole.lastPathComponent)
        let ending = whole.pathExtension.isEmpty ? "" : ".\(whole.pathExtension)"
        var (base, last) = (full.dropLast(ending.count), 0)
        if let mark = base.wholeMatch(of: /(.+) \(([1-9][0-9]{0,3})\)/) {
            (base, last) = (mark.1, Int(mark.2) ?? 0)
        }
        for number in last + 1...last + 9_999 {
            let mark = " (\(number))"
            while base.utf8.count + mark.utf8.count + ending.utf8.count > 255, !base.isEmpty { base = base.dropLast() }
            let name = folder.appendingPathComponent("\(base)\(mark)\(ending)", isDirectory: false)
            if !isTaken(name) { return .taken(free: name) }
        }
        return .failed(FileTrouble(why: "\(whole.path): 9,999 files of this name exist", isPassing: false))
    }

    private static func isTaken(_ url: URL) -> Bool {
        var information = stat()
        return lstat(url.path, &information) == 0 || !FileFault(errno).isAbsence
    }

    private static func areSame(_ first: URL, _ second: URL) -> Bool {
        var (one, other) = (stat(), stat())
        return lstat(first.path, &one) == 0 && lstat(second.path, &other) == 0 && one.st_ino == other.st_ino
            && one.st_dev == other.st_dev
    }

    /// Adds a second name in the same folder. Returns `false` if the file system has no second names, or if the name cannot be removed
    /// first.
    static func add(_ path: String, _ name: String, _ calls: FileCalls) -> Bool {
        unlink(name)
        return calls.addName(path, name) == 0
    }

    /// Makes the names in a folder durable. Returns `nil` if they are durable, otherwise the reason.
    static func sync(folder path: String, _ calls: FileCalls) -> FileTrouble? {
        let folder = calls.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return FileTrouble(ofNewFile: path) }
        defer { close(folder) }
        guard calls.syncFolder(folder) == 0 else { return FileTrouble(ofOpenFile: path) }
        return nil
    }
}
