import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization

/// A class that responds to requests instead of the network. Use a subclass for private schemes of the app, and for tests that
/// replace a server.
///
/// Before an ordinary session sends a request to the network, it calls ``canInit(with:)-(URLRequest)`` of the classes in its
/// configuration's ``URLSessionConfiguration/protocolClasses``, in their order. Background sessions use no protocols on any
/// platform, because another process sends their requests.
///
/// Differs from Apple: if one of the configuration's classes accepts a request of a background session, the task fails with
/// `URLError.unsupportedURL`. So a test does not use the real server by mistake. Subclasses of FoundationNetworking's `URLProtocol`
/// are not accepted. If a configuration has such a class, every task fails with `URLError.unsupportedURL`.
open class URLProtocol: NSObject {
    /// The request that the class responds to.
    open var request: URLRequest { heldRequest }
    /// The receiver of the response.
    open var client: (any URLProtocolClient)? { heldClient }
    /// The cached response to the request. Differs from Apple: always the value that was passed to
    /// ``init(request:cachedResponse:client:)``. Sessions pass `nil`.
    open var cachedResponse: CachedURLResponse? { heldResponse }
    /// The task that made the request.
    open var task: URLSessionTask? { heldTask }

    private let heldRequest: URLRequest
    private let heldClient: (any URLProtocolClient)?
    private let heldResponse: CachedURLResponse?
    private let heldTask: URLSessionTask?

    /// - Parameters:
    ///   - request: the request in its canonical form.
    ///   - cachedResponse: the cached response to the request.
    ///   - client: the receiver of the response.
    public required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        (heldRequest, heldResponse, heldClient, heldTask) = (request, cachedResponse, client, (client as? CustomLoad)?.task)
    }

    /// Creates a protocol for a task's current request.
    public convenience init(task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        // The replacement is never used, because a protocol is never created for a task without a request.
        let request = task.currentRequest ?? URLRequest(url: URL(fileURLWithPath: "/"))
        self.init(request: request, cachedResponse: cachedResponse, client: client)
    }

    /// Returns whether this class responds to the request. Override this method. The default result is `false`.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Returns whether this class responds to the task's request. The default calls ``canInit(with:)-(URLRequest)``.
    open class func canInit(with task: URLSessionTask) -> Bool { task.currentRequest.map { canInit(with: $0) } ?? false }

    /// Returns the request in the common form of all equivalent requests. Override this method. The default returns the request
    /// unchanged.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Returns whether two requests are equivalent for a cache. The default returns whether the requests are equal.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool { a == b }

    /// Begins to send the response to ``client``. Override this method. The session calls it on a serial queue that only this load
    /// uses.
    open func startLoading() {
        client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
    }

    /// Stops the work, because the response is not needed any more or is complete. Override this method. The session calls it once,
    /// on the queue of ``startLoading()``.
    open func stopLoading() {}

    // MARK: Properties of requests

    /// Returns the value that ``setProperty(_:forKey:in:)`` has attached to a request, or `nil`.
    open class func property(forKey key: String, in request: URLRequest) -> Any? {
        request.value(forHTTPHeaderField: RequestProperties.header).flatMap { RequestProperties.known(by: $0)[key] }
    }

    /// Attaches a value to a request, for example to mark it as already seen. The value is not sent to a server.
    ///
    /// Differs from Apple: a request with a value has an additional header, `URLProtocol-Properties`, which is never sent. With
    /// FoundationNetworking's `URLProtocol`, a copy of a request loses such values.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        let known = request.value(forHTTPHeaderField: RequestProperties.header).map(RequestProperties.known) ?? [:]
        request.setValue(
            RequestProperties.store(known.merging([key: value]) { $1 }), forHTTPHeaderField: RequestProperties.header)
    }

    /// Removes a value from a request.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        guard var known = request.value(forHTTPHeaderField: RequestProperties.header).map(RequestProperties.known) else { return }
        known[key] = nil
        request.setValue(known.isEmpty ? nil : RequestProperties.store(known), forHTTPHeaderField: RequestProperties.header)
    }

    // MARK: Classes of the whole process

    /// The registered classes of the process, or of one test on a test host.
    private final class Registry: Sendable {
        let classes = Mutex<[URLProtocol.Type]>([])

        var all: [AnyClass] { classes.withLock { $0 } }
    }

    private static var registry: Registry { AppRuntime.ofWork.part { Registry() } }

    /// Registers a class for ``URLSession/shared``, before the classes that were registered earlier. Other sessions use the classes
    /// of their configurations.
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

    /// Returns the registered classes, the last registered first.
    ///
    /// - Parameter url: the address of the request. On a test host, this address decides whether the test's classes are included.
    ///   The same rule applies to the network.
    static func registeredClasses(for url: URL?) -> [AnyClass] {
        let ofProcess = AppRuntime.ofProcess.part { Registry() }.all
        guard AppRuntime.isOnTestHost || !InProcessTransport.isLoopback(url), AppRuntime.shared.isHosted else { return ofProcess }
        return AppRuntime.shared.part { Registry() }.all + ofProcess
    }
}

/// A receiver of the response of a ``URLProtocol``. The session's task receives the response in the order of the calls. The methods
/// can be called from any thread.
public protocol URLProtocolClient: NSObjectProtocol {
    /// Reports a redirect. The task's delegate chooses the next request. This load then ends, and another load begins for the
    /// chosen request.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)
    /// Reports that a cached response can be used. Differs from Apple: does nothing, because sessions pass no cached response.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)
    /// Reports the response headers, before the first byte.
    ///
    /// Differs from Apple: `policy` has no effect. The response of a protocol is never stored in the cache.
    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)
    /// Reports bytes of the response.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)
    /// Reports that the response is complete.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)
    /// Reports that no response is available, or that the response is incomplete.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)
    /// Reports that a credential is needed. The decision of the task's delegate is passed to the challenge's sender.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)
    /// Reports a cancelled challenge. Differs from Apple: does nothing.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
