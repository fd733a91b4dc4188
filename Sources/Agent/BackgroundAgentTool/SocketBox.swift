import ProcessSupport

/// A class that owns the non-copyable socket, so that a closure can capture it.
final class SocketBox: Sendable {
    let socket: LocalSocket

    init(_ socket: consuming LocalSocket) { self.socket = socket }
}
