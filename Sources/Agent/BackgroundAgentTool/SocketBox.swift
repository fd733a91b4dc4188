import ProcessSupport

/// A class that owns a socket, so that a closure can capture the socket. The socket type cannot be copied.
final class SocketBox: Sendable {
    let socket: LocalSocket

    init(_ socket: consuming LocalSocket) { self.socket = socket }
}
