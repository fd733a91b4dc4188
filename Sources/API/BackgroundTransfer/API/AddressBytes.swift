import Foundation
import FoundationNetworking

extension URL {
    /// The bytes of the resource at the address. A loop begins the request: over the network by `URLSession.shared`, or from a file.
    ///
    /// Differs from Apple: a file is read completely before its first byte is returned. The body is returned for every status of the
    /// server.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of a UTF-8 text at the address. A line ends with a line feed, or with a carriage return and a line feed; the end is not
    /// part of the line. Requested in the same way as ``resourceBytes``.
    public var lines: AsyncLines { AsyncLines(url: self) }

    /// The bytes at an address. Each loop sends a new request.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        /// A `URLError`.
        public typealias Failure = any Error

        let url: URL

        /// The bytes as lines of text.
        public var lines: AsyncLines { AsyncLines(url: url) }

        /// Returns an iterator that sends the request when the first byte is read.
        public func makeAsyncIterator() -> Iterator { Iterator(url: url) }

        /// An iterator over the bytes.
        public struct Iterator: AsyncIteratorProtocol {
            let url: URL
            private var bytes: URLSession.AsyncBytes.Iterator?

            init(url: URL) { self.url = url }

            /// Returns the next byte, or `nil` if the response is complete.
            /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
            public mutating func next() async throws -> UInt8? {
                if bytes == nil { bytes = try await URLSession.shared.bytes(from: url).0.makeAsyncIterator() }
                return try await bytes?.next()
            }
        }
    }

    /// The lines of a text at an address. Each loop sends a new request.
    public struct AsyncLines: AsyncSequence, Sendable {
        /// A line, without its end.
        public typealias Element = String
        /// A `URLError`.
        public typealias Failure = any Error

        let url: URL

        /// Returns an iterator that sends the request when the first line is read.
        public func makeAsyncIterator() -> Iterator { Iterator(url: url) }

        /// An iterator over the lines.
        public struct Iterator: AsyncIteratorProtocol {
            let url: URL
            private var lines: URLSession.AsyncLines.Iterator?

            init(url: URL) { self.url = url }

            /// Returns the next line, or `nil` after the last one.
            /// - Throws: `URLError`, as the bytes do.
            public mutating func next() async throws -> String? {
                if lines == nil { lines = try await URLSession.shared.bytes(from: url).0.lines.makeAsyncIterator() }
                return try await lines?.next()
            }
        }
    }
}
