import ProcessSupport

/// A box that lets a closure own the socket.
final class SocketBox: Sendable {
    let socket: LocalSocket

    init(_ socket: consuming LocalSocket) { self.socket = socket }
}
