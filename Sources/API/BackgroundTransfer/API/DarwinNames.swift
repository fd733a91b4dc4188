import Foundation
import FoundationNetworking

// Symbols that code for iOS uses. Foundation on Linux does not have these symbols, or marks them as unavailable.

/// The authentication method of a challenge about a server's certificate. The declaration exists only so that delegates for iOS
/// compile. The system always verifies certificates, and delegates are never called with this authentication method. So a
/// delegate cannot pin certificates.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
/// The authentication method of a challenge for a client certificate. The declaration exists only so that delegates for iOS
/// compile. Differs from Apple: delegates are never called with this authentication method.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// The key of the resume data of a failed upload. The declaration exists only so that code for iOS compiles. Differs from Apple:
/// no error contains this key, because uploads do not provide resume data.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"
/// The key of the reason why a network could not be used. The declaration exists only so that code for iOS compiles. Differs from
/// Apple: no error contains this key (see `URLError.networkUnavailableReason`).
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"

/// The trust evaluation of a server's certificate. The declaration exists only so that delegates for iOS compile. No instance of
/// the type exists.
public final class SecTrust: Sendable {
    private init() {}
}

extension URLProtectionSpace {
    /// The certificate to evaluate. Differs from Apple: the value is always `nil`, because the system verifies every certificate
    /// and never asks a delegate.
    public var serverTrust: SecTrust? { nil }
}

extension URLCredential {
    /// Creates a credential that trusts a server. An app cannot call this initializer, because no instance of ``SecTrust``
    /// exists.
    public convenience init(trust: SecTrust) { self.init(user: "", password: "", persistence: .none) }
}

extension URLRequest {
    /// A Boolean value that indicates whether the request is allowed to use a network that costs money per byte. The value has an
    /// effect only in background sessions. The session's configuration must also allow such a network.
    public var allowsExpensiveNetworkAccess: Bool {
        get { !marks.contains("no-expensive") }
        set { set("no-expensive", !newValue) }
    }

    /// A Boolean value that indicates whether the request is allowed to use a network that the user marked as metered. The value
    /// has an effect only in background sessions. The session's configuration must also allow such a network.
    public var allowsConstrainedNetworkAccess: Bool {
        get { !marks.contains("no-constrained") }
        set { set("no-constrained", !newValue) }
    }

    /// A Boolean value that indicates whether the server is expected to support HTTP/3. The value is stored and has no effect.
    public var assumesHTTP3Capable: Bool {
        get { marks.contains("http3") }
        set { set("http3", newValue) }
    }

    /// A Boolean value that indicates whether host names are resolved with DNSSEC validation. The value is stored and has no
    /// effect, because the system's resolver decides.
    public var requiresDNSSECValidation: Bool {
        get { marks.contains("dnssec") }
        set { set("dnssec", newValue) }
    }

    /// A Boolean value that indicates whether the request is allowed to use a network of very little capacity, such as a
    /// satellite link. The value is stored and has no effect, because no Linux desktop reports this property of a network.
    public var allowsUltraConstrainedNetworkAccess: Bool {
        get { marks.contains("ultra-constrained") }
        set { set("ultra-constrained", newValue) }
    }

    /// The origin of a request: the app's author or the user.
    public enum Attribution: UInt, Sendable {
        /// The app's author chose the address.
        case developer = 0
        /// The user of the app chose the address.
        case user = 1
    }

    /// The origin of the request, for the privacy report of iOS. The value is stored and has no effect, because Linux has no
    /// privacy report.
    public var attribution: Attribution {
        get { marks.contains("user") ? .user : .developer }
        set { set("user", newValue == .user) }
    }

    /// The name of the header that stores the additional properties of a request, because Foundation's request type has no other
    /// field for them. The header is never sent.
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
    /// Data that the user waits for. Differs from Apple: the value is equal to `.default`, because the service type has no effect
    /// on Linux.
    public static var responsiveData: Self { .default }
    /// Audio and video streams. Differs from Apple: the value is equal to `.default`.
    public static var avStreaming: Self { .default }
    /// Audio and video of a conversation, for example of a call. Differs from Apple: the value is equal to `.default`.
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

    /// The reason why the network could not be used. Differs from Apple: the value is always `nil`, because a transfer waits if
    /// it is not allowed to use the current network.
    public var networkUnavailableReason: NetworkUnavailableReason? { nil }

    /// The reason why a background task was cancelled. Differs from Apple: the value is always `nil`, because the system does not
    /// cancel background tasks.
    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? { nil }
}

extension URLCache {
    /// Creates a cache in the given folder, or in the default folder if `directory` is `nil`.
    public convenience init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
        self.init(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, diskPath: directory?.path)
    }
}
