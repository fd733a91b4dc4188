// The ports of transfers: what the agent asks of whoever moves the bytes, and what it is told.
// Values only. `CurlTransport` implements them over libcurl; the test kit with scripts.

import Foundation

/// One attempt at one transfer. A transfer that is tried again gets a new attempt number, so that the late
/// answer of an old attempt is recognised and dropped.
package struct AttemptID: Hashable, Sendable, CustomStringConvertible {
    package let transfer: Int64
    package let number: Int

    package init(transfer: Int64, number: Int) {
        self.transfer = transfer
        self.number = number
    }

    package var description: String { "\(transfer).\(number)" }
}

/// A header line. Order and doubles matter on the wire, so headers are a list and not a dictionary.
package struct HeaderField: Hashable, Sendable, Codable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A name and a password for a server.
package struct WireCredential: Sendable, Equatable {
    package var user: String
    package var password: String
    package var isDigest: Bool

    package init(user: String, password: String, isDigest: Bool) {
        self.user = user
        self.password = password
        self.isDigest = isDigest
    }
}

/// A version of TLS, as the least that is taken.
package enum LeastTLS: Int, Sendable {
    case v10 = 10
    case v11 = 11
    case v12 = 12
    case v13 = 13
}

/// What goes out on the wire for one attempt. Everything is decided: a transport adds no policy of its own.
package struct WireRequest: Sendable, Equatable {
    package var method: String
    package var url: String
    package var headers: [HeaderField]
    /// Seconds without a single byte in either direction after which the attempt fails with `.stalled`.
    package var idleTimeout: Double
    /// Bytes of the answer per second below which it counts as silence.
    package var leastRate: Int64 = 0
    /// A server that is slower might as well be silent: the rate of a modem of 300 baud.
    package static let leastUsefulRate: Int64 = 30
    /// Seconds to establish a connection.
    package var connectTimeout: Double
    /// Redirects followed, at most. 0: a redirect is an answer like any other.
    package var maximumRedirects: Int
    /// Bytes of body taken from the server, at most; `nil`: the sink alone decides.
    package var maximumBodyBytes: Int64?
    /// Bytes per second, both directions; `nil`: no limit.
    package var rateLimit: Int64?
    /// Requests with an equal value share the limit for what they send. `nil` if the limit is for this request alone.
    package var rateGroup: String?
    /// Hands compressed bytes on decoded, and asks for them if no header does; `maximumBodyBytes` counts the decoded ones.
    package var decodesContent = false
    /// Older TLS is refused; `nil`: what the system's library allows.
    package var leastTLS: LeastTLS?
    /// Path of a PEM file with the authorities that may vouch for the server. `nil` for the system's authorities.
    package var authorityFile: String?
    /// Sent when the server asks.
    package var credential: WireCredential?
    /// Who starts it signs it first, with the time of that moment.
    package var signing: S3Signing?

    package init(
        method: String, url: String, headers: [HeaderField] = [], idleTimeout: Double = 60,
        connectTimeout: Double = 30, maximumRedirects: Int = 10, maximumBodyBytes: Int64? = nil,
        rateLimit: Int64? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.idleTimeout = idleTimeout
        self.connectTimeout = connectTimeout
        self.maximumRedirects = maximumRedirects
        self.maximumBodyBytes = maximumBodyBytes
        self.rateLimit = rateLimit
    }
}

/// The codings of a body (RFC 9110, 8.4.1).
package enum ContentCoding {
    /// The codings that a transport decodes.
    package static let known: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]

    /// Returns whether the body of the response to a request with these headers is decoded.
    ///
    /// As on Apple's platforms, also if the request names the codings itself. A request that names unknown codings alone gets the bytes as
    /// they are sent, because its app decodes them.
    package static func isDecoded(inResponseTo headers: [HeaderField]) -> Bool {
        let fields = headers.filter { $0.name.lowercased() == "accept-encoding" }
        let named = fields.flatMap { $0.value.split(separator: ",") }.map { coding in
            coding.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        }
        return named.isEmpty || named.contains { $0 == "identity" || $0 == "*" || known.contains($0) }
    }
}

/// Why an attempt ended without a whole answer.
package enum WireFailure: Error, Sendable, Equatable, Codable {
    case couldNotResolveHost
    case couldNotConnect
    /// The proxy refused the connection to the server, with this status.
    case proxyRefused(Int)
    case timedOutConnecting
    case stalled
    /// The connection broke, or ended before the announced length (libcurl 18, 52, 55, 56, 92).
    case connectionLost
    case tlsUntrusted(String)
    /// The file of ``WireRequest/authorityFile`` is missing, or has no certificates. Nothing was sent.
    case authoritiesUnreadable(path: String)
    case tooManyRedirects
    case redirectToOtherScheme
    case bodyTooLarge
    case badAnswer(String)
    case unsupportedURL
    /// The sink refused (its own error is known to its owner) or the source could not be read.
    case stoppedByOwner
    case cancelled
    case other(code: Int32, message: String)
}

/// What a transport says of an attempt, in this order: any number of `progress` and `resumption`, then exactly one `ended`.
package enum TransportEvent: Sendable, Equatable {
    /// Body bytes moved by this attempt so far. At most a few a second.
    case progress(AttemptID, sent: Int64, received: Int64)
    /// A 104 came (Upload Resumption Supported), which says where an upload can be gone on with, or how far it is.
    case resumption(AttemptID, ResponseHead)
    case ended(AttemptID, WireEnd)
}

/// The end of an attempt. `head` is there when a whole header block arrived, also if the body then broke.
package struct WireEnd: Sendable, Equatable {
    package var head: ResponseHead?
    package var failure: WireFailure?
    package var bytesSent: Int64
    package var bytesReceived: Int64
    /// What the answer said, as far as whoever took it kept it.
    package var body = Data()
    /// How the response's body compares with the part of a snapshot that it was compared with; `nil` if nothing was compared.
    package var comparison: BodyComparison?
    /// The host answered with a redirect, which was followed. A failure after it is about another host.
    package var wasRedirected = false
    /// How the last request of it went; `nil`: the transport does not measure it.
    package var timing: WireTiming?

    package init(head: ResponseHead?, failure: WireFailure?, bytesSent: Int64, bytesReceived: Int64) {
        self.head = head
        self.failure = failure
        self.bytesSent = bytesSent
        self.bytesReceived = bytesReceived
    }
}

/// How one request went, in seconds since the attempt began. `nil`: it did not come to that, or it was not needed.
package struct WireTiming: Sendable, Equatable {
    package var nameResolved: Double?
    package var connected: Double?
    package var secured: Double?
    package var requestBegan: Double?
    package var answerBegan: Double?
    package var ended: Double
    /// As ALPN names it: "http/1.1", "h2".
    package var networkProtocol: String?
    package var isReusedConnection: Bool
    package var remoteAddress: String?
    package var remotePort: Int?
    package var localAddress: String?
    package var localPort: Int?

    package init(ended: Double, isReusedConnection: Bool) {
        (self.ended, self.isReusedConnection) = (ended, isReusedConnection)
    }
}

/// Where an upload's bytes come from. Called on the transport's own thread only.
package protocol BodySource: AnyObject, Sendable {
    /// Announced as Content-Length. Negative: nobody knows it; the body then ends with ``read(into:)``.
    var byteCount: Int64 { get }
    /// `false`: nothing can be read now. The transport asks again when it is told to go on.
    var isReady: Bool { get }
    /// Fills the buffer; 0 at the end, `nil` if the source cannot be read (the attempt then ends `.stoppedByOwner`).
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int?
    /// Back to the first byte (redirect or authentication sends the body again). `false`: not possible.
    func rewind() -> Bool
}

extension BodySource {
    package var isReady: Bool { true }
}

/// Where a download's bytes go. Called on the transport's own thread only.
package protocol BodySink: AnyObject, Sendable {
    /// It takes nothing now: the server is made to wait until the transport is told to go on.
    var isFull: Bool { get }
    /// The final head arrived, before any body byte. `false`: stop now, the attempt ends `.stoppedByOwner`.
    func receive(head: ResponseHead) -> Bool
    /// Body bytes, in order. `false`: stop now, the attempt ends `.stoppedByOwner`.
    func write(_ bytes: UnsafeRawBufferPointer) -> Bool
}

extension BodySink {
    package var isFull: Bool { false }
}

/// Moves bytes. Knows nothing of retries, resuming, files or ledgers.
package protocol Transport: Sendable {
    /// Starts an attempt. Events arrive at the handler the transport was made with, on the transport's thread.
    func start(_ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink)
    /// Ends an attempt; its `ended` event says `.cancelled` unless it had ended before.
    func cancel(_ attempt: AttemptID)
}
