import Foundation
import FoundationNetworking
import Synchronization

extension URLSession {
    /// The bytes of a response, in the order in which they arrive. If the app reads slowly, the connection makes the server wait.
    /// If the task fails, the sequence throws the task's error.
    ///
    /// Differs from Apple: the app can read the bytes only once. A second loop over the same value receives only the bytes that
    /// the first loop did not read.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        /// A `URLError`.
        public typealias Failure = any Error

        /// The task that receives the response. Cancelling the task ends the sequence.
        public let task: URLSessionDataTask
        private let reader: Reader

        init(task: URLSessionDataTask, feed: ByteFeed) {
            self.task = task
            reader = Reader(task, feed)
        }

        /// Returns an iterator that continues after the last byte that was read.
        public func makeAsyncIterator() -> Iterator { Iterator(reader) }

        /// A reader of the bytes. When no reference to the reader exists any more, the task is cancelled.
        final class Reader: Sendable {
            let task: URLSessionDataTask
            let feed: ByteFeed

            init(_ task: URLSessionDataTask, _ feed: ByteFeed) { (self.task, self.feed) = (task, feed) }

            deinit { task.cancel() }
        }

        /// An iterator over the bytes.
        public struct Iterator: AsyncIteratorProtocol {
            private let reader: Reader
            private var piece = Data()
            private var position = 0

            init(_ reader: Reader) { self.reader = reader }

            /// Returns the next byte, or `nil` if the response is complete.
            /// - Throws: `URLError`. The code is `.cancelled` if the task or the awaiting task is cancelled.
            public mutating func next() async throws -> UInt8? {
                while position == piece.count {
                    let reader = reader
                    let more = try await withTaskCancellationHandler(
                        operation: { try await reader.feed.next() }, onCancel: { reader.task.cancel() })
                    guard let more else { return nil }
                    (piece, position) = (more, 0)
                }
                defer { position += 1 }
                return piece[piece.startIndex + position]
            }
        }

        /// The lines of a UTF-8 text. A line ends with a line feed, or with a carriage return and a line feed. The line does not
        /// contain these characters.
        public var lines: AsyncLines { AsyncLines(bytes: self) }
    }

    /// The lines of a response.
    public struct AsyncLines: AsyncSequence, Sendable {
        /// A line, without the characters that end the line.
        public typealias Element = String
        /// A `URLError`.
        public typealias Failure = any Error

        let bytes: AsyncBytes

        /// Returns an iterator that continues after the last line that was read.
        public func makeAsyncIterator() -> Iterator { Iterator(bytes: bytes.makeAsyncIterator()) }

        /// An iterator over the lines.
        public struct Iterator: AsyncIteratorProtocol {
            var bytes: AsyncBytes.Iterator

            /// Returns the next line, or `nil` after the last line.
            /// - Throws: `URLError`, for the same reasons as the iterator over the bytes.
            public mutating func next() async throws -> String? {
                var line: [UInt8] = []
                while let byte = try await bytes.next() {
                    if byte == UInt8(ascii: "\n") {
                        if line.last == UInt8(ascii: "\r") { line.removeLast() }
                        return String(decoding: line, as: UTF8.self)
                    }
                    line.append(byte)
                }
                return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
            }
        }
    }
}

/// The buffer between a task and the reader of the task's bytes. While the buffer is full, the session receives no bytes from the
/// server.
final class ByteFeed: Sendable {
    /// The number of unread bytes above which the session receives no more bytes from the server.
    private static let limit = 1 << 20

    private struct State {
        /// The bytes that arrived and that no reader has requested yet.
        var waiting = Data()
        var end: Result<Void, URLError>?
        var response: URLResponse?
        var head: CheckedContinuation<URLResponse, any Error>?
        /// The continuations of the waiting readers, in the order of the calls.
        var readers: [CheckedContinuation<Data?, any Error>] = []
        var continueWork: @Sendable () -> Void = {}
    }

    private let state = Mutex(State())

    /// - Parameter continueWork: a closure that makes the session receive more bytes when the buffer has room again.
    func onRoom(_ continueWork: @escaping @Sendable () -> Void) { state.withLock { $0.continueWork = continueWork } }

    var isFull: Bool { waitingCount > Self.limit }

    /// The number of unread bytes.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    // MARK: From the task

    func receive(_ response: URLResponse) {
        let waiting = state.withLock { state in
            state.response = response
            defer { state.head = nil }
            return state.head
        }
        waiting?.resume(returning: response)
    }

    func receive(_ piece: Data) {
        let reader = state.withLock { state -> CheckedContinuation<Data?, any Error>? in
            guard !state.readers.isEmpty else {
                if state.waiting.isEmpty { state.waiting = piece } else { state.waiting.append(piece) }
                return nil
            }
            return state.readers.removeFirst()
        }
        reader?.resume(returning: piece)
    }

    func end(_ error: URLError?) {
        let (head, readers) = state.withLock { state in
            state.end = error.map { .failure($0) } ?? .success(())
            defer { (state.head, state.readers) = (nil, []) }
            return (state.head, state.readers)
        }
        head?.resume(throwing: error ?? URLError(.badServerResponse))
        for reader in readers { if let error { reader.resume(throwing: error) } else { reader.resume(returning: nil) } }
    }

    // MARK: For the reader

    func head() async throws -> URLResponse {
        try await withCheckedThrowingContinuation { waiting in
            let known = state.withLock { state -> Result<URLResponse, any Error>? in
                if let response = state.response { return .success(response) }
                if let end = state.end { return .failure((try? end.get()) == nil ? end.failure : URLError(.badServerResponse)) }
                state.head = waiting
                return nil
            }
            if let known { waiting.resume(with: known) }
        }
    }

    /// Returns the bytes that arrived since the last call. If bytes arrived before an error, the bytes are returned first, and
    /// the next call throws the error.
    func next() async throws -> Data? {
        try await withCheckedThrowingContinuation { waiting in
            let (known, continueWork) = state.withLock { state -> (Result<Data?, any Error>?, (@Sendable () -> Void)?) in
                if !state.waiting.isEmpty {
                    defer { state.waiting = Data() }
                    return (.success(state.waiting), state.waiting.count > Self.limit ? state.continueWork : nil)
                }
                if let end = state.end { return (end.map { nil }.mapError { $0 }, nil) }
                state.readers.append(waiting)
                return (nil, nil)
            }
            if let known { waiting.resume(with: known) }
            continueWork?()
        }
    }
}

extension Result where Success == Void, Failure == URLError {
    fileprivate var failure: URLError { if case .failure(let error) = self { error } else { URLError(.unknown) } }
}
