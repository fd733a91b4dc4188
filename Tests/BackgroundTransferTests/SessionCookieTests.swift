import FaultyServer
import Foundation
import Synchronization
import Testing
import TransferMachines

@testable import BackgroundTransfer

/// Tests of the cookies of ordinary sessions. Each test uses the store of a separate ephemeral configuration.
@Suite(.timeLimit(.minutes(30))) struct SessionCookieTests {
    let server: FaultyServer
    let configuration = URLSessionConfiguration.ephemeral

    init() async throws {
        server = try await FaultyServer.start()
        server.route("GET", "/set", .status(200, headers: ["Set-Cookie": "fruit=apple; Path=/"]))
        server.route(nil, "/see", .status(200))
    }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    /// Returns the Cookie header of the last request to a path.
    private func cookie(_ path: String = "/see") -> String? { server.requests(matching: path).last?.headers["Cookie"] }

    @Test func `default configurations use the shared cookie store`() {
        #expect(URLSessionConfiguration.default.httpCookieStorage === HTTPCookieStorage.shared)
        #expect(URLSessionConfiguration().httpCookieStorage === HTTPCookieStorage.shared)
        let other = URLSessionConfiguration.ephemeral
        #expect(
            other.httpCookieStorage !== HTTPCookieStorage.shared && other.httpCookieStorage !== configuration.httpCookieStorage)
        #expect(URLSessionConfiguration.background(withIdentifier: "b").httpCookieStorage == nil)
    }

    @Test func `a cookie that a response sets is sent with later requests`() async throws {
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/set"))
        #expect(configuration.httpCookieStorage?.cookies?.map(\.name) == ["fruit"])
        _ = try await session.data(from: url("/see"))
        #expect(cookie() == "fruit=apple")
        // Another session with the same configuration uses the same cookie store. A session with another configuration uses
        // another cookie store.
        _ = try await URLSession(configuration: configuration).data(from: url("/see"))
        #expect(cookie() == "fruit=apple")
        _ = try await URLSession(configuration: .ephemeral).data(from: url("/see"))
        #expect(cookie() == nil)
    }

    @Test func `a cookie of a redirect is sent to its target`() async throws {
        server.route(
            "GET", "/login", .init([.status(302), .headers(["Set-Cookie": "s=1", "Location": "/see", "Content-Length": "0"])]))
        _ = try await URLSession(configuration: configuration).data(from: url("/login"))
        #expect(cookie() == "s=1")
    }

    @Test func `several cookies of one response are all stored`() async throws {
        let day = "Wed, 21 Oct 2065 07:28:00 GMT"
        server.route(
            "GET", "/two",
            .init([
                .status(200), .headers(["Set-Cookie": "a=1; Expires=\(day)", "Set-Cookie": "b=2", "Content-Length": "0"]),
            ]))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/two"))
        _ = try await session.data(from: url("/see"))
        #expect(cookie() == "a=1; b=2")
    }

    @Test func `a cookie of the request takes precedence over the stored cookie`() async throws {
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/set"))
        var request = try URLRequest(url: url("/see"))
        request.setValue("fruit=pear; own=1", forHTTPHeaderField: "Cookie")
        _ = try await session.data(for: request)
        #expect(cookie() == "fruit=pear; own=1")
    }

    enum Off: CaseIterable { case noStore, notSent, notHandled, never }

    @Test(arguments: Off.allCases) func `cookies can be turned off`(_ off: Off) async throws {
        var request = try URLRequest(url: url("/see"))
        let first = URLSession(configuration: configuration)
        if off != .never { _ = try await first.data(from: url("/set")) }
        switch off {
        case .noStore: configuration.httpCookieStorage = nil
        case .notSent: configuration.httpShouldSetCookies = false
        case .notHandled: request.httpShouldHandleCookies = false
        case .never:
            configuration.httpCookieAcceptPolicy = .never
            _ = try await URLSession(configuration: configuration).data(from: url("/set"))
        }
        _ = try await URLSession(configuration: configuration).data(for: request)
        #expect(cookie() == nil)
    }

    /// Foundation's store returns every cookie of a host, so the session must select the cookies for a request.
    @Test(arguments: [
        "a=1; Path=/other", "a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT", "a=1; Secure", "a=1; Domain=com", "a=1; Max-Age=0",
        "a=1; Domain=example.org",
        "__Host-a=1; Path=/", "__Secure-a=1", "a=1; Domain=0.0.1",
    ])
    func `an expired cookie or a cookie for another place is not sent`(_ cookie: String) async throws {
        server.route("GET", "/odd", .status(200, headers: ["Set-Cookie": cookie]))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/odd"))
        _ = try await session.data(from: url("/see"))
        #expect(self.cookie() == nil)
    }

    @Test func `cookies are not sent to another host after a redirect`() async throws {
        let other = try await FaultyServer.start()
        other.route("GET", "/b", .status(200))
        let away = other.url.replacingOccurrences(of: "127.0.0.1", with: "localhost") + "/b"
        server.route("GET", "/away", .redirect(302, to: away))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/set"))
        _ = try await session.data(from: url("/away"))
        #expect(other.requests(matching: "/b").last?.headers["Cookie"] == nil)
        #expect(self.cookie("/away") == "fruit=apple")
    }

    /// A cookie without a path belongs to the folder of the URL that sent the cookie.
    @Test func `a cookie without a path is sent only to its folder`() async throws {
        server.route("GET", "/deep/in/set", .status(200, headers: ["Set-Cookie": "a=1"]))
        server.route(nil, "/deep/*", .status(200))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/deep/in/set"))
        for (path, isSent) in [("/deep/in/other", true), ("/deep/elsewhere", false), ("/see", false)] {
            _ = try await session.data(from: url(path))
            #expect((cookie(path) != nil) == isSent, "\(path)")
        }
    }

    // MARK: Bounds

    private func setting(_ cookies: [String]) -> ResponseScript {
        let lines = cookies.map { HeaderLine("Set-Cookie", $0) } + [HeaderLine("Content-Length", "0")]
        return .init([.status(200), .headers(HeaderList(lines))])
    }

    private var stored: [HTTPCookie] { configuration.httpCookieStorage?.cookies ?? [] }

    @Test func `the number of cookies that one response can set is limited`() async throws {
        server.route("GET", "/flood", setting((0..<900).map { "c\($0)=some value" }))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/flood"))
        #expect(stored.count == SessionCookies.mostPerAnswer && stored.contains { $0.name == "c0" })
    }

    @Test func `a cookie that is too long is not stored`() async throws {
        let long = String(repeating: "x", count: 4094)
        server.route("GET", "/long", setting(["a=" + long, "b=1" + long, "c=1; Comment=" + long, "d=1"]))
        _ = try await URLSession(configuration: configuration).data(from: url("/long"))
        #expect(stored.map(\.name).sorted() == ["a", "d"])
    }

    @Test func `new cookies of a domain replace its oldest cookies`() async throws {
        server.handle("GET", "/some") { [self] request in setting((0..<50).map { "c\(request.query ?? "")-\($0)=1" }) }
        let session = URLSession(configuration: configuration)
        for number in 1...5 { _ = try await session.data(from: url("/some?\(number)")) }
        let names = Set(stored.map(\.name))
        #expect(names.count == SessionCookies.mostPerDomain)
        #expect((0..<50).allSatisfy { names.contains("c5-\($0)") && names.contains("c3-\($0)") && !names.contains("c1-\($0)") })
    }

    @Test func `new cookies replace the oldest cookies of all domains`() throws {
        func cookie(_ number: Int, _ domain: String) throws -> HTTPCookie {
            try #require(HTTPCookie(properties: [.name: "\(number)", .value: "1", .domain: domain, .path: "/"]))
        }
        let held = try (0..<SessionCookies.mostInAll).map { try cookie($0, "\($0 % 30).test") }
        let new = try [cookie(1, "new.test"), cookie(2, "new.test"), cookie(3, "3.test")]
        // The third cookie replaces the stored cookie that has the same name and domain.
        let displaced = SessionCookies.displaced(by: new, of: held.shuffled(), now: Date())
        #expect(displaced.map(\.name).sorted() == ["0", "1"])
    }

    /// Cookies with the longest paths come first. Cookies that do not fit are left out.
    @Test func `the length of the Cookie header is limited`() async throws {
        let value = String(repeating: "x", count: 4000)
        server.route(
            "GET", "/set-long",
            setting(["p=\(value); Path=/", "q=\(value); Path=/deep", "r=\(value); Path=/deep/in", "s=1; Path=/"]))
        server.route(nil, "/deep/*", .status(200))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/set-long"))
        _ = try await session.data(from: url("/deep/in/x"))
        let sent = try #require(cookie("/deep/in/x"))
        #expect(sent.utf8.count <= SessionCookies.longestHeader)
        #expect(sent.split(separator: "; ").map { String($0.prefix(1)) } == ["r", "q", "s"])
    }

    // MARK: Order

    /// Requests of other sessions continue. Requests of the session with the slow store wait, and so does the end of its first
    /// task.
    @Test(arguments: ["/set", "/login"]) func `a slow cookie store delays only its session`(_ path: String) async throws {
        server.route(
            "GET", "/set",
            .init([.hold(until: "go"), .status(200), .headers(["Set-Cookie": "fruit=apple; Path=/", "Content-Length": "0"])]))
        server.route(
            "GET", "/login",
            .init([
                .hold(until: "go"), .status(302),
                .headers(["Set-Cookie": "fruit=apple", "Location": "/see", "Content-Length": "0"]),
            ]))
        server.route("GET", "/ping", .status(200))
        let session = URLSession(configuration: configuration)
        let engine = try #require(session.engine as? OrdinarySession)
        let told = Mutex(false)
        let storage = try #require(configuration.httpCookieStorage)
        let (ends, ended) = AsyncStream.makeStream(of: Int.self)
        let task = try session.dataTask(with: url(path)) { _, _, _ in
            told.withLock { $0 = true }
            ended.yield(storage.cookies?.count ?? 0)
            ended.finish()
        }
        task.resume()
        try await server.waitForRequest { $0.path == path }
        let disk = DispatchSemaphore(value: 0)
        engine.cookies.store { disk.wait() }
        server.openGate("go")
        // The requests of another session continue before and after the response with the cookie has arrived.
        repeat {
            _ = try await URLSession(configuration: .ephemeral).data(from: url("/ping"))
        } while engine.cookies.pendingCount < 2
        // The next request of the session that receives the cookie waits.
        let place = try url("/see")
        async let next = session.data(from: place)
        _ = try await URLSession(configuration: .ephemeral).data(from: url("/ping"))
        #expect(!told.withLock { $0 } && server.requests(matching: "/see").isEmpty)
        disk.signal()
        _ = try await next
        for await count in ends { #expect(count == 1) }
        #expect(server.requests(matching: "/see").allSatisfy { $0.headers["Cookie"] == "fruit=apple" })
    }

    @Test func `cookies are stored before the response headers are delivered`() async throws {
        final class Looking: NSObject, URLSessionDataDelegate, Sendable {
            let storage: HTTPCookieStorage
            let (heads, head) = AsyncStream.makeStream(of: Int.self)
            init(_ storage: HTTPCookieStorage) { self.storage = storage }
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
                completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
            ) {
                head.yield(storage.cookies?.count ?? 0)
                completionHandler(.allow)
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                head.finish()
            }
        }
        server.handle("GET", "/some") { [self] request in setting((0..<50).map { "c\(request.query ?? "")-\($0)=1" }) }
        _ = try await URLSession(configuration: configuration).bytes(from: url("/some?1"))
        #expect(stored.count == 50)
        let looking = Looking(try #require(configuration.httpCookieStorage))
        try URLSession(configuration: configuration, delegate: looking, delegateQueue: nil).dataTask(with: url("/some?2"))
            .resume()
        var seen: [Int] = []
        for await count in looking.heads { seen.append(count) }
        #expect(seen == [100])
    }
}
