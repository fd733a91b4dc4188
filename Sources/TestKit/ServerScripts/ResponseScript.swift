/// The server's handling of one request, step by step. Steps write raw bytes, and the script alone determines the framing, correct or not.
public struct ResponseScript: Sendable, Equatable, Codable, ExpressibleByArrayLiteral {
    /// When the script begins, relative to the request's body.
    public enum Beginning: Sendable, Equatable, Codable {
        /// Begins when the request's headers arrived. The body is read and dropped in parallel.
        case atHead
        /// Begins when this many bytes of the request's body arrived, or at the end of a shorter body.
        case afterBodyBytes(Int)
        /// Begins when the request is complete.
        case afterBody
    }

    /// The state of the connection after the last step.
    public enum Ending: Sendable, Equatable, Codable {
        /// The connection is kept for the next request if the response was framed correctly and neither side requested to close.
        case automatic
        case keepOpen
        case close
    }

    /// A single action on the wire.
    public enum Step: Sendable, Equatable, Codable {
        /// The status line.
        case status(Int, String? = nil)
        /// Header lines. The step may be repeated. The empty line is added before the first body byte.
        case headers(HeaderList)
        /// A complete interim response (100, 103).
        case interim(Int, HeaderList = [:])
        /// Body bytes, sent at once unless `Delivery` specifies a pace. This step is skipped for HEAD.
        case body(Payload, Delivery = .atOnce)
        /// The last chunk of a chunked body, with trailers. Without this step the response is truncated.
        case chunkEnd(trailers: HeaderList = [:])
        /// A file that determines the complete response from the request (200, 206, 304, 412, 416).
        case resource(ServedFile)
        /// Bytes that are sent unchanged. The script is responsible for the framing.
        case raw(Payload)
        /// Waits this many seconds.
        case delay(Double)
        /// Waits until a gate is open (`FaultyServer.openGate`).
        case hold(until: String)
        /// Stops reading the request, so that the client's sending stalls when the socket buffers are full. After that, TCP cannot report
        /// that the client left, because the client's end of the connection is behind the unread bytes. The request stays `.open`
        /// until the server ends the connection.
        case stopReading
        /// Does nothing until the connection ends.
        case stall
        /// Closes the connection. Bytes that were written before are delivered, unless the client is still sending. If the client
        /// is still sending, the kernel responds with a reset, which may overtake the written bytes.
        case cut
        /// Closes the connection with a TCP reset. Bytes that were written before may be lost. If these bytes must arrive, use a
        /// gate before this step.
        case reset
    }

    /// The pace of body bytes.
    public struct Delivery: Sendable, Equatable, Codable {
        /// The sizes of the pieces, each of which is a separate write. The last size repeats. If the list is empty, the pieces are
        /// large.
        public var sizes: [Int]
        /// Seconds between two pieces.
        public var interval: Double
        /// `true` if each piece is a chunk of the chunked coding.
        public var isChunked: Bool

        /// A delivery as fast as the client reads.
        public static let atOnce = Delivery(sizes: [], interval: 0, isChunked: false)

        /// Creates a delivery.
        public init(sizes: [Int], interval: Double = 0, isChunked: Bool = false) {
            self.sizes = sizes
            self.interval = interval
            self.isChunked = isChunked
        }

        /// Returns the size of the piece with this number. The default of 64 KiB is the memory that one connection needs.
        package func size(ofPiece number: Int) -> Int {
            guard let last = sizes.last else { return 65_536 }
            return max(1, number < sizes.count ? sizes[number] : last)
        }
    }

    /// The steps, in order.
    public var steps: [Step]
    /// When to begin.
    public var beginning: Beginning = .afterBody
    /// The state of the connection after the last step.
    public var ending: Ending = .automatic
    /// `true` if `Expect: 100-continue` is granted before the body, which never happens for a script that begins at the headers.
    public var grantsContinue = true

    /// Creates a script from its steps.
    public init(_ steps: [Step], beginning: Beginning = .afterBody, ending: Ending = .automatic) {
        self.steps = steps
        self.beginning = beginning
        self.ending = ending
    }

    /// Creates a script from a list of steps.
    public init(arrayLiteral elements: Step...) { self.init(elements) }

    /// Returns the script with another beginning.
    public func begins(_ beginning: Beginning) -> ResponseScript {
        var copy = self
        copy.beginning = beginning
        return copy
    }

    /// Returns the script with another ending.
    public func ends(_ ending: Ending) -> ResponseScript {
        var copy = self
        copy.ending = ending
        return copy
    }

    /// Returns the script with additional steps before it, such as a `.delay` or a `.hold`.
    public func after(_ earlier: Step...) -> ResponseScript {
        var copy = self
        copy.steps = earlier + steps
        return copy
    }
}

extension ResponseScript.Step {
    /// Returns body bytes as chunks of these sizes (the last size repeats), without the last chunk: add `.chunkEnd()`.
    public static func chunked(_ payload: Payload, sizes: [Int] = []) -> Self {
        .body(payload, .init(sizes: sizes, isChunked: true))
    }

    /// Returns body bytes in small pieces, `interval` seconds apart.
    public static func drip(
        _ payload: Payload, chunkSize: Int, interval: Double, isChunked: Bool = false
    ) -> Self {
        .body(payload, .init(sizes: [chunkSize], interval: interval, isChunked: isChunked))
    }
}
