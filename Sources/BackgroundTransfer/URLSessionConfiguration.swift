@_exported import Foundation
@_exported import FoundationNetworking

/// How a session behaves. Copied by the session when it is made; later changes have no effect.
///
/// Differs from Apple: only what is listed here exists yet.
public final class URLSessionConfiguration: @unchecked Sendable {  // because sessions copy it before they share it
    /// `nil` for ordinary sessions.
    public let identifier: String?
    /// Launch the app when transfers of the session have ended. Background sessions only.
    ///
    /// Differs from Apple: `false` is stored and has no effect yet; the app is always launched.
    public var sessionSendsLaunchEvents = true
    /// Let the system choose a good moment. Stored; a desktop starts at once.
    public var isDiscretionary = false
    /// Seconds without a byte after which an attempt is given up; a background session then tries again.
    public var timeoutIntervalForRequest: TimeInterval = 60
    /// Seconds without progress after which a transfer fails for good.
    ///
    /// Differs from Apple: counted from the last new byte, not from the start.
    public var timeoutIntervalForResource: TimeInterval = 7 * 86_400
    public var httpAdditionalHeaders: [AnyHashable: Any]?
    public var allowsCellularAccess = true
    public var allowsExpensiveNetworkAccess = true
    public var allowsConstrainedNetworkAccess = true
    public var waitsForConnectivity = false
    /// Bytes of a body taken at most; a longer answer fails. Beyond Apple.
    public var maximumBodyBytes: Int64?

    private init(identifier: String?) { self.identifier = identifier }

    /// For transfers that outlive this process: they are the agent's from their first byte.
    ///
    /// - Parameter identifier: unique in the app; not empty. The same one after a relaunch reattaches.
    public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        precondition(!identifier.isEmpty, "a background session needs an identifier")
        return URLSessionConfiguration(identifier: identifier)
    }

    public class var `default`: URLSessionConfiguration { URLSessionConfiguration(identifier: nil) }
    public class var ephemeral: URLSessionConfiguration { URLSessionConfiguration(identifier: nil) }

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
        copy.maximumBodyBytes = maximumBodyBytes
        return copy
    }
}
