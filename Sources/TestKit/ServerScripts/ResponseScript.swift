/// The server's handling of one request, step by step. Steps write raw bytes, so the script alone determines whether the framing
/// is correct.
public struct ResponseScript: Sendable, Equatable, Codable, ExpressibleByArrayLiteral {
    /// When the script begins, relative to the request's body.
    public enum Beginning: Sendable, Equatable, Codable {
        /// The script begins when the request's headers have arrived. The request's body is read and dropped in parallel.
        case atHead
        /// The script begins when this number of bytes of the request's body has arrived. If the body is shorter, the script
        /// begins at the end of the body.
        case afterBodyBytes(Int)
        /// The script begins when the request is complete.
        case afterBody
    }

    /// The state of the connection after the last step.
    public enum Ending: Sendable, Equatable, Codable {
        /// The connection is kept for the next request if the response was framed correctly. The connection is closed if the
        /// client or the server asked for this.
        case automatic
        case keepOpen
        case close
    }

    /// A single action on the wire.
    public enum Step: Sendable, Equatable, Codable {
        /// The status line.
        case status(Int, String? = nil)
        /// Header lines. The step may be repeated. The empty line after the headers is added before the first body byte.
        case headers(HeaderList)
        /// A complete interim response (100, 103).
        case interim(Int, HeaderList = [:])
        /// Body bytes. The bytes are sent without pauses unless `Delivery` specifies a pace. In a response to HEAD, this step is
        /// skipped.
        case body(Payload, Delivery = .atOnce)
        /// The last chunk of a chunked body, with trailers. Without this step the response is truncated.
        case chunkEnd(trailers: HeaderList = [:])
        /// A file. The file and the request determine the complete response (200, 206, 304, 412, 416).
        case resource(ServedFile)
        /// Bytes that are sent unchanged. The script must write the correct framing itself.
        case raw(Payload)
        /// Waits this many seconds.
        case delay(Double)
        /// Waits until a gate is open (`FaultyServer.openGate`).
        case hold(until: String)
        /// Stops reading the request, so that the client cannot send more when the socket buffers are full. After this step, TCP
        /// cannot report that the client closed the connection, because the report follows the unread bytes. The request stays
        /// `.open` until the server ends the connection.
        case stopReading
        /// Does nothing until the connection ends.
        case stall
        /// Closes the connection. Bytes that were written before usually reach the client. If the client is still sending, the
        /// kernel responds with a reset, which may overtake the written bytes.
        case cut
        /// Closes the connection with a TCP reset. Bytes that were written before may be lost. If these bytes must arrive, use a
        /// gate before this step.
        case reset
    }

    /// The sizes of the pieces in which a body is sent, and the pauses between the pieces.
    public struct Delivery: Sendable, Equatable, Codable {
        /// The sizes of the pieces. Each piece is a separate write. The last size repeats. If the list is empty, the pieces are
        /// large.
        public var sizes: [Int]
        /// Seconds between two pieces.
        public var interval: Double
        /// `true` if each piece is sent as a chunk of the chunked transfer coding.
        public var isChunked: Bool

        /// A delivery as fast as the client reads.
        public static let atOnce = Delivery(sizes: [], interval: 0, isChunked: false)

        /// Creates a delivery.
        public init(sizes: [Int], interval: Double = 0, isChunked: Bool = false) {
            self.sizes = sizes
            self.interval = interval
            self.isChunked = isChunked
        }

        /// Returns the size of the part of the body with this number. The default is 64 KiB, because the server keeps one such
        /// part in memory for each connection.
        package func size(ofPiece number: Int) -> Int {
            guard let last = sizes.last else { return 65_536 }
            return max(1, number < sizes.count ? sizes[number] : last)
        }
    }

    /// The steps, in order.
    public var steps: [Step]
    /// The time when the script begins.
    public var beginning: Beginning = .afterBody
    /// The state of the connection after the last step.
    public var ending: Ending = .automatic
    /// `true` if the server sends status 100 before the body when the request contains `Expect: 100-continue`. A script that
    /// begins at the headers never sends status 100.
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
    /// Returns a step that sends body bytes as chunks of these sizes. The last size repeats. The last chunk is missing: add
    /// `.chunkEnd()`.
    public static func chunked(_ payload: Payload, sizes: [Int] = []) -> Self {
        .body(payload, .init(sizes: sizes, isChunked: true))
    }

    /// Returns a step that sends body bytes in small pieces, `interval` seconds apart.
    public static func drip(
        _ payload: Payload, chunkSize: Int, interval: Double, isChunked: Bool = false
    ) -> Self {
        .body(payload, .init(sizes: [chunkSize], interval: interval, isChunked: isChunked))
    }
}
