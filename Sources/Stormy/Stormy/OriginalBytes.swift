import Foundation
import Glibc

/// Reads the beginning of a file of the user.
///
/// The file is not mapped into memory, because another program can truncate the file at any time, and the process would then be
/// killed. Named pipes and other special files are not read, because reading them can wait forever.
enum OriginalBytes {
    /// The number of bytes that are searched for metadata. A JPEG file contains its metadata at the beginning.
    private static let (longest, longestJPEG) = (64 << 20, 1 << 20)

    /// Returns the bytes of a file that can contain metadata. `nil` if the file cannot be read.
    static func metadata(of path: String) -> Data? {
        guard let head = read(path, limit: longestJPEG) else { return nil }
        return head.count < longestJPEG || head.starts(with: [0xFF, 0xD8, 0xFF]) ? head : read(path, limit: longest)
    }

    /// Returns the first bytes of a regular file. `nil` if the file cannot be read.
    static func read(_ path: String, limit: Int) -> Data? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        var data = Data(count: min(limit, max(0, Int(information.st_size))))
        var done = 0
        while done < data.count {
            let count = data.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress! + done, $0.count - done, off_t(done)) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            // The file was truncated after its size was read.
            if count == 0 { return data.prefix(done) }
            done += count
        }
        return data
    }
}
