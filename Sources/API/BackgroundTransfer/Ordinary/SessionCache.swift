import Foundation
import FoundationNetworking
import TransferMachines

/// An answer as a cache has it.
struct CachedAnswer: Sendable {
    var response: HTTPURLResponse
    var data: Data

    /// `nil`: it is no answer to this request. Foundation's cache finds what it has by host and path alone.
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

    /// For the disk: Foundation's own class, as a class of ours would be bound to its module's name there.
    ///
    /// - Parameter received: when it came; counts where the server does not say when it made it.
    static func kept(_ response: HTTPURLResponse, _ data: Data, received: Date) -> CachedURLResponse? {
        guard let url = response.url else { return nil }
        let fields = CacheRule.dated(head(response).headers, received: received)
        let headers = Dictionary(fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        let plain = HTTPURLResponse(url: url, statusCode: response.statusCode, httpVersion: "HTTP/1.1", headerFields: headers)
        return plain.map { CachedURLResponse(response: $0, data: data, storagePolicy: .allowed) }
    }
}

/// The cache of an ordinary session, asked for data tasks with GET. Of two queries of one path it holds the last.
struct SessionCache {
    enum Finding: Sendable {
        case askTheServer(adding: [HeaderField])
        case use(CachedAnswer)
        /// The server is asked whether this still holds.
        case askWhether(CachedAnswer, [HeaderField])
        /// The policy forbids to ask, and there is nothing here.
        case missing
    }

    /// Of the cache's room, at most this part for one answer, as on iOS.
    private static let largestPart = 20

    private let cache: URLCache?
    private let policy: URLRequest.CachePolicy

    init(_ configuration: URLSessionConfiguration, _ request: URLRequest) {
        cache = configuration.urlCache
        policy = request.cachePolicy == .useProtocolCachePolicy ? configuration.requestCachePolicy : request.cachePolicy
    }

    /// Whether the policy lets anything go to the network.
    var mayAsk: Bool { policy != .returnCacheDataDontLoad }

    /// Bytes of an answer that could be kept, at most.
    var limit: Int { cache.map { max($0.memoryCapacity, $0.diskCapacity) / Self.largestPart } ?? 0 }

    func look(for request: URLRequest, headers: [HeaderField], now: Date) -> Finding {
        let held = cache?.cachedResponse(for: request).flatMap { CachedAnswer($0, for: request) }
        // Who asks with conditions of their own wants the server's answer to them.
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

    /// What may be kept of this answer; `nil`: nothing.
    func proposal(
        _ response: HTTPURLResponse, _ head: ResponseHead, _ data: Data, headers: [HeaderField], received: Date
    ) -> CachedURLResponse? {
        guard cache != nil, data.count <= limit, CacheRule.mayKeep(head, request: headers) else { return nil }
        // Bytes that only their app can decode are of no use to other requests.
        guard ContentCoding.isDecoded(inResponseTo: headers) || data.isEmpty else { return nil }
        return CachedAnswer.kept(response, data, received: received)
    }

    func keep(_ cached: CachedURLResponse, for request: URLRequest) { cache?.storeCachedResponse(cached, for: request) }

    /// The server was told to change what is at this address.
    func forget(_ request: URLRequest) { cache?.removeCachedResponse(for: request) }
}
