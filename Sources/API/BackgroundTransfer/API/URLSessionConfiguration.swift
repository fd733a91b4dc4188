@_exported import Foundation
@_exported import FoundationNetworking
import TransferMachines

/// The properties of a session. A new session copies its configuration, so later changes to the configuration have no effect.
///
/// Differs from Apple: the session uses the proxies of the environment (`https_proxy`, `no_proxy`) and the system's certificates.
/// Background sessions have no cookies, caches or stored credentials, because another process sends their requests.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {  // because sessions copy it before they share it
    /// The identifier of a background session, or `nil` for an ordinary session.
    public private(set) var identifier: String?
    /// A Boolean value that indicates whether the agent launches the app when transfers of the session have ended. The value has
    /// an effect only in background sessions. If `false`, the app receives the ends of the transfers when the app creates the
    /// session again.
    open var sessionSendsLaunchEvents = true
    /// A Boolean value that indicates whether transfers run only with external power and over a network that is not metered. The
    /// value has an effect only in background sessions.
    ///
    /// Differs from Apple: a transfer that begins in the background is not automatically discretionary.
    open var isDiscretionary = false
    /// The number of seconds without a received byte after which an attempt fails. After a failed attempt, a background session
    /// tries again. If a request's `timeoutInterval` is not the default 60, the request's value is used. A value above one week
    /// has the same effect as one week.
    ///
    /// Differs from Apple: zero, a negative value and NaN have the same effect as the default value.
    open var timeoutIntervalForRequest: TimeInterval = 60
    /// The number of seconds without progress after which a transfer fails. A transfer that fails for this reason is not retried.
    ///
    /// Differs from Apple: the time is counted from the last new byte and not from the start of the transfer. Zero, a negative
    /// value and NaN have the same effect as the default value.
    open var timeoutIntervalForResource: TimeInterval = 7 * 86_400
    /// Additional headers for every request. If a request already contains a header, the header is not changed.
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
    /// The kind of data that the session transfers, for example video or voice. The value is stored and has no effect.
    open var networkServiceType: URLRequest.NetworkServiceType = .default
    /// The rule for the use of cached responses. The rule applies to requests that have no cache policy. Only ordinary sessions
    /// use cached responses.
    open var requestCachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy
    /// The cache for responses to data tasks with the method GET. A response is stored only if the server permits this (RFC
    /// 9111). The default value is `URLCache.shared`, or a cache in memory for ``ephemeral``. The default value for background
    /// sessions is `nil`, because background sessions use no cache.
    ///
    /// Differs from Apple: if the app sets the `Authorization` header of a request, the response is not stored.
    open var urlCache: URLCache? {
        get { cache.store }
        set { cache.store = newValue }
    }
    /// The store of credentials. A session proposes the stored credential for a server to the delegate. If the delegate chooses
    /// no credential, the session tries the stored credential once. If the delegate returns a credential with a persistence, the
    /// session stores the credential here. The default value is `URLCredentialStorage.shared`, or a private store for
    /// ``ephemeral``. Only ordinary sessions use this store.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { credentials.store }
        set { credentials.store = newValue }
    }
    /// The store of cookies. The default value is `HTTPCookieStorage.shared`, or a private store for ``ephemeral``. If the value
    /// is `nil`, cookies are not sent and not stored. Only ordinary sessions use this store. A request of a background session
    /// contains only the `Cookie` header that the app sets.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { cookies.store }
        set { cookies.store = newValue }
    }
    /// The policy for cookies that responses set.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    /// A Boolean value that indicates whether cookies of the store are added to the cookies in the headers of a request.
    open var httpShouldSetCookies = true
    /// A Boolean value that indicates whether requests use HTTP pipelining. The value is stored and has no effect, because no
    /// current server benefits from pipelining.
    open var httpShouldUsePipelining = false
    /// The identifier of the folder that an app shares with its extensions (shared container). The value is stored and has no
    /// effect, because an app and its extensions share no container on Linux.
    open var sharedContainerIdentifier: String?
    /// A Boolean value that indicates whether idle connections stay open for a longer time. The value is stored and has no
    /// effect, because the agent's connections do not depend on the app's state.
    open var shouldUseExtendedBackgroundIdleMode = false
    /// The subclasses of ``URLProtocol`` that can respond to a request instead of the network. The classes are tried in the order
    /// of the list. A task fails with `URLError.unsupportedURL` if a class is not a subclass of ``URLProtocol``, or if a class
    /// accepts a request of a background session. The default value is an empty array and not `nil`, because code for iOS calls
    /// `protocolClasses?.insert`.
    open var protocolClasses: [AnyClass]? = []
    /// The oldest accepted version of TLS. The system's TLS library may refuse an old version. On Debian, the library refuses
    /// versions before TLS 1.2.
    ///
    /// Differs from Apple: if a background session requires more than TLS 1.2, every task fails with `URLError.unsupportedURL`.
    open var tlsMinimumSupportedProtocolVersion = tls_protocol_version_t.TLSv12
    /// The newest accepted version of TLS. The value is stored and has no effect, because a connection uses the newest version
    /// that client and server support.
    open var tlsMaximumSupportedProtocolVersion = tls_protocol_version_t.TLSv13
    /// A Boolean value that indicates whether a request can be sent with the TLS handshake. The value is stored and has no
    /// effect, because an attacker could record such a request and send it again.
    open var enablesEarlyData = false
    /// A Boolean value that indicates whether transfers are allowed to use a network of very little capacity, such as a satellite
    /// link. The value is stored and has no effect, because no Linux desktop reports this property of a network.
    open var allowsUltraConstrainedNetworkAccess = false
    /// A Boolean value that indicates whether the session loads data with Apple's older implementation. The value is stored and
    /// has no effect, because only one implementation exists.
    open var usesClassicLoadingMode = true
    /// The way in which a connection uses several networks at the same time. The value is stored and has no effect.
    open var multipathServiceType: MultipathServiceType = .none
    /// A Boolean value that indicates whether host names are resolved with DNSSEC validation. The value is stored and has no
    /// effect, because the system's resolver decides.
    open var requiresDNSSECValidation = false

    /// The ways in which a connection can use several networks at the same time.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }
    /// The proxies of the session. If `nil`, or if no proxy is enabled, the proxies of the environment (`https_proxy`,
    /// `no_proxy`) are used.
    ///
    /// Differs from Apple: if this dictionary enables a proxy, each task fails with `URLError.unsupportedURL`, because this
    /// module cannot send requests through this proxy.
    open var connectionProxyDictionary: [AnyHashable: Any]?

    /// The value of ``timeoutIntervalForResource``, limited to a number of seconds that can be stored and compared.
    var resourcePatience: Double {
        Self.seconds(timeoutIntervalForResource, default: 7 * 86_400, atMost: Self.longestPatience)
    }
    /// A century, in seconds.
    private static let longestPatience = 100 * 365.25 * 86_400

    /// Returns a number of seconds, limited to `longest`. Returns the default value if the given value is not positive.
    static func seconds(_ value: Double, default standard: Double, atMost longest: Double) -> Double {
        value > 0 ? min(value, longest) : standard
    }

    /// `true` if the app enabled a proxy, with a key that ends in "Enable" (`HTTPSEnable`, `SOCKSEnable`,
    /// `ProxyAutoConfigEnable`).
    var asksForProxy: Bool {
        (connectionProxyDictionary ?? [:]).contains { key, value in
            "\(key)".hasSuffix("Enable") && !["0", "false", "NO"].contains("\(value)")
        }
    }
    /// The maximum number of bytes of a response body. If a body is longer, the task fails. Apple's API has no equivalent.
    open var maximumBodyBytes: Int64?
    /// The maximum number of bytes per second of each transfer. Uploads that have a ``URLSessionUploadTask/delivery`` and the
    /// same address share this limit. Apple's API has no equivalent.
    open var maximumBytesPerSecond: Int64?
    /// `true` if a compressed response must be stored in its compressed form.
    var keepsCoding = false
    /// The file with additional certificate authorities (see ``WireRequest/authorityFile``).
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

    /// Creates a configuration with the same values as ``default``. Use ``default``, because this name is clearer.
    public override convenience init() { self.init(identifier: nil, stores: { .current }) }

    /// A configuration whose properties add nothing to a request.
    static var bare: URLSessionConfiguration { URLSessionConfiguration(identifier: nil) }

    /// Returns a configuration for transfers that continue after this process ends. The agent makes the transfers from their
    /// first byte.
    ///
    /// - Parameter identifier: the identifier of the session, which is unique in the app and not empty. After a relaunch of the
    ///   app, a session with the same identifier receives the events of the transfers.
    public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        precondition(!identifier.isEmpty, "a background session needs an identifier")
        return URLSessionConfiguration(identifier: identifier)
    }

    /// A new configuration for transfers in this process.
    public class var `default`: URLSessionConfiguration { URLSessionConfiguration() }
    /// A new configuration for transfers in this process that store nothing on the disk. Cookies, responses and credentials are
    /// stored in memory, and other configurations cannot use them.
    public class var ephemeral: URLSessionConfiguration {
        let stores = SharedStores(isPrivate: true)
        return URLSessionConfiguration(identifier: nil, stores: { stores })
    }

    /// Returns a configuration with the same values.
    open func copy(with zone: NSZone? = nil) -> Any { copied() }

    /// Returns a copy whose stores do not change when the default stores change later. On a test host, the copy contains the
    /// stores of the current test.
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

/// A version of TLS or DTLS. The raw value is the version number in the protocol.
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
        // Requests never use DTLS. If the app set a version of DTLS, the oldest permitted version is TLS 1.2.
        case .TLSv12, .DTLSv10, .DTLSv12: .v12
        case .TLSv13: .v13
        }
    }
}
