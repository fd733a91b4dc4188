import Foundation
import Glibc

extension Configuration {
    /// Reads the configuration file; a missing one means the defaults.
    ///
    /// A file with a credential (password, token, user info in an address) that belongs to another user, or that group or others can read,
    /// is refused, as ssh does with keys.
    package static func load(path: String) throws(ConfigurationError) -> Configuration {
        guard let file = try ConfigurationFile.read(path) else { return Configuration() }
        let parser = try ConfigurationParser(text: file.text, path: path)
        guard var credential = parser.credential else { return parser.configuration }
        if file.isAnotherUsers, case .exposedCredential(let key) = credential.problem {
            credential.problem = .foreignCredential(key: key)
            throw credential
        }
        if file.othersCanRead { throw credential }
        return parser.configuration
    }
}

extension ConfigurationError.Problem {
    /// - Parameter number: The value of `errno` after a call on the file.
    package init(_ number: Int32) {
        let reason = String(cString: strerror(number))
        switch number {
        case EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN, EBUSY: self = .unavailable(reason: reason, isDisk: false)
        case EIO, ESTALE, ETIMEDOUT, ENXIO, ENODEV: self = .unavailable(reason: reason, isDisk: true)
        default: self = .unreadable(reason: reason)
        }
    }
}

private struct ConfigurationFile {
    var text: String
    var othersCanRead: Bool
    var isAnotherUsers: Bool

    /// More than anybody writes by hand, in bytes.
    private static let maximumBytes = 1024 * 1024

    /// nil when there is no such file. Permissions and content are taken from the same descriptor, so that the file
    /// judged is the file read; not blocking, because somebody may have put a named pipe there.
    static func read(_ path: String) throws(ConfigurationError) -> ConfigurationFile? {
        func unreadable(_ reason: String) -> ConfigurationError { ConfigurationError(.unreadable(reason: reason), path: path) }
        func failure(_ number: Int32) -> ConfigurationError { ConfigurationError(.init(number), path: path) }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT || code == ENOTDIR { return nil }
            throw failure(code)
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw unreadable("it is not a regular file; remove it or write a file there")
        }
        let data: Data
        do {
            data = try handle.read(upToCount: maximumBytes + 1) ?? Data()
        } catch {
            throw ConfigurationError(.unavailable(reason: "the disk reports an error", isDisk: true), path: path)
        }
        guard data.count <= maximumBytes else { throw unreadable("it is larger than 1 MiB; this is not a configuration") }
        guard let text = String(data: data, encoding: .utf8) else {
            throw unreadable("it is not UTF-8; save it in that encoding")
        }
        return ConfigurationFile(
            text: text, othersCanRead: status.st_mode & (S_IRGRP | S_IROTH) != 0, isAnotherUsers: status.st_uid != geteuid())
    }
}
