import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing

/// Tests of behaviour that iOS developers expect: the last progress is reported, only the first decision of a delegate counts,
/// and every async call returns.
@Suite(.timeLimit(.minutes(30))) struct SessionPromiseTests {
    let server: FaultyServer

    init() async throws { server = try await FaultyServer.start() }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    private final class Recorder: NSObject, URLSessionDownloadDelegate, Sendable {
        let lines = Mutex<[String]>([])
        let counts = Mutex<[Int64]>([])
        /// The closure that is called for a redirect, before the redirect is accepted.
        let onRedirect: @Sendable (URLSessionTask) -> Void
        private let ends = AsyncStream.makeStream(of: Void.self)

        init(onRedirect: @escaping @Sendable (URLSessionTask) -> Void = { _ in }) { self.onRedirect = onRedirect }

        private func note(_ line: String) { lines.withLock { $0.append(line) } }

        func untilItEnds() async -> [String] {
            for await _ in ends.stream { break }
            return lines.withLock { $0 }
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            note("redirect")
            onRedirect(task)
            completionHandler(request)
        }
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) { counts.withLock { $0.append(totalBytesSent) } }
        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) { counts.withLock { $0.append(totalBytesWritten) } }
        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
            note("file \((try? Data(contentsOf: location))?.count ?? -1)")
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note("end \((error as? URLError)?.code.rawValue ?? 0)")
            ends.continuation.yield()
        }
        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
            note("invalid")
            ends.continuation.yield()
        }
    }

    // MARK: Progress

    @Test func `the last progress is the complete size`() async throws {
        server.route("GET", "/f", .file(.pattern(8_000_000), etag: "\"1\""))
        server.route("PUT", "/u", .status(201))
        let (download, upload) = (Recorder(), Recorder())
        let down = try URLSession(configuration: .ephemeral, delegate: download, delegateQueue: nil).downloadTask(with: url("/f"))
        var request = URLRequest(url: try url("/u"))
        request.httpMethod = "PUT"
        let up = URLSession(configuration: .ephemeral, delegate: upload, delegateQueue: nil).uploadTask(
            with: request, from: Data(count: 8_000_000))
        down.resume()
        up.resume()
        #expect(await download.untilItEnds() == ["file 8000000", "end 0"])
        #expect(await upload.untilItEnds() == ["end 0"])
        for (task, recorder) in [(down as URLSessionTask, download), (up, upload)] {
            #expect(recorder.counts.withLock { $0.last } == 8_000_000)
            #expect(
                recorder.counts.withLock { $0 == $0.sorted() && Set($0).count == $0.count },
                "each number of bytes is reported once, in order")
            #expect(task.progress.isFinished, "\(task.progress)")
        }
        #expect(up.countOfBytesSent == 8_000_000 && down.countOfBytesReceived == 8_000_000)
    }

    // MARK: Decisions of delegates

    /// The download sends only one request to the first URL.
    @Test func `a download that is suspended at a redirect continues at the new location`() async throws {
        server.route("GET", "/a", .status(302, headers: ["Location": "/b"]))
        server.route("GET", "/b", .file("there", etag: "\"1\""))
        let recorder = Recorder {
            $0.suspend()
            $0.resume()
        }
        try URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil).downloadTask(with: url("/a")).resume()
        #expect(await recorder.untilItEnds() == ["redirect", "file 5", "end 0"])
        #expect(server.requests().map(\.path) == ["/a", "/b"])
    }

    /// If the delegate of the task does not have the method, the delegate of the session is called.
    @Test func `only the first decision of a delegate is used`() async throws {
        server.route("GET", "/a", .status(302, headers: ["Location": "/b"]))
        server.route("GET", "/b", .status(200, body: "there"))
        final class Twice: NSObject, URLSessionTaskDelegate, Sendable {
            func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
            ) {
                completionHandler(request)
                completionHandler(nil)
            }
        }
        final class Silent: NSObject, URLSessionTaskDelegate, Sendable {}
        let session = URLSession(configuration: .ephemeral, delegate: Twice(), delegateQueue: nil)
        for delegate in [nil, Silent()] {
            let (data, _) = try await session.data(from: url("/a"), delegate: delegate)
            #expect(String(decoding: data, as: UTF8.self) == "there")
        }
    }

    /// The body of a redirect response is needed only if a delegate can refuse the redirect.
    @Test func `a redirect does not wait for its body`() async throws {
        server.route(
            "GET", "/a",
            ResponseScript([
                .status(302), .headers(["Location": "/b", "Content-Length": "3000000"]), .body(.pattern(200_000)), .stall,
            ]))
        server.route("GET", "/b", .status(200, body: "there"))
        let (data, _) = try await URLSession(configuration: .ephemeral).data(from: url("/a"))
        #expect(String(decoding: data, as: UTF8.self) == "there")
    }

    // MARK: Invalidation

    /// A session waits for each of its tasks, even if the task is created but not resumed.
    @Test func `a session that finishes waits for tasks that are not resumed yet`() async throws {
        server.route("GET", "/f", .file("whole", etag: "\"1\""))
        let recorder = Recorder()
        let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
        let task = try session.downloadTask(with: url("/f"))
        session.finishTasksAndInvalidate()
        #expect(recorder.lines.withLock { $0.isEmpty })
        task.resume()
        _ = await recorder.untilItEnds()
        #expect(await recorder.untilItEnds() == ["file 5", "end 0", "invalid"])
    }

    @Test(arguments: ["GET", "HEAD", "POST", "download"])
    func `a request that allows only the cache does not reach the server`(_ kind: String) async throws {
        server.route(nil, "/a", .status(200, body: "network"))
        var request = URLRequest(url: try url("/a"), cachePolicy: .returnCacheDataDontLoad)
        if kind != "download" { request.httpMethod = kind }
        let session = URLSession(configuration: .ephemeral)
        let error = await #expect(throws: URLError.self) {
            if kind == "download" {
                _ = try await session.download(for: request)
            } else {
                _ = try await session.data(for: request)
            }
        }
        #expect(error?.code == .resourceUnavailable && server.requests().isEmpty)
    }

    /// If an app sets a proxy, the session must not connect directly.
    @Test(arguments: ["HTTPSEnable", "SOCKSEnable"])
    func `a request with an unsupported proxy fails and is not sent directly`(_ key: String) async throws {
        server.route("GET", "/a", .status(200, body: "direct"))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [key: 1, "HTTPSProxy": "proxy.example.org", "HTTPSPort": 3128]
        let error = await #expect(throws: URLError.self) {
            _ = try await URLSession(configuration: configuration).data(from: url("/a"))
        }
        #expect(error?.code == .unsupportedURL && server.requests().isEmpty)
        // These values switch the proxy off.
        for none: [AnyHashable: Any] in [[:], [key: 0], [key: false]] {
            configuration.connectionProxyDictionary = none
            let (data, _) = try await URLSession(configuration: configuration).data(from: url("/a"))
            #expect(String(decoding: data, as: UTF8.self) == "direct")
        }
    }

    /// The async call is cancelled before it begins.
    @Test func `the error of a cancelled async call contains its URL`() async throws {
        let address = try url("/never")
        let started = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            for await _ in started.stream { break }
            return try await URLSession(configuration: .ephemeral).data(from: address)
        }
        task.cancel()
        started.continuation.yield()
        let error = await #expect(throws: URLError.self) { _ = try await task.value }
        #expect(error?.code == .cancelled && error?.failingURL == address)
    }

    /// If the session opened the pipe, the thread that resumed the task would wait for a process at the other end.
    @Test func `a named pipe cannot be uploaded`() async throws {
        let pipe = FileManager.default.temporaryDirectory.appendingPathComponent("pipe-\(UUID().uuidString)")
        defer { unlink(pipe.path) }
        try #require(mkfifo(pipe.path, 0o600) == 0)
        var request = URLRequest(url: try url("/u"))
        request.httpMethod = "PUT"
        let error = await #expect(throws: URLError.self) {
            _ = try await URLSession(configuration: .ephemeral).upload(for: request, fromFile: pipe)
        }
        #expect(error?.code == .fileDoesNotExist && server.requests().isEmpty)
    }
}
