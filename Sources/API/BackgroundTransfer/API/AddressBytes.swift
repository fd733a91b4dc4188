import Foundation
import FoundationNetworking

extension URL {
    /// The bytes of what is at the address, asked for when a loop begins: over the network by `URLSession.shared`, or of a file.
    ///
    /// Differs from Apple: a file is read whole before its first byte. A body is given whatever the server's status.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of a text in UTF-8 at the address: what stands between line feeds, without a carriage return before them. Asked for as
    /// ``resourceBytes`` are.
    public var lines: AsyncLines { AsyncLines(url: self) }

    /// The bytes at an address. Each loop asks for them anew.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        /// A `URLError`.
        public typealias Failure = any Error

        let url: URL

        /// The same as lines.
        public var lines: AsyncLines { AsyncLines(url: url) }

        /// Asks when the first byte is wanted.
        public func makeAsyncIterator() -> Iterator { Iterator(url: url) }

        /// One loop over the bytes.
        public struct Iterator: AsyncIteratorProtocol {
            let url: URL
            private var bytes: URLSession.AsyncBytes.Iterator?

            init(url: URL) { self.url = url }

            /// The next byte; `nil`: the answer is complete.
            /// - Throws: `URLError`; `.cancelled` when whoever awaits is cancelled.
            public mutating func next() async throws -> UInt8? {
                if bytes == nil { bytes = try await URLSession.shared.bytes(from: url).0.makeAsyncIterator() }
                return try await bytes?.next()
            }
        }
    }

    /// The lines of a text at an address. Each loop asks for them anew.
    public struct AsyncLines: AsyncSequence, Sendable {
        /// A line, without its end.
        public typealias Element = String
        /// A `URLError`.
        public typealias Failure = any Error

        let url: URL

        /// Asks when the first line is wanted.
        public func makeAsyncIterator() -> Iterator { Iterator(url: url) }

        /// One loop over the lines.
        public struct Iterator: AsyncIteratorProtocol {
            let url: URL
            private var lines: URLSession.AsyncLines.Iterator?

            init(url: URL) { self.url = url }

            /// The next line; `nil`: there is none.
            /// - Throws: `URLError`, as the bytes do.
            public mutating func next() async throws -> String? {
                if lines == nil { lines = try await URLSession.shared.bytes(from: url).0.lines.makeAsyncIterator() }
                return try await lines?.next()
            }
        }
    }
}
