import Foundation
import Glibc

/// A Unix socket with a name in the file system. The socket is a stream for lines of text between two processes of one user, or a
/// datagram socket.
package struct LocalSocket: ~Copyable, Sendable {
    package let descriptor: Int32

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Connects to a socket.
    ///
    /// - Parameter sendsDatagrams: `true` for a datagram socket. Sending a datagram never waits for the receiver.
    /// - Returns: the connection, or `nil` if no process listens on the socket.
    package static func connect(to path: String, sendsDatagrams: Bool = false) -> LocalSocket? {
        let kind = sendsDatagrams ? Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) : Int32(SOCK_STREAM.rawValue)
        guard let socket = make(kind), withAddress(path, { Glibc.connect(socket.descriptor, $0, $1) }) == 0 else { return nil }
        return socket
    }

    /// Creates a listening socket. Returns `nil` if the path already exists, or is longer than the maximum of 107 bytes.
    package static func listen(at path: String) -> LocalSocket? {
        guard let socket = make(), withAddress(path, { bind(socket.descriptor, $0, $1) }) == 0,
            Glibc.listen(socket.descriptor, 8) == 0
        else { return nil }
        return socket
    }

    /// Waits for the next connection. Returns `nil` if the socket was shut down.
    package borrowing func accept() -> LocalSocket? {
        let made = Glibc.accept(descriptor, nil, nil)
        guard made >= 0 else { return nil }
        _ = fcntl(made, F_SETFD, FD_CLOEXEC)
        return LocalSocket(descriptor: made)
    }

    /// Returns whether the process at the other end of the connection belongs to the same user.
    package borrowing func isOwn() -> Bool {
        // The tuple has the memory layout of `struct ucred`, which Glibc does not export to Swift.
        var peer: (process: pid_t, user: uid_t, group: gid_t) = (0, uid_t.max, 0)
        var size = socklen_t(MemoryLayout.size(ofValue: peer))
        return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.user == getuid()
    }

    /// Limits the duration of a read to a number of seconds. The value 0 removes the limit.
    package borrowing func limitReads(to seconds: Int) {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Shuts the socket down, so that every call that waits on the socket returns.
    package borrowing func shutDown() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Returns the next line without its line break, or `nil` if the connection has ended.
    package borrowing func readLine() -> String? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(descriptor, &byte, 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
            if line.count > 65_536 { return nil }
        }
        return nil
    }

    /// Writes a line. Returns `false` if the connection has ended.
    @discardableResult
    package borrowing func write(line: String) -> Bool { write(Array((line + "\n").utf8)) }

    /// Writes bytes. Returns `false` if the bytes were not sent completely.
    package borrowing func write(_ bytes: [UInt8]) -> Bool {
        send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    private static func make(_ kind: Int32 = Int32(SOCK_STREAM.rawValue)) -> LocalSocket? {
        let descriptor = socket(AF_UNIX, kind | Int32(SOCK_CLOEXEC.rawValue), 0)
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
