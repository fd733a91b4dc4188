import Foundation
import FoundationNetworking
import TransferMachines

/// The next step after a response that is not the final response.
enum Detour: Sendable {
    /// A redirect. The value is the proposed request.
    case redirect(URLRequest)
    case challenge(AuthenticationDemand)
    /// The cached response is still valid.
    case notModified(CachedResponse)
    /// The task fails with this error, because the response is not accepted completely.
    case refused(URLError)

    /// - Parameters:
    ///   - order: the request in the form in which it was sent.
    ///   - request: the app's request from which `order` was made.
    static func read(_ head: ResponseHead, _ order: WireOrder, _ request: URLRequest, challenges: Int) -> Detour? {
        do {
            let next = try RedirectRule.next(method: order.method, url: order.url, headers: order.headers, head: head)
            if let next {
                return URL(string: next.url).map { .redirect(proposed($0, next.method, next.headers, order, request)) }
            }
        } catch {
            let trouble: WireFailure = error == .otherScheme ? .redirectToOtherScheme : .badAnswer("a malformed redirect")
            return .refused(TransferTrouble(trouble).urlError)
        }
        if challenges < 3, let demand = AuthenticationDemand.read(head) { return .challenge(demand) }
        return nil
    }

    /// Returns the app's request with the changes that a redirect requires. If the method does not change, the body is kept.
    private static func proposed(
        _ url: URL, _ method: String, _ headers: [HeaderField], _ order: WireOrder, _ request: URLRequest
    ) -> URLRequest {
        var next = request
        (next.url, next.httpMethod) = (url, method)
        next.allHTTPHeaderFields = Dictionary(headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $0 + ", " + $1 })
        if method != order.method { (next.httpBody, next.httpBodyStream) = (nil, nil) }
        return next
    }
}

/// The body of a response that is a redirect or a challenge. If the delegate does not follow the redirect, or provides no
/// credential, the app receives this body.
struct DetourBody: Sendable {
    /// The maximum number of stored bytes. The body of a redirect or challenge is usually short.
    private static let limit = 4 << 20
    /// The limits in bytes and time for a body that is probably not needed. Such a body is received up to these limits, because
    /// the connection can be used again only after a complete body.
    private static let unwanted = (bytes: 64 << 10, time: Duration.seconds(2))

    private let began = ContinuousClock.now

    /// The bytes of the body, or `nil` if the body is longer than the limit.
    private(set) var data: Data? = Data()

    /// - Parameter mayBeAnswer: `true` if a delegate may refuse to follow the redirect, so the app receives the body. If the
    ///   value is `false`, the body is not used.
    func isWanted(mayBeAnswer: Bool) -> Bool {
        guard let count = data?.count else { return false }
        return mayBeAnswer || count <= Self.unwanted.bytes && began.duration(to: .now) <= Self.unwanted.time
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let count = data?.count, count + bytes.count <= Self.limit else { return data = nil }
        data?.append(contentsOf: bytes)
    }
}

extension TransferTrouble {
    var urlError: URLError {
        URLError(URLError.Code(rawValue: code) ?? .unknown, userInfo: [NSLocalizedDescriptionKey: message])
    }
}
