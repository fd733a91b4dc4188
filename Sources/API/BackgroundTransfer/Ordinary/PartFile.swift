import Foundation
import ProcessSupport

/// The partial file of a download in an ordinary session. The file is in the temporary folder, and its name contains a token.
final class PartFile: @unchecked Sendable {  // Unchecked, because it is used under its run's lock
    let token: String
    let url: URL
    private var descriptor: Int32
    private(set) var count: Int64 = 0

    /// The number of seconds for which a partial file is kept, because the app may have resume data for it.
    private static let keeping = 7 * 86_400.0
    /// The first read of this property removes old partial files, once in each process.
    private static let hasRemovedOld: Void = removeOld()

    /// Removes partial files that are older than ``keeping``.
    static func removeOld() {
        let files = FileManager.default
        let names = (try? files.contentsOfDirectory(atPath: files.temporaryDirectory.path)) ?? []
        let end = Date().timeIntervalSince1970 - keeping
        for name in names where name.hasPrefix("download-") && name.hasSuffix(".part") {
            let path = files.temporaryDirectory.appendingPathComponent(name).path
            var information = stat()
            guard UUID(uuidString: String(name.dropFirst(9).dropLast(5))) != nil, lstat(path, &information) == 0,
                information.st_mode & S_IFMT == S_IFREG, information.st_uid == getuid(),
                Double(information.st_mtim.tv_sec) < end
            else { continue }
            unlink(path)
        }
    }

    /// Creates a new partial file.
    init() throws {
        _ = Self.hasRemovedOld
        token = UUID.random().uuidString.lowercased()
        url = Self.url(token)
        let descriptor = open(url.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw URLError(.cannotCreateFile) }
        self.descriptor = descriptor
    }

    /// Opens a partial file that was kept for resume data. Returns `nil` if the file does not exist any more, or is shorter than
    /// `byteCount`.
    init?(token: String, holding byteCount: Int64) {
        // A valid token is a UUID, so it contains no slash and cannot lead to another folder.
        guard UUID(uuidString: token) != nil else { return nil }
        self.token = token
        url = Self.url(token)
        let descriptor = open(url.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG, information.st_uid == getuid(),
            Int64(information.st_size) >= byteCount
        else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        count = byteCount
    }

    deinit { close(descriptor) }

    private static func url(_ token: String) -> URL {
        FileManager.default.temporaryDirectory.appendingPathComponent("download-\(token).part")
    }

    /// Sets the position of the next write, and removes the bytes after this position.
    func truncate(to offset: Int64 = 0) {
        _ = ftruncate(descriptor, off_t(offset))
        count = offset
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let written = pwrite(descriptor, rest.baseAddress, rest.count, off_t(count))
            guard written > 0 else { return false }
            count += Int64(written)
            rest = UnsafeRawBufferPointer(rebasing: rest[written...])
        }
        return true
    }

    func remove() { unlink(url.path) }
}
