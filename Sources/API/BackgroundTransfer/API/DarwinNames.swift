import Foundation
import FoundationNetworking

// Names that Foundation on Linux lacks, or calls unavailable, and that code for iOS has.

/// A server's certificate is asked about. Declared so that delegates compile; certificates are verified, always, and nobody is asked: a delegate that pins
/// certificates has no effect.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
/// A client's certificate is asked for. Declared so that delegates compile; differs from Apple: nobody is asked for one.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

/// Key of what a failed upload could be gone on from. Declared so that code compiles; differs from Apple: no error has it, as no upload gives resume data.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"
/// Key of why a network could not be used. Declared so that code compiles; differs from Apple: no error has it, see
/// `URLError.networkUnavailableReason`.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"

/// What a server's certificate is judged by. Declared so that delegates compile; there are none.
public final class SecTrust: Sendable {
    private init() {}
}

extension URLProtectionSpace {
    /// Differs from Apple: always `nil`; certificates are verified, always, and nobody is asked about them.
    public var serverTrust: SecTrust? { nil }
}

extension URLCredential {
    /// A credential that trusts a server. Nobody has a ``SecTrust`` to make one with.
    public convenience init(trust: SecTrust) { self.init(user: "", password: "", persistence: .none) }
}

extension URLRequest {
    /// May use a network that costs money per byte. Background sessions only, beside the configuration's.
    public var allowsExpensiveNetworkAccess: Bool {
        get { !marks.contains("no-expensive") }
        set { set("no-expensive", !newValue) }
    }

    /// May use a network that the person marked as metered. Background sessions only, beside the configuration's.
    public var allowsConstrainedNetworkAccess: Bool {
        get { !marks.contains("no-constrained") }
        set { set("no-constrained", !newValue) }
    }

    /// The server is thought to know HTTP/3. Kept, without effect.
    public var assumesHTTP3Capable: Bool {
        get { marks.contains("http3") }
        set { set("http3", newValue) }
    }

    /// Names are asked for in a way that can be verified. Kept, without effect: the system's resolver decides.
    public var requiresDNSSECValidation: Bool {
        get { marks.contains("dnssec") }
        set { set("dnssec", newValue) }
    }

    /// May use a network of very little capacity, such as a satellite's. Kept, without effect: no desktop says so of a network.
    public var allowsUltraConstrainedNetworkAccess: Bool {
        get { marks.contains("ultra-constrained") }
        set { set("ultra-constrained", newValue) }
    }

    /// Who wanted the address.
    public enum Attribution: UInt, Sendable {
        /// The app's author.
        case developer = 0
        /// The person who uses the app.
        case user = 1
    }

    /// Who wanted the address, for the system's report on privacy. Kept, without effect: there is no such report here.
    public var attribution: Attribution {
        get { marks.contains("user") ? .user : .developer }
        set { set("user", newValue == .user) }
    }

    /// Foundation's request has no place for these: they stand in a header that is never sent.
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
    /// A person waits for it. Differs from Apple: the same as `.default`; what kind of service traffic is has no effect here.
    public static var responsiveData: Self { .default }
    /// Sound and pictures as they come. Differs from Apple: the same as `.default`.
    public static var avStreaming: Self { .default }
    /// Sound and pictures that a person answers. Differs from Apple: the same as `.default`.
    public static var responsiveAV: Self { .default }
}

extension URLError {
    /// Why the network could not be used.
    public enum NetworkUnavailableReason: Int, Sendable {
        case cellular = 0
        case expensive = 1
        case constrained = 2
    }

    /// Why a background task was cancelled.
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        case userForceQuitApplication = 0
        case backgroundUpdatesDisabled = 1
        case insufficientSystemResources = 2
    }

    /// Differs from Apple: always `nil`; a transfer that may not use a network waits for another.
    public var networkUnavailableReason: NetworkUnavailableReason? { nil }

    /// Differs from Apple: always `nil`; nothing of the system's cancels a background task.
    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? { nil }
}

extension URLCache {
    /// A cache with a folder of its own; `nil`: the default one.
    public convenience init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
        self.init(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, diskPath: directory?.path)
    }
}
