@_exported import Foundation
@_exported import FoundationNetworking

/// How a session behaves. Copied by the session when it is made; later changes have no effect.
///
/// Differs from Apple: proxies are those of the environment (`https_proxy`, `no_proxy`), certificates those of the system;
/// cookies, caches and stored credentials of a configuration are kept and have no effect, as background sessions on Linux
/// share none with other programs.
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
    /// Seconds without a byte after which an attempt is given up; a background session then tries again. A request with a
    /// `timeoutInterval` of its own (other than the default 60) has that.
    open var timeoutIntervalForRequest: TimeInterval = 60
    /// Seconds without progress after which a transfer fails for good.
    ///
    /// Differs from Apple: counted from the last new byte, not from the start.
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
    /// Kept, without effect: nothing is cached.
    open var requestCachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy
    /// Kept, without effect: nothing is cached.
    open var urlCache: URLCache?
    /// Kept, without effect.
    open var urlCredentialStorage: URLCredentialStorage?
    /// Kept, without effect: cookies that a request should carry belong into its headers.
    open var httpCookieStorage: HTTPCookieStorage?
    /// Kept, without effect.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    /// Kept, without effect.
    open var httpShouldSetCookies = true
    /// Kept, without effect: no server of today gains by it.
    open var httpShouldUsePipelining = false
    /// Kept, without effect: an app and its extensions share no container here.
    open var sharedContainerIdentifier: String?
    /// Kept, without effect: the agent's connections do not idle with the app.
    open var shouldUseExtendedBackgroundIdleMode = false
    /// Kept, without effect: custom protocols do not work in background sessions, on any platform.
    open var protocolClasses: [AnyClass]?
    /// Kept, without effect: proxies are those of the environment.
    open var connectionProxyDictionary: [AnyHashable: Any]?
    /// Bytes of a body taken at most; a longer answer fails. Beyond Apple.
    open var maximumBodyBytes: Int64?
    /// Bytes per second of each transfer, at most. Beyond Apple.
    open var maximumBytesPerSecond: Int64?

    init(identifier: String?) { self.identifier = identifier }

    /// For transfers that outlive this process: they are the agent's from their first byte.
    ///
    /// - Parameter identifier: unique in the app; not empty. The same one after a relaunch reattaches.
    public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        precondition(!identifier.isEmpty, "a background session needs an identifier")
        return URLSessionConfiguration(identifier: identifier)
    }

    /// For transfers in this process. A new one each time.
    public class var `default`: URLSessionConfiguration { URLSessionConfiguration(identifier: nil) }
    /// Like ``default``: nothing is kept on disk by either.
    public class var ephemeral: URLSessionConfiguration { URLSessionConfiguration(identifier: nil) }

    /// A configuration of the same values.
    open func copy(with zone: NSZone? = nil) -> Any { copied() }

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
        copy.urlCache = urlCache
        copy.urlCredentialStorage = urlCredentialStorage
        copy.httpCookieStorage = httpCookieStorage
        copy.httpCookieAcceptPolicy = httpCookieAcceptPolicy
        copy.httpShouldSetCookies = httpShouldSetCookies
        copy.httpShouldUsePipelining = httpShouldUsePipelining
        copy.sharedContainerIdentifier = sharedContainerIdentifier
        copy.shouldUseExtendedBackgroundIdleMode = shouldUseExtendedBackgroundIdleMode
        copy.protocolClasses = protocolClasses
        copy.connectionProxyDictionary = connectionProxyDictionary
        copy.maximumBodyBytes = maximumBodyBytes
        copy.maximumBytesPerSecond = maximumBytesPerSecond
        return copy
    }
}
