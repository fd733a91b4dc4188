import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing

/// A test double that responds to requests instead of the network. The path selects the response.
private class Stub: BackgroundTransfer.URLProtocol {
    static let stops = Mutex(0)
    /// The number of loads that never received a response.
    static let silences = Mutex(0)

    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "stub.test" }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        var request = request
        request.setValue("yes", forHTTPHeaderField: "X-Canonical")
        return request
    }

    override func startLoading() {
        guard let url = request.url, let client else { return }
        switch url.path {
        case "/redirect":
            let to = URL(string: "https://stub.test/answer") ?? url
            let head = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: ["Location": to.absoluteString])
            if let head { client.urlProtocol(self, wasRedirectedTo: URLRequest(url: to), redirectResponse: head) }
        case "/fails": client.urlProtocol(self, didFailWithError: URLError(.notConnectedToInternet))
        case "/odd": client.urlProtocol(self, didFailWithError: CocoaError(.fileNoSuchFile))
        case "/silent": Self.silences.withLock { $0 += 1 }
        case "/file":
            let head = HTTPURLResponse(url: url, statusCode: 302, httpVersion: nil, headerFields: nil)
            let file = URLRequest(url: URL(fileURLWithPath: "/etc/hostname"))
            if let head { client.urlProtocol(self, wasRedirectedTo: file, redirectResponse: head) }
        case "/echo":
            let head = HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: nil,
                headerFields: [
                    "X-Token": request.value(forHTTPHeaderField: "X-Token") ?? "none", "X-Body": "\(request.httpBody == nil)",
                ])
            if let head { client.urlProtocol(self, didReceive: head, cacheStoragePolicy: .notAllowed) }
            client.urlProtocol(self, didLoad: Self.read(request.httpBodyStream))
            client.urlProtocolDidFinishLoading(self)
        default:
            let head = HTTPURLResponse(
                url: url, statusCode: 429, httpVersion: "HTTP/1.1",
                headerFields: ["X-Seen": request.value(forHTTPHeaderField: "X-Canonical") ?? "no"])
            if let head { client.urlProtocol(self, didReceive: head, cacheStoragePolicy: .notAllowed) }
            for piece in ["stub", "bed"] { client.urlProtocol(self, didLoad: Data(piece.utf8)) }
            client.urlProtocolDidFinishLoading(self)
        }
    }

    private static func read(_ stream: InputStream?) -> Data {
        guard let stream else { return Data("no stream".utf8) }
        stream.open()
        defer { stream.close() }
        var (data, buffer) = (Data(), [UInt8](repeating: 0, count: 100))
        while case let count = stream.read(&buffer, maxLength: buffer.count), count > 0 { data += buffer.prefix(count) }
        return data
    }

    override func stopLoading() { Self.stops.withLock { $0 += 1 } }
}

/// A test double with the wrong superclass. An app uses this superclass by mistake if the file of its test double imports
/// FoundationNetworking.
private final class Foreign: FoundationNetworking.URLProtocol {}

@Suite(.timeLimit(.minutes(30)), .serialized) struct URLProtocolTests {
    private let stubbed: URLSessionConfiguration = {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Stub.self]
        return configuration
    }()

    private func url(_ path: String) throws -> URL { try #require(URL(string: "https://stub.test" + path)) }

    @Test func `a URL protocol class responds instead of the network`() async throws {
        let session = URLSession(configuration: stubbed)
        let (data, response) = try await session.data(from: url("/answer"))
        let head = try #require(response as? HTTPURLResponse)
        #expect(head.statusCode == 429 && head.value(forHTTPHeaderField: "X-Seen") == "yes")
        #expect(String(decoding: data, as: UTF8.self) == "stubbed")
        let (file, _) = try await session.download(from: url("/answer"))
        #expect(try String(contentsOf: file, encoding: .utf8) == "stubbed")
        try FileManager.default.removeItem(at: file)
        var request = try URLRequest(url: url("/answer"))
        request.httpMethod = "POST"
        let (answer, _) = try await session.upload(for: request, from: Data("body".utf8))
        #expect(String(decoding: answer, as: UTF8.self) == "stubbed")
    }

    /// The class is inserted into the configuration's default list, as most apps do.
    @Test func `a URL protocol class that is inserted into the list is used`() async throws {
        for configuration in [URLSessionConfiguration.default, .ephemeral] {
            configuration.protocolClasses?.insert(Stub.self, at: 0)
            let (data, _) = try await URLSession(configuration: configuration).data(from: url("/answer"))
            #expect(String(decoding: data, as: UTF8.self) == "stubbed")
        }
    }

    /// The request has the headers of the configuration, and its body is always a stream, as on iOS.
    @Test(arguments: ["request", "data", "file"])
    func `a URL protocol class receives all headers, and the body as a stream`(_ body: String) async throws {
        stubbed.httpAdditionalHeaders = ["X-Token": "secret"]
        let session = URLSession(configuration: stubbed)
        let bytes = Data(repeating: 65, count: 1_000)
        var request = URLRequest(url: try url("/echo"))
        request.httpMethod = "POST"
        let (data, response): (Data, URLResponse)
        switch body {
        case "request":
            request.httpBody = bytes
            (data, response) = try await session.data(for: request)
        case "data": (data, response) = try await session.upload(for: request, from: bytes)
        default:
            let file = FileManager.default.temporaryDirectory.appendingPathComponent("body-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: file) }
            try bytes.write(to: file)
            (data, response) = try await session.upload(for: request, fromFile: file)
        }
        let head = try #require(response as? HTTPURLResponse)
        #expect(data == bytes && head.value(forHTTPHeaderField: "X-Body") == "true")
        #expect(head.value(forHTTPHeaderField: "X-Token") == "secret")
    }

    /// The timeout of the configuration also applies to a URL protocol class.
    @Test func `a load without a response times out`() async throws {
        stubbed.timeoutIntervalForRequest = 0.2
        let error = await #expect(throws: URLError.self) {
            _ = try await URLSession(configuration: stubbed).data(from: url("/silent"))
        }
        #expect(error?.code == .timedOut)
    }

    @Test(arguments: [false, true])
    func `a redirect to a local file is refused with and without a delegate`(_ hasDelegate: Bool) async throws {
        final class Silent: NSObject, URLSessionTaskDelegate, Sendable {}
        let error = await #expect(throws: URLError.self) {
            _ = try await URLSession(configuration: stubbed).data(from: url("/file"), delegate: hasDelegate ? Silent() : nil)
        }
        #expect(error?.code == .unsupportedURL)
    }

    @Test func `a delegate receives the response of a URL protocol class in order`() async throws {
        final class ReceivedEvents: NSObject, URLSessionDataDelegate, Sendable {
            let (lines, said) = AsyncStream.makeStream(of: String.self)
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse) async
                -> URLSession.ResponseDisposition
            {
                said.yield("head")
                return .allow
            }
            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                said.yield(String(decoding: data, as: UTF8.self))
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                said.yield(error == nil ? "end" : "error")
                said.finish()
            }
        }
        let heard = ReceivedEvents()
        let session = URLSession(configuration: stubbed, delegate: heard, delegateQueue: nil)
        try session.dataTask(with: url("/answer")).resume()
        var lines: [String] = []
        for await line in heard.lines { lines.append(line) }
        #expect(lines == ["head", "stub", "bed", "end"])
        session.invalidateAndCancel()
    }

    @Test func `a delegate can refuse the redirect of a URL protocol class`() async throws {
        final class Refusing: NSObject, URLSessionTaskDelegate, Sendable {
            func urlSession(
                _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
                newRequest request: URLRequest
            ) async -> URLRequest? { nil }
        }
        let session = URLSession(configuration: stubbed)
        let (data, _) = try await session.data(from: url("/redirect"))
        #expect(String(decoding: data, as: UTF8.self) == "stubbed")
        let (_, refused) = try await session.data(from: url("/redirect"), delegate: Refusing())
        #expect((refused as? HTTPURLResponse)?.statusCode == 302)
    }

    @Test func `an error of a URL protocol class is the error of the task`() async throws {
        let session = URLSession(configuration: stubbed)
        let offline = await #expect(throws: URLError.self) { try await session.data(from: url("/fails")) }
        #expect(offline?.code == .notConnectedToInternet && offline?.failingURL?.path == "/fails")
        let odd = await #expect(throws: URLError.self) { try await session.data(from: url("/odd")) }
        #expect(odd?.code == .unknown && (odd?.userInfo[NSUnderlyingErrorKey] as? NSError)?.domain == NSCocoaErrorDomain)
    }

    @Test func `a cancelled load is stopped`() async throws {
        let (stops, silences) = (Stub.stops.withLock { $0 }, Stub.silences.withLock { $0 })
        let session = URLSession(configuration: stubbed)
        let (ends, ended) = AsyncStream.makeStream(of: URLError?.self)
        let waiting = try session.dataTask(with: url("/silent")) { _, _, error in
            ended.yield(error as? URLError)
            ended.finish()
        }
        waiting.resume()
        // `stopLoading` is called only for a load that has begun, so the test waits for this.
        while Stub.silences.withLock({ $0 }) == silences { await Task.yield() }
        waiting.cancel()
        for await error in ends { #expect(error?.code == .cancelled) }
        while Stub.stops.withLock({ $0 }) == stops { await Task.yield() }
    }

    /// The request fails with an error, because it must not reach the real network unnoticed.
    @Test func `a subclass of the URL protocol of FoundationNetworking is an error`() async throws {
        let server = try await FaultyServer.start()
        server.route(nil, "/x", .status(200))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [Foreign.self]
        let place = try #require(URL(string: server.url + "/x"))
        let error = await #expect(throws: URLError.self) { try await URLSession(configuration: configuration).data(from: place) }
        #expect(error?.code == .unsupportedURL && error?.localizedDescription.contains("FoundationNetworking") == true)
        #expect(server.requests().isEmpty)
    }

    @Test func `a registered class is used by the shared session`() async throws {
        BackgroundTransfer.URLProtocol.registerClass(Stub.self)
        let (data, _) = try await URLSession.shared.data(from: url("/answer"))
        BackgroundTransfer.URLProtocol.unregisterClass(Stub.self)
        #expect(String(decoding: data, as: UTF8.self) == "stubbed")
        #expect(!BackgroundTransfer.URLProtocol.registerClass(NSObject.self))
    }

    @Test func `a property of a request can be set, read and removed`() throws {
        let request = try NSMutableURLRequest(url: url("/answer"))
        BackgroundTransfer.URLProtocol.setProperty(true, forKey: "seen", in: request)
        #expect(BackgroundTransfer.URLProtocol.property(forKey: "seen", in: request as URLRequest) as? Bool == true)
        BackgroundTransfer.URLProtocol.removeProperty(forKey: "seen", in: request)
        #expect(BackgroundTransfer.URLProtocol.property(forKey: "seen", in: request as URLRequest) == nil)
    }

    // MARK: Data and file URLs

    @Test(arguments: [
        ("data:,A%20brief%20note", "A brief note", "text/plain", nil),
        ("data:text/html;charset=utf-8;base64,PGI+", "<b>", "text/html", "utf-8"),
        ("data:application/json;charset=iso-8859-1;key=value,,123", ",123", "application/json", "iso-8859-1"),
    ])
    func `a data URL is loaded`(_ address: String, _ text: String, _ type: String, _ charset: String?) async throws {
        let (data, response) = try await URLSession(configuration: .ephemeral).data(from: #require(URL(string: address)))
        #expect(String(decoding: data, as: UTF8.self) == text)
        #expect(response.mimeType == type && response.textEncodingName == charset)
        #expect(response.expectedContentLength == Int64(text.utf8.count) && response.url?.absoluteString == address)
    }

    @Test(arguments: ["data://blah", "data:text;base64,***", "data:a/b;x=%31,"])
    func `an invalid data URL is a bad URL`(_ address: String) async throws {
        let place = try #require(URL(string: address))
        let error = await #expect(throws: URLError.self) { try await URLSession(configuration: .ephemeral).data(from: place) }
        #expect(error?.code == .badURL)
    }

    @Test func `a file URL is loaded`() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("note-\(UUID().uuidString).txt")
        try Data("a note".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let session = URLSession(configuration: .ephemeral)
        let (data, response) = try await session.data(from: file)
        #expect(String(decoding: data, as: UTF8.self) == "a note" && response.expectedContentLength == 6)
        let missing = await #expect(throws: URLError.self) { try await session.data(from: file.appendingPathExtension("gone")) }
        #expect(missing?.code == .fileDoesNotExist)
        let folder = await #expect(throws: URLError.self) { try await session.data(from: file.deletingLastPathComponent()) }
        #expect(folder?.code == .fileIsDirectory)
    }
}
