import Glibc
import TransferMachines

/// The lines of the files on which requests depend (``RequiredLine``). A file is read again only after the file was changed or
/// replaced, because each request of an upload makes this check.
struct RequiredLines {
    /// The reason why a line was not found.
    enum Absence: Equatable {
        /// The file does not exist, or does not contain the line.
        case notThere
        case unreadable(reason: String)
    }

    private struct Version: Equatable {
        let device: dev_t
        let inode: ino_t
        let size: off_t
        let seconds: Int
        let nanoseconds: Int

        init(_ status: stat) {
            (device, inode, size) = (status.st_dev, status.st_ino, status.st_size)
            (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        }
    }

    private var files: [String: (version: Version, lines: Set<String>)] = [:]

    /// The maximum size in bytes. A larger file is not a configuration.
    private static let maximumBytes = 1 << 20

    /// Returns `nil` if the file contains the line.
    mutating func absence(of required: RequiredLine) -> Absence? {
        // With `O_NONBLOCK`, the call does not wait if the path is a named pipe.
        let descriptor = open(required.file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return Self.absence(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return Self.absence(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .unreadable(reason: "this is not a regular file") }
        guard status.st_size <= Self.maximumBytes else { return .unreadable(reason: "the file is larger than 1 MiB") }
        let version = Version(status)
        if files[required.file]?.version != version {
            guard let text = Self.read(descriptor, Int(status.st_size)) else { return Self.absence(errno) }
            // An editor may write a byte order mark before the first line.
            let plain = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
            let lines = plain.split(whereSeparator: \.isNewline).map { RequiredLine.content(of: $0) }
            files[required.file] = (version, Set(lines))
        }
        return files[required.file]?.lines.contains(required.line) == true ? nil : .notThere
    }

    private static func absence(_ number: Int32) -> Absence {
        number == ENOENT || number == ENOTDIR ? .notThere : .unreadable(reason: String(cString: strerror(number)))
    }

    /// Returns `nil` if the disk reports an error.
    private static func read(_ descriptor: Int32, _ size: Int) -> String? {
        var bytes = [UInt8](repeating: 0, count: size)
        var count = 0
        while count < size {
            let got = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress! + count, size - count, off_t(count)) }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { return nil }
            if got == 0 { break }
            count += got
        }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
