import BackgroundCommands
import BackgroundRuntime
import Foundation
import Glibc

/// A password, token or key that `stormy destination add` writes into a file, which only the user can read.
struct DestinationSecret {
    let path: String

    /// Returns whether `destination add` chose the path for a destination with this name.
    static func isOwn(_ path: String, _ destination: String) -> Bool {
        let folder = AppRuntime.shared.directories.configuration.path + "/"
        guard path.hasPrefix(folder + destination), path.hasSuffix(".secret") else { return false }
        return numbers.contains { path == file(of: destination, $0) }
    }

    private static let numbers = 1...100

    private static func file(of destination: String, _ number: Int) -> String {
        let name = destination + (number == 1 ? "" : "-\(number)") + ".secret"
        return AppRuntime.shared.directories.configuration.appendingPathComponent(name).path
    }

    /// Writes the secret into a new file. An existing file is not replaced, because another destination may use it.
    static func write(_ secret: String, for destination: String) throws -> DestinationSecret {
        let folder = AppRuntime.shared.directories.configuration.path
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw CommandFailure(.cannotCreate, "\(folder): \((error as NSError).localizedDescription)")
        }
        var (path, descriptor): (String, Int32) = (folder, -1)
        for number in numbers {
            path = file(of: destination, number)
            descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            if descriptor >= 0 || errno != EEXIST { break }
        }
        guard descriptor >= 0 else { throw CommandFailure(.cannotCreate, "\(path): \(String(cString: strerror(errno)))") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data((secret + "\n").utf8))
            try handle.synchronize()
        } catch {
            unlink(path)
            throw CommandFailure(.cannotCreate, "\(path): \((error as NSError).localizedDescription)")
        }
        return DestinationSecret(path: path)
    }

    func remove() { unlink(path) }
}
