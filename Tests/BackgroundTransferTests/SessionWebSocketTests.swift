import BackgroundTransfer
import Foundation
import Synchronization
import Testing

/// Tests of web sockets of ordinary sessions. The server uses another implementation of web sockets.
@Suite(.timeLimit(.minutes(30))) struct SessionWebSocketTests {
    let server: SocketServer
    let configuration = URLSessionConfiguration.ephemeral

    init() async throws { server = try await SocketServer.start() }

    /// A delegate that records its calls in order, until the end of a task.
    private final class Recorder: NSObject, URLSessionWebSocketDelegate, Sendable {
        let lines = Mutex<[String]>([])
        let (ends, ended) = AsyncStream.makeStream(of: Void.self)
        let (openings, opened) = AsyncStream.makeStream(of: Void.self)

        private func note(_ line: String) { lines.withLock { $0.append(line) } }

        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
        ) {
            note("open \(`protocol` ?? "-")")
            opened.finish()
        }
        func urlSession(
            _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
            didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
        ) { note("close \(closeCode.rawValue) \(reason.map { String(decoding: $0, as: UTF8.self) } ?? "-")") }
        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            note("end \((error as? URLError)?.code.rawValue ?? 0)")
            ended.finish()
        }

        func untilItEnds() async -> [String] {
            for await _ in ends {}
            return lines.withLock { $0 }
        }
    }

    private func begin(_ path: String) -> (URLSessionWebSocketTask, Recorder) { begin(URLRequest(url: server.url(path))) }

    private func begin(_ request: URLRequest) -> (URLSessionWebSocketTask, Recorder) {
        let recorder = Recorder()
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        let task = session.webSocketTask(with: request)
        task.resume()
        session.finishTasksAndInvalidate()
        return (task, recorder)
    }

    private func code(_ body: () async throws -> Void) async -> URLError.Code? {
        let error = await #expect(throws: URLError.self) { try await body() }
        #expect(error?.failingURL != nil && error?.localizedDescription.isEmpty == false)
        return error?.code
    }

    // MARK: Messages

    @Test func `messages are sent and received`() async throws {
        let (task, recorder) = begin("/echo")
        try await task.send(.string("Grüße"))
        try await task.send(.data(Data([0x20, 0x22, 0x10, 0x03])))
        guard case .string("Grüße") = try await task.receive() else { throw CancellationError() }
        guard case .data(Data([0x20, 0x22, 0x10, 0x03])) = try await task.receive() else { throw CancellationError() }
        try await task.sendPing()
        #expect(task.state == .running && task.closeCode == .invalid && task.closeReason == nil)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 101)
        #expect(task.countOfBytesReceived == 11 && task.countOfBytesSent == 11)
        task.cancel(with: .goingAway, reason: Data("BuhBye".utf8))
        #expect(await recorder.untilItEnds() == ["open -", "close 1001 BuhBye", "end 0"])
        #expect(task.closeCode == .goingAway && task.closeReason == Data("BuhBye".utf8) && task.error == nil)
        #expect(task.state == .completed)
        let said = server.now.closes.map { "\($0.code ?? 0) \($0.reason)" }
        #expect(said == ["1001 BuhBye"])
        #expect(await code { _ = try await task.receive() } == .networkConnectionLost)
        #expect(await code { try await task.send(.string("late")) } == .networkConnectionLost)
        #expect(await code { try await task.sendPing() } == .networkConnectionLost)
    }

    @Test func `completion handlers are called on the delegate queue`() async throws {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: configuration, delegate: nil, delegateQueue: queue)
        let task = session.webSocketTask(with: server.url("/echo"))
        // Calls that are made before the start of the task wait for the start.
        let (lines, note) = AsyncStream.makeStream(of: String.self)
        task.receive { result in
            if case .success(.string(let text)) = result { note.yield("\(text) \(OperationQueue.current === queue)") }
        }
        task.send(.string("one")) { note.yield("sent \($0 == nil) \(OperationQueue.current === queue)") }
        task.resume()
        var iterator = lines.makeAsyncIterator()
        #expect(await iterator.next() == "sent true true")
        #expect(await iterator.next() == "one true")
        task.sendPing { note.yield("pong \($0 == nil) \(OperationQueue.current === queue)") }
        #expect(await iterator.next() == "pong true true")
        task.receive { result in
            if case .failure(let error) = result { note.yield("\((error as? URLError)?.code.rawValue ?? 0)") }
        }
        task.cancel()
        #expect(await iterator.next() == "-999")
    }

    @Test func `a ping of the server is answered`() async throws {
        let (task, _) = begin("/ping")
        guard case .string("answered") = try await task.receive() else { throw CancellationError() }
        task.cancel()
    }

    @Test func `the fragments of a message are received as one message`() async throws {
        let (task, _) = begin("/fragments")
        guard case .string("Hello") = try await task.receive() else { throw CancellationError() }
        task.cancel()
    }

    @Test(arguments: [0, 125, 126, 65_535, 65_536, 1 << 20, 5 << 20])
    func `messages of every length are sent and received`(_ count: Int) async throws {
        let (task, _) = begin("/echo")
        task.maximumMessageSize = 8 << 20
        let data = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        async let sent: Void = task.send(.data(data))
        guard case .data(let echo) = try await task.receive() else { throw CancellationError() }
        try await sent
        #expect(echo == data)
        task.cancel()
    }

    /// Both sides send more bytes than the buffers of their sockets can hold.
    @Test func `many messages keep their order`() async throws {
        let (task, _) = begin("/echo")
        let count = 3000
        let sending = Task {
            for number in 0..<count { try await task.send(.string("\(number) " + String(repeating: "x", count: number))) }
        }
        for number in 0..<count {
            guard case .string(let text) = try await task.receive() else { throw CancellationError() }
            try #require(text.prefix { $0 != " " } == "\(number)")
        }
        try await sending.value
        task.cancel()
    }

    @Test func `a message that is too long ends the connection`() async throws {
        let (task, recorder) = begin("/large/\((1 << 20) + 1)")
        #expect(await code { _ = try await task.receive() } == .dataLengthExceedsMaximum)
        #expect(await recorder.untilItEnds() == ["open -", "close 1009 -", "end -1103"])
        #expect(task.closeCode == .messageTooBig)
        let (whole, _) = begin("/large/\(1 << 20)")
        guard case .data(let data) = try await whole.receive() else { throw CancellationError() }
        #expect(data.count == 1 << 20)
        whole.cancel()
    }

    /// While the app does not read, the server has to wait. No messages are lost.
    @Test func `a slow reader of messages makes the server wait`() async throws {
        let (task, _) = begin("/flood/32")
        let (other, _) = begin("/echo")
        var last = -1
        // The server can send only as many bytes as the buffers of the sockets and of the session can hold.
        while server.now.flooded != last || last == 0 {
            last = server.now.flooded
            // The server has one thread. Each ping gives the server's thread time to send more bytes.
            for _ in 0..<20 { try await other.sendPing() }
        }
        #expect(last < 24, "\(last) megabytes were sent, although the app did not read")
        for left in (1...32).reversed() {
            guard case .data(let data) = try await task.receive() else { throw CancellationError() }
            #expect(data.count == 1 << 20 && data.first == UInt8(left))
        }
        task.cancel()
        other.cancel()
    }

    @Test func `a cancelled receive call does not lose the next message`() async throws {
        let (task, recorder) = begin("/echo")
        for await _ in recorder.openings {}
        let waiting = Task { try await task.receive() }
        waiting.cancel()
        let error = await #expect(throws: URLError.self) { _ = try await waiting.value }
        #expect(error?.code == .cancelled)
        try await task.send(.string("for the next"))
        guard case .string("for the next") = try await task.receive() else { throw CancellationError() }
        task.cancel()
    }

    // MARK: The handshake

    @Test func `the delegate receives the protocol that the server selected`() async throws {
        let recorder = Recorder()
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        let task = session.webSocketTask(with: server.url("/protocol"), protocols: ["chatbot", "IRC", "BulletinBoard"])
        task.resume()
        for await _ in recorder.openings {}
        task.cancel(with: .normalClosure, reason: nil)
        #expect(await recorder.untilItEnds() == ["open IRC", "close 1000 -", "end 0"])
        #expect(server.now.requests.first?.headers["Sec-WebSocket-Protocol"] == ["chatbot, IRC, BulletinBoard"])
    }

    @Test func `the handshake has headers and cookies`() async throws {
        configuration.httpAdditionalHeaders = ["X-Session": "s", "X-Both": "session"]
        var request = URLRequest(url: server.url("/cookie"))
        request.setValue("mine", forHTTPHeaderField: "X-Both")
        request.setValue("Bearer t", forHTTPHeaderField: "Authorization")
        let (first, opening) = begin(request)
        for await _ in opening.openings {}
        first.cancel()
        #expect(configuration.httpCookieStorage?.cookies?.map(\.name) == ["fruit"])
        let (second, again) = begin("/echo?x=1")
        for await _ in again.openings {}
        second.cancel()
        let seen = server.now.requests
        #expect(seen.first?.headers["X-Session"] == ["s"] && seen.first?.headers["X-Both"] == ["mine"])
        #expect(seen.first?.headers["Authorization"] == ["Bearer t"] && seen.first?.headers["Cookie"] == [])
        #expect(seen.last?.headers["Cookie"] == ["fruit=apple"] && seen.last?.uri == "/echo?x=1")
        #expect(seen.last?.headers["Host"] == ["127.0.0.1:\(server.port)"])
    }

    @Test func `a server without a web socket is a bad server response`() async throws {
        let (refused, recorder) = begin("/refuse")
        #expect(await code { _ = try await refused.receive() } == .badServerResponse)
        #expect(await recorder.untilItEnds() == ["end -1011"])
        let response = refused.response as? HTTPURLResponse
        #expect(response?.statusCode == 403 && response?.value(forHTTPHeaderField: "X-Why") == "no")
        #expect(refused.closeCode == .invalid)
        let (silent, other) = begin("/hang-up")
        #expect(await code { _ = try await silent.receive() } == .badServerResponse)
        #expect(await code { _ = try await silent.receive() } == .badServerResponse)
        #expect(await other.untilItEnds() == ["end -1011"])
        #expect(silent.closeCode == .invalid && silent.closeReason == nil)
    }

    @Test func `a handshake without a response times out`() async throws {
        configuration.timeoutIntervalForRequest = 1
        let (task, recorder) = begin("/wait")
        #expect(await code { try await task.send(.string("x")) } == .timedOut)
        #expect(await recorder.untilItEnds() == ["end -1001"])
    }

    @Test func `a closed port is a connection error`() async throws {
        let closed = try await SocketServer.start()
        let address = closed.url("/echo")
        await closed.stop()
        let (task, recorder) = begin(URLRequest(url: address))
        #expect(await code { _ = try await task.receive() } == .cannotConnectToHost)
        #expect(await recorder.untilItEnds() == ["end -1004"])
    }

    @Test(arguments: ["ftp://127.0.0.1/", "ws:///x", "file:///etc/passwd"])
    func `a URL with another scheme or without a host is refused`(_ address: String) async throws {
        let (task, recorder) = begin(URLRequest(url: try #require(URL(string: address))))
        #expect(await code { _ = try await task.receive() } == .unsupportedURL)
        #expect(await recorder.untilItEnds() == ["end -1002"])
    }

    /// A line break in the protocol name would begin another header.
    @Test func `a line break in a protocol name adds no header`() async throws {
        let session = URLSession(configuration: configuration)
        let task = session.webSocketTask(with: server.url("/bye/1000"), protocols: ["a\r\nX-Evil: 1"])
        task.resume()
        _ = await code { _ = try await task.receive() }
        #expect(server.now.requests.allSatisfy { $0.headers["X-Evil"].isEmpty })
    }

    @Test func `a cancelled ping ends although the server does not respond`() async throws {
        let (task, _) = begin("/wait")
        let waiting = Task { try await task.sendPing() }
        waiting.cancel()
        let error = await #expect(throws: URLError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
        task.cancel()
    }

    // MARK: Closing

    @Test(arguments: [(1000, "BuhBye", 1000), (1011, "", 1011), (4001, "log in", 4001), (0, "", 1005)])
    func `the close code and reason of the server are reported and sent back`(
        _ number: Int, _ reason: String, _ code: Int
    ) async throws {
        let (task, recorder) = begin("/bye/\(number)/\(reason)".replacingOccurrences(of: " ", with: "_"))
        #expect(await self.code { _ = try await task.receive() } == .networkConnectionLost)
        let text = reason.replacingOccurrences(of: " ", with: "_")
        #expect(await recorder.untilItEnds() == ["open -", "close \(code) \(text.isEmpty ? "-" : text)", "end 0"])
        #expect(task.closeCode.rawValue == code)
        await server.wait { !$0.closes.isEmpty }
        // The task sends the received code and reason back.
        let said = server.now.closes.map { "\($0.code ?? 0) \($0.reason)" }
        #expect(said == ["\(number) \(text)"])
    }

    @Test func `messages that arrived before the end can be received after the end`() async throws {
        let (task, recorder) = begin("/echo")
        try await task.send(.string("a"))
        try await task.send(.string("b"))
        try await task.sendPing()
        task.cancel(with: .normalClosure, reason: nil)
        _ = await recorder.untilItEnds()
        guard case .string("a") = try await task.receive() else { throw CancellationError() }
        guard case .string("b") = try await task.receive() else { throw CancellationError() }
        #expect(await code { _ = try await task.receive() } == .networkConnectionLost)
    }

    @Test func `a connection that ends without a close frame is an error`() async throws {
        let (task, recorder) = begin("/lost")
        #expect(await code { _ = try await task.receive() } == .networkConnectionLost)
        #expect(await recorder.untilItEnds() == ["open -", "close 1000 -", "end -1005"])
        #expect(task.closeCode == .normalClosure && task.closeReason == nil)
        #expect(await code { _ = try await task.receive() } == .networkConnectionLost)
    }

    @Test func `a connection that is reset is an error`() async throws {
        let (task, recorder) = begin("/reset")
        try await task.send(.string("x"))
        #expect(await code { _ = try await task.receive() } == .networkConnectionLost)
        #expect(await recorder.untilItEnds() == ["open -", "close 1006 -", "end -1005"])
    }

    @Test func `a server that breaks the protocol is a bad server response`() async throws {
        let (task, recorder) = begin("/masked")
        #expect(await code { _ = try await task.receive() } == .badServerResponse)
        #expect(await recorder.untilItEnds() == ["open -", "close 1002 -", "end -1011"])
        await server.wait { !$0.closes.isEmpty }
        #expect(server.now.closes.first?.code == 1002)
    }

    @Test func `a close by the app succeeds even if the server sends no close frame`() async throws {
        let (task, recorder) = begin("/drop-at-close")
        for await _ in recorder.openings {}
        for _ in 0..<20 { task.send(.data(Data(count: 100_000))) { _ in } }
        task.cancel(with: .normalClosure, reason: Data("BuhBye".utf8))
        #expect(task.state == .canceling)
        let drain = Task { while (try? await task.receive()) != nil {} }
        #expect(await recorder.untilItEnds() == ["open -", "close 1000 BuhBye", "end 0"])
        await drain.value
        await server.wait { !$0.closes.isEmpty }
        #expect(server.now.closes.first?.reason == "BuhBye")
    }

    enum CancellationPoint: CaseIterable { case unbegun, connecting, open, twice, withCode }

    @Test(arguments: CancellationPoint.allCases)
    func `a cancelled task ends with a cancellation error in every state`(_ moment: CancellationPoint) async throws {
        let recorder = Recorder()
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        let task = session.webSocketTask(with: server.url(moment == .connecting || moment == .withCode ? "/wait" : "/echo"))
        if moment != .unbegun { task.resume() }
        if moment == .open || moment == .twice { for await _ in recorder.openings {} }
        let waiting = Task { try await task.receive() }
        if moment == .withCode { task.cancel(with: .goingAway, reason: nil) } else { task.cancel() }
        if moment == .twice { task.cancel() }
        #expect(await code { _ = try await waiting.value } == .cancelled)
        let wasOpen = moment == .open || moment == .twice
        #expect(await recorder.untilItEnds() == (wasOpen ? ["open -"] : []) + ["end -999"])
        #expect(task.closeCode == .invalid && task.state == .completed)
        #expect(await session.allTasks.isEmpty)
    }

    @Test func `a task that was suspended and resumed receives all messages`() async throws {
        let (task, recorder) = begin("/flood/32")
        for await _ in recorder.openings {}
        task.suspend()
        #expect(task.state == .suspended)
        task.resume()
        for _ in 0..<32 { _ = try await task.receive() }
        #expect(task.state == .running)
        task.cancel()
    }

    @Test func `an invalidated session ends its web sockets`() async throws {
        let recorder = Recorder()
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        let task = session.webSocketTask(with: server.url("/echo"))
        task.resume()
        for await _ in recorder.openings {}
        #expect(await session.allTasks == [task])
        session.invalidateAndCancel()
        #expect(await recorder.untilItEnds() == ["open -", "end -999"])
    }

    // MARK: Delegates and sessions

    @Test func `methods that the delegate of a task lacks are called on the delegate of the session`() async throws {
        final class Own: NSObject, URLSessionWebSocketDelegate, Sendable {
            let opened = Mutex(0)
            func urlSession(
                _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
            ) { opened.withLock { $0 += 1 } }
        }
        let (recorder, own) = (Recorder(), Own())
        let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
        let task = session.webSocketTask(with: server.url("/bye/1000"))
        task.delegate = own
        task.resume()
        #expect(await recorder.untilItEnds() == ["close 1000 -", "end 0"])
        #expect(own.opened.withLock { $0 } == 1)
    }

    @Test func `a background session does not support web sockets`() async throws {
        let session = URLSession(configuration: .background(withIdentifier: "sockets-\(UUID().uuidString)"))
        let task = session.webSocketTask(with: server.url("/echo"))
        let error = await #expect(throws: URLError.self) { _ = try await task.receive() }
        #expect(error?.code == .unsupportedURL && error?.localizedDescription.contains("ordinary session") == true)
        #expect((task.error as? URLError)?.code == .unsupportedURL)
    }
}
