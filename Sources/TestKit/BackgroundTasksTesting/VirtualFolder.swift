import Foundation
import ProcessSupport

/// The folder of a simulated host, for partial files, spool and photos. The folder exists until the test ends.
enum VirtualFolder {
    /// Creates the folder, in memory if possible, because the tests do not test the disk. Other users have no access to the
    /// folder.
    static func make() throws -> URL {
        _ = swept
        let owner = ProcessIdentity.current
        let name = "\(prefix)\(owner.pid)-\(owner.start)-\(UUID.random().uuidString.lowercased())"
        let folder = base.appendingPathComponent(name, isDirectory: true)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return folder
    }

    private static let prefix = "virtual-"
    private static let base =
        access("/dev/shm", W_OK) == 0
        ? URL(fileURLWithPath: "/dev/shm", isDirectory: true) : FileManager.default.temporaryDirectory

    /// Removes the folders of killed test processes, once per process. If no process removed these folders, they would use memory
    /// until a reboot.
    private static let swept: Void = {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: base.path)) ?? [] where name.hasPrefix(prefix) {
            let owner = name.dropFirst(prefix.count).split(separator: "-")
            guard owner.count > 2, let pid = Int32(owner[0]), let start = Int64(owner[1]) else { continue }
            let process = ProcessIdentity(pid: pid, start: start)
            // A process of another PID namespace may use the same parent folder. A process removes only folders of its own
            // namespace.
            guard !process.isOfAnotherNamespace, !process.isAlive else { continue }
            // This process cannot remove a folder of another user, and the attempt does no harm.
            try? FileManager.default.removeItem(at: base.appendingPathComponent(name))
        }
    }()
}
