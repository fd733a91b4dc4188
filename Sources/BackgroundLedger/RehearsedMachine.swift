import BackgroundScheduling
import Foundation
import Glibc

/// What a rehearsal says of the machine, in place of the machine itself: told to the agents of its throw-away home through a
/// socket there, line by line. Nobody else listens to it.
public struct RehearsedMachine: Codable, Sendable, Equatable {
    /// Names the socket.
    public static let variable = "BACKGROUND_REHEARSAL"
    /// The file that makes a home a rehearsal's: it holds the socket's name. No variable alone may tell a person's own agent what
    /// time it is.
    public static let mark = "rehearsal"
    /// Seconds, for processes that live for a moment only: verbs and launches.
    public static let clockVariable = "BACKGROUND_REHEARSAL_CLOCK"

    /// What its wall clock shows, less what the real one does. Seconds.
    public var clockOffset: Double = 0
    /// Seconds that it has slept.
    public var slept: Double = 0
    /// The zone that the person is in.
    public var zone: String
    public var conditions = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
    public var hasNotificationServer = true
    public var isDiskFull = false
    /// Counts the changes: the answer to one is its number.
    public var number = 0

    public init(zone: String) { self.zone = zone }

    /// What the processes of such a machine find in their environment.
    public var environment: [String: String] { [Self.clockVariable: String(clockOffset), "TZ": zone] }

    /// The socket that tells of this process's machine; `nil`: it is the real one.
    public static let socket: String? = {
        guard let path = getenv(variable).map({ String(cString: $0) }), let home = getenv("HOME").map({ String(cString: $0) }),
            let marked = FileManager.default.contents(atPath: home + "/" + mark), marked == Data(path.utf8)
        else { return nil }
        return path
    }()

    /// The wall clock of this process. Real, but in a rehearsal.
    static let ownOffset: Double = {
        guard socket != nil, let text = getenv(clockVariable) else { return 0 }
        return Double(String(cString: text)) ?? 0
    }()
}

/// A stream socket with a name in the file system, for lines of text between two processes of one person.
public struct LocalSocket: ~Copyable, Sendable {
    public let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// `nil`: nobody listens there.
    public static func connect(to path: String) -> LocalSocket? {
        guard let socket = make(), withAddress(path, { Glibc.connect(socket.descriptor, $0, $1) }) == 0 else { return nil }
        return socket
    }

    /// `nil`: the name is taken, or longer than a socket's may be (107 bytes).
    public static func listen(at path: String) -> LocalSocket? {
        guard let socket = make(), withAddress(path, { bind(socket.descriptor, $0, $1) }) == 0,
            Glibc.listen(socket.descriptor, 8) == 0
        else { return nil }
        return socket
    }

    /// Waits for whoever connects next. `nil`: the socket was shut down.
    public borrowing func accept() -> LocalSocket? {
        let made = Glibc.accept(descriptor, nil, nil)
        guard made >= 0 else { return nil }
        _ = fcntl(made, F_SETFD, FD_CLOEXEC)
        return LocalSocket(descriptor: made)
    }

    /// The other side belongs to the same person.
    public borrowing func isOwn() -> Bool {
        // `struct ucred`, which Glibc keeps from Swift.
        var peer: (process: pid_t, user: uid_t, group: gid_t) = (0, uid_t.max, 0)
        var size = socklen_t(MemoryLayout.size(ofValue: peer))
        return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.user == getuid()
    }

    /// How long a read may take; 0: as long as it takes. Seconds.
    public borrowing func limitReads(to seconds: Int) {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Ends every wait on it.
    public borrowing func shutDown() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// The next line, without its end; `nil`: the other side is gone.
    public borrowing func readLine() -> String? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(descriptor, &byte, 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
            if line.count > 65_536 { return nil }
        }
        return nil
    }

    /// `false`: the other side is gone.
    @discardableResult
    public borrowing func write(line: String) -> Bool {
        let bytes = Array((line + "\n").utf8)
        return send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    private static func make() -> LocalSocket? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        return descriptor < 0 ? nil : LocalSocket(descriptor: descriptor)
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return -1 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }
}
