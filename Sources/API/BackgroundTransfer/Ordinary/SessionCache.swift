import Foundation
import FoundationNetworking
import TransferMachines

/// A stored response that can be used for a request.
struct CachedResponse: Sendable {
    var response: HTTPURLResponse
    var data: Data

    /// Creates a cached response. Returns `nil` if the stored response does not belong to this request, because Foundation's
    /// cache compares only host and path.
    init?(_ cached: CachedURLResponse, for request: URLRequest) {
        guard let response = cached.response as? HTTPURLResponse, let url = request.url,
            Self.name(response.url) == Self.name(url)
        else { return nil }
        let head = Self.head(response)
        self.response = head.response(asked: url.absoluteString) ?? response
        data = cached.data
    }

    private static func name(_ url: URL?) -> String? {
        url?.absoluteString.split(separator: "#", maxSplits: 1).first.map(String.init)
    }

    private static func head(_ response: HTTPURLResponse) -> ResponseHead {
        ResponseHead(
            status: response.statusCode,
            headers: response.allHeaderFields.map { HeaderField("\($0.key)", "\($0.value)") },
            url: response.url?.absoluteString ?? "")
    }

    var head: ResponseHead { Self.head(response) }

    /// Returns the response in the form in which the cache stores it. The response has a class of Foundation, because an archive
    /// with a class of this module would depend on the module's name.
    ///
    /// - Parameter received: the time of arrival. The time is used if the response contains no date.
    static func kept(_ response: HTTPURLResponse, _ data: Data, received: Date) -> CachedURLResponse? {
        guard let url = response.url else { return nil }
        let fields = CacheRule.dated(head(response).headers, received: received)
        let headers = Dictionary(fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        let plain = HTTPURLResponse(url: url, statusCode: response.statusCode, httpVersion: "HTTP/1.1", headerFields: headers)
        return plain.map { CachedURLResponse(response: $0, data: data, storagePolicy: .allowed) }
    }
}

/// The cache of an ordinary session, used for data tasks with GET. If two responses have equal paths and different queries, only
/// the last response is stored.
struct SessionCache {
    enum Finding: Sendable {
        case askTheServer(adding: [HeaderField])
        case use(CachedResponse)
        /// The server is asked whether the stored response is still valid.
        case askWhether(CachedResponse, [HeaderField])
        /// The cache contains no response, and the cache policy forbids a request to the server.
        case missing
    }

    /// A response is stored only if its size is at most the capacity of the cache divided by this number. On iOS, this number is
    /// also 20.
    private static let largestPart = 20

    private let cache: URLCache?
    private let policy: URLRequest.CachePolicy

    init(_ configuration: URLSessionConfiguration, _ request: URLRequest) {
        cache = configuration.urlCache
        policy = request.cachePolicy == .useProtocolCachePolicy ? configuration.requestCachePolicy : request.cachePolicy
    }

    /// `true` if the cache policy permits a request to the server.
    var mayAsk: Bool { policy != .returnCacheDataDontLoad }

    /// The maximum number of bytes of a stored response.
    var limit: Int { cache.map { max($0.memoryCapacity, $0.diskCapacity) / Self.largestPart } ?? 0 }

    func find(for request: URLRequest, headers: [HeaderField], now: Date) -> Finding {
        let held = cache?.cachedResponse(for: request).flatMap { CachedResponse($0, for: request) }
        // If the app sets conditions in the request headers, the app needs the server's response to these conditions.
        let isConditional = headers.contains { $0.name.lowercased().hasPrefix("if-") || $0.name.lowercased() == "range" }
        switch policy {
        case .returnCacheDataDontLoad: return held.map { .use($0) } ?? .missing
        case .returnCacheDataElseLoad: return held.map { .use($0) } ?? .askTheServer(adding: [])
        case .reloadIgnoringLocalAndRemoteCacheData:
            return .askTheServer(adding: [HeaderField("Cache-Control", "no-cache"), HeaderField("Pragma", "no-cache")])
        case .reloadIgnoringLocalCacheData, .reloadIgnoringCacheData: return .askTheServer(adding: [])
        case .reloadRevalidatingCacheData, .useProtocolCachePolicy:
            guard let held, !isConditional else { return .askTheServer(adding: []) }
            switch CacheRule.state(of: held.head, request: headers, now: now) {
            case .fresh where policy == .useProtocolCachePolicy: return .use(held)
            case .fresh: return .askTheServer(adding: [])
            case .stale(let validators) where validators.isEmpty: return .askTheServer(adding: [])
            case .stale(let validators): return .askWhether(held, validators)
            }
        @unknown default: return .askTheServer(adding: [])
        }
    }

    /// Returns the response in the form in which the cache stores it, or `nil` if the response must not be stored.
    func proposal(
        _ response: HTTPURLResponse, _ head: ResponseHead, _ data: Data, headers: [HeaderField], received: Date
    ) -> CachedURLResponse? {
        guard cache != nil, data.count <= limit, CacheRule.mayKeep(head, request: headers) else { return nil }
        // The app asked for an encoding that it decodes itself. The encoded bytes cannot be used for other requests.
        guard ContentCoding.isDecoded(inResponseTo: headers) || data.isEmpty else { return nil }
        return CachedResponse.kept(response, data, received: received)
    }

    func store(_ cached: CachedURLResponse, for request: URLRequest) { cache?.storeCachedResponse(cached, for: request) }

    /// Removes the stored response, because a request has changed the resource at this address.
    func forget(_ request: URLRequest) { cache?.removeCachedResponse(for: request) }
}
