import Foundation
import ProcessSupport

/// The folder of a simulated host: parts, spool and photos lie there, until its test is over.
enum VirtualFolder {
    /// In memory where there is such a place: what is tried here is not the disk. Nobody else may look into it.
    static func make() throws -> URL {
        _ = swept
        let owner = ProcessIdentity.current
        let name = "\(prefix)\(owner.pid)-\(owner.start)-\(UUID().uuidString.lowercased())"
        let folder = base.appendingPathComponent(name, isDirectory: true)
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return folder
    }

    private static let prefix = "virtual-"
    private static let base =
        access("/dev/shm", W_OK) == 0
        ? URL(fileURLWithPath: "/dev/shm", isDirectory: true) : FileManager.default.temporaryDirectory

    /// Once in a process: what those left that were killed. Nobody else would give its memory back before a reboot.
    private static let swept: Void = {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: base.path)) ?? [] where name.hasPrefix(prefix) {
            let owner = name.dropFirst(prefix.count).split(separator: "-")
            guard owner.count > 2, let pid = Int32(owner[0]), let start = Int64(owner[1]) else { continue }
            let process = ProcessIdentity(pid: pid, start: start)
            // Another PID namespace may have the same folder, and removes its own.
            guard !process.isOfAnotherNamespace, !process.isAlive else { continue }
            // Of another person's it is not allowed, and not wanted.
            try? FileManager.default.removeItem(at: base.appendingPathComponent(name))
        }
    }()
}
