import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization

/// Answers requests in the network's place: for schemes of the app's own, and for tests that stub a server.
///
/// An ordinary session asks the classes of its configuration's ``URLSessionConfiguration/protocolClasses``, the first one first, before anything goes
/// to the network. A background session has none, on any platform: its requests are made by another process.
///
/// Differs from Apple: a task of a background session whose request one of the configuration's classes would take ends in
/// `URLError.unsupportedURL`, so that a test's stub is never passed over in silence. The classes of FoundationNetworking's own `URLProtocol` are not these:
/// a session whose configuration names one ends every task so.
open class URLProtocol: NSObject {
    /// What is to be answered.
    open var request: URLRequest { heldRequest }
    /// Takes the answer.
    open var client: (any URLProtocolClient)? { heldClient }
    /// What the cache has for the request. Differs from Apple: always what ``init(request:cachedResponse:client:)`` was given; sessions give none.
    open var cachedResponse: CachedURLResponse? { heldResponse }
    /// Whose request it is.
    open var task: URLSessionTask? { heldTask }

    private let heldRequest: URLRequest
    private let heldClient: (any URLProtocolClient)?
    private let heldResponse: CachedURLResponse?
    private let heldTask: URLSessionTask?

    /// - Parameters:
    ///   - request: in its canonical form.
    ///   - cachedResponse: what the cache has for it.
    ///   - client: takes the answer.
    public required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        (heldRequest, heldResponse, heldClient, heldTask) = (request, cachedResponse, client, (client as? CustomLoad)?.task)
    }

    /// The same for a task's current request.
    public convenience init(task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        // A task without a request is never asked about.
        let request = task.currentRequest ?? URLRequest(url: URL(fileURLWithPath: "/"))
        self.init(request: request, cachedResponse: cachedResponse, client: client)
    }

    /// Whether this class answers the request. Override it; this one says no.
    open class func canInit(with request: URLRequest) -> Bool { false }

    /// Whether this class answers the task's request. Asks ``canInit(with:)-(URLRequest)``.
    open class func canInit(with task: URLSessionTask) -> Bool { task.currentRequest.map { canInit(with: $0) } ?? false }

    /// The request in one form of those that mean the same. Override it; this one returns the request.
    open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether two requests mean the same to a cache. This one compares them.
    open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool { a == b }

    /// Begins to answer, through ``client``. Override it. Called on a queue of the load's own.
    open func startLoading() {
        client?.urlProtocol(self, didFailWithError: URLError(.unsupportedURL))
    }

    /// Nobody wants the answer any more, or it is complete. Override it. Called once, on the queue of ``startLoading()``.
    open func stopLoading() {}

    // MARK: Properties of requests

    /// What ``setProperty(_:forKey:in:)`` has put into a request, or `nil`.
    open class func property(forKey key: String, in request: URLRequest) -> Any? {
        request.value(forHTTPHeaderField: RequestProperties.header).flatMap { RequestProperties.known(by: $0)[key] }
    }

    /// Marks a request: as one that was seen before, say. Nothing of it goes to a server.
    ///
    /// Differs from Apple: a request that is marked shows a header more, `URLProtocol-Properties`, which is never sent. Foundation's own requests lose
    /// such marks when they are copied.
    open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
        let known = request.value(forHTTPHeaderField: RequestProperties.header).map(RequestProperties.known) ?? [:]
        request.setValue(
            RequestProperties.keep(known.merging([key: value]) { $1 }), forHTTPHeaderField: RequestProperties.header)
    }

    /// Takes a mark away.
    open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
        guard var known = request.value(forHTTPHeaderField: RequestProperties.header).map(RequestProperties.known) else { return }
        known[key] = nil
        request.setValue(known.isEmpty ? nil : RequestProperties.keep(known), forHTTPHeaderField: RequestProperties.header)
    }

    // MARK: Classes of the whole process

    /// Of the process, or of one test on a test host.
    private final class Registry: Sendable {
        let classes = Mutex<[URLProtocol.Type]>([])

        var all: [AnyClass] { classes.withLock { $0 } }
    }

    private static var registry: Registry { AppRuntime.ofWork.part { Registry() } }

    /// Has ``URLSession/shared`` ask this class, before those registered earlier. Other sessions ask those of their configurations.
    ///
    /// - Returns: `false`: it is no subclass of this one.
    @discardableResult
    open class func registerClass(_ protocolClass: AnyClass) -> Bool {
        guard let protocolClass = protocolClass as? URLProtocol.Type else { return false }
        registry.classes.withLock { list in
            list.removeAll { $0 == protocolClass }
            list.insert(protocolClass, at: 0)
        }
        return true
    }

    /// Takes a class back that was registered.
    open class func unregisterClass(_ protocolClass: AnyClass) {
        registry.classes.withLock { list in list.removeAll { $0 == protocolClass } }
    }

    /// The last registered first.
    ///
    /// - Parameter url: of whom a test host knows whether it is its own, as the network does.
    static func registeredClasses(for url: URL?) -> [AnyClass] {
        let ofProcess = AppRuntime.ofProcess.part { Registry() }.all
        guard AppRuntime.isOnTestHost || !InProcessTransport.isLoopback(url), AppRuntime.shared.isHosted else { return ofProcess }
        return AppRuntime.shared.part { Registry() }.all + ofProcess
    }
}

/// Takes what a ``URLProtocol`` answers: the session's task, in the order of the calls. From any thread.
public protocol URLProtocolClient: NSObjectProtocol {
    /// The request leads to another one. The task's delegate is asked; the load ends, and another begins for what it chose.
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)
    /// An answer of the cache's may be used. Differs from Apple: sessions give no cached response, and this does nothing.
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)
    /// The answer's head, before its first byte.
    ///
    /// Differs from Apple: `policy` has no effect; an answer of a protocol's is not put into the cache.
    func urlProtocol(_ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)
    /// Bytes of the answer.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)
    /// The answer is complete.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)
    /// There is no answer, or no whole one.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)
    /// A credential is asked for. The task's delegate is asked, and its answer goes to the challenge's sender.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)
    /// Differs from Apple: does nothing.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
