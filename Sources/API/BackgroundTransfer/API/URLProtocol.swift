import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization

/// A class that responds to requests instead of the network. Use a subclass for an app's private URL scheme, or to replace a
/// server in tests.
///
/// Before an ordinary session sends a request to the network, the session calls ``canInit(with:)-(URLRequest)`` of each class in
/// ``URLSessionConfiguration/protocolClasses``. The order is the order of the list. Background sessions use no protocol classes
/// on any platform, because another process sends the requests.
///
/// Differs from Apple: if one of the configuration's classes accepts a request of a background session, the task fails with
/// `URLError.unsupportedURL`. A test therefore does not use the real server by mistake. Subclasses of FoundationNetworking's
/// `URLProtocol` are not accepted. If a configuration has such a class, every task fails with `URLError.unsupportedURL`.
open class URLProtocol: NSObject {
    /// The request that the class responds to.
    open var request: URLRequest { heldRequest }
    /// The object to which the class reports the response.
    open var client: (any URLProtocolClient)? { heldClient }
    /// The cached response to the request. Differs from Apple: the value is always the argument of
    /// ``init(request:cachedResponse:client:)``, and sessions pass `nil`.
    open var cachedResponse: CachedURLResponse? { heldResponse }
    /// The task that made the request.
    open var task: URLSessionTask? { heldTask }

    private let heldRequest: URLRequest
    private let heldClient: (any URLProtocolClient)?
    private let heldResponse: CachedURLResponse?
    private let heldTask: URLSessionTask?

    /// - Parameters:
    ///   - request: the request in canonical form, as ``canonicalRequest(for:)`` returns it.
    ///   - cachedResponse: the cached response to the request.
    ///   - client: the receiver of the response.
    public required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        (heldRequest, heldResponse, heldClient, heldTask) = (request, cachedResponse, client, (client as? CustomLoad)?.task)
    }

    /// Creates a protocol for a task's current request.
    public convenience init(task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        // The request after `??` is never used, because a session never creates a protocol object for a task without a request.
        let request = task.currentRequest ?? URLRequest(url: URL(fileURLWithPath: "/"))
        self.init(request: request, cachedResponse: cachedResponse, client: client)
    }

    /// Returns whether this class responds to the request. Override this method in a subclass. The default result is `false`.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Returns whether this class responds to the task's request. The default calls ``canInit(with:)-(URLRequest)``.
    open class func canInit(with task: URLSessionTask) -> Bool { task.currentRequest.map { canInit(with: $0) } ?? false }

    /// Returns the request in the common form of all equivalent requests. Override this method in a subclass. The default returns
    /// the request unchanged.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Returns whether two requests are equivalent for a cache. The default returns whether the requests are equal.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool { a == b }

    /// Begins to send the response to ``client``. Override this method in a subclass. The session calls the method on a serial
    /// queue that only this request uses.
    open func startLoading() {
        client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
    }

    /// Stops the work, because the response is not needed any more or is complete. Override this method in a subclass. The
    /// session calls the method once, on the same queue as ``startLoading()``.
    open func stopLoading() {}

    // MARK: Properties of requests

    /// Returns the value that ``setProperty(_:forKey:in:)`` has attached to a request, or `nil`.
    open class func property(forKey key: String, in request: URLRequest) -> Any? {
        request.value(forHTTPHeaderField: RequestProperties.header).flatMap { RequestProperties.known(by: $0)[key] }
    }

    /// Attaches a value to a request, for example to mark the request as already handled. The value is not sent to a server.
    ///
    /// Differs from Apple: a request with a value has an additional header, `URLProtocol-Properties`, which is never sent. In
    /// FoundationNetworking's `URLProtocol`, a copy of a request loses such values.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        let known = request.value(forHTTPHeaderField: RequestProperties.header).map(RequestProperties.known) ?? [:]
        request.setValue(
            RequestProperties.store(known.merging([key: value]) { $1 }), forHTTPHeaderField: RequestProperties.header)
    }

    /// Removes the value that ``setProperty(_:forKey:in:)`` stored in a request.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        guard var known = request.value(forHTTPHeaderField: RequestProperties.header).map(RequestProperties.known) else { return }
        known[key] = nil
        request.setValue(known.isEmpty ? nil : RequestProperties.store(known), forHTTPHeaderField: RequestProperties.header)
    }

    // MARK: Classes of the whole process

    /// The protocol classes that the process, or a test on a test host, has registered.
    private final class Registry: Sendable {
        let classes = Mutex<[URLProtocol.Type]>([])

        var all: [AnyClass] { classes.withLock { $0 } }
    }

    private static var registry: Registry { AppRuntime.ofWork.part { Registry() } }

    /// Registers a class for ``URLSession/shared``. The class is tried before the classes that were registered earlier. Other
    /// sessions use only the classes of their configurations.
    ///
    /// - Returns: `false` if the class is not a subclass of ``URLProtocol``.
    @discardableResult
    open class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let protocolClass = protocolClass as? URLProtocol.Type else { return false }
        registry.classes.withLock { list in
            list.removeAll { $0 == protocolClass }
            list.insert(protocolClass, at: 0)
        }
        return true
    }

    /// Removes a registered class.
    open class func unregisterClass(_ protocolClass: AnyClass) {
        registry.classes.withLock { list in list.removeAll { $0 == protocolClass } }
    }

    /// Returns the registered classes. The class that was registered last is the first element.
    ///
    /// - Parameter url: the address of the request. On a test host, this address decides whether the test's classes are included.
    ///   The same rule decides whether the test's simulated network is used.
    static func registeredClasses(for url: URL?) -> [AnyClass] {
        let ofProcess = AppRuntime.ofProcess.part { Registry() }.all
        guard AppRuntime.isOnTestHost || !InProcessTransport.isLoopback(url), AppRuntime.shared.isHosted else { return ofProcess }
        return AppRuntime.shared.part { Registry() }.all + ofProcess
    }
}

/// A receiver of the response of a ``URLProtocol``. The receiver passes the response to the session's task, in the order of the
/// calls. A protocol can call these methods from any thread.
public protocol URLProtocolClient: NSObjectProtocol {
    /// Reports a redirect. The task's delegate chooses the next request. This load ends, and another load begins for the next
    /// request.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)
    /// Reports that a cached response can be used. Differs from Apple: the method does nothing, because sessions pass no cached
    /// response.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)
    /// Reports the response headers, before the first byte of the body.
    ///
    /// Differs from Apple: `policy` has no effect, because the response of a protocol is never stored in the cache.
    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)
    /// Reports bytes of the response.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)
    /// Reports that the response is complete.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)
    /// Reports that no response is available, or that the response is incomplete.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)
    /// Reports that the request needs a credential. The challenge's sender receives the decision of the task's delegate.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)
    /// Reports a cancelled challenge. Differs from Apple: the method does nothing.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
