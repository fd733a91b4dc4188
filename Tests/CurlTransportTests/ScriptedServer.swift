import Glibc
import Synchronization

/// A server with plain sockets. Each connection has a thread that runs a script. A server that stalls continues to read until
/// the client disconnects.
final class ScriptedServer: Sendable {
    let port: UInt16
    private let listener: Int32
    private let accepted = Mutex(0)

    var url: String { "http://127.0.0.1:\(port)" }
    var connections: Int { accepted.withLock { $0 } }

    init(_ script: @escaping @Sendable (Connection) -> Void) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var one: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                precondition(bind(listener, address, length) == 0 && listen(listener, 512) == 0)
                getsockname(listener, address, &length)
            }
        }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        spawn { [self] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                accepted.withLock { $0 += 1 }
                spawn {
                    script(Connection(client))
                    shutdown(client, Int32(SHUT_RDWR))
                    close(client)
                }
            }
        }
    }

    /// Closes the listening socket. The system then refuses connections to the port.
    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }
}

/// One accepted connection.
final class Connection {
    private let descriptor: Int32
    private var pending: [UInt8] = []

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Reads the request up to the blank line. Returns `nil` if the client disconnected.
    func readHead() -> String? {
        while true {
            if let end = pending.indices.first(where: { pending[$0...].starts(with: Array("\r\n\r\n".utf8)) }) {
                defer { pending.removeFirst(end + 4) }
                return String(decoding: pending[..<end], as: UTF8.self)
            }
            guard fill() else { return nil }
        }
    }

    func readBody(_ count: Int) -> [UInt8] {
        while pending.count < count, fill() {}
        defer { pending.removeFirst(min(count, pending.count)) }
        return Array(pending.prefix(count))
    }

    /// Returns `false` if the client disconnected.
    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = bytes[offset...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }

    func waitUntilGone() { while fill() { pending.removeAll() } }

    /// Waits up to `seconds` for the client to disconnect.
    func isGone(within seconds: Double) -> Bool {
        var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, Int32(seconds * 1_000)) > 0 && !fill()
    }

    private func fill() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        pending += buffer[..<count]
        return true
    }
}

private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

private func spawn(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let code = pthread_create(
        &thread, nil,
        { context in
            Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
            return nil
        }, Unmanaged.passRetained(Body(body)).toOpaque())
    precondition(code == 0)
    pthread_detach(thread)
}
