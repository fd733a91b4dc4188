import BackgroundTransfer
import FaultyServer
import Foundation
import Testing

/// Cookies of ordinary sessions. Each test has a store of its own: that of an ephemeral configuration.
@Suite(.timeLimit(.minutes(5))) struct SessionCookieTests {
    let server: FaultyServer
    let configuration = URLSessionConfiguration.ephemeral

    init() async throws {
        server = try await FaultyServer.start()
        server.route("GET", "/set", .status(200, headers: ["Set-Cookie": "fruit=apple; Path=/"]))
        server.route(nil, "/see", .status(200))
    }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    /// What the server saw of a request to this path.
    private func cookie(_ path: String = "/see") -> String? { server.requests(matching: path).last?.headers["Cookie"] }

    @Test func theDefaultStoresAreTheProcesss() {
        #expect(URLSessionConfiguration.default.httpCookieStorage === HTTPCookieStorage.shared)
        #expect(URLSessionConfiguration().httpCookieStorage === HTTPCookieStorage.shared)
        let other = URLSessionConfiguration.ephemeral
        #expect(
            other.httpCookieStorage !== HTTPCookieStorage.shared && other.httpCookieStorage !== configuration.httpCookieStorage)
        #expect(URLSessionConfiguration.background(withIdentifier: "b").httpCookieStorage == nil)
    }

    @Test func whatIsSetIsSentLater() async throws {
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/set"))
        #expect(configuration.httpCookieStorage?.cookies?.map(\.name) == ["fruit"])
        _ = try await session.data(from: url("/see"))
        #expect(cookie() == "fruit=apple")
        // Another session of the same configuration has the same store, another configuration has not.
        _ = try await URLSession(configuration: configuration).data(from: url("/see"))
        #expect(cookie() == "fruit=apple")
        _ = try await URLSession(configuration: .ephemeral).data(from: url("/see"))
        #expect(cookie() == nil)
    }

    @Test func aRedirectSetsAndCarriesThem() async throws {
        server.route(
            "GET", "/login", .init([.status(302), .headers(["Set-Cookie": "s=1", "Location": "/see", "Content-Length": "0"])]))
        _ = try await URLSession(configuration: configuration).data(from: url("/login"))
        #expect(cookie() == "s=1")
    }

    @Test func ofSeveralEachIsKept() async throws {
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

    @Test func theRequestsOwnStaysBesideTheStores() async throws {
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/set"))
        var request = try URLRequest(url: url("/see"))
        request.setValue("fruit=pear; own=1", forHTTPHeaderField: "Cookie")
        _ = try await session.data(for: request)
        #expect(cookie() == "fruit=pear; own=1")
    }

    enum Off: CaseIterable { case noStore, notSent, notHandled, never }

    @Test(arguments: Off.allCases) func theyCanBeTurnedOff(_ off: Off) async throws {
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

    /// Foundation's store gives out every cookie of a host.
    @Test(arguments: [
        "a=1; Path=/other", "a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT", "a=1; Secure", "a=1; Domain=com", "a=1; Max-Age=0",
        "a=1; Domain=example.org",
        "__Host-a=1; Path=/", "__Secure-a=1", "a=1; Domain=0.0.1",
    ])
    func whatIsForElsewhereIsNotSent(_ cookie: String) async throws {
        server.route("GET", "/odd", .status(200, headers: ["Set-Cookie": cookie]))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/odd"))
        _ = try await session.data(from: url("/see"))
        #expect(self.cookie() == nil)
    }

    /// Of another host not even where the store has some for it.
    @Test func theyStayWithTheirHost() async throws {
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

    /// Of no path it is for the folder that it came from.
    @Test func aCookieStaysInItsFolder() async throws {
        server.route("GET", "/deep/in/set", .status(200, headers: ["Set-Cookie": "a=1"]))
        server.route(nil, "/deep/*", .status(200))
        let session = URLSession(configuration: configuration)
        _ = try await session.data(from: url("/deep/in/set"))
        for (path, isSent) in [("/deep/in/other", true), ("/deep/elsewhere", false), ("/see", false)] {
            _ = try await session.data(from: url(path))
            #expect((cookie(path) != nil) == isSent, "\(path)")
        }
    }
}
