/// What the server does with one request, step by step. Steps write raw bytes: framing is whatever the script
/// says it is, right or wrong.
public struct ResponseScript: Sendable, Equatable, Codable, ExpressibleByArrayLiteral {
    /// When the script begins, relative to the request's body.
    public enum Beginning: Sendable, Equatable, Codable {
        /// As soon as the request's head is there; a body is drained meanwhile.
        case atHead
        /// When this many bytes of the request's body arrived; at its end if it is shorter.
        case afterBodyBytes(Int)
        /// When the request is complete.
        case afterBody
    }

    /// What happens to the connection after the last step.
    public enum Ending: Sendable, Equatable, Codable {
        /// Kept for the next request if the answer was framed correctly and nobody asked to close.
        case automatic
        case keepOpen
        case close
    }

    /// One thing done on the wire.
    public enum Step: Sendable, Equatable, Codable {
        /// The status line.
        case status(Int, String? = nil)
        /// Header lines. May be repeated; the empty line follows by itself before the first body byte.
        case headers(HeaderList)
        /// An interim answer (100, 103), complete.
        case interim(Int, HeaderList = [:])
        /// Body bytes, all at once unless `Delivery` says otherwise. Skipped for HEAD.
        case body(Payload, Delivery = .atOnce)
        /// The last chunk of a chunked body, with trailers. Left out: a truncated answer.
        case chunkEnd(trailers: HeaderList = [:])
        /// Looks at the request and becomes a whole answer (200, 206, 304, 412, 416).
        case resource(ServedFile)
        /// Bytes as they are; the script answers for the framing.
        case raw(Payload)
        /// Waits this many seconds.
        case delay(Double)
        /// Waits until a gate is open (`FaultyServer.openGate`).
        case hold(until: String)
        /// Reads no more of the request: the client's sending stalls once the socket buffers are full. From then on
        /// TCP cannot tell us that the client left (its end lies behind the unread bytes): such a request stays `.open`
        /// until the server ends the connection.
        case stopReading
        /// Does nothing more until the connection ends.
        case stall
        /// Closes the connection. Bytes written before are delivered, unless the client was still sending: then
        /// the kernel answers its bytes with a reset, which may overtake them.
        case cut
        /// Closes with a TCP reset. Bytes written before may be lost; hold a gate first if they must arrive.
        case reset
    }

    /// How body bytes leave.
    public struct Delivery: Sendable, Equatable, Codable {
        /// Sizes of the pieces, each its own write; the last one repeats. Empty: large pieces.
        public var sizes: [Int]
        /// Seconds between two pieces.
        public var interval: Double
        /// Each piece is a chunk of the chunked coding.
        public var isChunked: Bool

        /// As fast as the client reads.
        public static let atOnce = Delivery(sizes: [], interval: 0, isChunked: false)

        /// A delivery from its parts.
        public init(sizes: [Int], interval: Double = 0, isChunked: Bool = false) {
            self.sizes = sizes
            self.interval = interval
            self.isChunked = isChunked
        }

        /// The size of the piece with this number. 64 KiB: the memory one connection costs.
        package func size(ofPiece number: Int) -> Int {
            guard let last = sizes.last else { return 65_536 }
            return max(1, number < sizes.count ? sizes[number] : last)
        }
    }

    /// The steps, in order.
    public var steps: [Step]
    /// When to begin.
    public var beginning: Beginning = .afterBody
    /// What follows the last step.
    public var ending: Ending = .automatic
    /// Whether `Expect: 100-continue` is granted before the body. Never for a script that begins at the head.
    public var grantsContinue = true

    /// A script from its steps.
    public init(_ steps: [Step], beginning: Beginning = .afterBody, ending: Ending = .automatic) {
        self.steps = steps
        self.beginning = beginning
        self.ending = ending
    }

    /// A script written as a list of steps.
    public init(arrayLiteral elements: Step...) { self.init(elements) }

    /// The same script, begun at another moment.
    public func begins(_ beginning: Beginning) -> ResponseScript {
        var copy = self
        copy.beginning = beginning
        return copy
    }

    /// The same script with another ending.
    public func ends(_ ending: Ending) -> ResponseScript {
        var copy = self
        copy.ending = ending
        return copy
    }

    /// The same script with steps put before it, such as a `.delay` or a `.hold`.
    public func after(_ earlier: Step...) -> ResponseScript {
        var copy = self
        copy.steps = earlier + steps
        return copy
    }
}

extension ResponseScript.Step {
    /// Body bytes as chunks of these sizes (the last repeats), without the last chunk: add `.chunkEnd()`.
    public static func chunked(_ payload: Payload, sizes: [Int] = []) -> Self {
        .body(payload, .init(sizes: sizes, isChunked: true))
    }

    /// Body bytes in small pieces, `interval` seconds apart.
    public static func drip(
        _ payload: Payload, chunkSize: Int, interval: Double, isChunked: Bool = false
    ) -> Self {
        .body(payload, .init(sizes: [chunkSize], interval: interval, isChunked: isChunked))
    }
}
