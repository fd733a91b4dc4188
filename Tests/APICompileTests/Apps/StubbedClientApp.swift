// A client of a weather service, and the stub that the client's tests use instead of the network. The code was written for iOS,
// and only its imports were changed.
import BackgroundTransfer

struct CurrentWeather: Codable, Equatable, Sendable {
    let city: String
    let celsius: Double
}

struct WeatherClient: Sendable {
    enum Failure: Error, Equatable { case notFound, badStatus(Int) }

    private let session: URLSession
    private let baseURL = URL(string: "https://api.weather.test/v2")!

    init(session: URLSession = .shared) { self.session = session }

    func current(in city: String) async throws -> CurrentWeather {
        var request = URLRequest(url: baseURL.appendingPathComponent("current").appendingPathComponent(city))
        request.setValue("Bearer token", forHTTPHeaderField: "Authorization")
        let (data, response) = try await session.data(for: request)
        switch (response as? HTTPURLResponse)?.statusCode {
        case 200?: return try JSONDecoder().decode(CurrentWeather.self, from: data)
        case 404?: throw Failure.notFound
        case let status?: throw Failure.badStatus(status)
        case nil: throw URLError(.badServerResponse)
        }
    }

    func report(_ weather: CurrentWeather, completion: @escaping @Sendable (Result<Int, Error>) -> Void) {
        var request = URLRequest(url: baseURL.appendingPathComponent("reports"))
        request.httpMethod = "POST"
        do { request.httpBody = try JSONEncoder().encode(weather) } catch { return completion(.failure(error)) }
        session.dataTask(with: request) { _, response, error in
            if let error { return completion(.failure(error)) }
            completion(.success((response as? HTTPURLResponse)?.statusCode ?? 0))
        }.resume()
    }
}

/// A stub that responds to requests instead of a server.
final class MockURLProtocol: URLProtocol, @unchecked Sendable {
    typealias RequestHandler = @Sendable (URLRequest) throws -> (HTTPURLResponse, Data)

    private static let lock = NSLock()
    nonisolated(unsafe) private static var handler: RequestHandler?
    nonisolated(unsafe) private static var seen: [URLRequest] = []

    static var requestHandler: RequestHandler? {
        get { lock.withLock { handler } }
        set { lock.withLock { (handler, seen) = (newValue, []) } }
    }

    static var requests: [URLRequest] { lock.withLock { seen } }

    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "https" }

    override class func canInit(with task: URLSessionTask) -> Bool { task is URLSessionDataTask }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        Self.lock.withLock { Self.seen.append(request) }
        guard let handler = Self.requestHandler else {
            client?.urlProtocol(self, didFailWithError: URLError(.resourceUnavailable))
            return
        }
        do {
            let (response, data) = try handler(request)
            client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
            client?.urlProtocol(self, didLoad: data)
            client?.urlProtocolDidFinishLoading(self)
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }

    override func stopLoading() {}
}

extension URLSession {
    /// Returns a session that uses the stub, for the tests of this app.
    static func stubbed(_ handler: @escaping MockURLProtocol.RequestHandler) -> URLSession {
        MockURLProtocol.requestHandler = handler
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [MockURLProtocol.self]
        return URLSession(configuration: configuration)
    }
}

extension URLRequest {
    /// A URL protocol class receives the body as a stream.
    var bodyData: Data? {
        if let httpBody { return httpBody }
        guard let stream = httpBodyStream else { return nil }
        stream.open()
        defer { stream.close() }
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while stream.hasBytesAvailable {
            let count = stream.read(&buffer, maxLength: buffer.count)
            if count <= 0 { break }
            data.append(contentsOf: buffer[..<count])
        }
        return data
    }
}
