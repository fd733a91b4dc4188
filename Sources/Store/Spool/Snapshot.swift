import ProcessSupport
import CLinux
import Foundation
import TransferMachines

/// The agent's copy of a file. The file is copied when the upload is queued, so later changes of the original have no effect.
/// Until ``keep()`` is called, the copy belongs to the process that created the copy. During this time no agent removes the copy.
/// The copy is removed when the last reference to this value is released.
package struct Snapshot: Sendable {
    private let copy: SpoolCopy
    package let byteCount: Int64
    /// The SHA-256 of the copy, in lower-case hex.
    package let sha256: String
    /// The SHA-256 of the original, if the app changed the copy before the upload was queued.
    package private(set) var originalSHA256: String?

    private init(_ copy: SpoolCopy, byteCount: Int64, sha256: String) {
        (self.copy, self.byteCount, self.sha256) = (copy, byteCount, sha256)
    }

    /// The name of the copy in the spool.
    package var name: String { copy.name }

    /// Passes the ownership of the copy to the agent. Call this method after a row with the name of the copy was committed.
    package func keep() { copy.keep() }

    /// Removes the copy, because it will not be sent. After ``keep()``, the method has no effect.
    package func discard() { copy.discard() }

    /// The reasons why a file cannot be queued.
    package enum Failure: Error, Equatable, CustomStringConvertible {
        case missing(String)
        case unreadable(String, reason: String)
        case notAFile(String)
        case empty(String)
        case changedWhileRead(String)
        case noSpace(String)
        case cannotWrite(String, reason: String)

        /// `true` if the copy could not be written. The original file may be readable.
        package var isOfCopy: Bool {
            switch self {
            case .noSpace, .cannotWrite: true
            case .missing, .unreadable, .notAFile, .empty, .changedWhileRead: false
            }
        }

        package var description: String {
            switch self {
            case .missing(let path): "\(path): no such file"
            case .unreadable(let path, let reason): "\(path): cannot be read: \(reason)"
            case .notAFile(let path): "\(path) is a folder or a device, not a file"
            case .empty(let path): "\(path): is empty"
            case .changedWhileRead(let path):
                "\(path): the file changed while it was being copied. Try again when the file is complete"
            case .noSpace(let path): "no space is left in \(path)"
            case .cannotWrite(let path, let reason): "\(path): cannot be written: \(reason)"
            }
        }
    }

    /// Copies `source` into the spool, syncs the copy to the disk, and hashes it. If the file system supports this, the copy
    /// shares the disk blocks of the original. Holes of a sparse file are kept.
    ///
    /// - Parameters:
    ///   - preparing: a closure that can change the copy before the copy is hashed, or replace the copy with another file. The
    ///     closure returns whether the copy was changed.
    ///   - checking: a closure that checks the descriptor of the file before the file is copied.
    /// - Throws: ``Failure``, or an error of the closures. After an error, no copy is left.
    package static func make(
        of source: URL, in directories: AppDirectories, allowsEmpty: Bool = false, preparing: (URL) throws -> Bool,
        checking: (Int32) throws -> Void = { _ in }
    ) throws -> Snapshot {
        let input = try open(source.path)
        defer { close(input) }
        try checking(input)
        let original = try make(of: input, source.path, in: directories, allowsEmpty: allowsEmpty)
        let copy = original.copy
        // Most copies are not changed. An unchanged copy is not read again.
        guard try preparing(URL(fileURLWithPath: copy.path)) else { return original }
        let descriptor = clinux_open(copy.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0)
        guard descriptor >= 0 else {
            let number = errno
            throw Failure.unreadable(copy.path, reason: String(cString: strerror(number)))
        }
        defer { close(descriptor) }
        let (digest, count) = try FileDigest.sha256(ofOpenFile: descriptor, path: copy.path)
        guard digest != original.sha256 else { return original }
        // The mode is set again, because a file that replaced the copy may have other permissions.
        guard fchmod(descriptor, 0o600) == 0, fsync(descriptor) == 0 else {
            throw cannotWrite(errno, copy.path, in: directories)
        }
        var changed = Snapshot(copy, byteCount: count, sha256: digest)
        changed.originalSHA256 = original.sha256
        return changed
    }

    /// Copies `source` into the spool, syncs the copy to the disk, and hashes it. If the file system supports this, the copy
    /// shares the disk blocks of the original.
    ///
    /// - Parameter prefix: the prefix of the copy's name.
    package static func make(
        of source: URL, in directories: AppDirectories, allowsEmpty: Bool = false,
        prefix: String = AppDirectories.copyPrefix
    ) throws(Failure) -> Snapshot {
        let input = try open(source.path)
        defer { close(input) }
        return try make(of: input, source.path, in: directories, allowsEmpty: allowsEmpty, prefix: prefix)
    }

    /// Opens a file in non-blocking mode. Otherwise the call would block if the path is a named pipe.
    private static func open(_ path: String) throws(Failure) -> Int32 {
        let input = clinux_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
        guard input >= 0 else {
            let number = errno
            throw FileFault(number).isAbsence
                ? .missing(path) : .unreadable(path, reason: String(cString: strerror(number)))
        }
        return input
    }

    private static func make(
        of input: Int32, _ path: String, in directories: AppDirectories, allowsEmpty: Bool,
        prefix: String = AppDirectories.copyPrefix
    ) throws(Failure) -> Snapshot {
        let before = try information(of: input, path)
        guard before.st_mode & S_IFMT == S_IFREG else { throw .notAFile(path) }
        guard before.st_size > 0 || allowsEmpty else { throw .empty(path) }

        return try make(prefix, in: directories) { (copy, output) throws(Failure) in
            let (digest, count) =
                try clinux_clone_file(output, input) == 0
                ? FileDigest.sha256(ofOpenFile: output, path: copy.path)
                : copyBytes(of: before, from: input, path, to: output, copy.path, in: directories)
            let after = try information(of: input, path)
            guard isSame(before.st_mtim, after.st_mtim), before.st_size == after.st_size, count == Int64(after.st_size) else {
                throw .changedWhileRead(path)
            }
            // The time of the last status change (`st_ctim`) also changes if the file gets a new name or new permissions, so the
            // content is compared. A program that writes to the file and resets the modification time also changes `st_ctim`.
            if !isSame(before.st_ctim, after.st_ctim), try FileDigest.sha256(ofOpenFile: input, path: path).digest != digest {
                throw .changedWhileRead(path)
            }
            return Snapshot(copy, byteCount: count, sha256: digest)
        }
    }

    /// Writes bytes to a file in the spool, and syncs the file to the disk.
    package static func store(_ data: Data, in directories: AppDirectories) throws(Failure) -> Snapshot {
        try make(AppDirectories.copyPrefix, in: directories) { (copy, output) throws(Failure) in
            var written = 0
            while written < data.count {
                let step = data.withUnsafeBytes { write(output, $0.baseAddress! + written, data.count - written) }
                guard step > 0 else { throw cannotWrite(errno, copy.path, in: directories) }
                written += step
            }
            return Snapshot(copy, byteCount: Int64(data.count), sha256: FileDigest.sha256(of: data))
        }
    }

    /// Creates a new file of this process in the spool, and calls `body` to write its content. If the file system supports
    /// unnamed files, the file gets its name only when its content is complete. A process that is killed before this leaves no
    /// file.
    private static func make(
        _ prefix: String, in directories: AppDirectories,
        _ body: (_ copy: SpoolCopy, _ descriptor: Int32) throws(Failure) -> Snapshot
    ) throws(Failure) -> Snapshot {
        let name = prefix + UUID.random().uuidString.lowercased()
        let copy: SpoolCopy
        do { copy = try SpoolCopy(name, in: directories) } catch {
            throw .cannotWrite(directories.spooled(name).path, reason: "\(error)")
        }
        var descriptor = clinux_open_unnamed(directories.spool.path, 0o600)
        let isUnnamed = descriptor >= 0
        if !isUnnamed { descriptor = clinux_open(copy.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }
        guard descriptor >= 0 else { throw notCreated(copy, errno, in: directories) }
        defer { close(descriptor) }
        let snapshot = try body(copy, descriptor)
        // The file is synced after it has its name, so that the name is not lost in a power cut.
        if isUnnamed, clinux_name_file(descriptor, copy.path) != 0 { throw notCreated(copy, errno, in: directories) }
        guard fsync(descriptor) == 0 else { throw cannotWrite(errno, copy.path, in: directories) }
        return snapshot
    }

    /// Returns the failure for a name that this process could not create. A file with this name may belong to another upload, so the
    /// file is not removed.
    private static func notCreated(_ copy: SpoolCopy, _ number: Int32, in directories: AppDirectories) -> Failure {
        copy.keep()
        return cannotWrite(number, copy.path, in: directories)
    }

    private static func isSame(_ one: timespec, _ other: timespec) -> Bool {
        one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec
    }

    private static func information(of descriptor: Int32, _ path: String) throws(Failure) -> stat {
        var information = stat()
        guard fstat(descriptor, &information) == 0 else {
            throw .unreadable(path, reason: String(cString: strerror(errno)))
        }
        return information
    }

    /// Copies a file and hashes it at the same time, so that the file is read only once.
    private static func copyBytes(
        of information: stat, from input: Int32, _ inputPath: String, to output: Int32, _ outputPath: String,
        in directories: AppDirectories
    ) throws(Failure) -> (digest: String, byteCount: Int64) {
        var digest = RunningDigest()
        let size = information.st_size
        // The holes of a sparse file need no disk space.
        let needed = min(Int64(size), Int64(clamping: information.st_blocks) * 512)
        guard needed <= DiskSpace.free(on: output) ?? .max else { throw .noSpace(directories.spool.path) }
        var buffer = [UInt8](repeating: 0, count: min(1 << 18, max(1, size)))
        var (offset, hashed) = (clinux_next_data(input, 0, size), off_t(0))
        while offset < size {
            digest.update(zeros: offset - hashed)
            let hole = clinux_next_hole(input, offset, size)
            while offset < hole {
                let count = FileFault.uninterrupted { pread(input, &buffer, min(buffer.count, Int(hole - offset)), offset) }
                // If the original became shorter while it was copied, the caller detects the change.
                if count == 0 { return (digest.hex, Int64(offset)) }
                guard count > 0 else { throw .unreadable(inputPath, reason: String(cString: strerror(errno))) }
                var written = 0
                while written < count {
                    let step = buffer.withUnsafeBytes { bytes in
                        FileFault.uninterrupted {
                            pwrite(output, bytes.baseAddress! + written, count - written, offset + off_t(written))
                        }
                    }
                    guard step > 0 else { throw cannotWrite(errno, outputPath, in: directories) }
                    written += step
                }
                buffer.withUnsafeBytes { digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
                offset += off_t(count)
            }
            hashed = offset
            offset = clinux_next_data(input, offset, size)
        }
        digest.update(zeros: size - hashed)
        guard ftruncate(output, size) == 0 else { throw cannotWrite(errno, outputPath, in: directories) }
        return (digest.hex, Int64(size))
    }

    /// Returns the failure for an error number of a write.
    ///
    /// - Parameters:
    ///   - number: the value of `errno`. The number is the first argument, because the computation of the path may change
    ///     `errno`.
    ///   - path: the path of the copy.
    private static func cannotWrite(
        _ number: Int32, _ path: @autoclosure () -> String, in directories: AppDirectories
    ) -> Failure {
        FileFault(number) == .noRoom
            ? .noSpace(directories.spool.path) : .cannotWrite(path(), reason: String(cString: strerror(number)))
    }
}
