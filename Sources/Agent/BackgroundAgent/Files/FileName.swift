import Foundation
import ProcessSupport

/// The reason why a file on this computer cannot be used.
package struct FileTrouble: Error, Equatable {
    var why: String
    /// `true` if the problem may end without an action of the user.
    var isPassing: Bool
    /// `true` if the partial file has to be discarded.
    var isOfNoUse: Bool
    /// `true` if the disk had no space for a body without an announced length. The number of attempts of such a download is
    /// limited.
    var mayBeEndless: Bool

    init(why: String, isPassing: Bool, isOfNoUse: Bool = false, mayBeEndless: Bool = false) {
        (self.why, self.isPassing, self.isOfNoUse, self.mayBeEndless) = (why, isPassing, isOfNoUse, mayBeEndless)
    }

    /// - Parameter number: The value of `errno`, or 0 if the file has become shorter.
    init(_ number: Int32 = errno, with path: String) {
        let reason = number == 0 ? "the file is shorter than before" : String(cString: strerror(number))
        self.init(why: "\(path): \(reason)", isPassing: FileFault(number).isPassing)
    }

    /// - Parameter number: The value of `errno` after a call that had to create or rename the file.
    init(_ number: Int32 = errno, ofNewFile path: String) {
        self.init(number, with: path)
        isPassing = FileFault(number).isPassingForNewFile
    }

    /// - Parameter number: The value of `errno` after a call on the open file, or 0 if the file has become shorter.
    init(_ number: Int32 = errno, ofOpenFile path: String) {
        self.init(number, with: path)
        isPassing = FileFault(number).isPassingOnOpenFile
    }

    /// Returns the reason why a download must not use the folder of its destination. Returns `nil` if the download can use the
    /// folder.
    ///
    /// - Parameters:
    ///   - file: A file in the folder.
    ///   - folder: The identity of the folder at the time when a process queued the download.
    static func otherFolder(of file: URL, _ folder: SeenFolder?) -> FileTrouble? {
        let path = file.deletingLastPathComponent().path
        if let mount = folder?.absentMount {
            return FileTrouble(why: "\(path): the drive of \(mount) is not connected", isPassing: true)
        }
        if folder?.isAt(path) ?? true { return nil }
        let reason = "the agent cannot access the folder that was chosen, for example because the command ran in a container"
        let remedy =
            "Start the agent in the container, or cancel the download and choose a folder that the command and the agent share"
        return FileTrouble(why: "\(path): \(reason). \(remedy).", isPassing: true)
    }
}

/// Checks a partial file, and renames a complete file to its final name.
package enum FileName {
    /// Returns the number of bytes of an open file. Returns `nil` if the file is not a regular file.
    static func size(of descriptor: Int32, at path: String, _ calls: FileCalls) throws(FileTrouble) -> Int64? {
        var information = stat()
        guard calls.status(descriptor, &information) == 0 else { throw FileTrouble(ofOpenFile: path) }
        return information.st_mode & S_IFMT == S_IFREG ? Int64(information.st_size) : nil
    }

    /// Returns `true` if a partial file still has the number of bytes that the ledger records.
    static func holds(_ byteCount: Int64, at url: URL, _ calls: FileCalls) -> Bool {
        let descriptor = calls.open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        // A partial file that cannot be read now may still have its bytes, so it is kept.
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
        /// The file has its final name. The name is stored on the disk after the folder is synced.
        case given
        /// Another file has the final name and is not replaced. `free` is a name that no file has.
        case taken(free: URL)
        /// The file that had to be renamed does not exist any more, or is not the verified file.
        case changed
        case failed(FileTrouble)
    }

    /// Returns the reason why a partial file must not be renamed to its final name. Returns `nil` if the partial file is the file
    /// that was verified.
    ///
    /// - Parameter sight: The state of the partial file at the time when its content was verified.
    static func objection(to part: URL, _ whole: URL, _ sight: FileVersion, _ calls: FileCalls) -> NamingResult? {
        if let found = FileVersion.named(part.path, calls) { return found.isStill(sight) ? nil : .changed }
        let number = errno
        guard FileFault(number).isAbsence else {
            return .failed(FileTrouble(number, ofNewFile: whole.path))
        }
        // The folder may be missing for some time, for example because its drive is not connected.
        let folderExists = FileVersion.named(part.deletingLastPathComponent().path, calls) != nil
        return folderExists ? .changed : .failed(FileTrouble(number, ofNewFile: whole.path))
    }

    /// Renames a complete and synced file to its final name.
    ///
    /// - Parameter replacing: `true` if an existing file with the final name is replaced.
    static func rename(_ part: URL, _ whole: URL, replacing: Bool, _ calls: FileCalls) -> NamingResult {
        guard !replacing else { return replace(part, whole, calls) }
        if calls.renameWithoutReplacing(part.path, whole.path) == 0 { return .given }
        var number = errno
        switch FileFault(number) {
        case .exists: return nextFree(part, whole)
        // The file system has no operation that renames a file and never replaces a file, so a second name (hard link) is added.
        // A hard link never replaces a file.
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
        // Some file systems do not support hard links: FAT returns EPERM, and a mount of rclone returns EIO.
        case .unsupported, .notAllowed, .unavailable: break
        case .missing, .noFolder, .notAFile, .impossible, .noRoom:
            return .failed(FileTrouble(number, ofNewFile: whole.path))
        }
        // The file system has no hard links, so the agent can only check directly before the renaming whether the name is free.
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

    /// Returns the name with the first free number. "notes (1).txt" follows "notes.txt", and "notes (2).txt" follows "notes
    /// (1).txt".
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
        return .failed(FileTrouble(why: "\(whole.path): 9,999 files with this name and a number exist already", isPassing: false))
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

    /// Adds a second name (hard link) in the same folder. An existing file with this name is removed first. Returns `false` if
    /// the file system has no hard links, or if the existing file cannot be removed.
    static func add(_ path: String, _ name: String, _ calls: FileCalls) -> Bool {
        unlink(name)
        return calls.addName(path, name) == 0
    }

    /// Syncs the names in a folder to the disk. Returns `nil` on success, and the reason otherwise.
    static func sync(folder path: String, _ calls: FileCalls) -> FileTrouble? {
        let folder = calls.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return FileTrouble(ofNewFile: path) }
        defer { close(folder) }
        guard calls.syncFolder(folder) == 0 else { return FileTrouble(ofOpenFile: path) }
        return nil
    }
}
