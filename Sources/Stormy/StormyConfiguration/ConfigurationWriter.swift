import Foundation
import Glibc

/// Replaces the configuration file.
package enum ConfigurationWriter {
    /// The reason why the configuration file could not be replaced. The file is unchanged.
    package enum Failure: Error, Equatable, CustomStringConvertible {
        /// Another program changed the file at the same time.
        case changed(path: String)
        /// The path is a link to a file that does not exist.
        case brokenLink(path: String)
        case failed(path: String, reason: String)

        package var description: String {
            switch self {
            case .changed(let path): "\(path) was changed by another program at the same time. Run the command again"
            case .brokenLink(let path): "\(path) is a link to a file that does not exist. Create the file, or remove the link"
            case .failed(let path, let reason): "\(path) could not be written: \(reason)"
            }
        }
    }

    /// Replaces the text of the configuration file, or creates the file with the mode 0600. After a crash or a power cut the file
    /// has the old text or the new text. If the path is a link, the file behind the link is replaced.
    ///
    /// - Parameter old: The text that the file must have. `nil` if the file must not exist.
    /// - Throws: ``Failure``.
    package static func write(_ new: ConfigurationText, replacing old: String?, at path: String) throws(Failure) {
        let text = new.text
        let target = try target(of: path)
        func failed() -> Failure { .failed(path: target, reason: String(cString: strerror(errno))) }
        let folder = String(target[..<(target.lastIndex(of: "/") ?? target.startIndex)])
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw .failed(path: folder, reason: (error as NSError).localizedDescription)
        }
        var found = stat()
        let kept = old != nil && stat(target, &found) == 0 ? found.st_mode & 0o777 : 0o600
        let mode = new.hasCredential ? kept & 0o700 : kept
        // A rename would also replace a file that the user protected from changes.
        if old != nil, access(target, W_OK) != 0 { throw failed() }
        let draft = "\(folder)/.config-\(getpid())"
        // The draft of a process with the same number may remain after a crash.
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failed() }
        defer { unlink(draft) }
        let isWritten = writeAll(Array(text.utf8), to: descriptor) && fchmod(descriptor, mode) == 0 && fsync(descriptor) == 0
        let failure = failed()
        close(descriptor)
        guard isWritten else { throw failure }
        guard current(target) == old else { throw .changed(path: target) }
        guard rename(draft, target) == 0 else { throw failed() }
        let above = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if above >= 0 {
            fsync(above)
            close(above)
        }
    }

    /// Returns the path behind links.
    private static func target(of path: String) throws(Failure) -> String {
        var found = stat()
        guard lstat(path, &found) == 0, found.st_mode & S_IFMT == S_IFLNK else { return path }
        guard let resolved = realpath(path, nil) else { throw .brokenLink(path: path) }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func current(_ path: String) -> String? {
        guard let data = FileManager.default.contents(atPath: path) else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + done, bytes.count - done) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
