import Foundation
import FoundationNetworking
import TransferMachines

/// What an answer that is not the last one leads to.
enum Detour: Sendable {
    /// To the request that is proposed.
    case redirect(URLRequest)
    case challenge(AuthenticationDemand)
    /// The cache has it still.
    case notModified(CachedAnswer)
    /// It is not taken, or not in full.
    case refused(URLError)

    /// - Parameters:
    ///   - order: what was sent.
    ///   - request: of the app's, from which it was made.
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

    /// The app's request, as the server wants it: the body goes on where the method does.
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

/// The body of an answer that leads elsewhere: it is the task's answer if nobody goes there.
struct DetourBody: Sendable {
    /// Bytes kept. Such a body says in a few words where to go.
    private static let limit = 4 << 20
    /// What is waited for of a body that nobody may want: so many bytes, so long. The connection can be used again after it.
    private static let unwanted = (bytes: 64 << 10, time: Duration.seconds(2))

    private let began = ContinuousClock.now

    /// `nil`: longer than is kept.
    private(set) var data: Data? = Data()

    /// - Parameter mayBeAnswer: the delegate may refuse to go on; else nobody gets it.
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
