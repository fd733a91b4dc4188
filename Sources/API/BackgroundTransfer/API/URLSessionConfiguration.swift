@_exported import Foundation
@_exported import FoundationNetworking
import TransferMachines

/// The properties of a session. A new session copies its configuration, so later changes to the configuration have no effect.
///
/// Differs from Apple: the session uses the proxies of the environment (`https_proxy`, `no_proxy`) and the system's certificates.
/// Background sessions have no cookies, caches or stored credentials, because another process sends their requests.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {  // because sessions copy it before they share it
    /// The identifier of a background session. `nil` for ordinary sessions.
    public private(set) var identifier: String?
    /// A Boolean value that indicates whether the app is launched when transfers of the session have ended. Background sessions
    /// only. If `false`, the ends are stored until the app creates the session again.
    open var sessionSendsLaunchEvents = true
    /// A Boolean value that indicates whether the transfers run only with external power and over a network that is not metered.
    /// Background sessions only.
    ///
    /// Differs from Apple: a transfer that begins in the background is not automatically discretionary.
    open var isDiscretionary = false
    /// The number of seconds without a byte after which an attempt fails. A background session then tries again. If a request's
    /// `timeoutInterval` is not the default 60, the request's value is used. A value above a week has the effect of a week.
    ///
    /// Differs from Apple: zero, a negative value and NaN have the effect of the default value.
    open var timeoutIntervalForRequest: TimeInterval = 60
    /// The number of seconds without progress after which a transfer fails and is not retried.
    ///
    /// Differs from Apple: the time is counted from the last new byte, not from the start. Zero, a negative value and NaN have the
    /// effect of the default value.
    open var timeoutIntervalForResource: TimeInterval = 7 * 86_400
    /// Additional headers for every request. A header that the request already has is not changed.
    open var httpAdditionalHeaders: [AnyHashable: Any]?
    /// A Boolean value that indicates whether transfers are allowed to use a mobile-phone network.
    open var allowsCellularAccess = true
    /// A Boolean value that indicates whether transfers are allowed to use a network that costs money per byte. The value has an
    /// effect only if the desktop reports these costs.
    open var allowsExpensiveNetworkAccess = true
    /// A Boolean value that indicates whether transfers are allowed to use a network that the user marked as metered
    /// (NetworkManager's `connection.metered`).
    open var allowsConstrainedNetworkAccess = true
    /// A Boolean value that indicates whether tasks wait for a network. Background sessions always wait.
    open var waitsForConnectivity = false
    /// The maximum number of simultaneous connections of this session's transfers to one host.
    open var httpMaximumConnectionsPerHost = 6
    /// The service type of the traffic. Stored, without effect.
    open var networkServiceType: URLRequest.NetworkServiceType = .default
    /// The rule for the use of cached responses. The rule applies to requests without a cache policy. Ordinary sessions only.
    open var requestCachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy
    /// The cache for responses to data tasks with GET, if their servers permit storage (RFC 9111). The default value is
    /// `URLCache.shared`, for ``ephemeral`` a cache in memory, and for background sessions `nil`, because they use no cache.
    ///
    /// Differs from Apple: if the app sets the `Authorization` header of a request, the response is not stored.
    open var urlCache: URLCache? {
        get { cache.store }
        set { cache.store = newValue }
    }
    /// The store of credentials. The stored credential for a server is proposed to the delegate. If the delegate chooses no
    /// credential, the stored credential is tried once. A credential that the delegate returns with a persistence is stored here.
    /// The default value is `URLCredentialStorage.shared`, and a private store for ``ephemeral``. Ordinary sessions only.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { credentials.store }
        set { credentials.store = newValue }
    }
    /// The store of cookies. The default value is `HTTPCookieStorage.shared`, and a private store for ``ephemeral``. If `nil`,
    /// cookies are neither sent nor stored. Ordinary sessions only: a request of a background session has only the `Cookie` header
    /// that the app sets.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { cookies.store }
        set { cookies.store = newValue }
    }
    /// The policy for cookies that responses set.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    /// A Boolean value that indicates whether cookies of the store are added to the cookies in the headers of a request.
    open var httpShouldSetCookies = true
    /// A Boolean value that indicates whether requests use HTTP pipelining. Stored, without effect, because no current server
    /// benefits from pipelining.
    open var httpShouldUsePipelining = false
    /// The identifier of a shared container. Stored, without effect, because an app and its extensions share no container on Linux.
    open var sharedContainerIdentifier: String?
    /// A Boolean value that indicates whether idle connections stay open for longer. Stored, without effect, because the agent's
    /// connections do not depend on the app.
    open var shouldUseExtendedBackgroundIdleMode = false
    /// The subclasses of ``URLProtocol`` that can respond to a request instead of the network. The classes are tried in this order.
    /// The task fails with `URLError.unsupportedURL` if a class is not a subclass of ``URLProtocol``, or accepts a request of a
    /// background session. The default value is empty and not `nil`, because code from iOS calls `insert` with `?`.
    open var protocolClasses: [AnyClass]? = []
    /// The oldest accepted version of TLS. The system's TLS library may refuse this version. On Debian the library refuses versions
    /// before TLS 1.2.
    ///
    /// Differs from Apple: if a background session requires more than TLS 1.2, every task fails with `URLError.unsupportedURL`.
    open var tlsMinimumSupportedProtocolVersion = tls_protocol_version_t.TLSv12
    /// The newest accepted version of TLS. Stored, without effect, because the newest version that both sides support is used.
    open var tlsMaximumSupportedProtocolVersion = tls_protocol_version_t.TLSv13
    /// A Boolean value that indicates whether a request can be sent with the TLS handshake. Stored, without effect, because an
    /// attacker could send such a request again.
    open var enablesEarlyData = false
    /// A Boolean value that indicates whether transfers are allowed to use a network of very little capacity, such as a satellite
    /// link. Stored, without effect, because no Linux desktop reports this property of a network.
    open var allowsUltraConstrainedNetworkAccess = false
    /// A Boolean value that indicates whether the classic loading mode is used. Stored, without effect, because only one mode
    /// exists.
    open var usesClassicLoadingMode = true
    /// The use of several networks at once. Stored, without effect.
    open var multipathServiceType: MultipathServiceType = .none
    /// A Boolean value that indicates whether host names are resolved with DNSSEC validation. Stored, without effect, because the
    /// system's resolver decides.
    open var requiresDNSSECValidation = false

    /// The ways in which a connection can use several networks at once.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }
    /// The proxies of the session. If `nil`, or if no proxy is enabled, the proxies of the environment (`https_proxy`, `no_proxy`)
    /// are used.
    ///
    /// Differs from Apple: if a proxy is enabled, each task fails with `URLError.unsupportedURL`, because the task's requests would
    /// not use this proxy.
    open var connectionProxyDictionary: [AnyHashable: Any]?

    /// The seconds of ``timeoutIntervalForResource``, limited to a value that can be stored and compared.
    var resourcePatience: Double {
        Self.seconds(timeoutIntervalForResource, default: 7 * 86_400, atMost: Self.longestPatience)
    }
    /// A century, in seconds.
    private static let longestPatience = 100 * 365.25 * 86_400

    /// Returns the default for a value that is not a number of seconds.
    static func seconds(_ value: Double, default standard: Double, atMost longest: Double) -> Double {
        value > 0 ? min(value, longest) : standard
    }

    /// `true` if the app enabled a proxy, with a key that ends in "Enable" (`HTTPSEnable`, `SOCKSEnable`, `ProxyAutoConfigEnable`).
    var asksForProxy: Bool {
        (connectionProxyDictionary ?? [:]).contains { key, value in
            "\(key)".hasSuffix("Enable") && !["0", "false", "NO"].contains("\(value)")
        }
    }
    /// The maximum number of bytes of a response body. If a body is longer, the task fails. Beyond Apple.
    open var maximumBodyBytes: Int64?
    /// The maximum number of bytes per second of each transfer. Uploads with a ``URLSessionUploadTask/delivery`` to the same
    /// address share this limit. Beyond Apple.
    open var maximumBytesPerSecond: Int64?
    /// `true` if a compressed response is stored as it is sent, without decoding.
    var keepsCoding = false
    /// See ``WireRequest/authorityFile``.
    var authorityFile: String?

    private var cache: ChosenStore<URLCache>
    private var credentials: ChosenStore<URLCredentialStorage>
    private var cookies: ChosenStore<HTTPCookieStorage>

    /// - Parameter stores: the default stores of an ordinary session.
    init(identifier: String?, stores: @escaping () -> SharedStores? = { nil }) {
        self.identifier = identifier
        cache = ChosenStore { stores()?.cache }
        credentials = ChosenStore { stores()?.credentials }
        cookies = ChosenStore { stores()?.cookies }
    }

    /// Creates the same configuration as ``default``. Use ``default``, because that name is clearer.
    public override convenience init() { self.init(identifier: nil, stores: { .current }) }

    /// A configuration that adds nothing to a request.
    static var bare: URLSessionConfiguration { URLSessionConfiguration(identifier: nil) }

    /// Returns a configuration for transfers that continue after this process ends. The agent makes the transfers from their first
    /// byte.
    ///
    /// - Parameter identifier: unique in the app; not empty. After a relaunch, a session with the same identifier receives the
    ///   events of these transfers.
    public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        precondition(!identifier.isEmpty, "a background session needs an identifier")
        return URLSessionConfiguration(identifier: identifier)
    }

    /// A new configuration for transfers in this process.
    public class var `default`: URLSessionConfiguration { URLSessionConfiguration() }
    /// A new configuration for transfers in this process that store nothing on the disk. Cookies, responses and credentials are
    /// stored in memory, for this configuration only.
    public class var ephemeral: URLSessionConfiguration {
        let stores = SharedStores(isPrivate: true)
        return URLSessionConfiguration(identifier: nil, stores: { stores })
    }

    /// Returns a configuration with the same values.
    open func copy(with zone: NSZone? = nil) -> Any { copied() }

    /// Returns a copy with fixed stores, which are the default stores of the current work. On a test host these are the test's
    /// stores.
    func resolved() -> URLSessionConfiguration {
        let copy = copied()
        (copy.cache, copy.credentials, copy.cookies) = (cache.resolved, credentials.resolved, cookies.resolved)
        return copy
    }

    func copied() -> URLSessionConfiguration {
        let copy = URLSessionConfiguration(identifier: identifier)
        copy.sessionSendsLaunchEvents = sessionSendsLaunchEvents
        copy.isDiscretionary = isDiscretionary
        copy.timeoutIntervalForRequest = timeoutIntervalForRequest
        copy.timeoutIntervalForResource = timeoutIntervalForResource
        copy.httpAdditionalHeaders = httpAdditionalHeaders
        copy.allowsCellularAccess = allowsCellularAccess
        copy.allowsExpensiveNetworkAccess = allowsExpensiveNetworkAccess
        copy.allowsConstrainedNetworkAccess = allowsConstrainedNetworkAccess
        copy.waitsForConnectivity = waitsForConnectivity
        copy.httpMaximumConnectionsPerHost = httpMaximumConnectionsPerHost
        copy.networkServiceType = networkServiceType
        copy.requestCachePolicy = requestCachePolicy
        (copy.cache, copy.credentials, copy.cookies) = (cache, credentials, cookies)
        copy.httpCookieAcceptPolicy = httpCookieAcceptPolicy
        copy.httpShouldSetCookies = httpShouldSetCookies
        copy.httpShouldUsePipelining = httpShouldUsePipelining
        copy.sharedContainerIdentifier = sharedContainerIdentifier
        copy.shouldUseExtendedBackgroundIdleMode = shouldUseExtendedBackgroundIdleMode
        copy.protocolClasses = protocolClasses
        copy.tlsMinimumSupportedProtocolVersion = tlsMinimumSupportedProtocolVersion
        copy.tlsMaximumSupportedProtocolVersion = tlsMaximumSupportedProtocolVersion
        copy.enablesEarlyData = enablesEarlyData
        copy.allowsUltraConstrainedNetworkAccess = allowsUltraConstrainedNetworkAccess
        copy.multipathServiceType = multipathServiceType
        copy.usesClassicLoadingMode = usesClassicLoadingMode
        copy.requiresDNSSECValidation = requiresDNSSECValidation
        copy.connectionProxyDictionary = connectionProxyDictionary
        copy.maximumBodyBytes = maximumBodyBytes
        copy.maximumBytesPerSecond = maximumBytesPerSecond
        copy.keepsCoding = keepsCoding
        copy.authorityFile = authorityFile
        return copy
    }
}

/// A version of TLS or DTLS, with its number in the protocol.
public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv10 = 0x0301
    case TLSv11 = 0x0302
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
    case DTLSv10 = 0xFEFF
    case DTLSv12 = 0xFEFD
}

extension URLSessionConfiguration {
    /// The oldest permitted version of TLS.
    var leastTLS: LeastTLS? {
        switch tlsMinimumSupportedProtocolVersion {
        case .TLSv10: .v10
        case .TLSv11: .v11
        // DTLS is not used for requests. A version of DTLS has the effect of TLS 1.2.
        case .TLSv12, .DTLSv10, .DTLSv12: .v12
        case .TLSv13: .v13
        }
    }
}
