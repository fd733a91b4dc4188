// This file declares the ports of transfers: the agent's requests to a transport, and the transport's events. `CurlTransport`
// implements these ports with libcurl. The test kit implements these ports with scripts.

import Foundation

/// The identifier of one attempt of a transfer. Each attempt has a new number. So the agent recognizes and ignores a late
/// response of an old attempt.
package struct AttemptID: Hashable, Sendable, CustomStringConvertible {
    package let transfer: Int64
    package let number: Int

    package init(transfer: Int64, number: Int) {
        self.transfer = transfer
        self.number = number
    }

    package var description: String { "\(transfer).\(number)" }
}

/// A header of a request or a response. Headers are a list and not a dictionary, because their order and duplicates must be kept.
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

/// The minimum version of TLS.
package enum LeastTLS: Int, Sendable {
    case v10 = 10
    case v11 = 11
    case v12 = 12
    case v13 = 13
}

/// The request for one attempt. The request contains all decisions, so a transport does not decide.
package struct WireRequest: Sendable, Equatable {
    package var method: String
    package var url: String
    package var headers: [HeaderField]
    /// The number of seconds without a sent or received byte after which the attempt fails with `.stalled`.
    package var idleTimeout: Double
    /// The minimum rate of the response in bytes per second. If the rate is lower, the attempt counts as stalled.
    package var leastRate: Int64 = 0
    /// The minimum useful rate in bytes per second. A modem with 300 baud has this rate.
    package static let leastUsefulRate: Int64 = 30
    /// The maximum number of seconds that it may take to establish a connection.
    package var connectTimeout: Double
    /// The maximum number of redirects that the transport follows. If the value is 0, a redirect is returned as the response.
    package var maximumRedirects: Int
    /// The maximum number of body bytes that the transport accepts from the server. `nil` if only the sink limits the number.
    package var maximumBodyBytes: Int64?
    /// The limit in bytes per second for each direction. `nil` if no limit applies.
    package var rateLimit: Int64?
    /// The group of requests that share the limit for sent bytes. `nil` if the limit applies only to this request.
    package var rateGroup: String?
    /// `true` if a compressed response is decoded. If no header of the request asks for compression, the transport adds such a
    /// header. `maximumBodyBytes` applies to the decoded bytes.
    package var decodesContent = false
    /// The minimum version of TLS. `nil` if the minimum of the system's library applies.
    package var leastTLS: LeastTLS?
    /// The path of a PEM file with the authorities that can certify the server. `nil` if the system's authorities apply.
    package var authorityFile: String?
    /// The lines that files must contain when the request is sent.
    package var requiredLines: [RequiredLine] = []
    /// The credential that the transport sends if the server requires a credential.
    package var credential: WireCredential?
    /// `true` if the request does not change the server.
    var onlyReads: Bool {
        ["HEAD", "GET", "PROPFIND"].contains(method) || method == "POST" && url.hasSuffix(ImmichRecord.path)
    }
    /// The values for a signature. The signature is created at the start of the attempt, because the signature contains the time.
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

/// The content codings of a body (RFC 9110, 8.4.1).
package enum ContentCoding {
    /// The codings that a transport decodes.
    package static let known: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]

    /// Returns whether the body of the response to a request with these headers is decoded.
    ///
    /// As on Apple's platforms, a body is also decoded if the app set the `Accept-Encoding` header. If this header contains only
    /// unknown codings, the app decodes the bytes.
    package static func isDecoded(inResponseTo headers: [HeaderField]) -> Bool {
        let fields = headers.filter { $0.name.lowercased() == "accept-encoding" }
        let named = fields.flatMap { $0.value.split(separator: ",") }.map { coding in
            coding.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
        }
        return named.isEmpty || named.contains { $0 == "identity" || $0 == "*" || known.contains($0) }
    }
}

/// The reason why an attempt ended without a complete response.
package enum WireFailure: Error, Sendable, Equatable, Codable {
    case couldNotResolveHost
    case couldNotConnect
    /// The proxy refused the connection to the server, with this status.
    case proxyRefused(Int)
    case timedOutConnecting
    case stalled
    /// The connection was lost, or it ended before all announced bytes arrived (libcurl 18, 52, 55, 56, 92).
    case connectionLost
    case tlsUntrusted(String)
    /// The file at ``WireRequest/authorityFile`` is missing, or contains no certificates. No request was sent.
    case authoritiesUnreadable(path: String)
    /// The file of ``WireRequest/requiredLines`` does not contain the line. With a reason, the file cannot be read. No request was
    /// sent.
    case requiredLineMissing(RequiredLine, reason: String?)
    case tooManyRedirects
    case redirectToOtherScheme
    case bodyTooLarge
    case badAnswer(String)
    case unsupportedURL
    /// The sink stopped the attempt, or the source could not be read. If the sink stopped the attempt, the owner of the sink has
    /// the error.
    case stoppedByOwner
    case cancelled
    case other(code: Int32, message: String)
}

/// An event of an attempt. Each attempt reports any number of `progress` and `resumption` events, followed by exactly one `ended`
/// event.
package enum TransportEvent: Sendable, Equatable {
    /// The numbers of body bytes that this attempt has sent and received. This event is reported at most a few times per second.
    case progress(AttemptID, sent: Int64, received: Int64)
    /// A 104 response (Upload Resumption Supported) arrived. The response contains the address or the offset of a resumable
    /// upload.
    case resumption(AttemptID, ResponseHead)
    case ended(AttemptID, WireEnd)
}

/// The end of an attempt. If all response headers arrived, `head` contains the headers, even if the body is incomplete.
package struct WireEnd: Sendable, Equatable {
    package var head: ResponseHead?
    package var failure: WireFailure?
    package var bytesSent: Int64
    package var bytesReceived: Int64
    /// The body of the response, if the sink stored the body in memory.
    package var body = Data()
    /// The result of a comparison between the response's body and a part of a snapshot. `nil` if nothing was compared.
    package var comparison: BodyComparison?
    /// `true` if the transport followed a redirect. A failure may then concern another host.
    package var wasRedirected = false
    /// The timing of the last request. `nil` if the transport does not measure the timing.
    package var timing: WireTiming?

    package init(head: ResponseHead?, failure: WireFailure?, bytesSent: Int64, bytesReceived: Int64) {
        self.head = head
        self.failure = failure
        self.bytesSent = bytesSent
        self.bytesReceived = bytesReceived
    }
}

/// The timing of one request, in seconds since the beginning of the attempt. A value is `nil` if the step did not occur.
package struct WireTiming: Sendable, Equatable {
    package var nameResolved: Double?
    package var connected: Double?
    package var secured: Double?
    package var requestBegan: Double?
    package var answerBegan: Double?
    package var ended: Double
    /// The name of the protocol, as ALPN defines it, for example "http/1.1" or "h2".
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

/// The source of an upload's bytes. The source is called only on the transport's thread.
package protocol BodySource: AnyObject, Sendable {
    /// The number of bytes, which is sent as `Content-Length`. The value is negative if the number is unknown. The body then ends
    /// when ``read(into:)`` returns 0.
    var byteCount: Int64 { get }
    /// `false` if no bytes can be read now. The transport reads again after it is resumed.
    var isReady: Bool { get }
    /// Fills the buffer with bytes of the body. Returns the number of bytes, or 0 at the end. Returns `nil` if the source cannot
    /// be read. The attempt then ends with `.stoppedByOwner`.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int?
    /// Moves back to the first byte, because the body is sent again after a redirect or an authentication. Returns `false` if
    /// this is not possible.
    func rewind() -> Bool
}

extension BodySource {
    package var isReady: Bool { true }
}

/// The destination of a download's bytes. The destination is called only on the transport's thread.
package protocol BodySink: AnyObject, Sendable {
    /// `true` if the sink cannot accept bytes now. The server has to wait until the sink can accept bytes.
    var isFull: Bool { get }
    /// Receives the final response headers, before any body byte. If the result is `false`, the attempt ends with
    /// `.stoppedByOwner`.
    func receive(head: ResponseHead) -> Bool
    /// Receives body bytes, in their order. If the result is `false`, the attempt ends with `.stoppedByOwner`.
    func write(_ bytes: UnsafeRawBufferPointer) -> Bool
}

extension BodySink {
    package var isFull: Bool { false }
}

/// A port that sends requests and receives responses. A transport does not handle retries, resuming, files or ledgers.
package protocol Transport: Sendable {
    /// Starts an attempt. Events arrive at the transport's handler, on the transport's thread.
    func start(_ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink)
    /// Cancels an attempt. The `ended` event of the attempt contains `.cancelled`, unless the attempt ended before the call.
    func cancel(_ attempt: AttemptID)
}
