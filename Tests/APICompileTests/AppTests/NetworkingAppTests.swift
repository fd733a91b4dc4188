import BackgroundTasksTesting
import BackgroundTransfer
import ServerScripts
import Testing

/// `APIClientApp.swift`.
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

    @Test func aChallengeIsAnsweredWithTheCredential() async throws {
        try await run(credentials: ["api.test": credential]) { driver, client, delegate, server in
            guarded(server)
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            #expect(user == User(userName: "ada"))
            #expect(server.requests().map(\.status) == [401, 200])
            #expect(delegate.challengedMethods == [NSURLAuthenticationMethodHTTPBasic])
        }
    }

    @Test
    func metricsAreTold() async throws {
        try await run { driver, client, delegate, server in
            server.route("GET", "/me", .json(#"{"user_name": "ada"}"#))
            _ = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            #expect(delegate.metrics.count == 1)
        }
    }

    @Test func withoutACredentialItIsUnauthorized() async throws {
        try await run { driver, client, delegate, server in
            guarded(server)
            // Cancelled challenges are cancelled requests.
            await #expect(throws: CancellationError.self) {
                try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            }
            #expect(server.requests().count == 1)
        }
    }

    @Test func aWrongCredentialIsNotTriedForEver() async throws {
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

    @Test func aTasksOwnDelegateAnswersToo() async throws {
        try await run { driver, client, _, server in
            guarded(server)
            let own = SessionAuthenticator(credentials: ["api.test": credential])
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me"), delegate: own) }
            #expect(user == User(userName: "ada"))
            #expect(own.challengedMethods.count == 1)
        }
    }

    @Test
    func asyncDelegateMethodsAreAsked() async throws {
        try await run { driver, client, _, server in
            guarded(server)
            let own = AsyncAuthenticator(user: "ada", password: "enchantress")
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me"), delegate: own) }
            #expect(user == User(userName: "ada"))
        }
    }

    @Test func aBusyServerIsAskedAgainWhenItSays() async throws {
        try await run { driver, client, _, server in
            server.route("GET", "/me", .status(503, headers: ["Retry-After": "30"]), .json(#"{"user_name": "ada"}"#))
            let user = try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            #expect(user == User(userName: "ada"))
            let times = server.requests().map(\.receivedAt)
            try #require(times.count == 2)
            // More virtual time passes if the machine is busy.
            #expect(times[1].timeIntervalSince(times[0]) >= 30)
        }
    }

    @Test func retriesEnd() async throws {
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

    @Test func aRedirectToAnotherHostIsRefused() async throws {
        try await run { driver, client, _, server in
            server.route("GET", "/me", .redirect(302, to: "https://elsewhere.test/me"))
            await #expect(throws: APIError.status(302)) {
                try await whileTimePasses(driver) { try await client.send(Endpoint<User>(path: "me")) }
            }
            #expect(driver.network.server("https://elsewhere.test").requests().isEmpty)
        }
    }

    @Test func aBodyIsPosted() async throws {
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

/// `StubbedClientApp.swift`: that app's own test suite. No server is there: what reached the network would fail the run.
@Suite(.serialized) struct StubbedClientAppTests {
    private let potsdam = CurrentWeather(city: "Potsdam", celsius: 21.5)

    // One run at a time: the stub's handler is the process's.
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

    @Test func theStubAnswers() async throws {
        let answer = try JSONEncoder().encode(potsdam)
        try await run({ (try Self.response($0, 200), answer) }) { driver, client in
            let weather = try await whileTimePasses(driver) { try await client.current(in: "Potsdam") }
            #expect(weather == potsdam)
            let request = try #require(MockURLProtocol.requests.first)
            #expect(request.url?.path == "/v2/current/Potsdam")
            #expect(request.value(forHTTPHeaderField: "Authorization") == "Bearer token")
        }
    }

    /// The way of older suites.
    @Test
    func aRegisteredStubAnswersTheSharedSession() async throws {
        let answer = try JSONEncoder().encode(potsdam)
        try await run({ (try Self.response($0, 200), answer) }) { driver, _ in
            // Within the run, which other tests are kept out of: the stub would answer them, too.
            #expect(URLProtocol.registerClass(MockURLProtocol.self))
            defer { URLProtocol.unregisterClass(MockURLProtocol.self) }
            let weather = try await whileTimePasses(driver) { try await WeatherClient().current(in: "Potsdam") }
            #expect(weather == potsdam)
        }
    }

    @Test func aStatusIsAnError() async throws {
        try await run({ (try Self.response($0, 404), Data()) }) { driver, client in
            await #expect(throws: WeatherClient.Failure.notFound) {
                try await whileTimePasses(driver) { try await client.current(in: "Atlantis") }
            }
        }
    }

    @Test func theStubsErrorIsTheRequests() async throws {
        try await run({ _ in throw URLError(.notConnectedToInternet) }) { driver, client in
            let error = await #expect(throws: URLError.self) {
                try await whileTimePasses(driver) { try await client.current(in: "Potsdam") }
            }
            #expect(error?.code == .notConnectedToInternet)
        }
    }

    @Test func theStubSeesTheBody() async throws {
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
