// A networking layer without Combine: typed requests, retries, and responses to challenges. The code was written for iOS, and
// only its imports were changed.
import BackgroundTransfer

struct Endpoint<Response: Decodable & Sendable>: Sendable {
    enum Method: String, Sendable { case get = "GET", post = "POST", delete = "DELETE" }

    var path: String
    var method = Method.get
    var query: [URLQueryItem] = []
    var body: Data?
}

extension Endpoint {
    static func post(_ path: String, _ body: some Encodable) throws -> Self {
        try Endpoint(path: path, method: .post, body: JSONEncoder().encode(body))
    }
}

enum APIError: Error, Equatable {
    case unauthorized
    case status(Int)
    case invalidResponse
    case decoding(String)
    case transport(URLError.Code)
}

struct RetryPolicy: Sendable {
    var maximumAttempts = 3
    var baseDelay: Duration = .seconds(1)
    var retriedStatusCodes: Set<Int> = [408, 429, 500, 502, 503, 504]
    var retriedErrors: Set<URLError.Code> = [.timedOut, .networkConnectionLost, .cannotConnectToHost, .notConnectedToInternet]

    func delay(attempt: Int, response: HTTPURLResponse?) -> Duration {
        if let seconds = response?.value(forHTTPHeaderField: "Retry-After").flatMap(Int.init) { return .seconds(seconds) }
        return baseDelay * (1 << (attempt - 1))
    }
}

final class APIClient: Sendable {
    private let baseURL: URL
    private let session: URLSession
    private let policy: RetryPolicy
    private let clock: any Clock<Duration>
    private let decoder: JSONDecoder

    init(
        baseURL: URL, configuration: URLSessionConfiguration = .default, delegate: (any URLSessionDelegate)? = nil,
        policy: RetryPolicy = RetryPolicy(), clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.baseURL = baseURL
        self.policy = policy
        self.clock = clock
        decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        configuration.timeoutIntervalForRequest = 30
        configuration.waitsForConnectivity = false
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpAdditionalHeaders = ["Accept": "application/json", "User-Agent": "Example/1.0"]
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    deinit { session.finishTasksAndInvalidate() }

    func send<Response>(_ endpoint: Endpoint<Response>, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> Response {
        let request = try makeRequest(endpoint)
        let (data, _) = try await perform(request, delegate: delegate)
        do {
            return try decoder.decode(Response.self, from: data)
        } catch let error as DecodingError {
            throw APIError.decoding("\(error)")
        }
    }

    private func makeRequest<Response>(_ endpoint: Endpoint<Response>) throws -> URLRequest {
        guard var components = URLComponents(url: baseURL.appendingPathComponent(endpoint.path), resolvingAgainstBaseURL: true)
        else { throw URLError(.badURL) }
        if !endpoint.query.isEmpty { components.queryItems = endpoint.query }
        guard let url = components.url else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        request.httpMethod = endpoint.method.rawValue
        request.httpBody = endpoint.body
        if endpoint.body != nil { request.setValue("application/json", forHTTPHeaderField: "Content-Type") }
        return request
    }

    private func perform(
        _ request: URLRequest, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, HTTPURLResponse) {
        var attempt = 1
        while true {
            var refusal: HTTPURLResponse?
            do {
                let (data, response) = try await session.data(for: request, delegate: delegate)
                guard let http = response as? HTTPURLResponse else { throw APIError.invalidResponse }
                switch http.statusCode {
                case 200...299: return (data, http)
                case 401: throw APIError.unauthorized
                case let code where policy.retriedStatusCodes.contains(code) && attempt < policy.maximumAttempts: refusal = http
                case let code: throw APIError.status(code)
                }
            } catch let error as URLError {
                guard policy.retriedErrors.contains(error.code), attempt < policy.maximumAttempts else {
                    if error.code == .cancelled { throw CancellationError() }
                    throw APIError.transport(error.code)
                }
            }
            try await clock.sleep(for: policy.delay(attempt: attempt, response: refusal))
            attempt += 1
        }
    }
}

/// A session delegate that responds to challenges and records metrics.
final class SessionAuthenticator: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    private let credentials: [String: URLCredential]
    private let lock = NSLock()
    private var collected: [URLSessionTaskMetrics] = []
    private(set) var challengedMethods: [String] = []

    init(credentials: [String: URLCredential]) { self.credentials = credentials }

    var metrics: [URLSessionTaskMetrics] { lock.withLock { collected } }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        lock.withLock { challengedMethods.append(space.authenticationMethod) }
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest:
            guard challenge.previousFailureCount == 0, let credential = credentials[space.host] else {
                return completionHandler(.cancelAuthenticationChallenge, nil)
            }
            completionHandler(.useCredential, credential)
        case NSURLAuthenticationMethodServerTrust:
            guard let trust = space.serverTrust else { return completionHandler(.performDefaultHandling, nil) }
            completionHandler(.useCredential, URLCredential(trust: trust))
        default: completionHandler(.performDefaultHandling, nil)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        lock.withLock { collected.append(metrics) }
        for transaction in metrics.transactionMetrics {
            let start = transaction.requestStartDate ?? transaction.fetchStartDate
            print(transaction.networkProtocolName ?? "?", transaction.isReusedConnection, start as Any)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        // The password is not sent to another host.
        completionHandler(request.url?.host == task.originalRequest?.url?.host ? request : nil)
    }
}

/// A session delegate with async methods, as in newer code.
final class AsyncAuthenticator: NSObject, URLSessionTaskDelegate, Sendable {
    private let user: String
    private let password: String

    init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic,
            challenge.previousFailureCount < 1
        else { return (.performDefaultHandling, nil) }
        return (.useCredential, URLCredential(user: user, password: password, persistence: .forSession))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? { nil }
}
