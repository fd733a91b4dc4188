import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing

/// Tests of bodies that are sent or received in pieces: bytes, streams, back-pressure, and data tasks that become downloads.
@Suite(.timeLimit(.minutes(30))) struct SessionStreamTests {
    let server: FaultyServer
    private let session = URLSession(configuration: .ephemeral)

    init() async throws { server = try await FaultyServer.start() }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    // MARK: bytes(for:)

    @Test func `bytes are received as they are sent`() async throws {
        server.route(
            "GET", "/lines",
            .init([
                .status(200), .headers(["Transfer-Encoding": "chunked"]), .chunked("one\r\ntwo\n"), .hold(until: "read"),
                .chunked("three"), .chunkEnd(),
            ]))
        let (bytes, response) = try await session.bytes(from: url("/lines"))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        var lines: [String] = []
        for try await line in bytes.lines {
            lines.append(line)
            // The server sends the other lines after the app has read the first two lines.
            if lines.count == 2 { server.openGate("read") }
        }
        #expect(lines == ["one", "two", "three"])
    }

    @Test func `bytes of a broken connection end with an error`() async throws {
        server.route(
            "GET", "/cut", .init([.status(200), .headers(["Content-Length": "10"]), .body("four"), .cut]))
        let (bytes, _) = try await session.bytes(from: url("/cut"))
        var read = 0
        let error = await #expect(throws: URLError.self) { for try await _ in bytes { read += 1 } }
        #expect(read == 4 && error?.code == .networkConnectionLost)
        await #expect(throws: URLError.self) {
            try await URLSession(configuration: .background(withIdentifier: "b")).bytes(from: url("/cut"))
        }
    }

    @Test func `a cancelled reader of bytes receives a cancellation error`() async throws {
        server.route("GET", "/endless", .init([.status(200), .headers(["Content-Length": "10"]), .body("four"), .stall]))
        let (session, place) = (session, try url("/endless"))
        let (starts, started) = AsyncStream.makeStream(of: Void.self)
        let reading = Task {
            let (bytes, _) = try await session.bytes(from: place)
            for try await _ in bytes { started.finish() }
        }
        for await _ in starts {}
        reading.cancel()
        let error = await #expect(throws: URLError.self) { try await reading.value }
        #expect(error?.code == .cancelled)
        try await server.waitUntil { $0.connectionsOpen == 0 }
    }

    /// While the app does not read, the server has to wait. No bytes are lost.
    @Test func `a slow reader of bytes makes the server wait`() async throws {
        let file = Payload.pattern(32 << 20)
        server.route("GET", "/large", .status(200, body: file))
        server.route("GET", "/ping", .status(200))
        let (bytes, _) = try await session.bytes(from: url("/large"))
        var iterator = bytes.makeAsyncIterator()
        _ = try await iterator.next()
        // If the app does not read, the server can send only until the buffers of the sockets and of the session are full.
        let (before, during) = try await stableCount("/large")
        #expect(before == during && during < 24 << 20, "\(during) bytes were sent, although the app did not read")
        var count = 1
        while try await iterator.next() != nil { count += 1 }
        #expect(count == 32 << 20)
    }

    /// Returns two counts of the bytes that the server has written to its socket. The method waits until the number stops
    /// growing.
    private func stableCount(_ path: String) async throws -> (Int, Int) {
        var last = -1
        while true {
            // The server has one thread. Each request of this loop gives the server's thread time to send more bytes.
            for _ in 0..<20 { _ = try await URLSession(configuration: .ephemeral).data(from: url("/ping")) }
            let now = server.requests(matching: path).last?.bodyBytesSent ?? 0
            if now == last { return (last, now) }
            last = now
        }
    }

    // MARK: Back-pressure of a delegate

    @Test func `a slow delegate makes the server wait`() async throws {
        final class Slow: NSObject, URLSessionDataDelegate, Sendable {
            let gate = DispatchSemaphore(value: 0)
            let count = Mutex(0)
            let (ends, ended) = AsyncStream.makeStream(of: Bool.self)
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                if count.withLock({ $0 == 0 }) { gate.wait() }
                count.withLock { $0 += data.count }
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                ended.yield(error == nil)
                ended.finish()
            }
        }
        server.route("GET", "/large", .status(200, body: .pattern(32 << 20)))
        server.route("GET", "/ping", .status(200))
        let slow = Slow()
        let session = URLSession(configuration: .ephemeral, delegate: slow, delegateQueue: nil)
        try session.dataTask(with: url("/large")).resume()
        try await server.waitForRequest { $0.path == "/large" }
        let (before, during) = try await stableCount("/large")
        #expect(before == during && during < 24 << 20, "\(during) bytes were sent, although the app did not read")
        slow.gate.signal()
        for await isWhole in slow.ends { #expect(isWhole) }
        #expect(slow.count.withLock { $0 } == 32 << 20)
    }

    /// The server sends single bytes while the delegate has not yet decided about the response, or while the task is suspended.
    @Test(arguments: [true, false]) func `waiting pieces are delivered together`(_ isHeld: Bool) async throws {
        final class Late: NSObject, URLSessionDataDelegate, Sendable {
            let isHeld: Bool
            let answer = Mutex<(@Sendable () -> Void)?>(nil)
            let heard = Mutex((pieces: 0, bytes: 0))
            let (asks, asked) = AsyncStream.makeStream(of: Void.self)
            let (ends, ended) = AsyncStream.makeStream(of: Bool.self)
            init(_ isHeld: Bool) { self.isHeld = isHeld }
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
                completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
            ) {
                if isHeld {
                    dataTask.suspend()
                    completionHandler(.allow)
                    answer.withLock { $0 = { dataTask.resume() } }
                } else {
                    answer.withLock { $0 = { completionHandler(.allow) } }
                }
                asked.finish()
            }
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                heard.withLock { $0 = ($0.pieces + 1, $0.bytes + data.count) }
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                ended.yield(error == nil)
                ended.finish()
            }
        }
        let drops = String(repeating: "1\r\nx\r\n", count: 40_000) + "0\r\n\r\n"
        server.route("GET", "/drops", .init([.raw(.text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + drops))]))
        let late = Late(isHeld)
        let session = URLSession(configuration: .ephemeral, delegate: late, delegateQueue: nil)
        let task = try session.dataTask(with: url("/drops"))
        task.resume()
        for await _ in late.asks {}
        while task.countOfBytesReceived < 40_000 { await Task.yield() }
        late.answer.withLock { $0 }?()
        for await isWhole in late.ends { #expect(isWhole) }
        let heard = late.heard.withLock { $0 }
        #expect(heard.bytes == 40_000 && heard.pieces < 1000, "\(heard)")
    }

    // MARK: Streamed uploads

    private final class Streamer: NSObject, URLSessionTaskDelegate, Sendable {
        let made = Mutex(0)
        let bytes: Data
        let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)
        init(_ bytes: Data) { self.bytes = bytes }
        func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
            made.withLock { $0 += 1 }
            return InputStream(data: bytes)
        }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended.yield(error as? URLError)
            ended.finish()
        }
    }

    @Test func `a stream is uploaded and created again for a redirect`() async throws {
        let content = Payload.pattern(700_000).data
        server.route("POST", "/a", .redirect(307, to: "/b"))
        server.route("POST", "/b", .status(201))
        let streamer = Streamer(content)
        let session = URLSession(configuration: .ephemeral, delegate: streamer, delegateQueue: nil)
        var request = try URLRequest(url: url("/a"))
        request.httpMethod = "POST"
        let task = session.uploadTask(withStreamedRequest: request)
        task.resume()
        for await error in streamer.ends { #expect(error == nil) }
        let last = try #require(server.requests(matching: "/b").last)
        #expect(last.bodyByteCount == 700_000 && last.headers["Transfer-Encoding"] == "chunked")
        // The delegate creates one stream for each of the two requests.
        #expect(streamer.made.withLock { $0 } == 2)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 201)
    }

    @Test(arguments: [nil, "5"]) func `the stream of a request is sent as its body`(_ length: String?) async throws {
        server.route("PUT", "/s", .status(200))
        var request = try URLRequest(url: url("/s"))
        request.httpMethod = "PUT"
        request.httpBodyStream = InputStream(data: Data("hello".utf8))
        request.setValue(length, forHTTPHeaderField: "Content-Length")
        _ = try await session.data(for: request)
        let sent = try #require(server.requests(matching: "/s").last)
        #expect(sent.bodyByteCount == 5 && sent.headers["Content-Length"] == length)
    }

    @Test func `a redirected request without a new stream fails`() async throws {
        let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)
        var request = try URLRequest(url: url("/s"))
        request.httpMethod = "PUT"
        request.httpBodyStream = InputStream(data: Data("hello".utf8))
        server.route("PUT", "/s", .redirect(307, to: "/t"))
        let task = session.dataTask(with: request) { _, _, error in
            ended.yield(error as? URLError)
            ended.finish()
        }
        task.resume()
        for await error in ends { #expect(error?.code == .requestBodyStreamExhausted) }
    }

    // MARK: Becoming a download

    @Test func `a data task becomes a download if the delegate decides so`() async throws {
        final class Changing: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
            let heard = Mutex<[String]>([])
            let file = Mutex(Data())
            let (ends, ended) = AsyncStream.makeStream(of: Void.self)
            func note(_ line: String) { heard.withLock { $0.append(line) } }
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
                completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
            ) {
                note("head")
                completionHandler(.becomeDownload)
            }
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask) {
                note("became")
            }
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { note("data") }
            func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
                note("file")
                let data = (try? Data(contentsOf: location)) ?? Data()
                file.withLock { $0 = data }
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                note("end \(task is URLSessionDownloadTask) \(error == nil)")
                ended.finish()
            }
        }
        server.route("GET", "/f", .status(200, body: .pattern(3_000_000)))
        let changing = Changing()
        let session = URLSession(configuration: .ephemeral, delegate: changing, delegateQueue: nil)
        try session.dataTask(with: url("/f")).resume()
        for await _ in changing.ends {}
        #expect(changing.heard.withLock { $0 } == ["head", "became", "file", "end true true"])
        let isWhole = changing.file.withLock { $0 == Payload.pattern(3_000_000).data }
        #expect(isWhole)
        #expect(await session.allTasks.isEmpty)
    }
}
