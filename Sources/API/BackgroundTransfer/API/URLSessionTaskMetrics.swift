import Foundation
import FoundationNetworking
import TransferMachines

/// The metrics of a task.
///
/// Differs from Apple: for a background task, only the times of the complete transfer and the number of attempts are known. The
/// times of name lookups, connections and handshakes are not known, because the agent made the requests, often several requests
/// for one transfer.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The source of a response.
    public enum ResourceFetchType: Int, Sendable {
        /// The response came from a ``URLProtocol``, or belongs to a background task.
        case unknown = 0
        case networkLoad = 1
        /// The server pushed the response. This module never uses this value.
        case serverPush = 2
        case localCache = 3
    }

    /// The protocol of a name lookup. Differs from Apple: the value is always ``unknown``.
    public enum DomainResolutionProtocol: Int, Sendable {
        case unknown = 0
        case udp = 1
        case tcp = 2
        case tls = 3
        case https = 4
    }

    /// The time from the creation of the task to its end.
    public let taskInterval: DateInterval
    /// The number of redirects. For a background task the number is always 0, because the agent does not count the redirects that
    /// it follows.
    public let redirectCount: Int
    /// The metrics of each request of an ordinary task. For a background task, the array contains only the metrics of the request
    /// that received the response.
    public let transactionMetrics: [URLSessionTaskTransactionMetrics]
    /// The number of requests that were sent. The number is greater than one if attempts were interrupted. Apple's API has no
    /// equivalent.
    public let attemptCount: Int

    init(taskInterval: DateInterval, attemptCount: Int, transactions: [URLSessionTaskTransactionMetrics], redirectCount: Int = 0)
    {
        self.taskInterval = taskInterval
        self.redirectCount = redirectCount
        self.attemptCount = attemptCount
        transactionMetrics = transactions
    }
}

/// The metrics of one request and its response.
///
/// A date is `nil` if the step was not necessary. The dates of the connection are `nil` if the request used an existing
/// connection. The dates of the handshake are `nil` if the connection has no TLS. For a background task all dates except
/// ``fetchStartDate`` and ``responseEndDate`` are `nil`.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The request that was sent: the app's request, or the request after a redirect.
    public let request: URLRequest
    /// The response, or `nil` if no response arrived.
    public let response: URLResponse?
    /// The date at which the attempt began.
    public let fetchStartDate: Date?
    /// The date at which the lookup of the host name began.
    public let domainLookupStartDate: Date?
    /// The date at which the lookup of the host name ended.
    public let domainLookupEndDate: Date?
    /// The date at which the client began to open the connection.
    public let connectStartDate: Date?
    /// The date at which the TLS handshake began.
    public let secureConnectionStartDate: Date?
    /// The date at which the TLS handshake ended.
    public let secureConnectionEndDate: Date?
    /// The date at which the connection was ready for the request. If the connection uses TLS, the connection is ready after the
    /// handshake.
    public let connectEndDate: Date?
    /// The date at which the first byte of the request was sent.
    public let requestStartDate: Date?
    /// The date at which the last byte of the request was sent. Differs from Apple: this date is not measured, and the value is
    /// equal to ``requestStartDate``.
    public let requestEndDate: Date?
    /// The date at which the first byte of the response arrived.
    public let responseStartDate: Date?
    /// The date at which the last byte of the response arrived, or at which the attempt ended.
    public let responseEndDate: Date?
    /// The ALPN name of the protocol: "http/1.1" or "h2".
    public let networkProtocolName: String?
    /// A Boolean value that indicates whether the connection used a proxy. Differs from Apple: the value is always `false`,
    /// because it is not measured.
    public let isProxyConnection = false
    /// A Boolean value that indicates whether the request used the connection of an earlier request.
    public let isReusedConnection: Bool
    /// The source of the response.
    public let resourceFetchType: URLSessionTaskMetrics.ResourceFetchType
    /// The server's IP address.
    public let remoteAddress: String?
    /// The server's port.
    public let remotePort: Int?
    /// The IP address of this machine.
    public let localAddress: String?
    /// The port of the connection on this machine.
    public let localPort: Int?
    /// The number of bytes of the response headers. Differs from Apple: the number is not measured and is always 0.
    public let countOfResponseHeaderBytesReceived: Int64 = 0
    /// The number of body bytes that were received in all attempts.
    public let countOfResponseBodyBytesReceived: Int64
    /// The number of body bytes after decoding. Differs from Apple: the value is equal to ``countOfResponseBodyBytesReceived``.
    public var countOfResponseBodyBytesAfterDecoding: Int64 { countOfResponseBodyBytesReceived }
    /// The number of bytes of the request headers. Differs from Apple: the number is not measured and is always 0.
    public let countOfRequestHeaderBytesSent: Int64 = 0
    /// The number of body bytes that were sent in all attempts.
    public let countOfRequestBodyBytesSent: Int64
    /// The number of body bytes before encoding. Differs from Apple: the value is equal to ``countOfRequestBodyBytesSent``.
    public var countOfRequestBodyBytesBeforeEncoding: Int64 { countOfRequestBodyBytesSent }
    /// A Boolean value that indicates whether the connection used a mobile-phone network. Differs from Apple: the value is always
    /// `false`, because it is not measured.
    public let isCellular = false
    /// A Boolean value that indicates whether the connection used a network that costs money per byte. Differs from Apple: the
    /// value is always `false`, because it is not measured.
    public let isExpensive = false
    /// A Boolean value that indicates whether the connection used a metered network. Differs from Apple: the value is always
    /// `false`, because it is not measured.
    public let isConstrained = false
    /// A Boolean value that indicates whether the connection used several networks. The value is always `false`, because a
    /// connection uses only one network on Linux.
    public let isMultipath = false
    /// The protocol of the name lookup. Differs from Apple: the value is always `.unknown`.
    public let domainResolutionProtocol = URLSessionTaskMetrics.DomainResolutionProtocol.unknown

    /// The version of TLS. Differs from Apple: the value is always `nil`, because the version is not measured. Connections use
    /// TLS 1.2 or newer.
    public let negotiatedTLSProtocolVersion: tls_protocol_version_t? = nil
    /// The cipher suite of TLS. Differs from Apple: the value is always `nil`, because the suite is not measured.
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

/// A cipher suite of TLS. The raw value is the suite's number in the protocol.
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
