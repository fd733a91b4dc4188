import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing

/// Tests of faults of servers, of unusual delegates, and of cancellations at unusual times.
@Suite(.timeLimit(.minutes(30))) struct SessionHostileTests {
    let server: FaultyServer

    init() async throws { server = try await FaultyServer.start() }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    private static func date(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: date)
    }

    // MARK: The cache

    /// Foundation stores cached responses on the disk, and finds them only by host and path. The session must therefore compare
    /// the complete URL.
    @Test func `a cache on the disk is used only for the same URL`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cache-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let fresh: HeaderList = ["Date": Self.date(Date()), "Cache-Control": "max-age=600"]
        server.handle("GET", "/search") { .status(200, headers: fresh, body: .text($0.query ?? "none")) }
        func configuration() -> URLSessionConfiguration {
            let configuration = URLSessionConfiguration.ephemeral
            // The cache uses no memory, so a cached response is read from the disk.
            configuration.urlCache = URLCache(memoryCapacity: 0, diskCapacity: 20 << 20, directory: folder)
            return configuration
        }
        func ask(_ query: String) async throws -> (String, URLResponse) {
            let (data, response) = try await URLSession(configuration: configuration()).data(from: url("/search?" + query))
            return (String(decoding: data, as: UTF8.self), response)
        }
        #expect(try await ask("q=a").0 == "q=a")
        let (again, response) = try await ask("q=a")
        #expect(
            again == "q=a" && server.requests(matching: "/search").count == 1,
            "the second response is from the cache on the disk")
        #expect(response.suggestedFilename == "search")
        #expect(try await ask("q=b").0 == "q=b")
        #expect(try await ask("q=a").0 == "q=a")
        #expect(server.requests(matching: "/search").count == 3)
    }

    @Test func `a response that required a password is not cached`() async throws {
        let fresh: HeaderList = ["Date": Self.date(Date()), "Cache-Control": "max-age=600"]
        server.handle(nil, "/secret") { request in
            request.headers["Authorization"] != nil
                ? .status(200, headers: fresh, body: "private")
                : .status(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""], body: "who?")
        }
        final class Tom: NSObject, URLSessionTaskDelegate, Sendable {
            func urlSession(_ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge) async
                -> (URLSession.AuthChallengeDisposition, URLCredential?)
            { (.useCredential, URLCredential(user: "tom", password: "x", persistence: .none)) }
        }
        let configuration = URLSessionConfiguration.ephemeral
        let (data, _) = try await URLSession(configuration: configuration).data(from: url("/secret"), delegate: Tom())
        #expect(String(decoding: data, as: UTF8.self) == "private")
        let (other, _) = try await URLSession(configuration: configuration).data(from: url("/secret"))
        #expect(String(decoding: other, as: UTF8.self) == "who?")
    }

    @Test func `a changed response replaces the cached response`() async throws {
        let version = Mutex(1)
        server.handle("GET", "/f") { request in
            let tag = version.withLock { "\"\($0)\"" }
            if request.headers["If-None-Match"] == tag { return .status(304, headers: ["ETag": tag]) }
            return .status(200, headers: ["Cache-Control": "no-cache", "ETag": tag], body: .text(tag))
        }
        let session = URLSession(configuration: .ephemeral)
        for expected in ["\"1\"", "\"2\"", "\"2\""] {
            if expected == "\"2\"" { version.withLock { $0 = 2 } }
            let (data, _) = try await session.data(from: url("/f"))
            #expect(String(decoding: data, as: UTF8.self) == expected)
        }
        #expect(server.requests(matching: "/f").map(\.status) == [200, 200, 304])
    }

    // MARK: Sent requests

    @Test func `internal properties of a request are not sent as headers`() async throws {
        server.route(nil, "/x", .status(200))
        var request = try URLRequest(url: url("/x"))
        (request.allowsExpensiveNetworkAccess, request.assumesHTTP3Capable) = (false, true)
        let marked = try #require((request as NSURLRequest).mutableCopy() as? NSMutableURLRequest)
        BackgroundTransfer.URLProtocol.setProperty(true, forKey: "seen", in: marked)
        _ = try await URLSession(configuration: .ephemeral).data(for: marked as URLRequest)
        let names = try #require(server.requests().last).headers.lines.map { $0.name.lowercased() }
        #expect(!names.contains { $0.hasPrefix("url") }, "\(names)")
    }

    /// The headers of the configuration are meant for the app's server. The session does not send these headers after a redirect
    /// to another server.
    @Test func `a resumed download sends no secret headers to another host`() async throws {
        let other = try await FaultyServer.start()
        let file = Payload.pattern(4_000_000)
        server.route("GET", "/f", .redirect(302, to: other.url + "/cdn"))
        other.route(
            "GET", "/cdn",
            .init([
                .status(200), .headers(["Content-Length": "4000000", "ETag": "\"1\"", "Accept-Ranges": "bytes"]),
                .body(.bytes(file.data.prefix(1_000_000))), .cut,
            ]), .file(file, etag: "\"1\""))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["Authorization": "Bearer secret"]
        let session = URLSession(configuration: configuration)
        let error = await #expect(throws: URLError.self) { try await session.download(from: url("/f")) }
        let resume = try #require(error?.downloadTaskResumeData)
        let (place, _) = try await session.download(resumeFrom: resume)
        let isWhole = try Data(contentsOf: place) == file.data
        #expect(isWhole)
        try FileManager.default.removeItem(at: place)
        #expect(server.requests(matching: "/f").allSatisfy { $0.headers["Authorization"] == "Bearer secret" })
        #expect(other.requests(matching: "/cdn").allSatisfy { $0.headers["Authorization"] == nil })
        #expect(other.requests(matching: "/cdn").last?.headers["Range"] == "bytes=1000000-")
    }

    @Test(arguments: ["file:///etc/hostname", "data:,x"])
    func `a redirect to a file URL or a data URL is refused`(_ place: String) async throws {
        final class Leading: BackgroundTransfer.URLProtocol {
            override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "lead.test" }
            override func startLoading() {
                guard let url = request.url, let to = URL(string: url.fragment ?? ""),
                    let head = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil)
                else { return }
                client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: to), redirectResponse: head)
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Leading.self]
        let session = URLSession(configuration: configuration)
        let from = try #require(URL(string: "https://lead.test/#" + place))
        let error = await #expect(throws: URLError.self) { try await session.data(from: from) }
        #expect(error?.code == .unsupportedURL)
    }

    // MARK: Cancellations

    /// The delegate has provided no stream before the cancellation.
    @Test func `a task that waits for its body stream can be cancelled`() async throws {
        final class Silent: NSObject, URLSessionTaskDelegate, Sendable {
            let (asks, asked) = AsyncStream.makeStream(of: Void.self)
            let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)
            let answer = Mutex<(@Sendable (InputStream?) -> Void)?>(nil)
            func urlSession(
                _ session: URLSession, task: URLSessionTask,
                needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
            ) {
                answer.withLock { $0 = completionHandler }
                asked.finish()
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                ended.yield(error as? URLError)
                ended.finish()
            }
        }
        server.route("POST", "/s", .status(200))
        let silent = Silent()
        let session = URLSession(configuration: .ephemeral, delegate: silent, delegateQueue: nil)
        var request = try URLRequest(url: url("/s"))
        request.httpMethod = "POST"
        let task = session.uploadTask(withStreamedRequest: request)
        task.resume()
        for await _ in silent.asks {}
        task.cancel()
        for await error in silent.ends { #expect(error?.code == .cancelled) }
        // If a stream is provided after the end of the task, it is not sent.
        silent.answer.withLock { $0 }?(InputStream(data: Data("late".utf8)))
        server.route("GET", "/ping", .status(200))
        _ = try await URLSession(configuration: .ephemeral).data(from: url("/ping"))
        #expect(server.requests(matching: "/s").isEmpty)
    }

    @Test func `tasks that are cancelled immediately after their start end`() async throws {
        server.route("GET", "/never", .silence)
        let session = URLSession(configuration: .ephemeral)
        let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)
        for _ in 0..<100 {
            let task = try session.dataTask(with: url("/never")) { _, _, error in ended.yield(error as? URLError) }
            task.resume()
            task.cancel()
        }
        var count = 0
        for await error in ends {
            #expect(error?.code == .cancelled)
            count += 1
            if count == 100 { break }
        }
        try await server.waitUntil { $0.connectionsOpen == 0 }
    }

    /// The response is so small that it can arrive completely before the delegate decides.
    @Test(arguments: [true, false])
    func `a delegate that cancels the task at the response headers receives one end`(_ answersToo: Bool) async throws {
        final class Cancelling: NSObject, URLSessionDataDelegate, Sendable {
            let answersToo: Bool
            let heard = Mutex<[String]>([])
            let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)
            let server: FaultyServer
            init(_ answersToo: Bool, _ server: FaultyServer) { (self.answersToo, self.server) = (answersToo, server) }
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
                completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
            ) {
                dataTask.cancel()
                if answersToo { completionHandler(.allow) }
            }
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                heard.withLock { $0.append("data") }
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                heard.withLock { $0.append("end") }
                ended.yield(error as? URLError)
            }
        }
        server.route("GET", "/small", .status(200, body: "small"))
        let cancelling = Cancelling(answersToo, server)
        let session = URLSession(configuration: .ephemeral, delegate: cancelling, delegateQueue: nil)
        try session.dataTask(with: url("/small")).resume()
        for await error in cancelling.ends {
            #expect(error?.code == .cancelled)
            break
        }
        session.finishTasksAndInvalidate()
        while session.delegate != nil { await Task.yield() }
        await withCheckedContinuation { done in session.delegateQueue.addOperation { done.resume() } }
        #expect(cancelling.heard.withLock { $0.filter { $0 == "end" }.count == 1 && $0.last == "end" })
    }

    @Test func `a suspended task that has received its response can be cancelled`() async throws {
        server.route("GET", "/small", .status(200, body: "small"))
        let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)
        let session = URLSession(configuration: .ephemeral)
        let task = try session.dataTask(with: url("/small")) { _, _, error in
            ended.yield(error as? URLError)
            ended.finish()
        }
        task.resume()
        task.suspend()
        try await server.waitUntil { $0.requests.contains { $0.outcome == .answered } }
        while task.countOfBytesReceived < 5 { await Task.yield() }
        task.cancel()
        for await error in ends { #expect(error?.code == .cancelled) }
    }

    @Test func `the connection is closed when the app leaves the loop over the bytes`() async throws {
        server.route(
            "GET", "/events",
            .init([.status(200), .headers(["Transfer-Encoding": "chunked"]), .chunked("one\ntwo\n"), .stall]))
        let session = URLSession(configuration: .ephemeral)
        func first() async throws -> String? {
            let (bytes, _) = try await session.bytes(from: url("/events"))
            for try await line in bytes.lines { return line }
            return nil
        }
        #expect(try await first() == "one")
        try await server.waitUntil { $0.connectionsOpen == 0 }
        while await !session.allTasks.isEmpty { await Task.yield() }
    }

    @Test func `a URL protocol class that never responds times out`() async throws {
        final class Mute: BackgroundTransfer.URLProtocol {
            override class func canInit(with request: URLRequest) -> Bool { true }
            override func startLoading() {}
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Mute.self]
        var request = try URLRequest(url: url("/"))
        request.timeoutInterval = 0.2
        let asked = request
        let error = await #expect(throws: URLError.self) { try await URLSession(configuration: configuration).data(for: asked) }
        #expect(error?.code == .timedOut)
    }

    @Test func `a download with an unknown content coding is not decoded`() async throws {
        server.route("GET", "/f", .status(200, headers: ["Content-Encoding": "aws-chunked"], body: "as it is"))
        let (place, _) = try await URLSession(configuration: .ephemeral).download(from: url("/f"))
        #expect(try String(contentsOf: place, encoding: .utf8) == "as it is")
        try FileManager.default.removeItem(at: place)
    }

    /// The delegate receives only one challenge.
    @Test func `a credential is also used for redirects on the same server`() async throws {
        server.handle(nil, "/in*") { request in
            guard request.headers["Authorization"] != nil else {
                return .status(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
            }
            return request.path == "/in" ? .redirect(302, to: "/inner") : .status(200, body: "in")
        }
        final class Once: NSObject, URLSessionTaskDelegate, Sendable {
            let asked = Mutex(0)
            func urlSession(_ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge) async
                -> (URLSession.AuthChallengeDisposition, URLCredential?)
            {
                asked.withLock { $0 += 1 }
                return challenge.previousFailureCount == 0
                    ? (.useCredential, URLCredential(user: "tom", password: "x", persistence: .none))
                    : (.cancelAuthenticationChallenge, nil)
            }
        }
        let once = Once()
        let (data, _) = try await URLSession(configuration: .ephemeral).data(from: url("/in"), delegate: once)
        #expect(String(decoding: data, as: UTF8.self) == "in" && once.asked.withLock { $0 } == 1)
    }

    // MARK: Further cases

    @Test func `an empty body has no bytes`() async throws {
        final class Empty: BackgroundTransfer.URLProtocol {
            override class func canInit(with request: URLRequest) -> Bool { true }
            override func startLoading() {
                guard let url = request.url,
                    let head = HTTPURLResponse(url: url, statusCode: 204, httpVersion: nil, headerFields: nil)
                else { return }
                client?.urlProtocol(self, didReceive: head, cacheStoragePolicy: .notAllowed)
                client?.urlProtocol(self, didLoad: Data())
                client?.urlProtocolDidFinishLoading(self)
            }
        }
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Empty.self]
        let (bytes, _) = try await URLSession(configuration: configuration).bytes(from: url("/"))
        for try await _ in bytes { Issue.record("a byte of nothing") }
        let (other, _) = try await URLSession(configuration: .ephemeral).bytes(from: #require(URL(string: "data:,")))
        for try await _ in other { Issue.record("a byte of nothing") }
    }

    /// A delegate that records the calls, and that responds only when the test requires it.
    private final class Slow: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
        let heard = Mutex<[String]>([])
        let answer = Mutex<(@Sendable () -> Void)?>(nil)
        let (asks, asked) = AsyncStream.makeStream(of: Void.self)
        let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)

        private func note(_ line: String) { heard.withLock { $0.append(line) } }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            note("head")
            answer.withLock { $0 = { completionHandler(.becomeDownload) } }
            asked.finish()
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            note("redirect")
            task.cancel()
            completionHandler(nil)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { note("data") }
        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
            note("became")
        }
        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
            note("file")
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note("end")
            ended.yield(error as? URLError)
        }
    }

    private func settled(_ session: URLSession) async {
        session.finishTasksAndInvalidate()
        while session.delegate != nil { await Task.yield() }
        await withCheckedContinuation { done in session.delegateQueue.addOperation { done.resume() } }
    }

    @Test func `a cancelled data task does not become a download`() async throws {
        server.route("GET", "/small", .status(200, body: "small"))
        let slow = Slow()
        let session = URLSession(configuration: .ephemeral, delegate: slow, delegateQueue: nil)
        let task = try session.dataTask(with: url("/small"))
        task.resume()
        for await _ in slow.asks {}
        task.cancel()
        for await error in slow.ends {
            #expect(error?.code == .cancelled)
            break
        }
        slow.answer.withLock { $0 }?()
        #expect(await session.allTasks.isEmpty)
        await settled(session)
        #expect(slow.heard.withLock { $0 } == ["head", "end"])
    }

    @Test func `the delegate receives no calls after the end`() async throws {
        server.route("GET", "/a", .init([.status(302), .headers(["Location": "/b", "Content-Length": "5"]), .body("moved")]))
        let slow = Slow()
        let session = URLSession(configuration: .ephemeral, delegate: slow, delegateQueue: nil)
        try session.dataTask(with: url("/a")).resume()
        for await error in slow.ends {
            #expect(error?.code == .cancelled)
            break
        }
        await settled(session)
        #expect(slow.heard.withLock { $0 } == ["redirect", "end"])
    }

    @Test func `the byte counts of the progress calls add up to the total`() async throws {
        final class Sum: NSObject, URLSessionDownloadDelegate, Sendable {
            let sum = Mutex<Int64>(0)
            let total = Mutex<Int64>(0)
            let (ends, ended) = AsyncStream.makeStream(of: Void.self)
            func urlSession(
                _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
                totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
            ) {
                sum.withLock { $0 += bytesWritten }
                total.withLock { $0 = totalBytesWritten }
            }
            func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                ended.finish()
            }
        }
        server.route(
            "GET", "/f",
            .init([
                .status(200), .headers(["Content-Length": "400000"]), .drip(.pattern(400_000), chunkSize: 50_000, interval: 0.15),
            ]))
        let sum = Sum()
        let session = URLSession(configuration: .ephemeral, delegate: sum, delegateQueue: nil)
        try session.downloadTask(with: url("/f")).resume()
        for await _ in sum.ends {}
        let (added, total) = (sum.sum.withLock { $0 }, sum.total.withLock { $0 })
        #expect(added == total && added > 0)
    }
}
