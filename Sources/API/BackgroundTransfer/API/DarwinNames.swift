import Foundation
import FoundationNetworking

// Names that code for iOS uses and that Foundation on Linux lacks or marks as unavailable.

/// The authentication method of a challenge about a server's certificate. Declared so that delegates compile. Certificates are
/// always verified. Delegates are never called with this method, so a delegate cannot pin certificates.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
/// The authentication method of a challenge for a client certificate. Declared so that delegates compile. Differs from Apple:
/// delegates are never called with this method.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// The key of the resume data of a failed upload. Declared so that code compiles. Differs from Apple: no error has this key,
/// because uploads give no resume data.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"
/// The key of the reason why a network could not be used. Declared so that code compiles. Differs from Apple: no error has this
/// key. See `URLError.networkUnavailableReason`.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"

/// The trust evaluation of a server's certificate. Declared so that delegates compile. The type has no instances.
public final class SecTrust: Sendable {
    private init() {}
}

extension URLProtectionSpace {
    /// The certificate to evaluate. Differs from Apple: always `nil`. Certificates are always verified, and delegates are not
    /// called about certificates.
    public var serverTrust: SecTrust? { nil }
}

extension URLCredential {
    /// Creates a credential that trusts a server. An app cannot call this initializer, because the type ``SecTrust`` has no
    /// instances.
    public convenience init(trust: SecTrust) { self.init(user: "", password: "", persistence: .none) }
}

extension URLRequest {
    /// A Boolean value that indicates whether the request is allowed to use a network that costs money per byte. Background
    /// sessions only. The configuration must also allow this.
    public var allowsExpensiveNetworkAccess: Bool {
        get { !marks.contains("no-expensive") }
        set { set("no-expensive", !newValue) }
    }

    /// A Boolean value that indicates whether the request is allowed to use a network that the user marked as metered. Background
    /// sessions only. The configuration must also allow this.
    public var allowsConstrainedNetworkAccess: Bool {
        get { !marks.contains("no-constrained") }
        set { set("no-constrained", !newValue) }
    }

    /// A Boolean value that indicates whether the server is expected to support HTTP/3. Stored, without effect.
    public var assumesHTTP3Capable: Bool {
        get { marks.contains("http3") }
        set { set("http3", newValue) }
    }

    /// A Boolean value that indicates whether host names are resolved with DNSSEC validation. Stored, without effect, because the
    /// system's resolver decides.
    public var requiresDNSSECValidation: Bool {
        get { marks.contains("dnssec") }
        set { set("dnssec", newValue) }
    }

    /// A Boolean value that indicates whether the request is allowed to use a network of very little capacity, such as a satellite
    /// link. Stored, without effect, because no Linux desktop reports this property of a network.
    public var allowsUltraConstrainedNetworkAccess: Bool {
        get { marks.contains("ultra-constrained") }
        set { set("ultra-constrained", newValue) }
    }

    /// The party that requested an address.
    public enum Attribution: UInt, Sendable {
        /// The app's author.
        case developer = 0
        /// The user of the app.
        case user = 1
    }

    /// The party that requested the address, for the system's privacy report. Stored, without effect, because Linux has no such
    /// report.
    public var attribution: Attribution {
        get { marks.contains("user") ? .user : .developer }
        set { set("user", newValue == .user) }
    }

    /// The name of a header that stores these properties, because Foundation's request has no other place. The header is never
    /// sent.
    static let marksHeader = "URLRequest-Marks"

    private var marks: Set<String> {
        Set((value(forHTTPHeaderField: Self.marksHeader) ?? "").split(separator: " ").map(String.init))
    }

    private mutating func set(_ mark: String, _ isSet: Bool) {
        var marks = marks
        if isSet { marks.insert(mark) } else { marks.remove(mark) }
        setValue(marks.isEmpty ? nil : marks.sorted().joined(separator: " "), forHTTPHeaderField: Self.marksHeader)
    }
}

extension URLRequest.NetworkServiceType {
    /// Data that the user waits for. Differs from Apple: the same as `.default`. The service type of the traffic has no effect
    /// here.
    public static var responsiveData: Self { .default }
    /// Audio and video streams. Differs from Apple: the same as `.default`.
    public static var avStreaming: Self { .default }
    /// Audio and video in which the user takes part, for example calls. Differs from Apple: the same as `.default`.
    public static var responsiveAV: Self { .default }
}

extension URLError {
    /// The reason why the network could not be used.
    public enum NetworkUnavailableReason: Int, Sendable {
        case cellular = 0
        case expensive = 1
        case constrained = 2
    }

    /// The reason why a background task was cancelled.
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        case userForceQuitApplication = 0
        case backgroundUpdatesDisabled = 1
        case insufficientSystemResources = 2
    }

    /// The reason why the network could not be used. Differs from Apple: always `nil`, because a transfer that is not allowed to
    /// use the current network waits for another network.
    public var networkUnavailableReason: NetworkUnavailableReason? { nil }

    /// The reason why a background task was cancelled. Differs from Apple: always `nil`, because the system cancels no background
    /// tasks.
    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? { nil }
}

extension URLCache {
    /// Creates a cache with the given folder. `nil` selects the default folder.
    public convenience init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
        self.init(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, diskPath: directory?.path)
    }
}
