import BackgroundTasksTesting
import BackgroundTransfer
import ServerScripts
import Testing

/// Tests of `APIClientApp.swift`.
@Suite struct APIClientAppTests {
    private struct User: Codable, Equatable, Sendable {
        let userName: String
    }

    private let credential = URLCredential(user: "ada", password: "enchantress", persistence: .forSession)

    private func guarded(_ server: VirtualServer) {
        let expected = "Basic " + Data("ada:enchantress".utf8).base64EncodedString()
        server.handle("GET", "/me") { request in
            guard request.headers["Authorization"] == expected else {
                return .status(401, headers: ["WWW-Authenticate": "Basic realm=\"api\""])
            }
            return .json(#"{"user_name": "ada"}"#)
        }
    }

    private func run(
        credentials: [String: URLCredential] = [:],
        _ body: @Sendable (TestDriver, APIClient, SessionAuthenticator, VirtualServer) async throws -> Void
    ) async throws {
        try await TestDriver.run(permitting: []) { driver in
            let delegate = SessionAuthenticator(credentials: credentials)
            let url = try #require(URL(string: "https://api.test"))
            let client = APIClient(baseURL: url, configuration: .ephemeral, delegate: delegate, clock: driver.clock)
            try await body(driver, client, delegate, driver.network.server("https://api.test"))
        }
    }

    @Test func `a challenge is answered with the credential`() async throws {
        try await run(credentials: ["api.test": credential]) { driver, client, delegate, server in
            guarded(server)
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            #expect(user == User(userName: "ada"))
            #expect(server.requests().map(\.status) == [401, 200])
            #expect(delegate.challengedMethods == [NSURLAuthenticationMethodHTTPBasic])
        }
    }

    @Test
    func `the delegate receives metrics`() async throws {
        try await run { driver, client, delegate, server in
            server.route("GET", "/me", .json(#"{"user_name": "ada"}"#))
            _ = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            #expect(delegate.metrics.count == 1)
        }
    }

    @Test func `a request without a credential is cancelled at the challenge`() async throws {
        try await run { driver, client, delegate, server in
            guarded(server)
            // The delegate cancels the challenge, which cancels the request.
            await #expect(throws: CancellationError.self) {
                try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            }
            #expect(server.requests().count == 1)
        }
    }

    @Test func `a wrong credential is tried once`() async throws {
        let wrong = URLCredential(user: "ada", password: "guess", persistence: .none)
        try await run(credentials: ["api.test": wrong]) { driver, client, delegate, server in
            guarded(server)
            await #expect(throws: CancellationError.self) {
                try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            }
            #expect(server.requests().map(\.status) == [401, 401])
            #expect(delegate.challengedMethods.count == 2)
        }
    }

    @Test func `the delegate of a task answers a challenge`() async throws {
        try await run { driver, client, _, server in
            guarded(server)
            let own = SessionAuthenticator(credentials: ["api.test": credential])
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me"), delegate: own) }
            #expect(user == User(userName: "ada"))
            #expect(own.challengedMethods.count == 1)
        }
    }

    @Test
    func `async methods of a delegate are called`() async throws {
        try await run { driver, client, _, server in
            guarded(server)
            let own = AsyncAuthenticator(user: "ada", password: "enchantress")
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me"), delegate: own) }
            #expect(user == User(userName: "ada"))
        }
    }

    @Test func `a request to a busy server is repeated after the Retry-After time`() async throws {
        try await run { driver, client, _, server in
            server.route("GET", "/me", .status(503, headers: ["Retry-After": "30"]), .json(#"{"user_name": "ada"}"#))
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            #expect(user == User(userName: "ada"))
            let times = server.requests().map(\.receivedAt)
            try #require(times.count == 2)
            // If the machine is busy, more than 30 seconds of virtual time pass.
            #expect(times[1].timeIntervalSince(times[0]) >= 30)
        }
    }

    @Test func `a request is tried three times`() async throws {
        try await run { driver, client, _, server in
            server.route("GET", "/me", .status(500))
            server.route("GET", "/gone", .hangUp)
            await #expect(throws: APIError.status(500)) {
                try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            }
            await #expect(throws: APIError.transport(.networkConnectionLost)) {
                try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "gone")) }
            }
            #expect(server.requests(matching: "/me").count == 3 && server.requests(matching: "/gone").count == 3)
        }
    }

    @Test func `a redirect to another host is refused`() async throws {
        try await run { driver, client, _, server in
            server.route("GET", "/me", .redirect(302, to: "https://elsewhere.test/me"))
            await #expect(throws: APIError.status(302)) {
                try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            }
            #expect(driver.network.server("https://elsewhere.test").requests().isEmpty)
        }
    }

    @Test func `a body is sent with its headers`() async throws {
        try await run { driver, client, _, server in
            server.route("POST", "/users", .json(#"{"user_name": "ada"}"#, status: 201))
            let endpoint = try Endpoint<User>.post("users", User(userName: "ada"))
            #expect(try await whileTimePasses(driver) { try await client.send(endpoint) } == User(userName: "ada"))
            let request = try #require(server.requests().first)
            #expect(request.bodyByteCount == endpoint.body?.count)
            #expect(request.headers["Content-Type"] == "application/json" && request.headers["User-Agent"] == "Example/1.0")
        }
    }
}

/// Tests of `StubbedClientApp.swift`. The tests are written as the author of the app would write them. The virtual network has no
/// server, so a request that the stub does not handle makes the run fail.
@Suite(.serialized) struct StubbedClientAppTests {
    private let potsdam = CurrentWeather(city: "Potsdam", celsius: 21.5)

    // The runs are serialized, because all runs share one static variable, the handler of the stub.
    private func run(
        _ handler: @escaping MockURLProtocol.RequestHandler, _ body: @Sendable (TestDriver, WeatherClient) async throws -> Void
    ) async throws {
        try await TestDriver.run(permitting: []) { driver in
            try await body(driver, WeatherClient(session: .stubbed(handler)))
        }
        MockURLProtocol.requestHandler = nil
    }

    private static func response(_ request: URLRequest, _ status: Int) throws -> HTTPURLResponse {
        let url = try #require(request.url)
        return try #require(
            HTTPURLResponse(
                url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: ["Content-Type": "application/json"]))
    }

    @Test func `the stub responds instead of the server`() async throws {
        let answer = try JSONEncoder().encode(potsdam)
        try await run({ (try Self.response($0, 200), answer) }) { driver, client in
            let weather = try await whileTimePasses(driver) { try await client.current(in: "Potsdam") }
            #expect(weather == potsdam)
            let request = try #require(MockURLProtocol.requests.first)
            #expect(request.url?.path == "/v2/current/Potsdam")
            #expect(request.value(forHTTPHeaderField: "Authorization") == "Bearer token")
        }
    }

    /// The stub is registered with `URLProtocol.registerClass`, as in older test suites.
    @Test
    func `a registered stub responds to the shared session`() async throws {
        let answer = try JSONEncoder().encode(potsdam)
        try await run({ (try Self.response($0, 200), answer) }) { driver, _ in
            // The stub is registered only during the run. No other test runs at this time, so the stub cannot respond to requests
            // of other tests.
            #expect(URLProtocol.registerClass(MockURLProtocol.self))
            defer { URLProtocol.unregisterClass(MockURLProtocol.self) }
            let weather = try await whileTimePasses(driver) { try await WeatherClient().current(in: "Potsdam") }
            #expect(weather == potsdam)
        }
    }

    @Test func `an error status is an error of the client`() async throws {
        try await run({ (try Self.response($0, 404), Data()) }) { driver, client in
            await #expect(throws: WeatherClient.Failure.notFound) {
                try await whileTimePasses(driver) { try await client.current(in: "Atlantis") }
            }
        }
    }

    @Test func `the error of the stub is the error of the request`() async throws {
        try await run({ _ in throw URLError(.notConnectedToInternet) }) { driver, client in
            let error = await #expect(throws: URLError.self) {
                try await whileTimePasses(driver) { try await client.current(in: "Potsdam") }
            }
            #expect(error?.code == .notConnectedToInternet)
        }
    }

    @Test func `the stub receives the body`() async throws {
        try await run({ (try Self.response($0, 202), Data()) }) { driver, client in
            let status = try await whileTimePasses(driver) {
                try await withCheckedThrowingContinuation { continuation in
                    client.report(potsdam) { continuation.resume(with: $0) }
                }
            }
            #expect(status == 202)
            let body = try #require(MockURLProtocol.requests.first?.bodyData)
            #expect(try JSONDecoder().decode(CurrentWeather.self, from: body) == potsdam)
        }
    }
}
