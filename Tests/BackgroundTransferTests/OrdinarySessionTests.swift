import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing

/// Tests of ordinary sessions, against a real server on loopback.
@Suite(.timeLimit(.minutes(30))) struct OrdinarySessionTests {
    let server: FaultyServer
    static let file = Payload.pattern(2_000_000)

    init() async throws { server = try await FaultyServer.start() }

    /// Compares data outside of `#expect`. If the values differ, `#expect` would need hours to compute the difference.
    private static func isFile(_ data: Data?) -> Bool { data == file.data }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    /// Records the calls, and responds as the test requires.
    private final class Listener: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, Sendable {
        struct ReceivedEvents {
            var lines: [String] = []
            var data = Data()
            var error: URLError?
            var file: Data?
            var isOver = false
            var waiting: CheckedContinuation<Void, Never>?
        }

        let heard = Mutex(ReceivedEvents())
        let redirect: @Sendable (URLRequest) -> URLRequest?
        let credential: URLCredential?
        let disposition: URLSession.ResponseDisposition
        let (bytes, gotBytes) = AsyncStream.makeStream(of: Int64.self)
        let (invalid, becameInvalid) = AsyncStream.makeStream(of: Void.self)

        init(
            credential: URLCredential? = nil, disposition: URLSession.ResponseDisposition = .allow,
            redirect: @escaping @Sendable (URLRequest) -> URLRequest? = { $0 }
        ) {
            self.redirect = redirect
            self.credential = credential
            self.disposition = disposition
        }

        private func note(_ line: String) { heard.withLock { $0.lines.append(line) } }

        func over() async {
            await withCheckedContinuation { continuation in
                let isOver = heard.withLock { heard in
                    if !heard.isOver { heard.waiting = continuation }
                    return heard.isOver
                }
                if isOver { continuation.resume() }
            }
        }

        func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note("created") }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            note("redirect \(response.statusCode) \(request.httpMethod ?? "") \(request.url?.path ?? "")")
            completionHandler(redirect(request))
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            let space = challenge.protectionSpace
            note("challenge \(space.authenticationMethod) \(space.realm ?? "") \(challenge.previousFailureCount)")
            if let credential {
                completionHandler(.useCredential, credential)
            } else {
                completionHandler(.performDefaultHandling, nil)
            }
        }

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) {
            note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
            completionHandler(disposition)
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            heard.withLock { $0.data.append(data) }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) { gotBytes.yield(totalBytesSent) }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) { gotBytes.yield(totalBytesWritten) }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
            expectedTotalBytes: Int64
        ) { note("resumed of \(expectedTotalBytes)") }

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
            let data = try? Data(contentsOf: location)
            heard.withLock { $0.file = data }
            note("finished")
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            note("metrics \(metrics.redirectCount)")
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note("complete \(error == nil)")
            let waiting = heard.withLock { heard in
                (heard.error, heard.isOver) = (error as? URLError, true)
                return heard.waiting
            }
            waiting?.resume()
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
            note("invalid")
            becameInvalid.yield()
        }

        var lines: [String] { heard.withLock { $0.lines } }

        /// The recorded lines without the line for the end of the session, which may come at any time after the end of the task.
        var told: [String] { lines.filter { $0 != "invalid" } }
    }

    private func run(_ listener: Listener, _ make: (URLSession) throws -> URLSessionTask) async throws -> URLSessionTask {
        let session = URLSession(configuration: .default, delegate: listener, delegateQueue: nil)
        let task = try make(session)
        task.resume()
        await listener.over()
        session.finishTasksAndInvalidate()
        return task
    }

    // MARK: Async functions

    @Test func `async functions return data, files and responses`() async throws {
        server.route("GET", "/f", .file(Self.file))
        server.route("PUT", "/f", .status(201, body: "made"))
        let session = URLSession(configuration: .ephemeral)
        let (data, response) = try await session.data(from: url("/f"))
        #expect(Self.isFile(data) && (response as? HTTPURLResponse)?.statusCode == 200)
        let (file, _) = try await session.download(from: url("/f"))
        #expect(try Self.isFile(Data(contentsOf: file)))
        try FileManager.default.removeItem(at: file)
        let (answer, made) = try await session.upload(for: URLRequest(url: url("/f")), from: Data("x".utf8))
        #expect(String(decoding: answer, as: UTF8.self) == "made" && (made as? HTTPURLResponse)?.statusCode == 201)
        #expect(server.requests(matching: "/f").last?.bodyByteCount == 1)
        let (shared, _) = try await URLSession.shared.data(from: url("/f"))
        #expect(shared.count == 2_000_000)
    }

    @Test func `a cancelled async call ends its request`() async throws {
        server.route("GET", "/never", .silence)
        let work = Task { try await URLSession(configuration: .default).data(from: url("/never")) }
        try await server.waitForRequest { $0.path == "/never" }
        work.cancel()
        let error = await #expect(throws: URLError.self) { try await work.value }
        #expect(error?.code == .cancelled)
        // The connection to the server is also closed.
        try await server.waitUntil { $0.connectionsOpen == 0 }
    }

    /// The first tasks are cancelled before they begin, and the last task is cancelled after its end.
    @Test func `a cancellation after the end of a task has no effect`() async throws {
        server.route("GET", "/f", .status(200, body: "x"))
        let place = try url("/f")
        for _ in 0..<50 {
            let work = Task { try await URLSession(configuration: .default).data(from: place) }
            work.cancel()
            _ = try? await work.value
        }
        let listener = Listener()
        let task = try await run(listener) { try $0.dataTask(with: url("/f")) }
        task.cancel()
        task.cancel()
        #expect(listener.lines.filter { $0.hasPrefix("complete") } == ["complete true"])
        #expect(task.state == .completed && task.error == nil)
    }

    @Test func `connection errors and unsupported schemes are thrown`() async throws {
        let session = URLSession(configuration: .default)
        let refused = await #expect(throws: URLError.self) {
            try await session.data(from: #require(URL(string: "http://127.0.0.1:1/")))
        }
        #expect(refused?.code == .cannotConnectToHost)
        let other = await #expect(throws: URLError.self) { try await session.data(from: #require(URL(string: "ftp://h/"))) }
        #expect(other?.code == .unsupportedURL)
    }

    @Test func `the resource timeout limits the complete transfer`() async throws {
        server.route(
            "GET", "/drip",
            ResponseScript([
                .status(200), .headers(["Content-Length": "1000"]), .drip(.pattern(1_000), chunkSize: 10, interval: 0.1),
            ]))
        let configuration = URLSessionConfiguration.default
        configuration.timeoutIntervalForResource = 0.5
        let error = await #expect(throws: URLError.self) {
            try await URLSession(configuration: configuration).data(from: url("/drip"))
        }
        #expect(error?.code == .timedOut)
    }

    // MARK: Handlers and delegates

    @Test func `a data task calls its delegate in order`() async throws {
        server.route("GET", "/f", .file(Self.file))
        let listener = Listener()
        let task = try await run(listener) { try $0.dataTask(with: url("/f")) }
        #expect(listener.told == ["created", "response 200", "metrics 0", "complete true"])
        #expect(Self.isFile(listener.heard.withLock { $0.data }))
        #expect(task.state == .completed && task.countOfBytesReceived == 2_000_000 && task.error == nil)
    }

    @Test func `a delegate can cancel the task when it receives the response headers`() async throws {
        server.route("GET", "/f", .file(Self.file))
        let listener = Listener(disposition: .cancel)
        _ = try await run(listener) { try $0.dataTask(with: url("/f")) }
        #expect(listener.heard.withLock { $0.error?.code } == .cancelled)
    }

    @Test func `a completion handler is called instead of the delegate`() async throws {
        server.route("GET", "/f", .status(404, body: "no"))
        let listener = Listener()
        let session = URLSession(configuration: .default, delegate: listener, delegateQueue: nil)
        let (status, text) = try await withCheckedThrowingContinuation { continuation in
            do {
                let task = try session.dataTask(with: url("/f")) { data, response, _ in
                    continuation.resume(
                        returning: ((response as? HTTPURLResponse)?.statusCode, String(decoding: data ?? Data(), as: UTF8.self)))
                }
                task.resume()
            } catch { continuation.resume(throwing: error) }
        }
        #expect(status == 404 && text == "no")
        #expect(listener.told == ["created", "metrics 0"])
    }

    @Test func `an upload task sends its complete file`() async throws {
        server.route("POST", "/up", .status(200, body: "ok"))
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try Self.file.data.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let listener = Listener()
        let task = try await run(listener) { session in
            var request = try URLRequest(url: url("/up"))
            request.httpMethod = "POST"
            return session.uploadTask(with: request, fromFile: file)
        }
        #expect(server.requests(matching: "/up").first?.bodyByteCount == 2_000_000)
        #expect(task.countOfBytesExpectedToSend == 2_000_000)
        #expect(listener.heard.withLock { $0.data } == Data("ok".utf8))
    }

    @Test func `an upload of a missing file is an error`() async throws {
        let listener = Listener()
        _ = try await run(listener) { session in
            try session.uploadTask(with: URLRequest(url: url("/up")), fromFile: URL(fileURLWithPath: "/nowhere/photo"))
        }
        #expect(listener.heard.withLock { $0.error?.code } == .fileDoesNotExist)
    }

    // MARK: Redirects

    @Test func `the delegate is called for each redirect`() async throws {
        server.route("GET", "/a", .redirect(302, to: "/b"))
        server.route("GET", "/b", .redirect(307, to: "/c"))
        server.route("GET", "/c", .status(200, body: "there"))
        let listener = Listener()
        _ = try await run(listener) { try $0.dataTask(with: url("/a")) }
        #expect(
            listener.told == [
                "created", "redirect 302 GET /b", "redirect 307 GET /c", "response 200", "metrics 2", "complete true",
            ])
    }

    @Test func `a refused redirect is the response of its task`() async throws {
        server.route("GET", "/a", .redirect(302, to: "/b"))
        let task = try await run(Listener(redirect: { _ in nil })) { try $0.dataTask(with: url("/a")) }
        #expect((task.response as? HTTPURLResponse)?.statusCode == 302 && task.error == nil)
        #expect(server.requests(matching: "/b").isEmpty)
    }

    /// A delegate of a task with a single method.
    private final class EndDelegate: NSObject, URLSessionTaskDelegate, Sendable {
        let ended = Mutex(false)
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended.withLock { $0 = true }
            session.finishTasksAndInvalidate()
        }
    }

    /// The missing methods may belong to protocols that the delegate of the task does not conform to.
    @Test func `methods that the delegate of a task lacks are called on the delegate of the session`() async throws {
        server.route("GET", "/a", .redirect(302, to: "/b"))
        protect("Basic realm=\"home\"") { $0 == "Basic " + Data("tom:right".utf8).base64EncodedString() }
        let listener = Listener(
            credential: URLCredential(user: "tom", password: "right", persistence: .forSession), redirect: { _ in nil })
        let (session, invalid) = (URLSession(configuration: .default, delegate: listener, delegateQueue: nil), listener.invalid)
        let own = EndDelegate()
        let task = try session.dataTask(with: url("/a"))
        task.delegate = own
        task.resume()
        for await _ in invalid { break }
        #expect((task.response as? HTTPURLResponse)?.statusCode == 302, "the session's delegate refuses redirects")
        #expect(listener.told == ["created", "redirect 302 GET /b", "response 302", "metrics 1"])
        #expect(own.ended.withLock { $0 })
        let (data, response) = try await URLSession(
            configuration: .default,
            delegate: Listener(credential: URLCredential(user: "tom", password: "right", persistence: .forSession)),
            delegateQueue: nil
        ).data(from: url("/secret"), delegate: EndDelegate())
        #expect((response as? HTTPURLResponse)?.statusCode == 200, "\(String(decoding: data, as: UTF8.self))")
    }

    @Test func `secret headers are not sent to another host after a redirect`() async throws {
        let other = try await FaultyServer.start()
        server.route("GET", "/a", .redirect(302, to: other.url + "/b"))
        other.route("GET", "/b", .status(200))
        var request = try URLRequest(url: url("/a"))
        request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
        request.setValue("secret", forHTTPHeaderField: "X-Photo-Token")
        request.setValue("de", forHTTPHeaderField: "Accept-Language")
        _ = try await URLSession(configuration: .default).data(for: request)
        let headers = try #require(other.requests(matching: "/b").first?.headers)
        // Any header that the app sets may contain a secret.
        #expect(headers["Authorization"] == nil && headers["X-Photo-Token"] == nil && headers["Accept-Language"] == "de")
        // The secret headers of the session's configuration are also not sent.
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = ["Authorization": "Bearer secret"]
        _ = try await URLSession(configuration: configuration).data(from: url("/a"))
        #expect(server.requests(matching: "/a").last?.headers["Authorization"] == "Bearer secret")
        #expect(other.requests(matching: "/b").last?.headers["Authorization"] == nil)
    }

    @Test(arguments: [(303, "GET"), (302, "GET"), (307, "POST"), (308, "POST")])
    func `a redirect with status 302 or 303 changes a POST to a GET`(_ status: Int, _ method: String) async throws {
        server.route("POST", "/a", .redirect(status, to: "/b"))
        server.route(nil, "/b", .status(200))
        var request = try URLRequest(url: url("/a"))
        request.httpMethod = "POST"
        request.httpBody = Data("form".utf8)
        _ = try await URLSession(configuration: .default).data(for: request)
        let second = try #require(server.requests(matching: "/b").first)
        #expect(second.method == method && second.bodyByteCount == (method == "POST" ? 4 : 0))
    }

    @Test func `an upload that a redirect changes to a GET has no body`() async throws {
        server.route("PUT", "/a", .redirect(303, to: "/b"))
        server.route("GET", "/b", .status(200, body: "see"))
        let (data, _) = try await URLSession(configuration: .default).upload(
            for: URLRequest(url: url("/a")), from: Data("photo".utf8))
        #expect(data == Data("see".utf8) && server.requests(matching: "/b").first?.bodyByteCount == 0)
    }

    @Test(arguments: ["file:///etc/passwd", "gopher://x/", "http://"])
    func `a redirect to another scheme or to an invalid URL fails`(_ place: String) async throws {
        server.route("GET", "/a", .redirect(302, to: place))
        await #expect(throws: URLError.self) { try await URLSession(configuration: .default).data(from: url("/a")) }
    }

    @Test func `a redirect loop ends with an error`() async throws {
        server.route("GET", "/a", .redirect(302, to: "/a"))
        let error = await #expect(throws: URLError.self) { try await URLSession(configuration: .default).data(from: url("/a")) }
        #expect(error?.code == .httpTooManyRedirects)
    }

    // MARK: Challenges

    private func protect(_ challenge: String, _ accepts: @escaping @Sendable (String) -> Bool) {
        server.handle("GET", "/secret") { request in
            guard let authorization = request.headers["Authorization"], accepts(authorization) else {
                return .status(401, headers: ["WWW-Authenticate": .init(challenge)], body: "who are you")
            }
            return .status(200, body: "welcome")
        }
    }

    @Test func `a Basic challenge is answered with the credential of the delegate`() async throws {
        let wanted = "Basic " + Data("me:pass word".utf8).base64EncodedString()
        protect("Basic realm=\"home\"") { $0 == wanted }
        let listener = Listener(credential: URLCredential(user: "me", password: "pass word", persistence: .none))
        _ = try await run(listener) { try $0.dataTask(with: url("/secret")) }
        #expect(listener.lines.contains("challenge \(NSURLAuthenticationMethodHTTPBasic) home 0"))
        #expect(listener.heard.withLock { $0.data } == Data("welcome".utf8))
    }

    @Test func `a Digest challenge is answered with the credential of the delegate`() async throws {
        protect("Digest realm=\"home\", nonce=\"n0\", qop=\"auth\", algorithm=MD5") {
            $0.hasPrefix("Digest ") && $0.contains("username=\"me\"") && $0.contains("response=\"") && !$0.contains("secret word")
        }
        let listener = Listener(credential: URLCredential(user: "me", password: "secret word", persistence: .none))
        _ = try await run(listener) { try $0.dataTask(with: url("/secret")) }
        #expect(listener.lines.contains("challenge \(NSURLAuthenticationMethodHTTPDigest) home 0"), "\(listener.lines)")
        #expect(
            listener.heard.withLock { $0.data } == Data("welcome".utf8),
            "\(listener.heard.withLock { $0.error } as Any) \(listener.lines) \(server.requests(matching: "/secret").map { "\($0.headers["Authorization"] ?? "none") \($0.status ?? 0)" })"
        )
    }

    @Test func `a wrong password causes three challenges and then the 401 response`() async throws {
        protect("Basic realm=\"home\"") { _ in false }
        let listener = Listener(credential: URLCredential(user: "me", password: "wrong", persistence: .none))
        let task = try await run(listener) { try $0.dataTask(with: url("/secret")) }
        #expect(listener.lines.filter { $0.hasPrefix("challenge") }.count == 3)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 401 && task.error == nil)
    }

    @Test func `a challenge without a delegate returns the 401 response`() async throws {
        protect("Basic realm=\"home\"") { _ in false }
        let (data, response) = try await URLSession(configuration: .default).data(from: url("/secret"))
        #expect((response as? HTTPURLResponse)?.statusCode == 401 && data == Data("who are you".utf8))
    }

    // MARK: Downloads

    /// Serves half of the file for the first request, and the other half for the next request.
    private func serveHalf() throws -> URL {
        server.route(
            "GET", "/half", .cutAfter(1_000_000, of: Self.file, etag: "\"v1\"", by: .stall), .file(Self.file, etag: "\"v1\""))
        return try url("/half")
    }

    @Test func `a download continues from its resume data`() async throws {
        let half = try serveHalf()
        let listener = Listener()
        let session = URLSession(configuration: .default, delegate: listener, delegateQueue: nil)
        let task = session.downloadTask(with: half)
        task.resume()
        for await count in listener.bytes where count > 0 { break }
        let data = try #require(await task.cancelByProducingResumeData())
        await listener.over()
        #expect(listener.heard.withLock { $0.error?.downloadTaskResumeData } == data)
        let again = Listener()
        _ = try await run(again) { $0.downloadTask(withResumeData: data) }
        #expect(Self.isFile(again.heard.withLock { $0.file }))
        #expect(again.lines.contains("resumed of 2000000"))
        #expect(server.requests(matching: "/half").last?.headers["If-Range"] == "\"v1\"")
        // The resume data was already used, so its partial file no longer exists. The session therefore downloads the complete
        // file again.
        let third = Listener()
        _ = try await run(third) { $0.downloadTask(withResumeData: data) }
        #expect(Self.isFile(third.heard.withLock { $0.file }))
        #expect(server.requests(matching: "/half").last?.headers["Range"] == nil)
    }

    @Test func `the error of a broken download has resume data`() async throws {
        server.route("GET", "/cut", .cutAfter(1_000_000, of: Self.file, etag: "\"v1\""))
        let error = await #expect(throws: URLError.self) {
            try await URLSession(configuration: .default).download(from: url("/cut"))
        }
        #expect(error?.code == .networkConnectionLost)
        let data = try #require(error?.downloadTaskResumeData)
        server.route("GET", "/cut", .file(Self.file, etag: "\"v2\""))
        // The server has another version of the file now, so the complete file is loaded.
        let (file, _) = try await URLSession(configuration: .default).download(resumeFrom: data)
        #expect(try Self.isFile(Data(contentsOf: file)))
        try FileManager.default.removeItem(at: file)
    }

    @Test func `invalid resume data is refused`() async throws {
        let error = await #expect(throws: URLError.self) {
            try await URLSession(configuration: .default).download(resumeFrom: Data("x".utf8))
        }
        #expect(error?.code == .unsupportedURL)
    }

    @Test func `a suspended download continues from the received bytes`() async throws {
        let half = try serveHalf()
        let listener = Listener()
        let session = URLSession(configuration: .default, delegate: listener, delegateQueue: nil)
        let task = session.downloadTask(with: half)
        task.resume()
        for await count in listener.bytes where count > 0 { break }
        task.suspend()
        #expect(task.state == .suspended)
        try await server.waitUntil { $0.connectionsOpen == 0 }
        task.resume()
        await listener.over()
        #expect(Self.isFile(listener.heard.withLock { $0.file }))
        #expect(server.requests(matching: "/half").last?.headers["Range"]?.hasPrefix("bytes=") == true)
    }

    @Test func `a suspended data task calls its delegate after it is resumed`() async throws {
        server.route("GET", "/f", .status(200, body: "hello").after(.hold(until: "suspended")))
        let listener = Listener()
        let session = URLSession(configuration: .default, delegate: listener, delegateQueue: nil)
        let task = try session.dataTask(with: url("/f"))
        task.resume()
        task.suspend()
        server.openGate("suspended")
        try await server.waitForRequest { $0.outcome == .answered }
        #expect(!listener.heard.withLock { $0.isOver })
        task.resume()
        await listener.over()
        #expect(listener.heard.withLock { $0.data } == Data("hello".utf8))
    }

    // MARK: Compressed responses

    private static func gzip(_ command: String) throws -> Payload {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        defer { process.waitUntilExit() }
        return .bytes(output.fileHandleForReading.readDataToEndOfFile())
    }

    @Test func `compressed responses are decoded`() async throws {
        let coded = try Self.gzip("printf 'hello hello hello' | gzip -9n")
        server.route("GET", "/gz", .status(200, headers: ["Content-Encoding": "gzip"], body: coded))
        let (data, _) = try await URLSession(configuration: .default).data(from: url("/gz"))
        #expect(data == Data("hello hello hello".utf8))
        #expect(server.requests(matching: "/gz").first?.headers["Accept-Encoding"]?.contains("gzip") == true)
    }

    /// The test uses the headers of Alamofire 5 and 4, of other libraries, and of an app that accepts no compression.
    @Test(arguments: ["br;q=1.0, gzip;q=0.9, deflate;q=0.8", "gzip;q=1.0, compress;q=0.5", "gzip, deflate", "identity"])
    func `an app that sets Accept-Encoding receives decoded bytes`(_ codings: String) async throws {
        let coded = try Self.gzip("printf 'hello hello hello' | gzip -9n")
        server.route("GET", "/gz", .status(200, headers: ["Content-Encoding": "gzip", "ETag": "\"1\""], body: coded))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["Accept-Encoding": codings]
        let session = URLSession(configuration: configuration)
        let (data, _) = try await session.data(from: url("/gz"))
        #expect(data == Data("hello hello hello".utf8))
        let (file, _) = try await session.download(from: url("/gz"))
        #expect(try String(contentsOf: file, encoding: .utf8) == "hello hello hello")
        try FileManager.default.removeItem(at: file)
        let sent = server.requests(matching: "/gz").map { $0.headers["Accept-Encoding"] }
        #expect(sent == [codings, codings])
    }

    @Test func `an app that accepts only an unknown content coding receives the bytes unchanged`() async throws {
        server.route("GET", "/own", .status(200, headers: ["Content-Encoding": "x-own"], body: "coded"))
        var request = try URLRequest(url: url("/own"))
        request.setValue("x-own", forHTTPHeaderField: "Accept-Encoding")
        let (data, _) = try await URLSession(configuration: .ephemeral).data(for: request)
        #expect(data == Data("coded".utf8))
    }

    @Test func `a decompression bomb is stopped at the maximum body size`() async throws {
        let bomb = try Self.gzip("head -c 67108864 /dev/zero | gzip -9n")
        server.route("GET", "/bomb", .status(200, headers: ["Content-Encoding": "gzip"], body: bomb))
        let configuration = URLSessionConfiguration.default
        configuration.maximumBodyBytes = 1_000_000
        let error = await #expect(throws: URLError.self) {
            try await URLSession(configuration: configuration).data(from: url("/bomb"))
        }
        #expect(error?.code == .dataLengthExceedsMaximum)
    }

    // MARK: Invalidation

    @Test func `a session that finishes waits for its running tasks`() async throws {
        server.route("GET", "/f", ResponseScript.status(200, body: "late").after(.hold(until: "go")))
        let listener = Listener()
        let session = URLSession(configuration: .default, delegate: listener, delegateQueue: nil)
        let task = try session.dataTask(with: url("/f"))
        task.resume()
        session.finishTasksAndInvalidate()
        server.openGate("go")
        await listener.over()
        await withCheckedContinuation { continuation in session.delegateQueue.addOperation { continuation.resume() } }
        #expect(listener.lines.last == "invalid" && listener.heard.withLock { $0.error } == nil)
    }

    @Test func `a session that is invalidated and cancelled ends its running tasks`() async throws {
        server.route("GET", "/never", .silence)
        let listener = Listener()
        let session = URLSession(configuration: .default, delegate: listener, delegateQueue: nil)
        let task = try session.dataTask(with: url("/never"))
        task.resume()
        try await server.waitForRequest { $0.path == "/never" }
        session.invalidateAndCancel()
        await listener.over()
        #expect(listener.heard.withLock { $0.error?.code } == .cancelled)
    }
}
