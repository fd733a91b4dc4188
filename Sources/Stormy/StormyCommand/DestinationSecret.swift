import BackgroundCommands
import BackgroundRuntime
import Foundation
import Glibc
import ProcessSupport

/// A password, token or key that `stormy destination add` writes into a file, which only the user can read.
struct DestinationSecret {
    let secret: String
    let path: String

    private static let numbers = 1...100

    /// Chooses a path that no file has. The file is written later (``write()``).
    init(_ secret: String, for destination: String) throws {
        let free = Self.numbers.map { Self.file(of: destination, $0) }.first { PathStatus.at($0, followingLinks: false).isAbsent }
        guard let free else {
            throw CommandFailure(.cannotCreate, "too many secrets of \(destination): remove unused files \(destination)-….secret")
        }
        (self.secret, path) = (secret, free)
    }

    private static func file(of destination: String, _ number: Int) -> String {
        let name = destination + (number == 1 ? "" : "-\(number)") + ".secret"
        return AppRuntime.shared.directories.configuration.appendingPathComponent(name).path
    }

    /// Writes the secret into a new file. An existing file is not replaced, because another destination may use it.
    func write() throws {
        let folder = AppRuntime.shared.directories.configuration.path
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw CommandFailure(.cannotCreate, "\(folder): \((error as NSError).localizedDescription)")
        }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw CommandFailure(.cannotCreate, "\(path): \(String(cString: strerror(errno)))") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data((secret + "\n").utf8))
            try handle.synchronize()
        } catch {
            unlink(path)
            throw CommandFailure(.cannotCreate, "\(path): \((error as NSError).localizedDescription)")
        }
    }

    func remove() { unlink(path) }
}
