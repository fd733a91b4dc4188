import Foundation
import FoundationNetworking

extension URL {
    /// The bytes of the resource at the address. A loop over the bytes sends a request with `URLSession.shared`, or reads the
    /// file if the address has the scheme `file`.
    ///
    /// Differs from Apple: the complete file is read before the first byte is returned. The bytes of a response are returned for
    /// every HTTP status.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of a UTF-8 text at the address. A line ends with a line feed, or with a carriage return and a line feed. The
    /// line does not contain these characters. The text is requested in the same way as ``resourceBytes``.
    public var lines: AsyncLines { AsyncLines(url: self) }

    /// The bytes of the resource at an address. Each loop sends a new request.
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
            /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
            public mutating func next() async throws -> UInt8? {
                if bytes == nil { bytes = try await URLSession.shared.bytes(from: url).0.makeAsyncIterator() }
                return try await bytes?.next()
            }
        }
    }

    /// The lines of a text at an address. Each loop sends a new request.
    public struct AsyncLines: AsyncSequence, Sendable {
        /// A line, without the characters that end the line.
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

            /// Returns the next line, or `nil` after the last line.
            /// - Throws: `URLError`, for the same reasons as the iterator over the bytes.
            public mutating func next() async throws -> String? {
                if lines == nil { lines = try await URLSession.shared.bytes(from: url).0.lines.makeAsyncIterator() }
                return try await lines?.next()
            }
        }
    }
}
