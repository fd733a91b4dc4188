import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing

/// Tests of behaviour that the documentation of `URLSession` describes: requests, redirects, errors and metrics.
@Suite(.timeLimit(.minutes(30))) struct SessionBehaviourTests {
    let server: FaultyServer

    init() async throws { server = try await FaultyServer.start() }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    private let session = URLSession(configuration: .ephemeral)

    // MARK: Requests

    @Test func `a POST body has the content type of a form unless the request sets another type`() async throws {
        server.route(nil, "/form", .status(200))
        var request = try URLRequest(url: url("/form"))
        request.httpMethod = "POST"
        request.httpBody = Data("a=1".utf8)
        _ = try await session.data(for: request)
        #expect(server.requests().last?.headers["Content-Type"] == "application/x-www-form-urlencoded")
        request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        _ = try await session.data(for: request)
        #expect(server.requests().last?.headers["Content-Type"] == "text/plain")
        request.httpMethod = "PUT"
        request.setValue(nil, forHTTPHeaderField: "Content-Type")
        _ = try await session.data(for: request)
        #expect(server.requests().last?.headers["Content-Type"] == nil)
    }

    @Test func `a GET request with a body is refused`() async throws {
        var request = try URLRequest(url: url("/x"))
        request.httpBody = Data("x".utf8)
        let asked = request
        let error = await #expect(throws: URLError.self) { try await session.data(for: asked) }
        #expect(error?.code == .dataLengthExceedsMaximum && server.requests().isEmpty)
        request.httpBody = nil
        request.httpBodyStream = InputStream(data: Data("x".utf8))
        let streamed = request
        let second = await #expect(throws: URLError.self) { try await session.data(for: streamed) }
        #expect(second?.code == .dataLengthExceedsMaximum)
    }

    @Test func `the languages of the user are sent unless the request sets other languages`() async throws {
        server.route(nil, "/x", .status(200))
        _ = try await session.data(from: url("/x"))
        #expect(server.requests().last?.headers["Accept-Language"]?.isEmpty == false)
        var request = try URLRequest(url: url("/x"))
        request.setValue("de", forHTTPHeaderField: "Accept-Language")
        _ = try await session.data(for: request)
        #expect(server.requests().last?.headers["Accept-Language"] == "de")
    }

    @Test func `a URL with an invalid port is a bad URL`() async throws {
        let place = try #require(URL(string: "http://127.0.0.1:999999/"))
        let error = await #expect(throws: URLError.self) { try await session.data(from: place) }
        #expect(error?.code == .badURL)
    }

    // MARK: Redirects

    private final class Redirector: NSObject, URLSessionDataDelegate, Sendable {
        let proposed = Mutex<URLRequest?>(nil)
        let bytes = Mutex(Data())
        let change: @Sendable (URLRequest) -> URLRequest?
        let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)

        init(_ change: @escaping @Sendable (URLRequest) -> URLRequest?) { self.change = change }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            proposed.withLock { $0 = request }
            completionHandler(change(request))
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            bytes.withLock { $0 += data }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended.yield(error as? URLError)
            ended.finish()
        }
    }

    @Test(arguments: [302, 307])
    func `the request that a redirect handler returns is used completely`(_ status: Int) async throws {
        let other = try await FaultyServer.start()
        other.route(nil, "/b", .status(200))
        server.route("POST", "/a", .redirect(status, to: other.url + "/b"))
        let handler = Redirector { request in
            var request = request
            request.httpMethod = "PATCH"
            request.httpBody = Data("of the handler".utf8)
            request.setValue("key", forHTTPHeaderField: "X-Key")
            request.timeoutInterval = 7
            return request
        }
        var request = try URLRequest(url: url("/a"))
        request.httpMethod = "POST"
        request.httpBody = Data("form".utf8)
        request.timeoutInterval = 3
        request.setValue("secret", forHTTPHeaderField: "X-Token")
        let (_, response) = try await session.data(for: request, delegate: handler)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        let proposed = try #require(handler.proposed.withLock { $0 })
        #expect(proposed.timeoutInterval == 3 && proposed.httpBody == (status == 307 ? Data("form".utf8) : nil))
        #expect(proposed.httpMethod == (status == 307 ? "POST" : "GET") && proposed.value(forHTTPHeaderField: "X-Token") == nil)
        let second = try #require(other.requests(matching: "/b").last)
        #expect(second.method == "PATCH" && second.headers["X-Key"] == "key" && second.bodyByteCount == 14)
        #expect(second.headers["X-Token"] == nil)
    }

    @Test func `the timeout that a redirect handler sets is used`() async throws {
        server.route("GET", "/a", .redirect(302, to: "/silent"))
        server.route("GET", "/silent", .silence)
        let handler = Redirector { request in
            var request = request
            request.timeoutInterval = 0.3
            return request
        }
        let error = await #expect(throws: URLError.self) { try await session.data(from: url("/a"), delegate: handler) }
        #expect(error?.code == .timedOut && error?.failingURL?.path == "/silent")
    }

    @Test(arguments: [true, false]) func `a refused redirect returns its response and body`(_ isDelegated: Bool) async throws {
        server.route(
            "GET", "/a",
            .init([.status(302), .headers(["Location": "/b", "Content-Length": "5"]), .body("moved")]))
        let handler = Redirector { _ in nil }
        guard isDelegated else {
            let (data, response) = try await session.data(from: url("/a"), delegate: handler)
            #expect(String(decoding: data, as: UTF8.self) == "moved" && (response as? HTTPURLResponse)?.statusCode == 302)
            let (file, _) = try await session.download(from: url("/a"), delegate: handler)
            #expect(try String(contentsOf: file, encoding: .utf8) == "moved")
            return try FileManager.default.removeItem(at: file)
        }
        let task = try session.dataTask(with: url("/a"))
        task.delegate = handler
        task.resume()
        for await error in handler.ends { #expect(error == nil) }
        #expect(handler.bytes.withLock { String(decoding: $0, as: UTF8.self) } == "moved")
        #expect((task.response as? HTTPURLResponse)?.statusCode == 302)
        #expect(server.requests(matching: "/a").count == 1 && server.requests(matching: "/b").isEmpty)
    }

    @Test func `the current request of a task follows a redirect`() async throws {
        server.route("GET", "/a", .redirect(302, to: "/b"))
        server.route("GET", "/b", .status(200))
        let (ends, ended) = AsyncStream.makeStream(of: Void.self)
        let task = try session.dataTask(with: url("/a")) { _, _, _ in ended.finish() }
        task.resume()
        for await _ in ends {}
        #expect(task.originalRequest?.url?.path == "/a" && task.currentRequest?.url?.path == "/b")
    }

    /// The server receives only one request.
    @Test func `a challenge without a credential returns the 401 response`() async throws {
        server.route(nil, "/secret", .status(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""], body: "who?"))
        let (data, response) = try await session.data(from: url("/secret"))
        #expect(String(decoding: data, as: UTF8.self) == "who?" && (response as? HTTPURLResponse)?.statusCode == 401)
        #expect(server.requests(matching: "/secret").count == 1)
    }

    @Test func `a stored credential is tried once`() async throws {
        server.handle(nil, "/secret") { request in
            request.headers["Authorization"] == "Basic " + Data("tom:right".utf8).base64EncodedString()
                ? .status(200, body: "in") : .status(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""], body: "who?")
        }
        let configuration = URLSessionConfiguration.ephemeral
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: server.port, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        let storage = try #require(configuration.urlCredentialStorage)
        let session = URLSession(configuration: configuration)
        for (password, status) in [("wrong", 401), ("right", 200)] {
            storage.setDefaultCredential(URLCredential(user: "tom", password: password, persistence: .forSession), for: space)
            let (_, response) = try await session.data(from: url("/secret"))
            #expect((response as? HTTPURLResponse)?.statusCode == status)
        }
        #expect(server.requests(matching: "/secret").count == 4)
    }

    // MARK: Errors and lists

    @Test func `every error contains the URL of its request`() async throws {
        let place = try #require(URL(string: "http://127.0.0.1:1/closed"))
        let error = await #expect(throws: URLError.self) { try await session.data(from: place) }
        #expect(error?.failingURL == place && error?.failureURLString == place.absoluteString)
        #expect(error?.localizedDescription.isEmpty == false)
        let task = session.dataTask(with: place)
        task.cancel()
        let cancelled = try #require(task.error as? URLError)
        #expect(cancelled.code == .cancelled && cancelled.failingURL == place && cancelled.localizedDescription == "cancelled")
    }

    @Test func `the shared session cannot be invalidated`() async throws {
        server.route("GET", "/x", .status(200, body: "x"))
        URLSession.shared.invalidateAndCancel()
        URLSession.shared.finishTasksAndInvalidate()
        let (data, _) = try await URLSession.shared.data(from: url("/x"))
        #expect(data.count == 1)
    }

    @Test func `an invalidated session lists no tasks`() async throws {
        server.route("GET", "/never", .silence)
        let session = URLSession(configuration: .ephemeral)
        for resumes in [true, true, false] {
            let task = try session.dataTask(with: url("/never"))
            if resumes { task.resume() }
        }
        let unused = try session.downloadTask(with: url("/never"))
        unused.cancel()
        #expect(await session.allTasks.count == 3)
        session.invalidateAndCancel()
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `a task is not listed any more when its completion handler is called`() async throws {
        server.route("GET", "/x", .status(200))
        let (counts, counted) = AsyncStream.makeStream(of: Int.self)
        let session = session
        let task = try session.dataTask(with: url("/x")) { _, _, _ in
            Task {
                counted.yield(await session.allTasks.count)
                counted.finish()
            }
        }
        task.resume()
        for await count in counts { #expect(count == 0) }
    }

    // MARK: Compressed responses

    /// The request accepts no compression, but the server compresses the response.
    @Test func `a compressed download is decoded`() async throws {
        let hello = try #require(Data(base64Encoded: "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA=="))
        server.route(
            "GET", "/f",
            .status(200, headers: ["Content-Encoding": "gzip", "ETag": "\"1\""], body: .bytes(hello)))
        let (file, _) = try await session.download(from: url("/f"))
        #expect(try String(contentsOf: file, encoding: .utf8) == "hello")
        try FileManager.default.removeItem(at: file)
        #expect(server.requests(matching: "/f").last?.headers["Accept-Encoding"] == "identity")
    }

    // MARK: Metrics

    @Test func `metrics contain a transaction for each response`() async throws {
        final class Collector: NSObject, URLSessionTaskDelegate, Sendable {
            let (all, got) = AsyncStream.makeStream(of: URLSessionTaskMetrics.self)
            func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
                got.yield(metrics)
                got.finish()
            }
        }
        server.route("GET", "/a", .redirect(302, to: "/b"))
        server.route("GET", "/b", .status(200, body: "hello"))
        let collector = Collector()
        let task = try session.dataTask(with: url("/a"))
        task.delegate = collector
        task.resume()
        for await metrics in collector.all {
            #expect(metrics.redirectCount == 1 && metrics.transactionMetrics.count == 2)
            let (first, second) = (metrics.transactionMetrics[0], metrics.transactionMetrics[1])
            #expect((first.response as? HTTPURLResponse)?.statusCode == 302 && first.request.url?.path == "/a")
            #expect((second.response as? HTTPURLResponse)?.statusCode == 200 && second.request.url?.path == "/b")
            #expect(second.networkProtocolName == "http/1.1" && second.resourceFetchType == .networkLoad)
            #expect(second.remoteAddress == "127.0.0.1" && second.remotePort == server.port)
            // Connections of other tests in this process may displace this connection from the connection pool. The second
            // request then opens another connection.
            #expect(second.isReusedConnection == (server.connectionCount == 1))
            #expect((second.connectStartDate == nil) == second.isReusedConnection)
            #expect(second.countOfResponseBodyBytesReceived == 5)
            for one in [first, second] {
                let dates = [
                    one.fetchStartDate, one.domainLookupStartDate, one.domainLookupEndDate, one.connectStartDate,
                    one.connectEndDate, one.requestStartDate, one.responseStartDate, one.responseEndDate,
                ].compactMap { $0 }
                #expect(dates == dates.sorted() && dates.count >= 4, "\(dates)")
            }
        }
    }
}

extension URLError {
    fileprivate var failureURLString: String? { userInfo["NSErrorFailingURLStringKey"] as? String }
}
