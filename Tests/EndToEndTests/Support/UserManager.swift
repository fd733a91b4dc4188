import CLinux
import Foundation
import Synchronization

/// A real systemd user manager in a private cgroup. Tests start and stop the manager like a login and a logout.
///
/// Process 1 can be another program than systemd. The manager needs the folder /run/systemd/system, a private runtime folder, a
/// cgroup in which it may create groups, and a bus.
final class UserManager {
    private let home: Home
    private let group: String
    private var child: Child?
    /// The folder that the manager sees as /etc.
    private let etc: String?

    private static let marker = "/run/systemd/system"
    /// The number of tests that use the marker folder, and whether this process created the folder. A machine has only one marker
    /// folder.
    private static let markers = Mutex((count: 0, areOurs: false))
    private static let trees = ["systemd", "unified"].map { "/sys/fs/cgroup/" + $0 }
    private static let program = "/lib/systemd/systemd"

    /// The reason why no user manager can run on this machine; `nil` if a user manager can run.
    static var obstacle: String? {
        if getuid() != 0 { return "only root may make the cgroup a user manager needs" }
        if access(program, X_OK) != 0 { return "\(program) is not installed" }
        if !trees.contains(where: { access($0, W_OK) == 0 }) { return "no cgroup tree can be written" }
        return nil
    }

    /// - Parameter ownsEtc: Whether the manager sees a copy of /etc in ``Home/folder`` + "etc", which a test may change.
    init(_ home: Home, ownsEtc: Bool = false) throws {
        self.home = home
        etc = ownsEtc ? home.folder.appendingPathComponent("etc").path : nil
        if let etc { _ = try Child.run("cp", ["-a", "/etc", etc], environment: home.environment) }
        group = "stormy-e2e-\(getpid())-\(UUID().uuidString.prefix(6))"
        try Self.markers.withLock { markers in
            if markers.count == 0 {
                markers.areOurs = access(Self.marker, F_OK) != 0
                try FileManager.default.createDirectory(atPath: Self.marker, withIntermediateDirectories: true)
            }
            markers.count += 1
        }
    }

    deinit {
        powerCut()
        removeGroups()
        Self.markers.withLock { markers in
            markers.count -= 1
            if markers.count == 0, markers.areOurs { rmdir(Self.marker) }
        }
    }

    /// Starts the manager. Returns when the manager is ready and has started the units of default.target.
    func start() throws {
        let socket = try ReadySocket(home.folder.appendingPathComponent("ready").path)
        let script = """
            for tree in \(Self.trees.joined(separator: " ")); do
              [ -d $tree ] || continue
              mkdir -p $tree/\(group) && echo $$ > $tree/\(group)/cgroup.procs
            done
            \(etc.map { "mount --bind \($0) /etc" } ?? "")
            exec \(Self.program) --user
            """
        let log = open(home.folder.appendingPathComponent("manager.log").path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(log) }
        child = try Child(
            etc == nil ? "sh" : "unshare", etc == nil ? ["-c", script] : Namespaces.withOwnMounts(script),
            environment: home.environment.merging(["NOTIFY_SOCKET": socket.path]) { $1 }, output: log)
        guard socket.waitForReady(seconds: 120) else {
            let words = (try? String(contentsOf: home.folder.appendingPathComponent("manager.log"), encoding: .utf8)) ?? ""
            throw Desktop.Trouble("the user manager did not become ready: \(words)")
        }
    }

    func systemctl(_ arguments: String...) throws -> Child.Result {
        try Child.run("systemctl", ["--user", "--no-pager"] + arguments, environment: home.environment)
    }

    /// Polls the condition, because the manager sends no signals in this environment.
    func wait(for what: String, _ isSo: () throws -> Bool) throws {
        let end = ContinuousClock.now + .seconds(120)
        while try !isSo() {
            guard ContinuousClock.now < end else { throw Home.TimedOut(description: "waited 120 s for: \(what)") }
        }
    }

    /// Simulates a logout: the manager stops every unit and then ends.
    func logOut() throws {
        // The manager may have ended before it could reply.
        _ = try systemctl("exit")
        child?.end(0)
        child = nil
    }

    /// Kills the manager, the agent and all other processes of the cgroup at the same time.
    func powerCut() {
        let processes = Set(Self.trees.flatMap { Self.processes(under: $0 + "/" + group) })
        let descriptors = processes.map { clinux_pidfd_open($0) }
        for process in processes { kill(process, SIGKILL) }
        child?.end(SIGKILL)
        child = nil
        for descriptor in descriptors where descriptor >= 0 {
            var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            poll(&poller, 1, 10_000)
            close(descriptor)
        }
    }

    private static func processes(under folder: String) -> [Int32] {
        let below = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        return (["cgroup.procs"] + below.filter { $0.hasSuffix("/cgroup.procs") }).flatMap { name in
            ((try? String(contentsOfFile: folder + "/" + name, encoding: .utf8)) ?? "").split(separator: "\n").compactMap {
                Int32($0)
            }
        }
    }

    /// Removes the deepest cgroups first, because the kernel removes only empty cgroups.
    private func removeGroups() {
        for tree in Self.trees {
            let root = tree + "/" + group
            let below = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
            for name in below.sorted(by: { $0.count > $1.count }) { rmdir(root + "/" + name) }
            rmdir(root)
        }
    }
}

/// The socket on which a service reports READY=1.
final class ReadySocket {
    let path: String
    private let descriptor: Int32

    init(_ path: String) throws {
        self.path = path
        unlink(path)
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Desktop.Trouble("no socket at \(path)") }
    }

    deinit {
        close(descriptor)
        unlink(path)
    }

    func waitForReady(seconds: Double) -> Bool { wait(for: "READY=1", seconds: seconds) }

    /// Waits for a message that contains this line. Earlier messages are dropped.
    func wait(for line: String, seconds: Double) -> Bool {
        let deadline = Date().addingTimeInterval(seconds)
        var buffer = [UInt8](repeating: 0, count: 4096)
        while deadline.timeIntervalSinceNow > 0 {
            var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&poller, 1, Int32(deadline.timeIntervalSinceNow * 1000) + 1) > 0 else { return false }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0, String(decoding: buffer[..<count], as: UTF8.self).contains(line) { return true }
        }
        return false
    }
}
