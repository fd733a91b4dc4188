import Foundation
import FoundationNetworking
import TransferMachines

/// How a task went.
///
/// Differs from Apple: of a background task only the times of the whole and the number of its attempts are known, not those
/// of names, connections and handshakes: the agent made them, often several times.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {  // because nothing of it changes
    /// Where an answer came from.
    public enum ResourceFetchType: Int, Sendable {
        /// A ``URLProtocol`` gave it, or a background task's agent.
        case unknown = 0
        case networkLoad = 1
        /// Never seen.
        case serverPush = 2
        case localCache = 3
    }

    /// Whom a name was asked of. Differs from Apple: always ``unknown``.
    public enum DomainResolutionProtocol: Int, Sendable {
        case unknown = 0
        case udp = 1
        case tcp = 2
        case tls = 3
        case https = 4
    }

    /// From the task's making to its end.
    public let taskInterval: DateInterval
    /// Of a background task always 0: redirects are followed by the agent and not counted.
    public let redirectCount: Int
    /// One for each request of an ordinary task; of a background task one, of the request that brought the answer.
    public let transactionMetrics: [URLSessionTaskTransactionMetrics]
    /// Requests that were made; more than one after interruptions. Beyond Apple.
    public let attemptCount: Int

    init(taskInterval: DateInterval, attemptCount: Int, transactions: [URLSessionTaskTransactionMetrics], redirectCount: Int = 0)
    {
        self.taskInterval = taskInterval
        self.redirectCount = redirectCount
        self.attemptCount = attemptCount
        transactionMetrics = transactions
    }
}

/// One request and its answer.
///
/// Dates are `nil` where it did not come to that: of a connection that was used again those of its making, without TLS those of the handshake. Of a
/// background task all but ``fetchStartDate`` and ``responseEndDate`` are.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {  // because nothing of it changes
    /// The request as the app, a redirect or its handler made it.
    public let request: URLRequest
    /// What answered; `nil`: nobody did.
    public let response: URLResponse?
    /// When the attempt began.
    public let fetchStartDate: Date?
    /// When the name's address was asked for.
    public let domainLookupStartDate: Date?
    /// When the name's address was known.
    public let domainLookupEndDate: Date?
    /// When the connection was begun.
    public let connectStartDate: Date?
    /// When the TLS handshake began.
    public let secureConnectionStartDate: Date?
    /// When the TLS handshake was over.
    public let secureConnectionEndDate: Date?
    /// When the connection could be used: with TLS after the handshake.
    public let connectEndDate: Date?
    /// When the request began to go out.
    public let requestStartDate: Date?
    /// When the request was out. Differs from Apple: not measured; the moment of ``requestStartDate``.
    public let requestEndDate: Date?
    /// When the first byte of the answer came.
    public let responseStartDate: Date?
    /// When the last byte came, or the attempt ended.
    public let responseEndDate: Date?
    /// As ALPN names it: "http/1.1" or "h2".
    public let networkProtocolName: String?
    /// Differs from Apple: whether a proxy was used is not known; `false`.
    public let isProxyConnection = false
    /// An earlier request's connection was used again.
    public let isReusedConnection: Bool
    /// Where the answer came from.
    public let resourceFetchType: URLSessionTaskMetrics.ResourceFetchType
    /// The server's, as numbers.
    public let remoteAddress: String?
    /// The server's.
    public let remotePort: Int?
    /// This machine's, as numbers.
    public let localAddress: String?
    /// This machine's.
    public let localPort: Int?
    /// Bytes of the answer's head. Differs from Apple: not measured; 0.
    public let countOfResponseHeaderBytesReceived: Int64 = 0
    /// Over all attempts.
    public let countOfResponseBodyBytesReceived: Int64
    /// Differs from Apple: the same as ``countOfResponseBodyBytesReceived``.
    public var countOfResponseBodyBytesAfterDecoding: Int64 { countOfResponseBodyBytesReceived }
    /// Bytes of the request's head. Differs from Apple: not measured; 0.
    public let countOfRequestHeaderBytesSent: Int64 = 0
    /// Over all attempts.
    public let countOfRequestBodyBytesSent: Int64
    /// Differs from Apple: the same as ``countOfRequestBodyBytesSent``.
    public var countOfRequestBodyBytesBeforeEncoding: Int64 { countOfRequestBodyBytesSent }
    /// Differs from Apple: not known; `false`.
    public let isCellular = false
    /// Differs from Apple: not known; `false`.
    public let isExpensive = false
    /// Differs from Apple: not known; `false`.
    public let isConstrained = false
    /// No connection here takes several paths.
    public let isMultipath = false
    /// Differs from Apple: always `.unknown`.
    public let domainResolutionProtocol = URLSessionTaskMetrics.DomainResolutionProtocol.unknown

    /// Differs from Apple: not known; `nil`. It is TLS 1.2 or newer.
    public let negotiatedTLSProtocolVersion: tls_protocol_version_t? = nil
    /// Differs from Apple: not known; `nil`.
    public let negotiatedTLSCipherSuite: tls_ciphersuite_t? = nil

    init(
        request: URLRequest, response: URLResponse?, fetchStartDate: Date?, responseEndDate: Date?, received: Int64, sent: Int64,
        type: URLSessionTaskMetrics.ResourceFetchType = .unknown, timing: WireTiming? = nil
    ) {
        func date(_ seconds: Double?) -> Date? {
            guard let fetchStartDate, let seconds else { return nil }
            return fetchStartDate.addingTimeInterval(seconds)
        }
        self.request = request
        self.response = response
        self.fetchStartDate = fetchStartDate
        domainLookupStartDate = timing?.nameResolved == nil ? nil : fetchStartDate
        domainLookupEndDate = date(timing?.nameResolved)
        connectStartDate = timing?.connected == nil ? nil : date(timing?.nameResolved) ?? fetchStartDate
        secureConnectionStartDate = timing?.secured == nil ? nil : date(timing?.connected)
        secureConnectionEndDate = date(timing?.secured)
        connectEndDate = date(timing?.secured ?? timing?.connected)
        requestStartDate = date(timing?.requestBegan)
        requestEndDate = date(timing?.requestBegan)
        responseStartDate = date(timing?.answerBegan)
        self.responseEndDate = date(timing?.ended) ?? responseEndDate
        networkProtocolName = timing?.networkProtocol
        isReusedConnection = timing?.isReusedConnection ?? false
        resourceFetchType = type
        (remoteAddress, remotePort) = (timing?.remoteAddress, timing?.remotePort)
        (localAddress, localPort) = (timing?.localAddress, timing?.localPort)
        countOfResponseBodyBytesReceived = received
        countOfRequestBodyBytesSent = sent
    }
}

/// A cipher suite of TLS, with the number that it has on the wire.
public enum tls_ciphersuite_t: UInt16, Sendable {
    case RSA_WITH_3DES_EDE_CBC_SHA = 0x000A
    case RSA_WITH_AES_128_CBC_SHA = 0x002F
    case RSA_WITH_AES_256_CBC_SHA = 0x0035
    case RSA_WITH_AES_128_GCM_SHA256 = 0x009C
    case RSA_WITH_AES_256_GCM_SHA384 = 0x009D
    case RSA_WITH_AES_128_CBC_SHA256 = 0x003C
    case RSA_WITH_AES_256_CBC_SHA256 = 0x003D
    case ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = 0xC008
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA = 0xC009
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA = 0xC00A
    case ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = 0xC012
    case ECDHE_RSA_WITH_AES_128_CBC_SHA = 0xC013
    case ECDHE_RSA_WITH_AES_256_CBC_SHA = 0xC014
    case ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = 0xC023
    case ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = 0xC024
    case ECDHE_RSA_WITH_AES_128_CBC_SHA256 = 0xC027
    case ECDHE_RSA_WITH_AES_256_CBC_SHA384 = 0xC028
    case ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xC02B
    case ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xC02C
    case ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xC02F
    case ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xC030
    case ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA8
    case ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA9
    case AES_128_GCM_SHA256 = 0x1301
    case AES_256_GCM_SHA384 = 0x1302
    case CHACHA20_POLY1305_SHA256 = 0x1303
}
