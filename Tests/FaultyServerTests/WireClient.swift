import FaultyServer
import Foundation
import Glibc
import Synchronization

/// A client with a blocking socket that records every byte. The calls block threads of the client, and not threads of Swift's
/// shared pool.
final class WireClient: Sendable {
    /// How a connection ended.
    enum End: Sendable { case closed, reset, timedOut }

    struct ConnectFailure: Error { let code: Int32 }

    private let descriptor: Int32
    private let unread = Mutex(Data())

    /// - Parameter sendTimeout: The time in milliseconds after which sending stops if the socket has no room.
    init(port: Int, sendTimeout: Int = 1_200_000) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw ConnectFailure(code: errno) }
        // If a test hangs, these timeouts make the test fail.
        var limit = timeval(tv_sec: 1200, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        limit = timeval(tv_sec: sendTimeout / 1000, tv_usec: sendTimeout % 1000 * 1000)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { Glibc.close(descriptor) }

    /// Disconnects the client. The descriptor stays open as long as the object exists, so that no other socket gets its number.
    func hangUp() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Sends a few bytes without waiting.
    func sendNow(_ text: String) -> Bool { Glibc.send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count }

    /// Returns `true` if neither a response nor the end of the connection arrives within the given time.
    func receivesNothing(milliseconds: Int32) -> Bool {
        var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&event, 1, milliseconds) == 0
    }

    func send(_ text: String) async { await send(Data(text.utf8)) }

    /// Sends all bytes. If the server disconnects, sends only the bytes that the server accepted before.
    @discardableResult
    func send(_ data: Data) async -> Int {
        await blocking { [descriptor] in
            data.withUnsafeBytes { bytes in
                var done = 0
                while done < bytes.count {
                    let count = Glibc.send(
                        descriptor, bytes.baseAddress! + done, bytes.count - done, Int32(MSG_NOSIGNAL))
                    guard count > 0 else { break }
                    done += count
                }
                return done
            }
        }
    }

    /// Reads until `isEnough` returns `true` or the connection ends. The read bytes are kept for the next call until `take`
    /// removes them.
    func receive(until isEnough: @escaping @Sendable (Data) -> Bool) async -> End? {
        await blocking { [self] in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while !isEnough(unread.withLock { $0 }) {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count == 0 { return .closed }
                if count < 0 { return errno == ECONNRESET ? .reset : .timedOut }
                unread.withLock { $0.append(contentsOf: buffer[0..<count]) }
            }
            return nil
        }
    }

    func receiveToEnd() async -> (data: Data, end: End?) {
        let end = await receive { _ in false }
        return (take(), end)
    }

    /// Removes and returns the first `count` read bytes, or all read bytes.
    func take(_ count: Int? = nil) -> Data {
        unread.withLock { data in
            let part = Data(data.prefix(count ?? data.count))
            data = Data(data.dropFirst(part.count))
            return part
        }
    }

    /// Reads one response with `Content-Length` or without a body. The connection stays open.
    ///
    /// - Parameter hasBody: `false` for a response to HEAD.
    func answer(hasBody: Bool = true) async -> WireAnswer {
        var end = await receive { $0.range(of: WireAnswer.headEnd) != nil }
        guard let mark = unread.withLock({ $0.range(of: WireAnswer.headEnd)?.upperBound }) else {
            return WireAnswer(take(), end)
        }
        var answer = WireAnswer(take(mark), nil)
        let length = hasBody ? answer["Content-Length"].flatMap { Int($0) } ?? 0 : 0
        end = await receive { $0.count >= length }
        answer.body = take(length)
        answer.end = end
        return answer
    }

    /// Sends a request with a correct length and reads its response.
    func request(
        _ method: String, _ target: String, _ headers: [String: String] = [:], body: Data = Data()
    ) async -> WireAnswer {
        await send(Self.head(method, target, headers, length: body.isEmpty ? nil : body.count))
        await send(body)
        return await answer(hasBody: method != "HEAD")
    }

    static func head(
        _ method: String, _ target: String, _ headers: [String: String] = [:], length: Int? = nil
    ) -> String {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: test\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        if let length { text += "Content-Length: \(length)\r\n" }
        return text + "\r\n"
    }
}

/// A parsed response.
struct WireAnswer: Sendable {
    static let headEnd = Data("\r\n\r\n".utf8)

    let head: String
    var body: Data
    var end: WireClient.End?

    init(_ data: Data, _ end: WireClient.End?) {
        let mark = data.range(of: Self.headEnd)
        head = String(decoding: data[..<(mark?.lowerBound ?? data.endIndex)], as: UTF8.self)
        body = mark.map { Data(data[$0.upperBound...]) } ?? Data()
        self.end = end
    }

    var status: Int {
        let words = head.split(separator: " ", maxSplits: 2)
        return words.count > 1 ? Int(words[1]) ?? 0 : 0
    }

    var text: String { String(decoding: body, as: UTF8.self) }

    subscript(name: String) -> String? {
        for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix(name.lowercased() + ": ") {
            return String(line.dropFirst(name.count + 2))
        }
        return nil
    }
}

/// Runs blocking work on a separate thread.
func blocking<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: work()) }
    }
}

/// Runs `body` with a server that is stopped afterwards.
func withServer(
    logFile: String? = nil, _ body: (FaultyServer) async throws -> Void
) async throws {
    let server = try await FaultyServer.start(logFile: logFile)
    do {
        try await body(server)
    } catch {
        await server.stop()
        throw error
    }
    await server.stop()
}
