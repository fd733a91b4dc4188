@_exported import Foundation
@_exported import FoundationNetworking
import TransferMachines

/// How a session behaves. Copied by the session when it is made; later changes have no effect.
///
/// Differs from Apple: proxies are those of the environment (`https_proxy`, `no_proxy`), certificates those of the system. Background sessions have
/// no cookies, caches or stored credentials: another process makes their requests.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {  // because sessions copy it before they share it
    /// `nil` for ordinary sessions.
    public private(set) var identifier: String?
    /// Launch the app when transfers of the session have ended. Background sessions only. With `false` their ends wait until
    /// the app makes the session again.
    open var sessionSendsLaunchEvents = true
    /// Let the system choose a good moment: with external power, over a network that is not metered. Background sessions
    /// only.
    ///
    /// Differs from Apple: never assumed of transfers that begin in the background.
    open var isDiscretionary = false
    /// Seconds without a byte after which an attempt is given up; a background session then tries again. A request uses
    /// its `timeoutInterval` if that is not the default 60. More than a week has the effect of a week.
    ///
    /// Differs from Apple: zero, a negative value and NaN have the effect of the default.
    open var timeoutIntervalForRequest: TimeInterval = 60
    /// Seconds without progress after which a transfer fails for good.
    ///
    /// Differs from Apple: counted from the last new byte, not from the start. Zero, a negative value and NaN have the effect of the default.
    open var timeoutIntervalForResource: TimeInterval = 7 * 86_400
    /// Headers of every request that does not have them itself.
    open var httpAdditionalHeaders: [AnyHashable: Any]?
    /// Transfers may use a mobile-phone network.
    open var allowsCellularAccess = true
    /// Transfers may use a network that costs money per byte, as far as the desktop knows.
    open var allowsExpensiveNetworkAccess = true
    /// Transfers may use a network that the person marked as metered (NetworkManager's `connection.metered`).
    open var allowsConstrainedNetworkAccess = true
    /// Background sessions always wait.
    open var waitsForConnectivity = false
    /// Connections to one host at once, of this session's transfers.
    open var httpMaximumConnectionsPerHost = 6
    /// How the system should treat the traffic. Kept, without effect.
    open var networkServiceType: URLRequest.NetworkServiceType = .default
    /// When an answer of the cache's will do, for requests that have no policy of their own. Ordinary sessions only.
    open var requestCachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy
    /// Where answers to data tasks with GET are kept, as far as their servers let them be (RFC 9111). `URLCache.shared` by default, one in memory
    /// for ``ephemeral``, none for background sessions, where it has no effect.
    ///
    /// Differs from Apple: answers to requests with an `Authorization` of their own are not kept.
    open var urlCache: URLCache? {
        get { cache.store }
        set { cache.store = newValue }
    }
    /// Whence a credential is proposed, and tried once where the delegate has none; and where one goes that the delegate gives with a persistence.
    /// `URLCredentialStorage.shared` by default, a private one for ``ephemeral``. Ordinary sessions only.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { credentials.store }
        set { credentials.store = newValue }
    }
    /// Where cookies are kept. `HTTPCookieStorage.shared` by default, a private one for ``ephemeral``; `nil`: none are sent or kept. Ordinary
    /// sessions only: a request of a background session carries its own `Cookie`.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { cookies.store }
        set { cookies.store = newValue }
    }
    /// Which cookies are kept.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    /// Requests carry the store's cookies, beside those that they have themselves.
    open var httpShouldSetCookies = true
    /// Kept, without effect: no server of today gains by it.
    open var httpShouldUsePipelining = false
    /// Kept, without effect: an app and its extensions share no container here.
    open var sharedContainerIdentifier: String?
    /// Kept, without effect: the agent's connections do not idle with the app.
    open var shouldUseExtendedBackgroundIdleMode = false
    /// Subclasses of ``URLProtocol`` that are asked before anything goes to the network, the first one first.
    /// What is no such class, or would take a request of a background session, ends the task in `URLError.unsupportedURL`.
    /// Empty at first, as `insert` through `?` is what code from iOS does.
    open var protocolClasses: [AnyClass]? = []
    /// Older TLS is refused. What the system's library refuses stays refused: on Debian TLS before 1.2.
    ///
    /// Differs from Apple: a background session that asks for more than TLS 1.2 ends every task in `URLError.unsupportedURL`.
    open var tlsMinimumSupportedProtocolVersion = tls_protocol_version_t.TLSv12
    /// Newer TLS is not offered. Kept, without effect: the newest that both sides know is used.
    open var tlsMaximumSupportedProtocolVersion = tls_protocol_version_t.TLSv13
    /// A request may go out with the TLS handshake. Kept, without effect: none does, as such a request may be sent again by others.
    open var enablesEarlyData = false
    /// Transfers may use a network of very little capacity, such as a satellite's. Kept, without effect: no desktop says so of a network.
    open var allowsUltraConstrainedNetworkAccess = false
    /// Kept, without effect: there is one way of loading.
    open var usesClassicLoadingMode = true
    /// Several networks at once. Kept, without effect.
    open var multipathServiceType: MultipathServiceType = .none
    /// The names of servers are asked for over an encrypted connection. Kept, without effect: the system's resolver decides.
    open var requiresDNSSECValidation = false

    /// Whether a connection may take several networks at once.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }
    /// Whose proxies are asked for. `nil`, or none enabled: those of the environment (`https_proxy`, `no_proxy`).
    ///
    /// Differs from Apple: where one is enabled each task ends in `URLError.unsupportedURL`, as its requests would go past it.
    open var connectionProxyDictionary: [AnyHashable: Any]?

    /// Seconds of ``timeoutIntervalForResource`` that can be stored and compared.
    var resourcePatience: Double {
        Self.seconds(timeoutIntervalForResource, default: 7 * 86_400, atMost: Self.longestPatience)
    }
    /// A century.
    private static let longestPatience = 100 * 365.25 * 86_400

    /// Returns the default for a value that is not a number of seconds.
    static func seconds(_ value: Double, default standard: Double, atMost longest: Double) -> Double {
        value > 0 ? min(value, longest) : standard
    }

    /// Somebody asked for a proxy: by a key that ends in "Enable" (`HTTPSEnable`, `SOCKSEnable`, `ProxyAutoConfigEnable`).
    var asksForProxy: Bool {
        (connectionProxyDictionary ?? [:]).contains { key, value in
            "\(key)".hasSuffix("Enable") && !["0", "false", "NO"].contains("\(value)")
        }
    }
    /// Bytes of a body taken at most; a longer answer fails. Beyond Apple.
    open var maximumBodyBytes: Int64?
    /// Bytes per second of each transfer, at most. Uploads by a `delivery` to one address share the limit. Beyond Apple.
    open var maximumBytesPerSecond: Int64?
    /// A coded response is taken as it is sent.
    var keepsCoding = false
    /// See ``WireRequest/authorityFile``.
    var authorityFile: String?

    private var cache: ChosenStore<URLCache>
    private var credentials: ChosenStore<URLCredentialStorage>
    private var cookies: ChosenStore<HTTPCookieStorage>

    /// - Parameter stores: of ordinary sessions.
    init(identifier: String?, stores: @escaping () -> SharedStores? = { nil }) {
        self.identifier = identifier
        cache = ChosenStore { stores()?.cache }
        credentials = ChosenStore { stores()?.credentials }
        cookies = ChosenStore { stores()?.cookies }
    }

    /// The same as ``default``, which is clearer.
    public override convenience init() { self.init(identifier: nil, stores: { .current }) }

    /// Adds nothing to a request.
    static var bare: URLSessionConfiguration { URLSessionConfiguration(identifier: nil) }

    /// For transfers that outlive this process: they are the agent's from their first byte.
    ///
    /// - Parameter identifier: unique in the app; not empty. The same one after a relaunch reattaches.
    public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        precondition(!identifier.isEmpty, "a background session needs an identifier")
        return URLSessionConfiguration(identifier: identifier)
    }

    /// For transfers in this process. A new one each time.
    public class var `default`: URLSessionConfiguration { URLSessionConfiguration() }
    /// For transfers in this process that leave nothing behind: cookies, answers and credentials are in memory, and this configuration's own.
    public class var ephemeral: URLSessionConfiguration {
        let stores = SharedStores(isPrivate: true)
        return URLSessionConfiguration(identifier: nil, stores: { stores })
    }

    /// A configuration of the same values.
    open func copy(with zone: NSZone? = nil) -> Any { copied() }

    /// A copy whose stores are what they are for the work that asks: on a test host the test's.
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

/// A version of TLS or DTLS, with the numbers that it has on the wire.
public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv10 = 0x0301
    case TLSv11 = 0x0302
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
    case DTLSv10 = 0xFEFF
    case DTLSv12 = 0xFEFD
}

extension URLSessionConfiguration {
    /// `nil`: what the system allows.
    var leastTLS: LeastTLS? {
        switch tlsMinimumSupportedProtocolVersion {
        case .TLSv10: .v10
        case .TLSv11: .v11
        // DTLS is not for requests; its least is that of TLS.
        case .TLSv12, .DTLSv10, .DTLSv12: .v12
        case .TLSv13: .v13
        }
    }
}
