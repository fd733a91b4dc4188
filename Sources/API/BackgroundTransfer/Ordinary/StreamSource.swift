import Foundation
import Synchronization
import TransferMachines

/// A source of a request body that reads a stream until the stream ends. A separate thread reads the stream, because a read may
/// block for a long time.
final class StreamSource: BodySource {
    /// The number of bytes that the thread reads in advance.
    private static let ahead = 256 << 10

    /// The state that the source shares with the reading thread. The thread has no reference to the source, so that the source
    /// can be deallocated.
    private final class Pipe: @unchecked Sendable {  // Unchecked, because the condition guards all mutable state
        let condition = NSCondition()
        var bytes = Data()
        var isAtEnd = false
        var hasFailed = false
        var isAbandoned = false
        /// `true` if the transport asked for bytes, received none, and waits until `whenReady` is called.
        var isAwaited = false
    }

    private let pipe = Pipe()

    /// - Parameters:
    ///   - length: the length that the request announces, or `nil` if the length is not known.
    ///   - whenReady: a closure that is called when bytes can be read again.
    init(_ stream: InputStream, length: Int64?, whenReady: @escaping @Sendable () -> Void) {
        byteCount = length ?? -1
        let pipe = pipe
        nonisolated(unsafe) let stream = stream
        Thread.detachNewThread { Self.read(stream, into: pipe, whenReady) }
    }

    deinit {
        pipe.condition.withLock {
            pipe.isAbandoned = true
            pipe.condition.broadcast()
        }
    }

    private static func read(_ stream: InputStream, into pipe: Pipe, _ whenReady: () -> Void) {
        if stream.streamStatus == .notOpen { stream.open() }
        defer { stream.close() }
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = stream.read(&buffer, maxLength: buffer.count)
            pipe.condition.lock()
            if count > 0 { pipe.bytes.append(contentsOf: buffer[..<count]) }
            (pipe.isAtEnd, pipe.hasFailed) = (count <= 0, count < 0)
            pipe.condition.broadcast()
            let isAwaited = pipe.isAwaited
            pipe.isAwaited = false
            while pipe.bytes.count >= ahead, !pipe.isAbandoned { pipe.condition.wait() }
            let isOver = pipe.isAtEnd || pipe.isAbandoned
            pipe.condition.unlock()
            if isAwaited { whenReady() }
            if isOver { return }
        }
    }

    let byteCount: Int64

    var isReady: Bool {
        pipe.condition.withLock {
            pipe.isAwaited = pipe.bytes.isEmpty && !pipe.isAtEnd
            return !pipe.isAwaited
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        pipe.condition.withLock {
            // If the caller did not check `isReady` before, the caller waits here.
            while pipe.bytes.isEmpty, !pipe.isAtEnd { pipe.condition.wait() }
            if pipe.bytes.isEmpty { return pipe.hasFailed ? nil : 0 }
            let count = min(buffer.count, pipe.bytes.count)
            pipe.bytes.copyBytes(to: buffer, count: count)
            pipe.bytes = Data(pipe.bytes.dropFirst(count))
            pipe.condition.broadcast()
            return count
        }
    }

    /// Returns `false`, because a stream can be read only once. Before another attempt, the session asks the delegate for a new
    /// stream.
    func rewind() -> Bool { false }
}
